"""The kinds of refusals about graphs, plans and edits, with their codes and statuses.

What a problem says is written where it is found: `plan` for the form, `editor` for the graph, `services` for the rest.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from agents.errors import AgentsError

SHOWN_PROBLEMS = 3
"""Problems spelled out in an error's one-line message; all of them are in `problems`."""


class ConstellationsError(AgentsError):
    """Something about a graph, a plan or an edit was refused."""


class CycleFound(ConstellationsError):
    """The tasks would wait for each other. `path` is the cycle, its first key repeated at its end: [a, b, c, a]."""

    code = "cycle_found"

    def __init__(self, path: Sequence[Hashable]):
        self.path = list(path)
        super().__init__(f"the tasks would wait for each other: {' > '.join(map(str, self.path))}")


class ConditionRejected(ConstellationsError):
    """The condition is not one: its syntax, a function, its size. Raised when it is written."""

    code = "condition_rejected"


class ConditionUnknown(ConstellationsError):
    """The condition is neither true nor false: a name is missing (`name`), or its calculation failed."""

    code = "condition_unknown"

    def __init__(self, message: str, name: str = ""):
        super().__init__(message)
        self.name = name


class PlanRejected(ConstellationsError):
    """The plan has problems, each {"line": int or None, "key": "tasks[0].conditon", "message": "..."}, maybe a "column"."""

    code = "plan_rejected"

    def __init__(self, problems: Iterable[Mapping[str, Any]], source: str = "plan"):
        problems = list(problems)
        super().__init__(f"{source}: {in_short([_plan_line(problem) for problem in problems])}", problems)


class EditGiven(PlanRejected):
    """What was to be imported as a constellation edits one."""

    code = "edit_given"

    def __init__(self) -> None:
        apply = "apply it to one, with POST /api/constellations/{id}/import/ or constellation_import --constellation"
        message = f"this is an edit of a constellation, and no constellation: {apply}"
        super().__init__([{"line": None, "key": "", "message": message}], "document")


class EditRefused(ConstellationsError):
    """Operations have problems, each {"operation": 1, "op": "add_task", "field": "device", "message": "..."}.

    Operations are counted from 1; None is the edit as a whole. `conflict` says that the graph's state forbids it (409), not the
    operation's own form (400).
    """

    code = "edit_refused"

    def __init__(self, problems: Iterable[Mapping[str, Any]], conflict: bool = False):
        problems = list(problems)
        super().__init__(in_short([_edit_line(problem) for problem in problems]), problems)
        self.status = 409 if conflict else 400


class GateKept(ConstellationsError):
    """The edit lets something be done unasked that a person is asked about, and its author may not approve that.

    `problems` say of each task what would be taken away.
    """

    code = "gate_kept"
    status = 403

    def __init__(self, found: Iterable[tuple[str, str]]):
        problems = [{"key": task_id, "message": f"the edit {message}"} for task_id, message in found]
        told = in_short([each["message"] for each in problems])
        super().__init__(f"{told}; that takes somebody who may approve it and has no part in it", problems)


class EditRejected(ConstellationsError):
    """What an edit says of itself - its id, its reason, its version - makes no sense."""

    code = "edit_rejected"


class EditIdTaken(ConstellationsError):
    """There is an edit of that id, and it is another one."""

    code = "edit_id_taken"
    status = 409

    def __init__(self, edit_id: str, told: str):
        super().__init__(f"edit {edit_id} was another one ({told}): give this one an edit_id of its own")


class StaleEdit(ConstellationsError):
    """The edit was made on an older version, and does not commute with what was changed since, or is refused after it.

    `members` has the newest version, `between` (the first of the edits since, as `standing.edits_between` gives them) and
    `between_total`; `problems` are the edits since, {"key": "version 4", "message", "edit_id", "author"},
    or of one that commutes with them what is wrong with it there, as EditRefused has it.
    """

    code = "stale_edit"
    status = 409

    def __init__(self, based_on: int, version: int, problems: Iterable[Mapping[str, Any]], between: Sequence[Any] = ()):
        problems = list(problems)
        since = in_short([problem["message"] for problem in problems])
        super().__init__(f"the edit was made on version {based_on}, and version {version} is the newest: {since}", problems)
        self.members = {"version": version, "between": list(between), "between_total": max(0, version - based_on)}


class UndoRefused(ConstellationsError):
    """What the edit did cannot be taken back any more."""

    code = "undo_refused"
    status = 409


class LimitReached(EditRefused):
    """An interaction may not do more of it."""

    def __init__(self, message: str):
        super().__init__([{"operation": None, "op": "", "field": "", "message": f"limit reached: {message}"}], conflict=True)


class NotRetried(ConstellationsError):
    """A task that cannot begin again; `problems` names all of them."""

    code = "not_retried"
    status = 409


class TaskNotCancelled(ConstellationsError):
    """The task has ended otherwise, or runs where only one that waits is to be skipped."""

    code = "task_not_cancelled"
    status = 409


class NotReopened(ConstellationsError):
    """The constellation cannot go on as an interaction of its own."""

    code = "not_reopened"
    status = 409


class NotForked(ConstellationsError):
    """There is no such moment, or nothing would be left to do."""

    code = "not_forked"
    status = 409


class ConstellationEnded(ConstellationsError):
    """A command to a constellation that has ended."""

    code = "constellation_ended"
    status = 409


class NoSuchConstellation(ConstellationsError):
    """There is no constellation {id}."""

    code = "no_such_constellation"
    status = 404


class NoSuchTask(ConstellationsError):
    """The constellation has no task {task_id}."""

    code = "no_such_task"
    status = 404


class NoSuchEdit(ConstellationsError):
    """The constellation has no edit {edit_id}."""

    code = "no_such_edit"
    status = 404


def in_short(lines: Sequence[str]) -> str:
    """The first few of `lines` and how many there are besides."""
    more = len(lines) - SHOWN_PROBLEMS
    return "; ".join(lines[:SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _plan_line(problem: Mapping[str, Any]) -> str:
    where = [f"line {problem['line']}"] if problem.get("line") else []
    where += [f"column {problem['column']}"] if problem.get("column") else []
    where += [problem["key"]] if problem["key"] else []
    return f"{', '.join(where)}: {problem['message']}" if where else problem["message"]


def _edit_line(problem: Mapping[str, Any]) -> str:
    if problem["operation"] is None:
        return str(problem["message"])
    place = f"operation {problem['operation']}" + (f" ({problem['op']})" if problem["op"] else "")
    return f"{place}, {problem['field']}: {problem['message']}" if problem["field"] else f"{place}: {problem['message']}"
