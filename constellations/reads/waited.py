"""How long the tasks of a constellation were ready and did not run, as its result says when it closes."""

from __future__ import annotations

from agents.streams.statements import current_store, raw_cursor
from agents.streams.turn import Turn
from constellations.machines import TASK

READY = "PENDING"
RECORDED = (
    "SELECT coalesce(sum(spent), 0) FROM agents_transition WHERE machine = %s AND from_state = %s"
    " AND subject_id IN (SELECT id FROM constellations_task WHERE constellation_id = %s)"
)


def waited_s(constellation: int, turn: Turn) -> float:
    """Seconds of all its tasks together: what is recorded, and what this turn is about to record."""
    recorded: float = current_store().execute(raw_cursor(), RECORDED, (TASK.name, READY, constellation)).fetchone()[0]
    steps = [event.data for event in turn.events if event.type == "state_changed"]
    steps += [each for event in turn.events for each in event.data.get("transitions", ())]
    return recorded + sum(float(each["spent"]) for each in steps if (each["machine"], each["from_state"]) == (TASK.name, READY))
