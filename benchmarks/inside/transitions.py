"""Transitions of agents that do nothing else, through the journal: each durable, with its history and its event."""

import asyncio
import time

from agents.clock import to_iso
from agents.engine.journal import Journal
from agents.ids import row_id, transition_id
from agents.machines import ACTOR
from agents.models import Transition
from agents.streams.door import EVENT_VERSION, door
from agents.streams.statements import current_store, json_text
from agents.streams.tables import EVENT_COLUMNS, TRANSITION_COLUMNS
from agents.streams.turn import Batch, Turn
from benchmarks.inside import load
from benchmarks.inside.raw import Part, Writer

STEPS = (("ProcessInteraction", {}), ("InteractionComplete", {"success": True}))
"""An actor's way from idle to running and back."""


class Agent:
    """One actor in the memory of its owner."""

    def __init__(self) -> None:
        self.stream = load.session()
        with door(self.stream, "system") as opened:
            at = opened.turn.at
            self.row = {
                "id": opened.take(), "session_id": self.stream, "epoch": 1, "state": "idle", "reason": "",
                "created_at": at, "entered_at": at, "active_at": at,
            }  # fmt: skip
            opened.turn.record("actor_created", add={"actor": [dict(self.row)]})
            self.head = opened.head + 1

    def batch(self, number: int) -> Batch:
        """Its transition `number`, decided."""
        turn = Turn(to_iso(time.time()), "system", lambda: 0)
        event, facts = STEPS[number % 2]
        turn.transition(ACTOR, "actor", self.row, event, facts, active_at=turn.at)
        self.head += 1
        return Batch(self.stream, self.head - 1, 0, 0, turn.events)


def measure(agents: int, rounds: int) -> dict:
    """`rounds` transitions of each of `agents` agents, one commit a round: transitions a second."""
    journal = Journal()
    took = asyncio.run(_drive(journal, [Agent() for _ in range(agents)], rounds))
    journal.close()
    written = Transition.objects.count()
    assert written == rounds * agents, written
    return {"rate": written / took}


async def _drive(journal: Journal, agents: list[Agent], rounds: int) -> float:
    begun = time.perf_counter()
    for number in range(rounds):
        committed = await journal.commit([agent.batch(number) for agent in agents])
        assert not committed.refused
    return time.perf_counter() - begun


MOVED = (("state", "text"), ("entered_at", "time"), ("active_at", "time"))
WRITTEN = (
    ("update", "agents_stream", (("head", "int"),)),
    ("insert", "agents_event", EVENT_COLUMNS),
    ("insert", "agents_transition", TRANSITION_COLUMNS),
    ("update", "agents_actor", MOVED),
)
"""What a transition writes."""


def raw(count: int, group: int) -> dict:
    """The limit: the same rows, decided and encoded before, by one writer; a commit each, and `group` in a commit."""
    agents = [Agent() for _ in range(group)]
    single = [[_encoded(agents[0].batch(number))] for number in range(count // 2 * 2)]
    grouped = [[_encoded(agent.batch(number)) for agent in agents] for number in range(max(1, 5 * count // group))]
    return {"single": _written(single), "grouped": _written(grouped)}


def _encoded(batch: Batch) -> tuple[tuple, tuple, tuple, tuple]:
    pending, seq = batch.events[0], batch.head + 1
    data, at, key = pending.data, current_store().time(pending.at), row_id(batch.stream, batch.head + 1)
    event = (key, batch.stream, seq, pending.type, EVENT_VERSION, at, pending.by, "", json_text(data))
    history = (
        transition_id(key, 0), batch.stream, seq, at, pending.by, data["machine"], data["id"],
        data["from_state"], data["to_state"], data["event"], data["reason"], data["spent"],
    )  # fmt: skip
    return (seq, batch.stream), event, history, (data["to_state"], at, at, data["id"])


def _written(commits: list[list[tuple]]) -> float:
    """Transitions a second."""
    writer, begun = Writer(), time.perf_counter()
    for records in commits:
        columns = zip(*records, strict=True)
        writer.commit(*(Part(*what, list(rows)) for what, rows in zip(WRITTEN, columns, strict=True)))
    return sum(map(len, commits)) / (time.perf_counter() - begun)
