"""Normal forms as a plan writes them: rows to the words that `tasks`, `steps` and `operations` read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.devices.command_lines import shell_line_of
from constellations.plan.keys.calls import COMMAND, INSTRUCTION, SHELL
from constellations.plan.keys.fields import STORED
from constellations.plan.keys.step_keys import DEFAULTS, INNER, RENAMED, TELLING
from constellations.plan.operations import write_in_present_words
from constellations.plan.plan import Plan, absent_tasks
from constellations.plan.steps import STEPS
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, IN_WORDS, TASK_DEFAULTS
from constellations.plan.values import Row

DOING = ("tool", "arguments", "phases")
"""Columns that say together what a task does."""


def write_task(row: Row) -> Row:
    """A task of a plan: what differs from the defaults, and what it does."""
    return {"task_id": row["task_id"], **write_fields(row, [*differing_keys(usual_task(row), row), "tool"])}


def usual_task(row: Row) -> Row:
    """What a task is of which only the id is said, and what it does."""
    return {**TASK_DEFAULTS, "task_id": row["task_id"], "name": row["task_id"], "tool": ""}


def differing_keys(old: Row, new: Row) -> list[str]:
    return [key for key in TASK_DEFAULTS if old[key] != new[key]]


def write_fields(row: Row, columns: Iterable[str]) -> Row:
    """Words for these columns; what a task does is said as a whole or not at all."""
    columns = list(columns)
    said: Row = {}
    for column in columns:
        if column not in DOING:
            field = STORED[column]
            said[field.key] = field.word_of(row[column])
    return said | write_doing(row) if set(columns) & set(DOING) else said


def write_doing(row: Row) -> Row:
    """What a task does."""
    if row["tool"] != STEPS:
        return write_call(row)
    phases = [write_phase(each) for each in row["phases"]]
    return phases[0] if len(phases) == 1 and phases[0].keys() == {"steps"} else {"phases": phases}


def write_phase(row: Row) -> Row:
    told = {key: row[key] for key in ("description", "expected_duration") if row[key] not in ("", None)}
    return {**told, "steps": [write_step(each) for each in row["steps"]]}


def write_call(row: Row) -> Row:
    """A command or a tool of a task or a step."""
    arguments = row["arguments"]
    if row["tool"] in (IN_WORDS, INSTRUCTION):
        return {"tool": row["tool"]}
    if row["tool"] == COMMAND and arguments.keys() == {"argv"}:
        line = shell_line_of(arguments["argv"])
        return {COMMAND: arguments["argv"]} if line is None else {COMMAND: line, SHELL: True}
    return {"tool": row["tool"], **({"arguments": arguments} if arguments else {})}


def write_step(row: Row) -> Row:
    """A step by its telling key, and what differs from the defaults."""
    do = row["do"]
    # A row of an earlier version lacks the keys that came later.
    told = {key: row[key] for key, usual in DEFAULTS[do].items() if row.get(key, usual) != usual}
    for key in ("steps", "recover"):
        if key in told:
            told[key] = [write_step(each) for each in told[key]]
    if do == "call":
        return write_call(row) | {key: value for key, value in told.items() if key not in ("tool", "arguments")}
    if do in INNER:
        inner = {key: told.pop(key) for key in INNER[do] if key in told}
        return {do: inner, **told}
    if do in RENAMED:
        return {do: told.pop(RENAMED[do]), **told}
    return {next(key for key, kind in TELLING.items() if kind == do): True, **told}


def write_dependency(row: Row) -> Row:
    """A dependency of a plan; its type is always said."""
    usual = {**DEPENDENCY_DEFAULTS, "dependency_id": f"{row['from']}>{row['to']}", "type": ""}
    return {key: value for key, value in row.items() if key in usual and value != usual[key]}


def write_plan(whole: Plan) -> dict[str, Any]:
    """A plan with all that is not empty."""
    parts: dict[str, Any] = {
        "name": whole.name,
        "models": whole.models,
        "start": whole.start,
        "max_concurrent": whole.max_concurrent,
        "assignment": whole.assignment,
        "tasks": [write_task(row) for row in whole.tasks],
        "dependencies": [write_dependency(row) for row in whole.dependencies],
        "replan": [{**rule, "edit": write_in_present_words(rule["edit"])} for rule in whole.rules],
        "absent": absent_tasks(whole),
    }
    return {key: value for key, value in parts.items() if value}
