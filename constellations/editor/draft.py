"""A constellation's snapshot and the draft an edit makes of it. Pure.

What more than one operation refuses is said here: a task that runs or has ended, or one that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constellations import conditions
from constellations.errors import CycleFound
from constellations.graph import Graph
from constellations.machines.task import ENDED
from constellations.plan.fitting import Devices
from constellations.plan.operations import MAX_TASKS
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, TASK_DEFAULTS, given_by
from constellations.plan.values import Hints, Row, did_you_mean

SKIPPED = "skipped"
"""What the reason of a task begins with that was CANCELLED because it could never start."""


WasThere = Callable[[Mapping[str, str]], bool]


def never_was_there(which: Mapping[str, str]) -> bool:
    """Of a constellation that nobody has edited."""
    return False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A constellation at one version. Tasks by task_id (normal form, state, reason), dependencies by dependency_id.

    `graph` has the task_ids as keys. `apply` changes it and puts it back: no other thread may use it meanwhile. `was_there`
    says whether a task ({task_id}) or a dependency ({dependency_id}, or {from, to}) that is not there was there at some time.
    """

    version: int
    state: str
    tasks: Mapping[str, Mapping[str, Any]]
    dependencies: Mapping[str, Mapping[str, Any]]
    graph: Graph
    was_there: WasThere = never_was_there


class OperationRefused(Exception):
    """One operation cannot be done. `conflict`: because of what has happened, not of how it is written."""

    def __init__(self, message: str, field: str = "", conflict: bool = False):
        super().__init__(message)
        self.field, self.conflict = field, conflict


class ConsequentRefusal(Exception):
    """An operation fails only because one before it did; that one has been reported."""


def may_change(task: Mapping[str, Any]) -> bool:
    """Whether a task, and the dependencies into it, may change: it has not started and may still do so."""
    return task["state"] in ("PENDING", "WAITING_DEPENDENCY") or is_skipped(task)


def is_skipped(task: Mapping[str, Any]) -> bool:
    skipped: bool = task["state"] == "CANCELLED" and task.get("reason", "").startswith(SKIPPED)
    return skipped


def why_not(task: Mapping[str, Any]) -> str:
    """Why a task may not change, as a sentence."""
    if task["state"] == "RUNNING":
        return f"{task['task_id']} already runs"
    return f"{task['task_id']} has ended ({task['state']})"


def normal_task(row: Mapping[str, Any]) -> Row:
    return {key: row[key] for key in TASK_DEFAULTS}


def normal_dependency(row: Mapping[str, Any]) -> Row:
    return {key: row[key] for key in DEPENDENCY_DEFAULTS}


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any], keys: Iterable[str] = TASK_DEFAULTS) -> list[str]:
    return [key for key in keys if old[key] != new[key]]


NOT_BEGUN = {"state": "PENDING"}


class Overlay(Mapping[str, Any]):
    """New rows over old ones; a ChainMap that costs no more than two dictionaries."""

    __slots__ = ("_new", "_old")

    def __init__(self, new: Mapping[str, Any], old: Mapping[str, Any]):
        self._new, self._old = new, old

    def __getitem__(self, key: str) -> Any:
        return self._new[key] if key in self._new else self._old[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._new[key] if key in self._new else self._old.get(key, default)

    def __iter__(self) -> Iterator[str]:
        yield from self._old
        yield from (key for key in self._new if key not in self._old)

    def __len__(self) -> int:
        return len({*self._old, *self._new})


class EditDraft:
    """The snapshot with the operations done so far laid over it; None stands for a row that was removed.

    `undo` leads the graph back, last step first. `in_words`: it may make tasks in words alone. `replacements` are the new tasks
    by those that they replace, `stays` says of each which dependencies it could not take over, and why.
    """

    def __init__(self, snapshot: Snapshot, devices: Devices, limited: bool = True, in_words: bool = False):
        self.snapshot, self.devices, self.graph, self.limited = snapshot, devices, snapshot.graph, limited
        self.in_words = in_words
        self.coming: dict[str, int] = {}
        """Tasks that operations add, with the number of the operation, from 1."""
        self.operation = 0
        """The number of the one that is done now."""
        self.new_tasks: dict[str, Row | None] = {}
        self.new_dependencies: dict[str, Row | None] = {}
        self.tasks = Overlay(self.new_tasks, snapshot.tasks)
        self.dependencies = Overlay(self.new_dependencies, snapshot.dependencies)
        self.undo: list[tuple[Callable[..., None], tuple[str, ...]]] = []
        self.refused: set[str] = set()
        self.replacements: dict[str, str] = {}
        self.stays: dict[str, dict[str, str]] = {}
        self.hint = Hints(self.graph)
        self.added = 0
        self._named: dict[tuple[str, str], str] = {}
        self._ids: dict[tuple[str, str], str] | None = None
        self._replaced: dict[str, str] | None = None

    def put_back(self) -> None:
        while self.undo:
            step, keys = self.undo.pop()
            step(*keys)

    # Finding

    def task(self, task_id: str, field: str) -> Row:
        """The task, or an OperationRefused that says what there is instead."""
        row: Row | None = self.tasks.get(task_id)
        if row is None:
            if task_id in self.refused:
                raise ConsequentRefusal
            if (later := self.coming.get(task_id, 0)) > self.operation:
                raise OperationRefused(f"there is no task {task_id} yet: put operation {later} before this one", field)
            raise OperationRefused(f"there is no task {task_id}{self.hint(task_id)}", field)
        return row

    def edge(self, upstream: str, downstream: str) -> str | None:
        """The id of the dependency between two tasks."""
        if not self.graph.has_edge(upstream, downstream):
            return None
        usual = f"{upstream}>{downstream}"
        if _joins(self.dependencies.get(usual), upstream, downstream):
            return usual
        if (upstream, downstream) in self._named:
            return self._named[upstream, downstream]
        if self._ids is None:
            self._ids = {(row["from"], row["to"]): key for key, row in self.snapshot.dependencies.items()}
        return self._ids[upstream, downstream]

    def missing_task(self, task_id: str) -> None:
        """Nothing, where the task was there before: it is gone already. Else OperationRefused names the nearest there is."""
        if task_id not in self.new_tasks and not self.snapshot.was_there({"task_id": task_id}):
            self.task(task_id, "task_id")

    def missing_dependency(self, which: Row) -> None:
        """As `missing_task`, of a dependency that is named by its id or by its ends."""
        named = which.get("dependency_id") or f"{which['from']}>{which['to']}"
        known = {"dependency_id": named} if "dependency_id" in which else {end: which[end] for end in ("from", "to")}
        ends = (which.get("from", ""), which.get("to", ""))
        removed_here = (self.snapshot.dependencies.get(key) for key, row in self.new_dependencies.items() if row is None)
        if named in self.new_dependencies or any(_joins(row, *ends) for row in removed_here) or self.snapshot.was_there(known):
            return
        if self.refused & {named, *ends}:
            raise ConsequentRefusal
        raise OperationRefused(f"there is no dependency {named}{did_you_mean(named, self.dependencies)}", "dependency_id")

    def edge_there(self, upstream: str, downstream: str) -> str:
        """The id of the dependency between two tasks that the graph ties together."""
        dependency_id = self.edge(upstream, downstream)
        if dependency_id is None:
            raise AssertionError("the graph has an edge that is no dependency")
        return dependency_id

    def find(self, which: Row) -> str | None:
        """The id of a dependency that is named by its id or by its ends; None when there is none."""
        named: str | None = which.get("dependency_id")
        if named is None:
            return self.edge(which["from"], which["to"])
        row = self.dependencies.get(named)
        if row is None:
            return None
        for end in ("from", "to"):
            if which.get(end, row[end]) != row[end]:
                raise OperationRefused(
                    f"{named} leads from {row['from']} to {row['to']}; its ends stay: remove it and add another", end
                )
        return named

    def require_editable(self, task_id: str, field: str, what: str = "") -> None:
        row = self.snapshot.tasks.get(task_id)
        if row is not None and not may_change(row):
            way_out = ""
            if not what and row["state"] in ("FAILED", "CANCELLED"):
                way_out = "; retry it in the same request as these operations, or add a task that replaces it"
            raise OperationRefused(f"{what}{why_not(row)}{way_out}", field, conflict=True)

    def require_untried(self, task_id: str, field: str) -> None:
        """What has been attempted leaves records, which stay with it."""
        made = self.snapshot.tasks.get(task_id, {}).get("attempt", 0)
        if made:
            tried = "once" if made == 1 else f"{made} times"
            raise OperationRefused(
                f"{task_id} cannot go: it has been tried {tried}, and that stays on record", field, conflict=True
            )

    def replaced_and_gone(self) -> Iterator[tuple[str, str]]:
        """(task_id, its replacement) where a task is removed that another one which stays has replaced."""
        gone = [key for key, row in self.new_tasks.items() if row is None and key in self.snapshot.tasks]
        return ((key, other) for key in gone if (other := self.replacement_of(key)))

    def readers_of_gone(self) -> Iterator[tuple[str, str]]:
        """(dependency_id, task_id) where a condition reads the result of a task that is removed."""
        gone = {task_id for task_id, row in self.new_tasks.items() if row is None and task_id in self.snapshot.tasks}
        for name, row in self.dependencies.items() if gone else ():
            if row is not None and "results" in row["condition"]:
                yield from ((name, task_id) for task_id in sorted(conditions.tasks_read_by(row["condition"]) & gone))

    def strays(self) -> Iterator[tuple[str, str]]:
        """(task_id, other) where a task is to get an output of one that need not have ended when it begins, or is not there.

        Where nothing was taken away only what is new or changed is looked at.
        """
        has_lost = any(row is None for row in (*self.new_tasks.values(), *self.new_dependencies.values()))
        for task_id in self.tasks if has_lost else self.new_tasks:
            row = self.tasks[task_id]
            if row is None or not row["inputs"] or not may_change(self.snapshot.tasks.get(task_id, NOT_BEGUN)):
                continue
            named = given_by(row)
            waits_for = self._all_above(task_id) if named else set()
            yield from ((task_id, other) for other in named if other not in waits_for and not self._has_ended(other))

    def _all_above(self, task_id: str) -> set[str]:
        found, ahead = set[str](), [task_id]
        while ahead:
            fresh = {str(key) for key in self.graph.upstream(ahead.pop())} - found
            found |= fresh
            ahead.extend(fresh)
        return found

    def _has_ended(self, task_id: str) -> bool:
        there = self.snapshot.tasks.get(task_id)
        return there is not None and self.tasks[task_id] is not None and there["state"] in ENDED

    def replacement_of(self, task_id: str) -> str:
        """The task that replaces this one; empty where none does."""
        if task_id in self.replacements:
            return self.replacements[task_id]
        if self._replaced is None:
            self._replaced = {row["replaces"]: key for key, row in self.snapshot.tasks.items() if row["replaces"]}
        there = self._replaced.get(task_id, "")
        return there if self.tasks.get(there) is not None else ""

    # Changing

    def put_task(self, row: Row) -> None:
        if self.tasks.get(row["task_id"]) is None:
            if self.limited and self.added >= MAX_TASKS:
                raise OperationRefused(f"one edit adds at most {MAX_TASKS:,} tasks")
            self.added += 1
            self.graph.add_task(row["task_id"])
            self.undo.append((self.graph.remove_task, (row["task_id"],)))
        self.new_tasks[row["task_id"]] = row

    def drop_task(self, task_id: str) -> None:
        self.graph.remove_task(task_id)
        self.undo.append((self.graph.add_task, (task_id,)))
        self.new_tasks[task_id] = None

    def put_dependency(self, row: Row) -> None:
        ends = row["from"], row["to"]
        there = self.snapshot.dependencies.get(row["dependency_id"])
        if there is not None and not _joins(there, *ends):
            was = f"from {there['from']} to {there['to']}"
            raise OperationRefused(
                f"{row['dependency_id']} was the dependency {was}; give this one an id of its own", "dependency_id"
            )
        if not self.graph.has_edge(*ends):
            try:
                self.graph.add_edge(*ends)
            except CycleFound as error:
                raise OperationRefused(str(error)) from error
            self.undo.append((self.graph.remove_edge, ends))
        self.new_dependencies[row["dependency_id"]] = row
        self._named[ends] = row["dependency_id"]

    def drop_dependency(self, dependency_id: str) -> None:
        row = self.dependencies[dependency_id]
        ends = row["from"], row["to"]
        self.graph.remove_edge(*ends)
        self.undo.append((self.graph.add_edge, ends))
        self.new_dependencies[dependency_id] = None
        self._named.pop(ends, None)


def _joins(row: Mapping[str, Any] | None, upstream: str, downstream: str) -> bool:
    return row is not None and row["from"] == upstream and row["to"] == downstream
