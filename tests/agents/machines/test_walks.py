"""Random walks of 10,000 events through each machine, by the real write path: what is recorded is what happened.

A walk knows nothing of a table but its events and facts, so much of what it tries is refused; what is refused leaves no trace.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agents.machines import MACHINES, TransitionNotAllowed
from agents.models import Device, Event, Session, Transition
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.door import door
from agents.streams.fold import events_since, fold_events, read_rows
from agents.streams.tables import TABLES
from agents.streams.verify import verify_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]

EVENTS, EXAMPLES = 500, 20
"""Of one walk, and walks: 10,000 events a machine."""
PIECE = 125
"""Events of one commit."""
OF_A_DEVICE = 10
"""Fewer, as each device has a stream of its own: one that has ended goes no further in the same commit."""
TABLE = {"constellation_agent": "agent", "device_agent": "agent", "tool_loop": "loop"}


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "walks", by="user:1")


class Walker:
    """Drives rows of one machine, a fresh one each time the last has ended."""

    def __init__(self, name: str, session: Session):
        self.machine, self.session = MACHINES[name], session
        self.table = TABLE.get(name, name)
        self.epoch = session.actors.count()
        self.row: dict = {}
        live = session.actors.exclude(state__in=MACHINES["actor"].terminal).first() if name == "actor" else None
        if live is not None:  # a session has one live actor: the walk goes on with it
            self.row = read_rows(session.pk, ("actor",))["actor"][str(live.pk)]
        self.accepted = self.refused = 0

    def walk(self, random: Random, events: int) -> None:
        """Every other event is one that its state may take, the others are any: most of those are refused."""
        facts = list(self.machine.combinations())
        piece = OF_A_DEVICE if self.table == "device" else PIECE
        for _ in range(0, events, piece):
            with door(self._stream(), "user:1") as opened:
                for at in range(piece):
                    choices = self.machine.choices(self.row["state"]) if self.row and at % 2 else ()
                    self._try(opened, random.choice(choices or self.machine.events), random.choice(facts))

    def _stream(self) -> int:
        """The stream to record in: the session's, or that of a device, which has one of its own."""
        if self.table != "device":
            return self.session.pk
        if not self.row or self.machine.is_terminal(self.row["state"]):
            stream = device_create(f"walked-{Device.objects.count()}", by="user:1").pk
            self.row = read_rows(stream, ("device",))["device"][str(stream)]
        return self.row["id"]

    def _try(self, opened, event: str, facts: dict) -> None:
        if self.table != "device" and (not self.row or self.machine.is_terminal(self.row["state"])):
            self._fresh(opened)
        before, written = dict(self.row), len(opened.turn.events)
        try:
            opened.turn.transition(self.machine, self.table, self.row, event, facts)
        except TransitionNotAllowed:
            assert (self.row, len(opened.turn.events)) == (before, written)
            self.refused += 1
            return
        self.accepted += 1
        assert not self.machine.is_terminal(before["state"])
        if self.machine.is_terminal(self.row["state"]):
            self._has_no_way_out(opened)

    def _has_no_way_out(self, opened) -> None:
        for event in self.machine.events:
            for facts in self.machine.combinations():
                with pytest.raises(TransitionNotAllowed):
                    opened.turn.transition(self.machine, self.table, self.row, event, facts)

    def _fresh(self, opened) -> None:
        at = {"created_at": opened.turn.at, "entered_at": opened.turn.at}
        self.row = TABLES[self.table].whole({"id": opened.take(), "state": self.machine.initial, **at, **self._parents(opened)})
        opened.turn.record("made", add={self.table: [TABLES[self.table].told(self.row)]})

    def _parents(self, opened) -> dict:
        """The columns that a row of this table cannot do without, and the rows they point to."""
        session, at = self.session.pk, opened.turn.at
        times = {"created_at": at, "entered_at": at}
        if self.table == "actor":
            self.epoch += 1
            return {"session_id": session, "epoch": self.epoch, "active_at": at}
        inbox = {
            "id": opened.take(),
            "session_id": session,
            "client_id": str(opened.take()),
            "kind": "ping",
            "by": "",
            "created_at": at,
        }
        agent = {
            "id": opened.take(), "session_id": session, "interaction_id": inbox["id"], "machine": "device_agent", "name": "a",
            "state": "CONTINUE", **times,
        }  # fmt: skip
        rows = {"inbox": [inbox], "agent": [agent]}
        if self.table == "agent":
            rows.pop("agent")
            fields = {"session_id": session, "interaction_id": inbox["id"], "machine": self.machine.name, "name": "a"}
        elif self.table == "loop":
            fields = {"agent_id": agent["id"]}
        else:
            fields = {"session_id": session, "interaction_id": inbox["id"], "agent_id": agent["id"]}
            if self.table == "task":
                rows["constellation"] = [{"id": opened.take(), "name": "c", **fields, **times}]
                fields = {"constellation_id": rows["constellation"][0]["id"], "task_id": "t"}
        opened.turn.record("parents_made", add=rows)
        return fields


@pytest.mark.parametrize("name", list(MACHINES))
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(seed=st.integers(0, 1 << 32))
def test_a_random_walk_leaves_one_event_and_one_row_of_history_for_each_step(name, session, follower, seed):
    walker = Walker(name, session)
    steps, changes = Transition.objects.count(), Event.objects.filter(type="state_changed").count()
    walker.walk(Random(seed), EVENTS)
    assert walker.accepted + walker.refused == EVENTS
    assert min(walker.accepted, walker.refused) > EVENTS // 10
    assert Transition.objects.count() - steps == walker.accepted
    assert Event.objects.filter(type="state_changed").count() - changes == walker.accepted
    follower.follow()
    assert follower.rows == {table: rows for table, rows in read_rows(session.pk).items() if rows}


class Follower:
    """Folds a stream as it grows, as a client does."""

    def __init__(self, stream: int):
        self.stream, self.seq = stream, 0
        self.rows: dict = {}

    def follow(self) -> None:
        while events := events_since(self.stream, self.seq):
            fold_events(events, self.rows)
            self.seq = events[-1]["seq"]


@pytest.fixture
def follower(session):
    return Follower(session.pk)


@pytest.mark.parametrize("name", list(MACHINES))
def test_after_a_walk_the_database_is_what_its_streams_say(name, session):
    walker = Walker(name, session)
    walker.walk(Random(len(name)), EVENTS)
    assert list(verify_database()) == []
