"""Whether an edit may be applied to a newer version than it was made on. Pure.

It may where it and every edit since write different rows, and neither takes away or brings what the other builds on: then
either order gives the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from constellations import conditions
from constellations.errors import ConditionRejected
from constellations.plan import operations
from constellations.plan.values import Row

Ends = tuple[str, str]


@dataclass(slots=True)
class Reach:
    """What an edit writes - tasks, dependencies by id and by ends - and what it builds on.

    came_or_went  tasks that it adds or removes      tied      tasks at the ends of dependencies that it leaves
    needs         tasks that have to be there        copied    tasks whose dependencies it gives to others
    taken_over    tasks that a new one replaces, with the dependencies out of them
    whatever      it replaces all that may change, so nothing commutes with it
    """

    tasks: set[str] = field(default_factory=set)
    dependencies: set[str] = field(default_factory=set)
    ends: set[Ends] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    taken_over: set[str] = field(default_factory=set)
    came_or_went: set[str] = field(default_factory=set)
    tied: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    copied: set[str] = field(default_factory=set)
    whatever: bool = False


def find_clashes(ours: Reach, theirs: Reach) -> list[str]:
    """Names of tasks and dependencies over which the order of two edits would matter; `theirs` was applied first."""
    if ours.whatever:
        return sorted(theirs.tasks | theirs.dependencies)
    found = (ours.tasks & theirs.tasks) | (ours.dependencies & theirs.dependencies)
    found |= {">".join(ends) for ends in ours.ends & theirs.ends}
    found |= {">".join(ends) for ends in theirs.ends if ends[1] in ours.copied}
    return sorted(found | ((ours.removed | ours.taken_over) & theirs.tied) | (ours.needs & theirs.came_or_went))


# What was applied


def of_applied(before: Mapping[str, Row], after: Mapping[str, Row]) -> Reach:
    """From an edit's `before` and `after`."""
    found = Reach(tasks=set(before["tasks"]), dependencies=set(before["dependencies"]))
    for task_id, row in before["tasks"].items():
        if row is None or after["tasks"][task_id] is None:
            found.came_or_went.add(task_id)
    for side in (before, after):
        found.ends |= {(row["from"], row["to"]) for row in side["dependencies"].values() if row is not None}
    for row in after["dependencies"].values():
        found.tied |= {row["from"], row["to"]} if row is not None else set()
    return found


# What is wanted


def of_operations(written: Sequence[Any]) -> Reach:
    """From operations as they are written; what cannot be read reaches nothing, and is refused elsewhere."""
    found = Reach()
    for value in written:
        operation = operations.read_operation(value)
        if not operation.findings:
            READERS[operation.op](found, operation.values)
    return found


def are_readable(written: Sequence[Any]) -> bool:
    """Whether they are operations by their form; then what refuses them is the graph."""
    return (
        isinstance(written, list | tuple)
        and bool(written)
        and not any(operations.read_operation(each).findings for each in written)
    )


def _task(found: Reach, values: Row) -> None:
    task_id = values["task"]["task_id"]
    found.tasks.add(task_id)
    if source := values.get("copy", ""):
        found.tasks.add(source)
        found.needs.add(source)
        found.copied |= {source} if values["after"] is None else set()
    replaces = values["task"].get("replaces") or values.get("fields", {}).get("replaces")
    if replaces:  # all that leads out of it is taken over, so it matters what was tied to it before
        found.needs.add(replaces)
        found.taken_over.add(replaces)
    for upstream in values["after"] or ():
        _edge(found, (upstream, task_id))


def _remove_task(found: Reach, values: Row) -> None:
    found.tasks.add(values["task_id"])
    found.removed.add(values["task_id"])


def _update_task(found: Reach, values: Row) -> None:
    found.tasks.add(values["task_id"])


def _add_dependency(found: Reach, values: Row) -> None:
    row = values["dependency"]
    found.dependencies.add(row["dependency_id"])
    _edge(found, (row["from"], row["to"]))
    found.needs |= _read_by(row["condition"])


def _change_dependency(found: Reach, values: Row) -> None:
    which = values["which"]
    if "dependency_id" in which:
        found.dependencies.add(which["dependency_id"])
    if "from" in which and "to" in which:
        _edge(found, (which["from"], which["to"]))
    found.needs |= _read_by(values.get("fields", {}).get("condition", ""))


def _build(found: Reach, values: Row) -> None:
    found.whatever |= values["clear"]
    _each(found, _task, values["tasks"])
    _each(found, _add_dependency, values["dependencies"])


def _each(found: Reach, reader: Any, entries: Iterable[Row]) -> None:
    for entry in entries:
        reader(found, entry)


def _edge(found: Reach, ends: Ends) -> None:
    found.ends.add(ends)
    found.needs |= set(ends)


def _read_by(condition: str) -> set[str]:
    try:
        return conditions.tasks_read_by(condition) if condition else set()
    except ConditionRejected:
        return set()


READERS = {
    "build_constellation": _build,
    "add_task": _task,
    "remove_task": _remove_task,
    "update_task": _update_task,
    "add_dependency": _add_dependency,
    "remove_dependency": _change_dependency,
    "update_dependency": _change_dependency,
}
