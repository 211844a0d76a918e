"""The seven operations of an edit and the replan rules that hold them, as they are written. Pure.

An operation is {"op": "add_task", "parameters": {...}}, or in short {"add_task": {...}}; as agents write what they do, it is
{"tool": ..., "parameters": {...}} or {"function": ..., "arguments": {...}}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from constellations.plan import tasks as plan_tasks
from constellations.plan.documents import MAX_DEPTH
from constellations.plan.error_kinds import ERROR, slips_in
from constellations.plan.keys.calls import MAX_PROSE, NEEDS_DOING, read_condition
from constellations.plan.keys.fields import MAX_NAME
from constellations.plan.values import (
    MAX_ID,
    MAX_ITEMS,
    SHOWN,
    Finding,
    Misfit,
    Path,
    Reader,
    Row,
    choice_reader,
    did_you_mean,
    findings_under,
    identifier_reader,
    list_reader,
    one_or_list_reader,
    read_fields,
    read_flag,
    read_mapping,
    text_reader,
    value_kind,
    whole_reader,
)

EVENTS = ("task_completed", "task_failed", "task_skipped", "condition_failed", "task_ended")
"""What a replan rule may wait for; task_ended is any of the others, or a task that was cancelled.

condition_failed is a task_skipped: one that a condition skipped which could not be evaluated.
"""

MAX_TIMES = 1_000
"""How often a rule may fire."""
ENDED_TASK, ITS_DEVICE = "{task}", "{device}"
"""In the texts of a rule's operations: the id of the task that ended, and the name of the device that it was on last (empty:
none). An id has no character that a shell takes for its own."""
DEEDS = ("edit", "finish", "fail", "restart")
"""What a rule may do: change the graph, end the run and be content with what there is, end it badly, begin it once more."""

FORMS = (("op", "parameters"), ("tool", "parameters"), ("function", "arguments"))
"""What an operation written in full calls its name and its parameters: ours, the seeds' and UFO Galaxy's."""
DOING = ("command", "tool", "steps", "phases")
"""Keys that say what a task does; one of them takes the place of another."""

MAX_TASKS = 20_000
"""Tasks of a plan, and tasks one edit adds: those of a plan of 10,000 after the 10,000 that edits may add (limits.ADDED)."""
MAX_DEPENDENCIES = 100_000
"""Dependencies of a plan or of one `build_constellation`."""
MAX_FINDINGS = 1_000
"""Findings in one operation after which no more are looked for."""


@dataclass(slots=True)
class Operation:
    """An operation that was read. `values` depends on `op`; `place` leads to its parameters; findings are below that."""

    op: str
    values: Row = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    place: Path = ()


class WrittenOperation(NamedTuple):
    """An operation as it is written: its name, its parameters and the way to them, and what is wrong with its form."""

    op: Any
    parameters: Any = {}
    place: Path = ()
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        return self.op[:SHOWN] if isinstance(self.op, str) else ""


def split_operation(value: Any) -> WrittenOperation:
    """Whether there is an operation of that name is not looked at."""
    if not isinstance(value, Mapping):
        return WrittenOperation("", findings=(((), f"an operation is an object (name: parameters), not {value_kind(value)}"),))
    for named, held in FORMS:
        if named in value:
            strange = [key for key in value if key not in (named, held)][:1]
            word = str(strange[0])[:SHOWN] if strange else ""
            is_held = held not in value and strange and isinstance(value[strange[0]], Mapping)
            way_out = f"call it {held}" if is_held else f"put it into {held}"
            message = f"there is no key {word} beside {named} and {held}: {way_out}"
            return WrittenOperation(value[named], value.get(held, {}), (held,), tuple(((key,), message) for key in strange))
    if len(value) != 1:
        said = f"an operation is one key with its parameters; this one has {len(value)} keys: write one operation for each"
        return WrittenOperation("", findings=(((), said),))
    ((op, parameters),) = value.items()
    return WrittenOperation(op, parameters, (op,))


def write_in_full(edit: Sequence[Any]) -> list[Any]:
    """The operations of an edit as {"op", "parameters"}, in whichever form they are written; what has none stays as it is."""
    found = [(each, split_operation(each)) for each in edit]
    return [each if form.findings else {"op": form.op, "parameters": form.parameters} for each, form in found]


def write_in_present_words(edit: Sequence[Any]) -> list[Any]:
    """Operations that were stored, in the words of today: `device` was once written `wanted_device` too."""
    found = write_in_full(edit)
    for number, each in enumerate(found):
        if not isinstance(each, Mapping) or each.keys() != {"op", "parameters"}:
            continue
        op, parameters = each["op"], each["parameters"]
        if op in ("add_task", "update_task"):
            found[number] = {"op": op, "parameters": _of_today(parameters)}
        elif op == "build_constellation" and isinstance(parameters, Mapping) and isinstance(parameters.get("tasks"), list):
            found[number] = {"op": op, "parameters": {**parameters, "tasks": [*map(_of_today, parameters["tasks"])]}}
    return found


def _of_today(task: Any) -> Any:
    if not isinstance(task, Mapping) or "wanted_device" not in task:
        return task
    return {("device" if key == "wanted_device" else key): value for key, value in task.items()}


def read_operation(value: Any) -> Operation:
    """Whatever is written in an operation's place; what keeps it from being one is among its findings."""
    found = split_operation(value)
    if found.findings:
        return Operation(found.name, findings=list(found.findings))
    if not isinstance(found.op, str):
        said = f"an operation has a name, not {value_kind(found.op)}{did_you_mean('', READERS)}"
        return Operation("", findings=[((), said)])
    if found.op not in READERS:
        return Operation(found.name, findings=[((), f"there is no operation {found.name}{did_you_mean(found.op, READERS)}")])
    return Operation(found.op, *READERS[found.op](found.parameters), found.place)


def _add_task(value: Any) -> tuple[Row, list[Finding]]:
    if isinstance(value, Mapping) and value.get("copy") is not None:
        return plan_tasks.read_copied_task(value)
    return _new_task(value)


def _new_task(value: Any) -> tuple[Row, list[Finding]]:
    row, after, findings = plan_tasks.read_task(value, in_words=True)
    return {"task": row, "after": after}, findings


def _update_task(value: Any) -> tuple[Row, list[Finding]]:
    task_id, fields, findings = plan_tasks.read_task_changes(value)
    # null for what a task does, and nothing in its place
    said = [key for key in DOING if isinstance(value, Mapping) and key in value]
    if said and all(value[key] is None for key in said):
        idle = "is nothing, and a task needs something to do: give it another command, a tool or steps"
        findings = [*findings, ((said[0],), idle)]
    return {"task_id": task_id, "fields": fields}, findings


def _remove_task(value: Any) -> tuple[Row, list[Finding]]:
    fields, findings = read_fields(value, {"task_id": identifier_reader(MAX_ID)})
    if not fields and not findings:
        findings = [((), "which task? task_id is missing")]
    return fields, findings


def _add_dependency(value: Any) -> tuple[Row, list[Finding]]:
    row, findings = plan_tasks.read_dependency(value)
    return {"dependency": row}, findings


def _remove_dependency(value: Any) -> tuple[Row, list[Finding]]:
    which, fields, findings = plan_tasks.read_dependency_changes(value)
    return {"which": which}, findings or [
        ((key,), f"{key} says nothing about a removal: a dependency is named by its dependency_id, or from and to")
        for key in fields
        if key in value
    ]


def _update_dependency(value: Any) -> tuple[Row, list[Finding]]:
    which, fields, findings = plan_tasks.read_dependency_changes(value)
    return {"which": which, "fields": fields}, findings


def _build_constellation(value: Any) -> tuple[Row, list[Finding]]:
    readers = {"tasks": list_within(MAX_TASKS), "dependencies": list_within(MAX_DEPENDENCIES), "clear": read_flag}
    fields, findings = read_fields(value, readers)
    tasks: list[Row] = []
    dependencies: list[Row] = []
    for part, read_one, rows in (("tasks", _new_task, tasks), ("dependencies", _add_dependency, dependencies)):
        for number, given in enumerate(fields.get(part, [])):
            row, found = read_one(given)
            rows.append(row)
            findings += findings_under((part, number), found)
            if len(findings) > MAX_FINDINGS:
                break
    clear = fields.get("clear", True)
    if not (tasks or findings or (dependencies and not clear)):
        findings.append((("tasks",), "a constellation needs at least one task"))
    return {"tasks": tasks, "dependencies": dependencies, "clear": clear}, findings


def list_within(limit: int) -> Reader:
    """A list as it stands, if it has no more than `limit` items."""
    return list_reader(lambda item: item, limit)


READERS: dict[str, Callable[[Any], tuple[Row, list[Finding]]]] = {
    "build_constellation": _build_constellation,
    "add_task": _add_task,
    "remove_task": _remove_task,
    "update_task": _update_task,
    "add_dependency": _add_dependency,
    "remove_dependency": _remove_dependency,
    "update_dependency": _update_dependency,
}


# Replan rules


def _is_on(value: Any) -> bool:
    if not read_flag(value):
        raise Misfit("false does nothing; leave it out")
    return True


def _reason(value: Any) -> str:
    """Why a run is called a failure."""
    text = text_reader(MAX_PROSE)(value)
    if not text:
        raise Misfit("is empty; it says why the run is called a failure")
    return text


RULE_READERS: dict[str, Reader] = {
    "name": text_reader(MAX_NAME),
    "when": read_mapping,
    "times": whole_reader(1, MAX_TIMES),
    "reason": text_reader(MAX_PROSE),
    "edit": list_within(MAX_ITEMS),
    "finish": _is_on,
    "fail": _reason,
    "restart": _is_on,
}
WHEN_READERS: dict[str, Reader] = {
    "event": choice_reader(EVENTS),
    "task": one_or_list_reader(identifier_reader(MAX_ID)),
    "condition": read_condition,
}


def read_rule(value: Any, number: int) -> tuple[Row, list[Finding]]:
    """A rule's normal form - name, when {event, task: ids, none for any; condition}, times, reason, edit - and findings.

    Beside an empty `edit` it has the one of finish, fail and restart that it does. `number` counts from 0 and names a rule
    without a name. Operations stay as they are written, each as op and parameters; they are checked as they will be when the
    task of the longest id that the rule names has ended.
    """
    fields, findings = read_fields(value, RULE_READERS)
    when, found = read_fields(fields.get("when", {}), WHEN_READERS)
    findings += findings_under(("when",), found)
    row = {
        "name": fields.get("name") or f"rule {number + 1}",
        "when": {"event": when.get("event", ""), "task": when.get("task", []), "condition": when.get("condition", "")},
        "times": fields.get("times", 1),
        "reason": fields.get("reason", ""),
        "edit": [],
        **{deed: fields[deed] for deed in DEEDS[1:] if deed in fields},
    }
    findings += _missing_of_rule(value, when, findings)
    if row["when"]["event"] == "task_failed" and ERROR in row["when"]["condition"]:
        # A task that failed has no result, so what its rule calls an error is one.
        findings += [(("when", "condition"), said) for said in slips_in(row["when"]["condition"])]
    longest = max(row["when"]["task"], key=len, default="task")
    for place, each in enumerate(fields.get("edit", [])):
        operation = read_operation(fill_rule(each, longest, "device"))
        findings += findings_under(("edit", place, *operation.place), [*operation.findings, *_in_words(operation)])
        row["edit"].append({"op": operation.op, "parameters": split_operation(each).parameters})
    return row, findings


def _in_words(operation: Operation) -> list[Finding]:
    """Tasks that an operation would leave in words alone, which no rule does."""
    values = operation.values
    if operation.op == "build_constellation":
        found: list[tuple[Path, Row]] = [(("tasks", place), each["task"]) for place, each in enumerate(values["tasks"])]
    else:
        found = [((), values.get("task") or values.get("fields") or {})]
    return [((*path, "tool"), NEEDS_DOING) for path, row in found if row.get("tool") == plan_tasks.IN_WORDS]


def deed_of(rule: Mapping[str, Any]) -> str:
    """Which of DEEDS a rule in normal form does."""
    return next((deed for deed in DEEDS[1:] if rule.get(deed)), DEEDS[0])


def fill_rule(value: Any, task_id: str, device: str = "", depth: int = MAX_DEPTH) -> Any:
    """What is written in a rule, with the task that ended in the place of ENDED_TASK and its device in that of ITS_DEVICE."""
    if isinstance(value, str):
        return value.replace(ENDED_TASK, task_id).replace(ITS_DEVICE, device)
    if isinstance(value, Mapping) and depth:
        return {key: fill_rule(inner, task_id, device, depth - 1) for key, inner in value.items()}
    return [fill_rule(inner, task_id, device, depth - 1) for inner in value] if isinstance(value, list) and depth else value


def _missing_of_rule(value: Any, when: Row, findings: list[Finding]) -> list[Finding]:
    if not isinstance(value, Mapping):
        return []
    missing: list[Finding] = []
    if "event" not in when and not any(path[:1] == ("when",) for path, _ in findings):
        missing.append((("when",), f"a rule needs an event: one of {', '.join(EVENTS)}"))
    does = [deed for deed in DEEDS if value.get(deed) not in (None, [])]
    if len(does) > 1:
        missing.append(((does[1],), f"a rule does one thing, and here are {' and '.join(does)}; make a rule of each"))
    if not does and not any(path == ("edit",) for path, _ in findings):
        missing.append((("edit",), "a rule needs something to do: operations to apply (edit), or finish, fail or restart"))
    return missing
