"""The normal forms of tasks and dependencies, and what keeps a value from having one. Pure.

A plan, an edit and a rule say the same things in the same words, so all are read here. The words themselves, such as the types
of dependencies, are in `fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constellations.plan import steps
from constellations.plan.keys import calls
from constellations.plan.keys.calls import COMMAND, INSTRUCTION, NEEDS_DOING, SHELL
from constellations.plan.keys.fields import CHANGEABLE, DEPENDENCY, NAMING, TASK
from constellations.plan.keys.kinds import defaults_of, fresh, readers_of
from constellations.plan.steps import STEPS
from constellations.plan.values import MAX_ID, Finding, Reader, Row, identifier_reader, read_fields, value_kind

TASK_DEFAULTS = defaults_of(TASK)
"""A task's normal form. `name` becomes its task_id; times are in seconds; priority is a place in PRIORITIES.

A task in steps has the tool STEPS, no arguments, and phases: [{description, expected_duration, steps}] (step_keys.DEFAULTS).
"""
FRESH = tuple((key, type(default)) for key, default in TASK_DEFAULTS.items() if isinstance(default, list | dict))
"""Columns whose default is an empty list or object: each task has its own."""
ALIASES = {field.key: field.name for field in TASK if field.is_stored and field.key != field.name} | {"steps": "phases"}
"""Keys of plans that rows have by another name."""

IN_WORDS = ""
"""The tool of an imported task in words alone: it cannot start until it is given a command, a tool or steps."""
DEPENDENCY_DEFAULTS = defaults_of(DEPENDENCY)
"""A dependency's normal form. `dependency_id` becomes from>to."""

WORDS = ("name", "description")
"""What a task in words is told by."""

# Tasks

ADD_READERS = readers_of(TASK)
TASK_READERS = readers_of(field for field in TASK if not field.is_new)
"""Of a task that is there; who changes a task may repeat what there is."""
NORMAL_READERS = {field.name: field.takes.read for field in TASK}
"""Of a task in its normal form, which has all keys: there `device` is the column wanted_device."""


def read_task(value: Any, in_words: bool = False) -> tuple[Row, list[str], list[Finding]]:
    """A task's normal form, the ids it names in `after`, and findings.

    `in_words`: a task whose `tool` is IN_WORDS is one; nobody means that by leaving out what it does.
    """
    readers = _readers_of(value)
    fields, findings = _read(value, readers)
    if not isinstance(value, Mapping):
        findings = [((), f"a task is an object with a task_id and a command, a tool or steps, not {value_kind(value)}")]
    after = fields.pop("after", [])
    own = {key: make() for key, make in FRESH}
    row = {**TASK_DEFAULTS, **own, **(_in_words(fields, findings) if in_words else _normal_task(fields, findings))}
    if isinstance(value, Mapping):
        if value.get("task_id") is None:
            findings.append(((), "a task needs a task_id"))
        if value.get("arguments") and not says_what_to_do(value):
            findings.append((("arguments",), "name the tool that takes these arguments, beside them as `tool`"))
        elif not says_what_to_do(value) and any(row[key] for key in WORDS):
            row["tool"] = INSTRUCTION
        elif not says_what_to_do(value) and not value.keys() - readers.keys():
            findings.append(((), NEEDS_DOING))
    row["name"] = row["name"] or row["task_id"]
    return row, after, findings


def read_task_changes(value: Any) -> tuple[str, Row, list[Finding]]:
    """What `update_task` is given: the task's id, the normal form of the fields to change (null: the default), findings.

    Whether a task may come to be in words alone is the editor's business.
    """
    if isinstance(value, Mapping) and "state" in value:
        return "", {}, [(("state",), "a task's state is not edited; it follows from what happens")]
    if isinstance(value, Mapping) and "after" in value:
        return "", {}, [(("after",), "after is for new tasks; add_dependency makes one that is there wait for another")]
    fields, findings = _read(value, readers := _readers_of(value))
    given = value if isinstance(value, Mapping) else {}
    reset = {ALIASES.get(key, key) for key, new in given.items() if new is None and key in readers}
    row = {key: fresh(TASK_DEFAULTS[key]) for key in reset if key in TASK_DEFAULTS} | _in_words(
        fields, findings, is_whole=False
    )
    task_id = row.pop("task_id", "")
    if not task_id and not findings:
        findings.append(((), "which task? task_id is missing"))
    if "name" in row:
        row["name"] = row["name"] or task_id
    return task_id, row, findings


def _read(value: Any, readers: dict[str, Reader]) -> tuple[Row, list[Finding]]:
    """The fields of a task; who gives a column's name in the place of a word is told the word."""
    fields, findings = read_fields(value, readers)
    if "wanted_device" in readers or not isinstance(value, Mapping) or "wanted_device" not in value:
        return fields, findings
    said = "there is no key wanted_device here; did you mean device?"
    return fields, [(path, said if path == ("wanted_device",) else message) for path, message in findings]


def _readers_of(value: Any) -> dict[str, Reader]:
    return NORMAL_READERS if isinstance(value, Mapping) and TASK_DEFAULTS.keys() <= value.keys() else ADD_READERS


COPY_READERS = ADD_READERS | {"copy": identifier_reader(MAX_ID)}


def read_copied_task(value: Mapping[str, Any]) -> tuple[Row, list[Finding]]:
    """What a task is that is a copy of another one: {task: its id, copy: of which, fields: what is otherwise, after, findings}.

    `fields` are in normal form (null: the default); `after` is None where it waits for what the other one waits for.
    """
    fields, findings = _read(value, COPY_READERS)
    source, after = fields.pop("copy", ""), fields.pop("after", None)
    task_id, row, found = read_task_changes({key: given for key, given in value.items() if key not in ("copy", "after")})
    findings += [each for each in found if each not in findings]
    if "name" in row and value.get("name") is None:
        del row["name"]
    return {"task": {"task_id": task_id}, "copy": source, "fields": row, "after": after}, findings


def says_what_to_do(value: Mapping[str, Any]) -> bool:
    return any(value.get(key) is not None for key in ("command", "tool", "steps")) or value.get("phases", []) not in (None, [])


def _normal_task(fields: Row, findings: list[Finding], is_whole: bool = True) -> Row:
    """Plan words to columns: `device` to wanted_device, `command` and `steps` to the tools of these names."""
    row = dict(fields)
    if "device" in row:
        row["wanted_device"] = row.pop("device")
    if row.get("wanted_device") and row["wanted_device"] in row.get("not_device", ()):
        findings.append((("not_device",), f"the task is to run on {row['wanted_device']}, and here it must not"))
    if "steps" in row or row.get("phases"):
        return _in_steps(row, findings)
    if row.get("tool") == INSTRUCTION and COMMAND not in row and SHELL not in row:
        if row.get("arguments"):
            findings.append((("arguments",), "a task in words has no arguments; its words are in its name and description"))
        return {**row, "arguments": {}, "phases": []}
    findings += calls.make_call(row, "task", is_whole)
    if row.get("tool") == STEPS and not findings:
        findings.append((("tool",), "the tool steps is for a task in steps, and this one has none"))
    if "tool" in row:
        row["phases"] = []
    return row


def _in_words(fields: Row, findings: list[Finding], is_whole: bool = True) -> Row:
    """As `_normal_task`, but that a task may say it is in words alone."""
    if fields.get("tool") != IN_WORDS or any(fields.get(key) for key in (COMMAND, "arguments", "steps", "phases")):
        return _normal_task(fields, findings, is_whole)
    others = {key: value for key, value in fields.items() if key not in (COMMAND, "tool", "steps")}
    return {**_normal_task(others, findings, is_whole), "tool": IN_WORDS, "arguments": {}, "phases": []}


def _in_steps(row: Row, findings: list[Finding]) -> Row:
    """A task with steps or phases, which may say in normal form that its tool is STEPS and has no arguments."""
    written = "steps" if "steps" in row else "phases"
    if written == "steps" and row.get("phases"):
        findings.append((("phases",), "a task has steps or phases, not both"))
    for other in (COMMAND, SHELL, "tool", "arguments"):
        if row.get(other, STEPS) not in (STEPS, {}, False):
            findings.append(((other,), f"a task has {written} or a {COMMAND} or tool, not both: {other} beside {written}"))
    phases, found = steps.read_phases(row)
    findings += found
    plain = {key: value for key, value in row.items() if key not in ("steps", COMMAND, SHELL)}
    return {**plain, "tool": STEPS, "arguments": {}, "phases": phases}


# Dependencies

DEPENDENCY_READERS = readers_of(DEPENDENCY)


def read_dependency(value: Any) -> tuple[Row, list[Finding]]:
    """A dependency's normal form and findings. With a condition and no type it is CONDITIONAL."""
    fields, findings = read_fields(value, DEPENDENCY_READERS)
    if not isinstance(value, Mapping):
        findings = [((), f"a dependency is an object with `from` and `to`, not {value_kind(value)}")]
    row = {**DEPENDENCY_DEFAULTS, **fields}
    if row["condition"] and "type" not in fields:
        row["type"] = "CONDITIONAL"
    row["dependency_id"] = row["dependency_id"] or f"{row['from']}>{row['to']}"
    if isinstance(value, Mapping):
        findings += [((), f"a dependency needs `{end}`") for end in ("from", "to") if value.get(end) is None]
        if not any(path[:1] in (("type",), ("condition",)) for path, _ in findings):
            findings += dependency_findings(row)
    return row, findings


def dependency_findings(row: Row) -> list[Finding]:
    """Whether type and condition go together."""
    if row["type"] == "CONDITIONAL" and not row["condition"]:
        return [((), "a CONDITIONAL dependency needs a condition")]
    if row["type"] != "CONDITIONAL" and row["condition"]:
        return [(("condition",), f"only a CONDITIONAL dependency has a condition; this one is {row['type']}")]
    return []


def read_dependency_changes(value: Any) -> tuple[Row, Row, list[Finding]]:
    """What names a dependency (its id, or from and to), the fields to change (null: the default), findings."""
    fields, findings = read_fields(value, DEPENDENCY_READERS)
    given = value if isinstance(value, Mapping) else {}
    which: Row = {key: name for key in NAMING if (name := fields.pop(key, ""))}
    fields = {key: DEPENDENCY_DEFAULTS[key] for key in CHANGEABLE if key in given and given[key] is None} | fields
    if not findings and not ("dependency_id" in which or {"from", "to"} <= which.keys()):
        findings.append(((), "which dependency? give its dependency_id, or from and to"))
    if fields.get("condition") and "type" not in fields:
        fields["type"] = "CONDITIONAL"
    elif fields.get("type", "CONDITIONAL") != "CONDITIONAL":
        fields.setdefault("condition", "")
    return which, fields, findings


# What is handed from task to task


def given_by(row: Row) -> list[str]:
    """The tasks whose outputs a task is to get; what was uploaded is nobody's."""
    return sorted({written.partition("#")[0] for written in row["inputs"].values()} - {""})


def stray_input(task_id: str, other: str, *, is_there: bool) -> str:
    """Why a task cannot be given what another one has kept."""
    if not is_there:
        return f"{task_id} is to get an output of {other}, and there is no such task"
    return f"{task_id} is to get an output of {other} and does not wait for it: make {other} one of its dependencies"
