"""The seven operations of an edit and the replan rules that hold them, as they are written. Pure.

An operation is {"op": "add_task", "parameters": {...}}, or in short {"add_task": {...}}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constellations import forms
from constellations.call_forms import MAX_PROSE
from constellations.documents import MAX_DEPTH
from constellations.forms import MAX_NAME
from constellations.values import (
    MAX_ID,
    MAX_ITEMS,
    SHOWN,
    Finding,
    Path,
    Reader,
    Row,
    did_you_mean,
    flag,
    identifier,
    kind_of,
    list_of,
    mapping,
    one_of,
    one_or_more,
    read_fields,
    text,
    under,
    whole,
)

EVENTS = ("task_completed", "task_failed", "task_skipped", "task_ended")
"""What a replan rule may wait for; task_ended is any of the others, or a task that was cancelled."""

MAX_TIMES = 1_000
"""How often a rule may fire."""
ENDED_TASK = "{task}"
"""In the texts of a rule's operations: the id of the task that ended. An id has no character that a shell takes for its own."""

MAX_TASKS = 10_000
"""Tasks of a plan, and tasks one edit adds."""
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


def read(value: Any) -> Operation:
    """Whatever is written in an operation's place; what keeps it from being one is among its findings."""
    if not isinstance(value, Mapping):
        return Operation("", findings=[((), f"an operation is an object (name: parameters), not {kind_of(value)}")])
    if "op" in value:
        op, parameters, place = value["op"], value.get("parameters", {}), ("parameters",)
        strange = [key for key in value if key not in ("op", "parameters")]
        if strange:
            return Operation(
                str(op)[:SHOWN], findings=[((strange[0],), f"there is no key {strange[0]} beside op and parameters")]
            )
    elif len(value) == 1:
        op, parameters = next(iter(value.items()))
        place = (op,)
    else:
        return Operation("", findings=[((), f"an operation is one key with its parameters; this one has {len(value)} keys")])
    if not isinstance(op, str) or op not in READERS:
        name = str(op)[:SHOWN]
        return Operation(name, findings=[((), f"there is no operation {name}{did_you_mean(name, READERS)}")])
    return Operation(op, *READERS[op](parameters), place)


def _add_task(value: Any) -> tuple[Row, list[Finding]]:
    row, after, findings = forms.task(value)
    return {"task": row, "after": after}, findings


def _update_task(value: Any) -> tuple[Row, list[Finding]]:
    task_id, fields, findings = forms.task_fields(value)
    return {"task_id": task_id, "fields": fields}, findings


def _remove_task(value: Any) -> tuple[Row, list[Finding]]:
    fields, findings = read_fields(value, {"task_id": identifier(MAX_ID)})
    if not fields and not findings:
        findings = [((), "which task? task_id is missing")]
    return fields, findings


def _add_dependency(value: Any) -> tuple[Row, list[Finding]]:
    row, findings = forms.dependency(value)
    return {"dependency": row}, findings


def _remove_dependency(value: Any) -> tuple[Row, list[Finding]]:
    which, fields, findings = forms.dependency_fields(value)
    return {"which": which}, findings or [
        ((key,), f"{key} says nothing about a removal: a dependency is named by its dependency_id, or from and to")
        for key in fields
        if key in value
    ]


def _update_dependency(value: Any) -> tuple[Row, list[Finding]]:
    which, fields, findings = forms.dependency_fields(value)
    return {"which": which, "fields": fields}, findings


def _build_constellation(value: Any) -> tuple[Row, list[Finding]]:
    readers = {"tasks": list_within(MAX_TASKS), "dependencies": list_within(MAX_DEPENDENCIES), "clear": flag}
    fields, findings = read_fields(value, readers)
    tasks: list[Row] = []
    dependencies: list[Row] = []
    for part, read_one, rows in (("tasks", _add_task, tasks), ("dependencies", _add_dependency, dependencies)):
        for number, given in enumerate(fields.get(part, [])):
            row, found = read_one(given)
            rows.append(row)
            findings += under((part, number), found)
            if len(findings) > MAX_FINDINGS:
                break
    if not tasks and not findings:
        findings.append((("tasks",), "a constellation needs at least one task"))
    return {"tasks": tasks, "dependencies": dependencies, "clear": fields.get("clear", True)}, findings


def list_within(limit: int) -> Reader:
    """A list as it stands, if it has no more than `limit` items."""
    return list_of(lambda item: item, limit)


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

RULE_READERS: dict[str, Reader] = {
    "name": text(MAX_NAME),
    "when": mapping,
    "times": whole(1, MAX_TIMES),
    "reason": text(MAX_PROSE),
    "edit": list_within(MAX_ITEMS),
}
WHEN_READERS: dict[str, Reader] = {
    "event": one_of(EVENTS),
    "task": one_or_more(identifier(MAX_ID)),
    "condition": forms.condition,
}


def rule(value: Any, number: int) -> tuple[Row, list[Finding]]:
    """A rule's normal form - name, when {event, task: ids, none for any; condition}, times, reason, edit - and findings.

    `number` counts from 0 and names a rule without a name. Operations stay as they are written, each as op and parameters;
    they are checked as they will be when the task of the longest id that the rule names has ended.
    """
    fields, findings = read_fields(value, RULE_READERS)
    when, found = read_fields(fields.get("when", {}), WHEN_READERS)
    findings += under(("when",), found)
    row = {
        "name": fields.get("name") or f"rule {number + 1}",
        "when": {"event": when.get("event", ""), "task": when.get("task", []), "condition": when.get("condition", "")},
        "times": fields.get("times", 1),
        "reason": fields.get("reason", ""),
        "edit": [],
    }
    findings += _missing_of_rule(value, when, findings)
    longest = max(row["when"]["task"], key=len, default="task")
    for place, written in enumerate(fields.get("edit", [])):
        operation = read(filled(written, longest))
        findings += under(("edit", place, *operation.place), operation.findings)
        row["edit"].append({"op": operation.op, "parameters": _parameters(written, operation)})
    return row, findings


def filled(written: Any, task_id: str, depth: int = MAX_DEPTH) -> Any:
    """What is written in a rule's edit, with the id of the task that ended in the place of ENDED_TASK."""
    if isinstance(written, str):
        return written.replace(ENDED_TASK, task_id)
    if isinstance(written, Mapping) and depth:
        return {key: filled(value, task_id, depth - 1) for key, value in written.items()}
    return [filled(value, task_id, depth - 1) for value in written] if isinstance(written, list) and depth else written


def _parameters(written: Any, operation: Operation) -> Any:
    return written.get(operation.place[0], {}) if operation.place else {}


def _missing_of_rule(value: Any, when: Row, findings: list[Finding]) -> list[Finding]:
    if not isinstance(value, Mapping):
        return []
    missing: list[Finding] = []
    if "event" not in when and not any(path[:1] == ("when",) for path, _ in findings):
        missing.append((("when",), f"a rule needs an event: one of {', '.join(EVENTS)}"))
    if not value.get("edit") and not any(path == ("edit",) for path, _ in findings):
        missing.append((("edit",), "a rule needs operations to apply"))
    return missing
