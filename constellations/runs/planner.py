"""The planner without a language model: a plan reader with replan rules (docs/plans.md).

Its creation mode turns a payload into a constellation, its editing mode the ends of tasks into change sets. Both go
through the editor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.errors import PayloadRejected
from agents.models import Device
from agents.streams.garbage import nothing_collected
from agents.streams.row_types import LiveDevice
from agents.streams.tables import Fields
from constellations.editor import editor
from constellations.editor.draft import SKIPPED
from constellations.editor.replacing import replaced_tasks, tasks_that_count
from constellations.limits import IMPORTED_WORDS
from constellations.live.live import LiveGraph
from constellations.live.rows import RowsOf
from constellations.machines.task import CANCELLED_BY, ENDED
from constellations.plan.plain_text import text
from constellations.plan.plan import Plan, parse_plan
from constellations.reads.devices import known_devices
from constellations.runs import rules

AUTHOR = "planner"
NAMED = 20
"""Tasks that a result names, of those that a condition skipped which could not be evaluated."""
SUMMED_UP = 3
"""Of them in its summary."""


@dataclass(frozen=True)
class PreparedPlan:
    """A plan that was read and checked, and the change that builds it in an empty constellation."""

    plan: Plan
    changes: editor.Changes


def prepare_plan(payload: Fields) -> PreparedPlan:
    """Read a payload as far as the database's devices; raises AgentsError with the places of what is wrong."""
    plan = _plan(payload)
    # Its reader has refused all that the editor would refuse in an empty constellation; nothing is to be read again.
    return PreparedPlan(plan, editor.Changes(added_tasks=plan.tasks, added_dependencies=plan.dependencies))


def _plan(payload: Fields) -> Plan:
    plan, request = payload.get("plan"), payload.get("request")
    if isinstance(plan, str):
        with nothing_collected():
            return parse_plan(plan, devices=known_devices(), in_words=IMPORTED_WORDS in payload)
    if isinstance(request, str):
        return text.parse_text(request, dict(Device.objects.values_list("name", "recipes")))
    raise PayloadRejected("give a plan or a request", [{"key": "request", "message": "must be text, and so must a plan"}])


def find_firings(live: LiveGraph, devices: Mapping[int, LiveDevice]) -> tuple[list[rules.Firing], list[str]]:
    """Editing mode: the rules that fire for tasks whose ends it has not been told yet, and notes on broken conditions."""
    if not live.constellation["rules"]:
        return [], []
    rows = RowsOf(live.nodes)
    ended = [
        {**ended_task(node.row, devices), "stands_for": replaced_tasks(rows, node.key)} for node in live.news.values()
    ]  # fmt: skip
    return rules.match_rules(live.constellation["rules"], live.constellation["fired"], ended, live.results)


def ended_task(row: Mapping[str, Any], devices: Mapping[int, LiveDevice]) -> Fields:
    """A task that has ended, as rules look at it; `devices` are the rows of all by their ids."""
    names = ("task_id", "state", "reason", "condition_failed", "result", "error", "error_kind")
    device: Mapping[str, Any] = devices.get(row["device_id"], {}) if row["device_id"] is not None else {}
    return {**{name: row[name] for name in names}, "device": device.get("name", "")}


def run_summary(live: LiveGraph, started: float, now: float, waited_s: float) -> dict[str, Any]:
    """The result of a constellation that has ended (docs/machines.md, "2. Constellation agent")."""
    total, counted = len(live.nodes), tasks_that_count(RowsOf(live.nodes))
    counts = {state.lower(): sum(row["state"] == state for row in counted) for state in ENDED}
    if len(counted) < total:
        counts["replaced"] = total - len(counted)
    results = {n.key: n.row["result"] for n in live.nodes.values() if not n.outgoing and n.row["result"] is not None}
    told = "{completed} of {total} tasks completed, {failed} failed, {cancelled} cancelled or skipped"
    asked = sum(row["state"] == "CANCELLED" and row["reason"].startswith(CANCELLED_BY) for row in counted)
    told += f", {asked} of them on purpose" if asked else ""
    told += ", {replaced} replaced" if "replaced" in counts else ""
    skipped = [row for row in counted if row["condition_failed"]]
    return {
        "summary": told.format(total=total, **counts) + _conditions_in_words(skipped),
        "total_tasks": total,
        **counts,
        **({"condition_failed": [_named(row) for row in skipped[:NAMED]]} if skipped else {}),
        "wall_s": round(now - started, 3),
        "waiting_s": round(waited_s, 3),
        "results": results,
    }


def _named(row: Mapping[str, Any]) -> Fields:
    return {"task_id": row["task_id"], "reason": row["reason"]}


def _conditions_in_words(skipped: Sequence[Mapping[str, Any]]) -> str:
    """What the summary says of tasks that a condition skipped which could not be evaluated."""
    if not skipped:
        return ""
    names = ", ".join(f"{row['task_id']} ({row['reason'].removeprefix(SKIPPED + ': ')})" for row in skipped[:SUMMED_UP])
    more = f" and {len(skipped) - SUMMED_UP:,} more" if len(skipped) > SUMMED_UP else ""
    return f"; a condition that could not be evaluated skipped {names}{more}"
