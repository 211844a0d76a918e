"""How work on an interaction begins: with a new graph, with one that is reopened, with a fork of one (docs/engine.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents.clock import to_iso
from agents.errors import AgentsError
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from constellations.live.live import LiveGraph
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT
from constellations.plan.operations import deed_of
from constellations.runs.planner import Prepared
from constellations.services.adopt import FollowUp, Forked, Reopened, fill_fork
from constellations.services.gates import with_gates
from constellations.services.mending import mend_and_retry

if TYPE_CHECKING:
    from constellations.runs.run import ConstellationWork


CREATION = "creation"
"""The weaving mode in which a constellation is made; the other is `editing` (replanning)."""


def begin(work: ConstellationWork, turn: Turn, prepared: Any, took: float) -> None:
    """`prepared` is what `ConstellationHandler.prepare` returned in `took` seconds, which the constellation agent was in START
    for: it is then in CONTINUE, or in FAIL.
    """
    if not work.agent:
        _new_agent(work, turn, took)
    turn.by = f"agent:{work.agent['id']}"
    if isinstance(prepared, AgentsError):
        _fail(work, turn, prepared)
        return
    BEGINNINGS[type(prepared)](work, turn, prepared)
    turn.transition(CONSTELLATION_AGENT, "agent", work.agent, "created")
    work.is_filled()


def _new_agent(work: ConstellationWork, turn: Turn, took: float) -> None:
    key, began = turn.take(), to_iso(turn.ts - took)
    work.agent = {
        "id": key, "session_id": work.drive.stream, "interaction_id": work.interaction["id"],
        "machine": CONSTELLATION_AGENT.name, "name": "constellation agent", "state": CONSTELLATION_AGENT.initial,
        "reason": "", "created_at": began, "entered_at": began,
    }  # fmt: skip
    turn.record("agent_created", by=f"agent:{key}", add={"agent": [dict(work.agent)]})


def _fail(work: ConstellationWork, turn: Turn, error: AgentsError) -> None:
    """Nothing is created, and nothing half."""
    turn.transition(CONSTELLATION_AGENT, "agent", work.agent, "creation_failed", reason=str(error)[:2000])
    work.conclude("failed", {"summary": str(error), "problems": error.problems})


def _plan(work: ConstellationWork, turn: Turn, prepared: Prepared) -> None:
    gated = frozenset(work.constellation.get("gates", ()))  # of the one that this replaces, after a restart
    changes = replace(prepared.changes, added_tasks=[with_gates(row, gated) for row in prepared.changes.added_tasks])
    work.live = _new(work, turn, name=prepared.plan.name, rules=prepared.plan.rules)
    work.live.build(turn, changes)
    _start(work, turn)


def _fork(work: ConstellationWork, turn: Turn, forked: Forked) -> None:
    """The graph as it was; what had ended by itself stays so, everything else begins again."""
    work.live = live = _new(work, turn, **forked.fields)
    fill_fork(live, turn, forked.built)
    _start(work, turn)
    _follow(work, turn, live, forked.follow_up)


def _reopen(work: ConstellationWork, turn: Turn, reopened: Reopened) -> None:
    """The graph that has ended goes on in this interaction: it gets new work, or some of its tasks begin again."""
    live, by = reopened.live, work.interaction["by"]
    work.live, work.constellation = live, live.constellation
    live.on_ready = work.wait_or_ready
    turn.transition(
        CONSTELLATION, "constellation", work.constellation, "reopen", reason=reopened.follow_up.reason, by=by,
        agent_id=work.agent["id"], interaction_id=work.interaction["id"], result=None, ended_at=None, added=0,
    )  # fmt: skip
    _follow(work, turn, live, reopened.follow_up)


BEGINNINGS: dict[type, Any] = {Prepared: _plan, Forked: _fork, Reopened: _reopen}
"""By what was prepared."""


def _new(work: ConstellationWork, turn: Turn, **fields: Any) -> LiveGraph:
    """A constellation's row, recorded; after a restart it names the one that it replaces."""
    before = work.constellation
    fields |= {
        "id": turn.take(), "session_id": work.drive.stream, "interaction_id": work.interaction["id"],
        "agent_id": work.agent["id"], "created_at": turn.at, "entered_at": turn.at,
    }  # fmt: skip
    if before:
        fields |= {
            "replaces_id": before["id"],
            "added": before["added"],
            "fired": _restarted_by(before),
            "gates": before["gates"],
        }
    work.constellation = TABLES["constellation"].whole(fields)
    turn.record("constellation_created", mode=CREATION, add={"constellation": [fields]})
    return LiveGraph(work.constellation, work.wait_or_ready)


def _restarted_by(before: Fields) -> Fields:
    """How often rules that begin the run once more have done so: `times` counts over all the beginnings of an interaction."""
    names = {rule["name"] for rule in before["rules"] if deed_of(rule) == "restart"}
    return {name: count for name, count in before["fired"].items() if name in names}


def _start(work: ConstellationWork, turn: Turn) -> None:
    for event in ("validated", "start"):
        turn.transition(CONSTELLATION, "constellation", work.constellation, event)


def _follow(work: ConstellationWork, turn: Turn, live: LiveGraph, follow_up: FollowUp) -> None:
    """The edit and the retries that were asked for, in the name of whoever asked."""
    by = work.interaction["by"]
    mend_and_retry(
        live, turn, follow_up.changes, follow_up.operations, follow_up.retry, by, follow_up.reason, follow_up.based_on
    )
