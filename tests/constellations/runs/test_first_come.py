"""What others record in the moment in which a session decides about everything it has, and commands that come together."""

import pytest

from agents.engine.drives.drive import UNDECIDED, Drive
from agents.engine.journal import Journal
from agents.models import Actor, Approval, Event, InboxItem
from agents.services import sessions
from agents.streams.turn import Batch
from constellations.models import Constellation
from constellations.services import lifecycle
from constellations.services.edits import edit_apply
from constellations.services.proposals import edit_propose
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"


@pytest.fixture
def come_first(monkeypatch):
    """Lets somebody else write once between a decision that brings a constellation into a state, and its commit."""

    def arrange(state: str, act) -> list[int]:
        done: list[int] = []
        commit = Journal.commit

        async def second(journal, batches, *more):
            moved = [key for batch in batches for key in moved_to(state, batch)]
            if moved and not done:
                done.append(moved[0])
                in_thread(act, moved[0])
            return await commit(journal, batches, *more)

        monkeypatch.setattr(Journal, "commit", second)
        return done

    return arrange


def moved_to(state: str, batch: Batch) -> list[int]:
    """Constellations that a batch would bring into a state."""
    changes = [event.data.get("set", {}).get("constellation", {}) for event in batch.events]
    return [int(key) for rows in changes for key, fields in rows.items() if fields.get("state") == state]


def open_tasks(found: Constellation) -> dict[str, str]:
    return {key: state for key, state in states(found).items() if state not in ("COMPLETED", "FAILED", "CANCELLED")}


def test_a_retry_that_comes_before_the_end_is_carried_out(engine, device, come_first, tmp_path):
    fails_once = ["sh", "-c", f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; exit 3; }}"]
    plan = {"tasks": [command("a", *fails_once), noop("b"), command("c", "sleep", "0.3")]}
    told = come_first("PARTIALLY_FAILED", lambda key: lifecycle.constellation_retry(key, ["a"], by=BY))
    found = engine.carry_out(plan)
    assert told == [found.pk]
    assert (found.state, states(found)) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"})


def test_what_is_proposed_right_before_the_end_is_withdrawn(engine, device, come_first):
    operation = {"op": "add_task", "parameters": {"task_id": "x", "tool": "noop"}}
    come_first("COMPLETED", lambda key: edit_propose(key, [operation], author="token:k", who="claude"))
    engine.carry_out({"tasks": [noop("a")]})
    assert Approval.objects.get().state == "withdrawn"


@pytest.mark.parametrize("kind", ["stop", "restart", "cancel"])
def test_a_retry_that_comes_before_the_end_of_everything_ends_with_it(engine, device, come_first, kind):
    session, _ = engine.submit({"tasks": [command("a", "false"), command("hold", "sleep", "0.5")]})
    come_first("CANCELLED", lambda key: lifecycle.constellation_retry(key, ["a"], by=BY))
    told = []

    def until() -> bool:
        if not told and query("SELECT count(*) FROM constellations_task WHERE state = 'FAILED'") and something_runs():
            told.append(query("SELECT id FROM constellations_constellation"))
            in_thread(lambda: sessions.request_submit(session.pk, kind, "", {"subject": told[0]}, by=BY))
        return bool(told) and inbox_rests()

    engine.run(until)
    found = Constellation.objects.get(pk=told[0])
    assert (found.state, open_tasks(found)) == ("CANCELLED", {})


def test_where_others_record_too_the_end_is_decided_under_the_lock(engine, device, monkeypatch):
    """An edit that comes before the end, after another one, costs no reading of everything."""
    commit, hydrate, came, read = Journal.commit, Drive.hydrate, [], []

    async def second(journal, batches, *more):
        asks = any(batch.head == UNDECIDED for batch in batches)
        if asks if came else any(ends_a_task(batch) for batch in batches):
            came.append(asks)
            if len(came) < 3:
                in_thread(add, f"x{len(came)}")
        return await commit(journal, batches, *more)

    def add(task_id: str) -> None:
        edit_apply(Constellation.objects.get().pk, [{"add_task": noop(task_id)}], author=BY)

    monkeypatch.setattr(Journal, "commit", second)
    monkeypatch.setattr(Drive, "hydrate", lambda drive: (read.append(drive.stream), hydrate(drive)))
    found = engine.carry_out({"tasks": [noop("a"), noop("b", after=["a"])]})
    assert (found.state, set(states(found).values())) == ("COMPLETED", {"COMPLETED"})
    assert set(states(found)) == {"a", "b", "x1", "x2"}
    assert came == [False, True, True]
    assert len(read) == 1


def ends_a_task(batch: Batch) -> bool:
    return any(event.data.get("machine") == "task" and event.data["to_state"] == "COMPLETED" for event in batch.events)


TOGETHER = (
    ("stop", "cancel"), ("pause", "stop", "cancel"), ("pause", "stop", "resume"), ("stop", "stop"), ("stop", "restart"),
    ("restart", "stop"), ("restart", "cancel"), ("pause", "restart", "resume"), ("cancel", "stop"), ("stop", "pause"),
)  # fmt: skip


@pytest.mark.parametrize("kinds", TOGETHER, ids="-".join)
def test_commands_that_come_together_are_done_one_after_the_other(engine, device, kinds):
    """As after a moment without a runner: one turn finds them all."""
    session, _ = engine.submit({"tasks": [command("hold", "sleep", "0.5"), noop("b", after=["hold"])]})
    told = []

    def tell() -> None:
        for kind in kinds:
            sessions.request_submit(session.pk, kind, "", {"subject": told[0]}, by=BY)

    def until() -> bool:
        if not told and something_runs():
            told.append(query("SELECT id FROM constellations_constellation"))
            in_thread(tell)
        return bool(told) and inbox_rests()

    engine.run(until)
    assert not Event.objects.filter(data__event="Fault").exists()
    assert set(InboxItem.objects.exclude(kind="interaction").values_list("state", flat=True)) == {"done"}
    assert Event.objects.filter(type="interaction_ended").count() == 1
    expected = "cancelled" if "cancel" in kinds else "paused" if kinds[-1] == "pause" else "idle"
    assert Actor.objects.get().state == expected
