"""The editor: operations on a snapshot of a constellation become a validated set of changes. Pure.

Preview and application are both `apply_operations`; only what is done with its answer differs (docs/editing.md, "An edit").
Work is proportional to the operations and what they touch, never to the graph, but for `build_constellation`, and for a look
through conditions and replacements where a task goes or is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from constellations.editor.apply import APPLY
from constellations.editor.draft import (
    ConsequentRefusal,
    EditDraft,
    OperationRefused,
    Snapshot,
    changed_keys,
    normal_dependency,
    normal_task,
)
from constellations.editor.replacing import carry_conditions
from constellations.errors import EditRefused
from constellations.plan import documents, operations
from constellations.plan.fitting import Devices
from constellations.plan.operations import Operation
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, stray_input
from constellations.plan.values import Row, key_text, value_kind

__all__ = ["Changes", "Snapshot", "apply_operations"]

MAX_OPERATIONS = 10_000
"""Operations of one edit."""
MAX_PROBLEMS = 100
"""Problems after which no more are looked for."""


@dataclass(slots=True)
class Changes:
    """What an edit does. Rows are in normal form; everything is JSON.

    touched   tasks that were there and still are, each after all it waits for, whose readiness must be decided again
    before    {"tasks": {task_id: row or None}, "dependencies": {dependency_id: row or None}} of what changed; so `after`
    diff      [{"change": "added", "task": "task_005"} (and "replaces": "task_003", "stays": {"task_003>b": "b already runs"}),
              {"change": "updated", "dependency": "a>b", "fields": {key: [old, new]}}]
    gates     what the constellation is to remember of actions with gates (gates.keeping.weigh_gates); None: what it does by now
    """

    added_tasks: list[Row] = field(default_factory=list)
    removed_tasks: list[str] = field(default_factory=list)
    updated_tasks: dict[str, Row] = field(default_factory=dict)
    added_dependencies: list[Row] = field(default_factory=list)
    removed_dependencies: list[str] = field(default_factory=list)
    updated_dependencies: dict[str, Row] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)
    before: dict[str, dict[str, Row | None]] = field(default_factory=lambda: {"tasks": {}, "dependencies": {}})
    after: dict[str, dict[str, Row | None]] = field(default_factory=lambda: {"tasks": {}, "dependencies": {}})
    diff: list[dict[str, Any]] = field(default_factory=list)
    gates: list[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.diff)


def apply_operations(
    snapshot: Snapshot, written: Sequence[Any], devices: Devices, *, limited: bool = True, in_words: bool = False
) -> Changes:
    """The changes that `written` operations make, as a whole or not at all: raises EditRefused with every problem.

    `devices` is {name: {"type": str, "capabilities": [str], ...}}. The snapshot is afterwards as it was. Not `limited` is an
    undo: it is as large as the edit that it takes back, which one operation may have made, whatever it takes to undo that.
    `in_words` is an import, or an undo: it may leave tasks in words alone, which no other edit makes.
    """
    _check_whole(snapshot, written, limited)
    draft = EditDraft(snapshot, devices, limited, in_words)
    try:
        problems = _run(draft, written) or _problems_of_whole(draft)
        if problems:
            raise EditRefused([problem for problem, _ in problems], conflict=any(conflict for _, conflict in problems))
        return _changes(draft)
    finally:
        draft.put_back()


def _check_whole(snapshot: Snapshot, written: Sequence[Any], limited: bool) -> None:
    message, conflict = "", False
    if snapshot.state == "CANCELLED":
        message, conflict = "the constellation was cancelled; nothing in it changes any more", True
    elif not isinstance(written, list | tuple):
        message = f"operations are a list, not {value_kind(written)}"
    elif not written:
        message = "an edit needs at least one operation"
    elif limited and len(written) > MAX_OPERATIONS:
        message = f"the edit has {len(written):,} operations; {MAX_OPERATIONS:,} are allowed"
    if message:
        raise EditRefused([_problem_of_whole(message)], conflict)


def _run(draft: EditDraft, written: Sequence[Any]) -> list[tuple[dict[str, Any], bool]]:
    """Does one operation after the other; the problems, and whether each is a conflict."""
    problems: list[tuple[dict[str, Any], bool]] = []
    draft.coming = _added_by_each(written)
    for number, value in enumerate(written):
        if len(problems) >= MAX_PROBLEMS:
            break
        draft.operation, operation = number + 1, operations.read_operation(value)
        depth = len(operation.place)
        unfit = [  # what could not be stored, by its path in the operation's parameters
            (path[depth:] if path[:depth] == operation.place else path, message)
            for path, message in islice(documents.value_flaws(value), MAX_PROBLEMS)
        ]
        found = [*unfit, *operation.findings][:MAX_PROBLEMS]
        problems += [(_problem(number, operation, key_text(path), message), False) for path, message in found]
        if found:
            draft.refused |= _ids_of(operation)
            continue
        try:
            APPLY[operation.op](draft, operation.values)
        except OperationRefused as refusal:
            draft.refused |= _ids_of(operation)
            problems.append((_problem(number, operation, refusal.field, str(refusal)), refusal.conflict))
        except ConsequentRefusal:
            continue  # only what an earlier operation, refused already, would have added is missing
    return problems


def _added_by_each(written: Sequence[Any]) -> dict[str, int]:
    """Tasks that add_task adds, with the number of its operation, from 1."""
    named: dict[str, int] = {}
    for number, value in enumerate(written, start=1):
        form = operations.split_operation(value)
        if form.op == "add_task" and isinstance(form.parameters, Mapping) and isinstance(form.parameters.get("task_id"), str):
            named.setdefault(form.parameters["task_id"], number)
    return named


def _problems_of_whole(draft: EditDraft) -> list[tuple[dict[str, Any], bool]]:
    """What is wrong though each operation by itself is right; conditions over the results of replaced tasks go along first."""
    try:
        carry_conditions(draft)
    except OperationRefused as refusal:
        return [(_problem_of_whole(str(refusal)), refusal.conflict)]
    if draft.snapshot.tasks and not len(draft.graph):
        return [(_problem_of_whole("nothing would be left; a constellation has at least one task"), False)]
    needed = [f"{task_id} cannot go: the condition of {name} reads its result" for name, task_id in draft.readers_of_gone()]
    needed += [f"{task_id} cannot go: {other} replaces it" for task_id, other in draft.replaced_and_gone()]
    if not needed:
        strays = ((key, other, draft.tasks.get(other) is not None) for key, other in draft.strays())
        said = (stray_input(key, other, is_there=is_there) for key, other, is_there in strays)
        return [(_problem_of_whole(message), False) for message in islice(said, MAX_PROBLEMS)]
    return [(_problem_of_whole(message), True) for message in needed[:MAX_PROBLEMS]]


def _problem_of_whole(message: str) -> dict[str, Any]:
    return {"operation": None, "op": "", "field": "", "message": message}


def _problem(number: int, operation: Operation, field: str, message: str) -> dict[str, Any]:
    """`number` counts from 0, what people read from 1."""
    return {"operation": number + 1, "op": operation.op, "field": field, "message": message}


def _ids_of(operation: Operation) -> set[str]:
    """Tasks that a refused operation would have added."""
    added = [operation.values] if operation.op == "add_task" else operation.values.get("tasks", [])
    return {entry["task"]["task_id"] for entry in added if "task" in entry}


def _changes(draft: EditDraft) -> Changes:
    """What differs between the snapshot and the draft; an edit and its opposite in one come to nothing."""
    changes = Changes()
    touched: dict[str, None] = {}
    _compare_tasks(draft, changes, touched)
    _compare_dependencies(draft, changes, touched)
    there = [task_id for task_id in touched if task_id in draft.snapshot.tasks and draft.tasks[task_id] is not None]
    changes.touched = [str(task_id) for task_id in draft.graph.in_order(there)]
    return changes


def _compare_tasks(draft: EditDraft, changes: Changes, touched: dict[str, None]) -> None:
    for task_id, new in draft.new_tasks.items():
        old = draft.snapshot.tasks.get(task_id)
        old = None if old is None else normal_task(old)
        if old == new:
            continue
        changes.before["tasks"][task_id], changes.after["tasks"][task_id] = old, new
        if old is None:
            changes.added_tasks.append(new or {})
            added: Row = {"change": "added", "task": task_id}
            if replaced := (new or {}).get("replaces"):
                # and what it could not take over of that one
                added |= {"replaces": replaced} | ({"stays": stays} if (stays := draft.stays.get(task_id)) else {})
            changes.diff.append(added)
        elif new is None:
            changes.removed_tasks.append(task_id)
            changes.diff.append({"change": "removed", "task": task_id})
        else:
            changes.updated_tasks[task_id] = {key: new[key] for key in changed_keys(old, new)}
            changes.diff.append({"change": "updated", "task": task_id, "fields": _old_and_new(old, new)})
            touched[task_id] = None


def _compare_dependencies(draft: EditDraft, changes: Changes, touched: dict[str, None]) -> None:
    for name, new in draft.new_dependencies.items():
        old = draft.snapshot.dependencies.get(name)
        old = None if old is None else normal_dependency(old)
        if old == new:
            continue
        changes.before["dependencies"][name], changes.after["dependencies"][name] = old, new
        touched.update(dict.fromkeys(row["to"] for row in (old, new) if row is not None))
        said: Row = {"dependency": name, **{end: (new or old or {})[end] for end in ("from", "to")}}
        if old is None:
            changes.added_dependencies.append(new or {})
            changes.diff.append({"change": "added", **said})
        elif new is None:
            changes.removed_dependencies.append(name)
            changes.diff.append({"change": "removed", **said})
        else:
            changes.updated_dependencies[name] = {key: new[key] for key in changed_keys(old, new, DEPENDENCY_DEFAULTS)}
            changes.diff.append({"change": "updated", **said, "fields": _old_and_new(old, new)})


def _old_and_new(old: Row, new: Row) -> dict[str, list[Any]]:
    return {key: [old[key], new[key]] for key in new if old[key] != new[key]}
