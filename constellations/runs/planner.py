"""The planner: what rules answer to the ends of tasks, and what an editing session can come to (docs/plans.md).

Its creation mode turns a payload into a constellation (`constellations.services.plans`, `constellations.runs.begin`). Its
editing mode turns the ends of tasks into change sets, which go through the editor: by rules (here), by a model (`weaving`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.streams.row_types import LiveDevice
from agents.streams.tables import Fields
from constellations.editor.draft import SKIPPED
from constellations.editor.replacing import replaced_tasks, tasks_that_count
from constellations.live.live import LiveGraph
from constellations.live.rows import Node, RowsOf
from constellations.machines.task import CANCELLED_BY, ENDED
from constellations.runs import rules

AUTHOR = "planner"
NAMED = 20
"""Tasks that a result names, of those that a condition skipped which could not be evaluated."""
SUMMED_UP = 3
"""Of them in its summary."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """A model ends the run as a failure (`fail`), or begins it once more (`restart`)."""

    does: str
    reason: str


@dataclass(slots=True)
class ReplanResult:
    """What came of an editing session. `timed` are tasks that may have a new deadline, some of which may be gone.

    `taken` are the tasks whose ends it took. `failure` names the limit that was reached, if one was; `ending` is what ends the
    run or begins it once more.
    """

    taken: Sequence[Node] = ()
    timed: list[str] = field(default_factory=list)
    failure: str = ""
    ending: rules.Firing | RunEnding | None = None


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
