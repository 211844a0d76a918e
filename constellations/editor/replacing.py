"""Tasks in the place of tasks that ended badly: what they take over, and what that means for the end of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from constellations import conditions
from constellations.editor.draft import EditDraft, OperationRefused, is_skipped, may_change, normal_dependency, why_not
from constellations.plan.values import Row

ENDED_BADLY = ("FAILED", "CANCELLED")
"""States of a task that another one may replace, unless it was only skipped."""


def inherit_dependents(draft: EditDraft, row: Row) -> None:
    """Let what waited for the task that `row` replaces wait for `row`, which is new in the draft.

    What has started or ended stays tied to the old one; `draft.stays` says so. Raises OperationRefused.
    """
    new, old = row["task_id"], row["replaces"]
    if old == new:
        raise OperationRefused(f"{new} cannot replace itself", "replaces")
    draft.task(old, "replaces")
    _require_ended_badly(draft, old)
    if other := draft.replacement_of(old):
        raise OperationRefused(
            f"{old} was replaced by {other} already; replace that one, when it has failed", "replaces", conflict=True
        )
    draft.replacements[old] = new
    draft.stays[new] = {}
    for downstream in map(str, draft.graph.downstream(old)):
        dependency_id = draft.edge_there(old, downstream)
        there = draft.snapshot.tasks.get(downstream)
        if there is not None and not may_change(there):
            draft.stays[new][dependency_id] = why_not(there)
            continue
        edge = draft.dependencies[dependency_id]
        draft.drop_dependency(dependency_id)
        draft.put_dependency({**normal_dependency(edge), "dependency_id": f"{new}>{downstream}", "from": new})


def _require_ended_badly(draft: EditDraft, task_id: str) -> None:
    there = draft.snapshot.tasks.get(task_id)
    if there is None:
        raise OperationRefused(f"{task_id} is new itself; write it as it is to be", "replaces")
    if is_skipped(there):
        message = f"{task_id} was skipped and may still change; update it, or what decided that it was skipped"
        raise OperationRefused(message, "replaces", conflict=True)
    if there["state"] not in ENDED_BADLY:
        instead = "update it" if may_change(there) else "only what has FAILED or was cancelled is replaced"
        raise OperationRefused(f"{task_id} is {there['state']}; {instead}", "replaces", conflict=True)


def carry_conditions(draft: EditDraft) -> None:
    """Let conditions that read the result of a replaced task read that of its replacement. Raises OperationRefused."""
    names = draft.replacements
    for dependency_id, row in list(draft.dependencies.items()) if names else ():
        if row is None or "results" not in row["condition"] or not conditions.tasks_read_by(row["condition"]) & names.keys():
            continue
        there = draft.snapshot.tasks.get(row["to"])
        if there is not None and not may_change(there):
            continue  # it has been decided
        condition = conditions.rename_read_tasks(row["condition"], names)
        if len(condition) > conditions.MAX_LENGTH:
            message = f"the condition of {dependency_id} would have {len(condition)} characters with the names of replacements"
            raise OperationRefused(f"{message}; {conditions.MAX_LENGTH} are allowed", "replaces")
        draft.put_dependency({**normal_dependency(row), "condition": condition})


# What has been replaced


def replacements_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Which task replaces which: {the old task_id: the new one}."""
    return {row["replaces"]: row["task_id"] for row in rows if row["replaces"]}


def replaced_tasks(rows: Mapping[str, Mapping[str, Any]], task_id: str) -> list[str]:
    """The tasks that this one replaces: the one it was added for, the one which that had been added for, and so on."""
    found: list[str] = []
    while task_id in rows and (old := rows[task_id]["replaces"]) and old not in found:
        found.append(old)
        task_id = old
    return found


def tasks_that_count(rows: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tasks that count when a run is judged: all but those whose replacement, or a replacement of that one, is COMPLETED.

    `rows` are all tasks by task_id.
    """
    by = replacements_of(rows.values())
    return [row for row in rows.values() if not _is_made_good(row, rows, by)]


def _is_made_good(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], by: Mapping[str, str]) -> bool:
    if row["state"] not in ENDED_BADLY:
        return False
    met: set[str] = set()
    task_id = row["task_id"]
    while task_id in by and task_id not in met:
        met.add(task_id)
        task_id = by[task_id]
        if rows[task_id]["state"] == "COMPLETED":
            return True
    return False
