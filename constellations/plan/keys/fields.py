"""The keys of tasks and dependencies, each said once. Pure.

Readers, defaults, schemas, columns, serializers, answers over MCP and forms are all made from these two tables (the keys of
steps are in `step_keys`, those of policies in `guards`). A key that is added here needs a migration, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.decisions import DECISIONS
from agents.devices.profiles.names import name_fault
from constellations.plan.keys import guards, json_schema, kinds
from constellations.plan.keys.calls import COMMAND, MAX_WORD, SHELL, read_condition
from constellations.plan.keys.kinds import Field, Kind, Lists, Shape
from constellations.plan.keys.step_keys import MAX_PATH, OUTPUTS, inner_path, steps_there
from constellations.plan.values import (
    MAX_ID,
    Misfit,
    TextReader,
    choice_reader,
    identifier_reader,
    list_reader,
    one_or_list_reader,
    quote_value,
    text_reader,
)

PRIORITIES = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
DEPENDENCY_TYPES = ("UNCONDITIONAL", "COMPLETION_ONLY", "SUCCESS_ONLY", "CONDITIONAL")
ON_LOST = ("retry", "fail", "ask")

MAX_NAME = 200
MAX_DEPENDENCY_ID = 250
"""Characters, as the columns have them."""
MAX_ATTEMPTS = 100
MAX_PHASES = 100
"""Phases of a task."""
MAX_INPUTS = 100
"""Files that a task is given."""
MAX_LABELS = 16
"""Labels of a task."""
MAX_LABEL = 64
"""Characters of a label."""


def priority(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(PRIORITIES):
        return value
    return PRIORITIES.index(choice_reader(PRIORITIES)(value))


def device_names(value: Any) -> list[str]:
    """Names, each once; one that is empty, as `{device}` is for a task that was on none, names nothing."""
    return list(dict.fromkeys(filter(None, one_or_list_reader(text_reader(MAX_WORD))(value))))


def label(value: Any) -> str:
    """A name as devices and their labels have one."""
    name = text_reader(MAX_LABEL)(value)
    if fault := name_fault(name):
        raise Misfit(fault)
    return name


def or_empty(read_text: TextReader) -> TextReader:
    """Also no text, which says nothing."""
    return lambda value: "" if value == "" else read_text(value)


def output_name(value: Any) -> str:
    """`task#name`: what a task has kept under that name; `#name` is what was uploaded to the session."""
    written = text_reader(MAX_PATH)(value)
    task, mark, name = written.partition("#")
    if not mark or not name or name != inner_path(name):
        raise Misfit(f"'{quote_value(written)}' names no output: write task#name, such as fetch#data.csv")
    if task:
        identifier_reader(MAX_ID)(task)
    return written


def read_inputs(value: Any) -> dict[str, str]:
    """Outputs by the paths where they are wanted; of a list each has its own name."""
    if not isinstance(value, Mapping):
        named = list_reader(output_name, MAX_INPUTS)(value)
        return {each.partition("#")[2]: each for each in named}
    if len(value) > MAX_INPUTS:
        raise Misfit(f"has {len(value):,} items; {MAX_INPUTS:,} are allowed")
    read: dict[str, str] = {}
    for path, written in value.items():
        try:
            place = inner_path(path)
            if not place or place.endswith("/"):
                raise Misfit("is no path of a file")
            read[place] = output_name(written)
        except Misfit as misfit:
            raise Misfit(str(misfit), str(path)) from misfit
    return read


_PRIORITY = Kind(priority, json_schema.one_of(PRIORITIES), Shape.PLACE, choices=PRIORITIES)
_DEVICES = Kind(device_names, json_schema.TEXTS, Shape.NAMES)
_PHASES = kinds.parts(list_reader(lambda phase: phase, MAX_PHASES), json_schema.ref("phase"))
_POLICIES = kinds.parts(guards.policies, json_schema.ref("policy"))
_PROGRESS = Kind(guards.read_progress, guards.PROGRESS_SCHEMA, Shape.OBJECT)
_UNASKED = Kind(guards.read_unasked, guards.UNASKED_SCHEMA, Shape.OBJECT)
_REPLACED = Kind(or_empty(identifier_reader(MAX_ID)), json_schema.IDENT, Shape.WORD, MAX_ID)
_INPUTS = Kind(read_inputs, json_schema.OBJECT, Shape.OBJECT)
_IDS = Kind(one_or_list_reader(identifier_reader(MAX_ID)), json_schema.many(json_schema.IDENT), Shape.NAMES)

TASK = (
    Field("task_id", kinds.identifier(MAX_ID), label="Task id", lists=Lists.EVERYWHERE),
    Field("name", kinds.word(MAX_NAME), lists=Lists.EVERYWHERE),
    Field("description", kinds.prose()),
    Field("tips", kinds.TEXTS, []),
    Field(
        "device", kinds.word(MAX_WORD), column="wanted_device", about="Where it has to run; else any that fits.",
        lists=Lists.REST | Lists.MCP,
    ),
    Field("device_type", kinds.word(MAX_WORD)),
    Field("capabilities", kinds.names(text_reader(MAX_WORD)), [], about="Its device has to have."),
    Field("not_device", _DEVICES, [], about="Devices it must not run on.", label="Not on"),
    Field(
        "labels", kinds.names(label, MAX_LABELS, MAX_LABEL), [], about="To find it by: letters, digits and . _ -",
        lists=Lists.EVERYWHERE, filters=True,
    ),
    Field(
        COMMAND, kinds.COMMAND, column=None, about="Argument list, no shell; or a line of plain words.",
        hint="Words as a shell splits them; no shell runs them.",
    ),
    Field(
        SHELL, kinds.FLAG, False, column=None, about="`sh -c` runs the command, which is one text.",
        hint="A shell runs the command (sh -c), and policies judge it as a shell's.",
    ),
    Field("tool", kinds.word(MAX_WORD), COMMAND, hint="Instead of a command.", lists=Lists.MCP),
    Field("arguments", kinds.OBJECT, {}, about="Of its tool.", lists=Lists.MCP),
    Field("priority", _PRIORITY, 1, lists=Lists.EVERYWHERE),
    Field("timeout", kinds.TIME, None, about="Seconds of one attempt."),
    Field(
        "deadline", kinds.TIME, None, about="Seconds from the constellation's creation.",
        hint="Seconds from the constellation's creation, waiting included.",
    ),
    Field("max_attempts", kinds.count(1, MAX_ATTEMPTS), 1, label="Attempts"),
    Field("backoff", kinds.SECONDS, 1.0, about="Seconds before the second attempt; doubles with each."),
    Field("confirm", kinds.FLAG, False, about="A person has to approve it before it begins."),
    Field("steps", kinds.parts(steps_there, json_schema.ref("step")), [], column=None),
    Field(
        "phases", _PHASES, [], label="Steps",
        hint="Instead of a command or a tool: JSON, [{description, expected_duration, steps}].",
    ),
    Field(
        "policies", _POLICIES, [],
        hint=f"Of its calls; they only tighten the installation's: JSON, [{{tool, pattern, decision}}], to "
        f"{', '.join(DECISIONS)}.",
    ),
    Field(
        "progress", _PROGRESS, {}, about="How patient the detection of being stuck is.", label="When it is stuck",
        hint=f"What differs from the settings of the detection: JSON, {{name: value}} of {', '.join(guards.SETTING_READERS)}.",
    ),
    Field("on_lost", kinds.choice(ON_LOST, 8), "retry", hint="When nobody knows how an attempt ended."),
    Field("model", kinds.word(MAX_WORD), about="Model profile, for a task in words.", hint="Empty: the installation's."),
    Field("result_schema", kinds.OBJECT, {}, hint="JSON Schema of the result of a task in words."),
    Field("unasked", _UNASKED, {}, hint="Calls that a model may choose without asking, or may not."),
    Field(
        "inputs", _INPUTS, {}, about="{path: task#name}.",
        hint="What other tasks have kept, put into its workspace: JSON, {path: task#name}.",
    ),
    Field("outputs", OUTPUTS, [], hint="Files of its workspace to keep, by path or pattern."),
    Field("after", _IDS, [], column=None, about="Tasks to be completed before it.", is_new=True),
    Field(
        "replaces", _REPLACED, about="A task that failed or was cancelled: what waited for it waits for this one.",
        is_new=True, lists=Lists.MCP,
    ),
)  # fmt: skip
"""The keys of a task. Times are in seconds; a priority is kept as its place in PRIORITIES."""
STORED = {field.name: field for field in TASK if field.is_stored}
"""Those that rows have, by what rows call them."""

DEPENDENCY = (
    Field(
        "dependency_id", Kind(text_reader(MAX_DEPENDENCY_ID), json_schema.TEXT, Shape.ID, MAX_DEPENDENCY_ID),
        about="`from>to` when left out.", lists=Lists.MCP,
    ),
    Field("from", kinds.identifier(MAX_ID), about="The upstream task.", is_new=True, lists=Lists.MCP),
    Field("to", kinds.identifier(MAX_ID), about="The task that waits.", is_new=True, lists=Lists.MCP),
    Field("type", kinds.choice(DEPENDENCY_TYPES, 20), "SUCCESS_ONLY", lists=Lists.MCP),
    Field("condition", kinds.line(read_condition), about="Over the upstream's result: `accuracy > 0.95`.", lists=Lists.MCP),
    Field("description", kinds.prose()),
)  # fmt: skip
"""The keys of a dependency, whose ends are given once."""
NAMING = ("dependency_id", "from", "to")
"""What names a dependency: its id, or both ends."""
CHANGEABLE = tuple(field.key for field in DEPENDENCY if field.key not in NAMING)
"""What may change of a dependency that is there."""
LINE_COLUMNS = {field.key: field.key for field in DEPENDENCY} | {"from": "upstream__task_id", "to": "downstream__task_id"}
"""Where a query finds the keys of a dependency."""
