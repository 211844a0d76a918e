"""How work on an interaction begins: with a new graph, with one that is reopened, with a fork of one (docs/engine.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.clock import to_iso
from agents.errors import AgentsError
from agents.streams.tables import TABLES
from agents.streams.turn import Turn
from constellations.editor.editor import Changes
from constellations.live.live import LiveGraph
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT
from constellations.plan.operations import deed_of
from constellations.plan.plan import Plan
from constellations.runs.choosing import chosen_models, waits_for_review
from constellations.runs.context import Context
from constellations.services.adopt import FollowUp, ForkedGraph, ReopenedGraph, fill_fork
from constellations.services.gates.openings import with_gates
from constellations.services.mending import mend_and_retry
from constellations.services.plans import Words

CREATION = "creation"
"""The weaving mode in which a constellation is made; the other is `editing` (replanning)."""


def begin_run(
    context: Context, turn: Turn, prepared: Plan | Words | ForkedGraph | ReopenedGraph | AgentsError, took: float
) -> AgentsError | None:  # fmt: skip
    """Fill the context with the agent, the constellation and its graph; returns the error by which nothing is created.

    `prepared` is what `ConstellationHandler.prepare` returned in `took` seconds, which the constellation agent was in START
    for: it is then in CONTINUE, or in FAIL; of words it stays in START, until a model has made a plan of them (`begin_plan`).
    """
    if not context.agent:
        key, began = turn.take(), to_iso(turn.ts - took)
        context.agent = {
            "id": key, "session_id": context.stream, "interaction_id": context.interaction["id"],
            "machine": CONSTELLATION_AGENT.name, "name": "constellation agent", "state": CONSTELLATION_AGENT.initial,
            "reason": "", "created_at": began, "entered_at": began,
        }  # fmt: skip
        turn.record("agent_created", by=f"agent:{key}", add={"agent": [dict(context.agent)]})
    turn.by = f"agent:{context.agent['id']}"
    if isinstance(prepared, AgentsError):  # nothing is created, and nothing half
        fail_creation(context, turn, prepared)
        return prepared
    if isinstance(prepared, Words):
        return None
    if isinstance(prepared, Plan):
        begin_plan(context, turn, prepared)
        return None
    if isinstance(prepared, ForkedGraph):
        _begin_fork(context, turn, prepared)
    else:
        _begin_reopened(context, turn, prepared)
    turn.transition(CONSTELLATION_AGENT, "agent", context.agent, "created")
    return None


def fail_creation(context: Context, turn: Turn, error: AgentsError) -> None:
    """There is no plan, and there will be none."""
    turn.transition(CONSTELLATION_AGENT, "agent", context.agent, "creation_failed", reason=str(error)[:2000])


def begin_plan(
    context: Context, turn: Turn, plan: Plan, model_profiles: Mapping[str, str] | None = None, *,
    waits: bool = False, by_model: bool = False,
) -> None:  # fmt: skip
    """Its reader has refused all that the editor would refuse in an empty constellation; nothing is to be read again.

    `model_profiles` are those of the constellation by purpose: with `editing` a model edits it. `waits`: a person starts
    it. `by_model`: a model chose the tasks, so their calls are asked about.
    """
    gated = frozenset(context.constellation.get("gates", ()))  # of the one that this replaces, after a restart
    tasks = [with_gates(row, gated) for row in plan.tasks]
    if by_model:
        tasks = [{**row, "chosen": True} for row in tasks]
    payload = context.interaction["payload"]
    named = {**chosen_models(plan, payload), **(model_profiles or {})}
    limit = payload.get("max_concurrent") or plan.max_concurrent
    context.live = _create(
        context, turn, name=plan.name, rules=plan.rules, model_profiles=named, max_concurrent=limit, assignment=plan.assignment
    )
    context.live.build(turn, Changes(added_tasks=tasks, added_dependencies=plan.dependencies))
    _start(context, turn, waits=bool(plan.tasks) and (waits or waits_for_review(plan, payload)))
    turn.transition(CONSTELLATION_AGENT, "agent", context.agent, "created")


def _begin_fork(context: Context, turn: Turn, forked: ForkedGraph) -> None:
    """The graph as it was; what had ended by itself stays so, everything else begins again."""
    context.live = live = _create(context, turn, **forked.fields)
    fill_fork(live, turn, forked.built)
    _start(context, turn)
    _follow(context, turn, live, forked.follow_up)


def _begin_reopened(context: Context, turn: Turn, reopened: ReopenedGraph) -> None:
    """The graph that has ended goes on in this interaction: it gets new work, or some of its tasks begin again."""
    live, by = reopened.live, context.interaction["by"]
    context.live, context.constellation = live, live.constellation
    live.on_ready = context.on_ready
    turn.transition(
        CONSTELLATION, "constellation", context.constellation, "reopen", reason=reopened.follow_up.reason, by=by,
        agent_id=context.agent["id"], interaction_id=context.interaction["id"], result=None, ended_at=None, added=0,
    )  # fmt: skip
    _follow(context, turn, live, reopened.follow_up)


def _create(context: Context, turn: Turn, **fields: Any) -> LiveGraph:
    """A constellation's row, recorded; after a restart it names the one that it replaces."""
    before = context.constellation
    fields |= {
        "id": turn.take(), "session_id": context.stream, "interaction_id": context.interaction["id"],
        "agent_id": context.agent["id"], "created_at": turn.at, "entered_at": turn.at,
    }  # fmt: skip
    if before:
        # `times` counts over all the beginnings of an interaction, so rules that begin the run once more keep their counts.
        restarting = {rule["name"] for rule in before["rules"] if deed_of(rule) == "restart"}
        fields |= {
            "replaces_id": before["id"],
            "added": before["added"],
            "fired": {name: count for name, count in before["fired"].items() if name in restarting},
            "gates": before["gates"],
        }
    context.constellation = TABLES["constellation"].whole(fields)
    turn.record("constellation_created", mode=CREATION, add={"constellation": [fields]})
    return LiveGraph(context.constellation, context.on_ready)


def _start(context: Context, turn: Turn, *, waits: bool = False) -> None:
    """Let it run; one that `waits` is READY until a person starts it."""
    turn.transition(CONSTELLATION, "constellation", context.constellation, "validated")
    if not waits:
        turn.transition(CONSTELLATION, "constellation", context.constellation, "start")


def _follow(context: Context, turn: Turn, live: LiveGraph, follow_up: FollowUp) -> None:
    """The edit and the retries that were asked for, in the name of whoever asked."""
    by = context.interaction["by"]
    mend_and_retry(
        live, turn, follow_up.changes, follow_up.operations, follow_up.retry, by, follow_up.reason, follow_up.based_on
    )
