"""How a constellation ends, with its verdict and its result (docs/machines.md, "2. Constellation agent")."""

from __future__ import annotations

from agents.clock import from_iso
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations.editor.replacing import tasks_that_count
from constellations.live.rows import RowsOf
from constellations.live.verdict import verdict_of
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT
from constellations.machines.constellation import GIVEN_UP
from constellations.reads.waited import waited_s
from constellations.runs import planner
from constellations.runs.context import Context

OUTCOME_OF = {"COMPLETED": "completed", "PARTIALLY_FAILED": "partially_failed", "FAILED": "failed", "CANCELLED": "cancelled"}
"""Of an interaction, by the state in which its constellation has ended."""


def close(context: Context, turn: Turn, now: float, reason: str = "", *, given_up: bool = False) -> tuple[str, Fields]:
    """End a constellation whose tasks have all ended, by itself or by a rule (for a `reason`); returns outcome and result."""
    constellation, live = context.constellation, context.graph
    judged = GIVEN_UP if given_up else verdict_of(tasks_that_count(RowsOf(live.nodes)))
    result = planner.run_summary(live, from_iso(constellation["created_at"]), now, waited_s(constellation["id"], turn))
    if context.said is not None:  # by the model that has finished
        result["answer"] = context.said
        if not live.nodes:  # a direct answer: nothing was to be done
            result["summary"] = str(context.said)
    if reason:
        result["summary"] += f"; {reason}"
    turn.transition(
        CONSTELLATION, "constellation", constellation, "close", {"verdict": judged}, reason, result=result, ended_at=turn.at,
    )  # fmt: skip
    state = constellation["state"]
    turn.transition(CONSTELLATION_AGENT, "agent", context.agent, "failed" if state == "FAILED" else "finished", reason=reason)
    return OUTCOME_OF[state], result
