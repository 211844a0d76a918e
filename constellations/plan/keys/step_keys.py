"""The kinds of steps, and what each of their keys takes. Pure."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.devices.profiles.platforms import PLATFORMS
from agents.devices.workspace.contents import pattern_flaw
from constellations.conditions import tasks_read_by
from constellations.plan.keys import json_schema, kinds
from constellations.plan.keys.calls import COMMAND, MAX_PROSE, MAX_WORD, SHELL, read_condition
from constellations.plan.keys.kinds import Field, Kind, Shape, defaults_of, readers_of, schemas_of
from constellations.plan.values import (
    Misfit,
    Reader,
    Row,
    TextReader,
    choice_reader,
    identifier_reader,
    list_reader,
    read_flag,
    read_mapping,
    text_reader,
    whole_reader,
)

MAX_STEPS = 2_000
"""Steps of a task in all its phases, those of agents it delegates to and those that recover counted."""
MAX_TRIES = 1_000
MAX_OPTIONS = 100
"""Answers that a question offers."""
MAX_ANSWER = 500
"""Characters of an offered answer."""
MAX_PATH = 1_000
"""Characters of a path in a workspace."""
MAX_OUTPUTS = 50
"""Patterns of files that are kept."""
MAX_EXIT_CODE = 255
"""Of a command; as far below 0 are ends by a signal."""
WAIT_S = 60.0
"""Seconds that an answer or a call-back is waited for when nothing is said."""

CALL_KINDS = ("tool", "test", "poll")
ON_FAILURE = ("fail", "continue")


def short_text_reader(limit: int) -> TextReader:
    """Text that is not empty."""
    read_text = text_reader(limit)

    def read(value: Any) -> str:
        text = read_text(value)
        if not text:
            raise Misfit("is empty")
        return text

    return read


def saved_name(value: Any) -> str:
    """A key of the blackboard: whatever is saved can be read in a condition."""
    name = text_reader(MAX_WORD)(value)
    if name and (not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__")):
        raise Misfit(f"'{name}' is not a name that a condition can read: letters, digits and _ make one")
    if name in ("result", "results"):
        raise Misfit(f"{name} means something else in conditions; take another name")
    return name


def own_condition(value: Any) -> str:
    """A condition over the keys at hand; results of other tasks are not among them."""
    written = read_condition(value)
    if "results" in written and (others := sorted(tasks_read_by(written))):
        raise Misfit(f"it reads the result of the task {others[0]}; a step knows only its own task")
    return written


def inner_path(value: Any) -> str:
    path = text_reader(MAX_PATH)(value)
    if path.startswith("/") or ".." in path.split("/"):
        raise Misfit(f"'{path}' does not lead to a place inside the workspace")
    return path


def output_pattern(value: Any) -> str:
    """A path in the workspace, or a pattern of several."""
    pattern = text_reader(MAX_PATH)(value)
    if flaw := pattern_flaw(pattern):
        raise Misfit(flaw)
    return pattern


def callback_name(value: Any) -> str:
    return "" if value == "" else identifier_reader(MAX_WORD)(value)


def call_kind(value: Any) -> str:
    return "" if value == "" else choice_reader(CALL_KINDS)(value)


def steps_there(value: Any) -> list[Any]:
    """A list as it stands, if it has steps and not too many."""
    steps = maybe_steps(value)
    if not steps:
        raise Misfit("is empty")
    return steps


def told_flag(value: Any) -> bool:
    if not read_flag(value):
        raise Misfit("false observes nothing; leave the step out")
    return True


def time_or_object(value: Any) -> Row:
    """`wait: 5` is short for its seconds."""
    return dict(value) if isinstance(value, Mapping) else {"seconds": kinds.SECONDS.read(value)}


maybe_steps = list_reader(lambda step: step, MAX_STEPS)


# The table


@dataclass(frozen=True, slots=True)
class StepKind:
    """What a kind of step is written with: `keys`, and those that stand in the object of the key that tells what it does."""

    keys: tuple[Field, ...]
    inner: tuple[Field, ...] = ()


OUTPUTS = Kind(list_reader(output_pattern, MAX_OUTPUTS), json_schema.TEXTS, Shape.TEXTS)
_STEPS = json_schema.many(json_schema.ref("step"))
_OWN_CONDITION = kinds.line(own_condition)

IF = Field("if", _OWN_CONDITION, about="A condition.")
SAVE = Field("save", kinds.line(saved_name), about="Name for conditions.")
TIMEOUT = Field("timeout", kinds.TIME, WAIT_S)
FAILURE = Field("on_failure", kinds.choice(ON_FAILURE), "fail")

EXPECTATIONS = (
    Field("exit_code", Kind(whole_reader(-MAX_EXIT_CODE, MAX_EXIT_CODE), {"type": "integer"}, Shape.COUNT)),
    Field("contains", kinds.prose()),
    Field("result", _OWN_CONDITION, about="A condition."),
    Field("fails", kinds.FLAG),
)
"""What may be expected of a call."""
_EXPECT = Kind(read_mapping, json_schema.a_part(schemas_of(EXPECTATIONS)), Shape.OBJECT)

_WAITED = (
    Field("seconds", kinds.SECONDS, None),
    Field("for", Kind(callback_name, json_schema.IDENT, Shape.WORD)),
    TIMEOUT,
)
_WAIT = Kind(
    time_or_object, {**json_schema.a_part(schemas_of(_WAITED)), "type": ["number", "object"], "minimum": 0}, Shape.OBJECT
)
_DELEGATED = (
    Field("device", kinds.word(MAX_WORD), about="If it works elsewhere; or by:"),
    Field("platform", kinds.choice(("", *PLATFORMS))),
    Field("device_type", kinds.word(MAX_WORD)),
    Field("capabilities", kinds.names(text_reader(MAX_WORD)), []),
    Field("on_lost", kinds.choice(("", "retry", "fail", "ask")), about="When its call is lost."),
    Field("name", Kind(short_text_reader(MAX_WORD), json_schema.TEXT, Shape.WORD)),
    Field("steps", kinds.parts(steps_there, json_schema.ref("step")), []),
    Field("instruction", kinds.prose(), about="To a coding agent."),
    Field("app", kinds.word(MAX_WORD), about="Page of a browser."),
    Field("visual", kinds.FLAG, True),
)
_DELEGATE = Kind(read_mapping, json_schema.a_part(schemas_of(_DELEGATED), "name"), Shape.OBJECT)

STEP_KINDS: dict[str, StepKind] = {
    "call": StepKind(
        (
            Field(COMMAND, kinds.COMMAND, column=None, about="As in add_task."),
            Field(SHELL, kinds.FLAG, column=None),
            Field("tool", kinds.word(MAX_WORD), about="To call, with `arguments`."),
            Field("arguments", kinds.OBJECT, {}),
            Field("kind", Kind(call_kind, json_schema.one_of(CALL_KINDS), Shape.CHOICE)),
            Field("expect", _EXPECT, {}, about="Else it has to go well."),
            Field("timeout", kinds.TIME, None),
            Field("tries", kinds.count(1, MAX_TRIES), 1),
            Field("every", kinds.SECONDS, 0.0, about="Seconds between tries."),
            FAILURE,
            Field("recover", Kind(maybe_steps, _STEPS, Shape.LIST), [], about="Calls made when stuck here."),
            SAVE,
            Field("writes", kinds.line(inner_path), about="Workspace path it changes."),
            Field("outputs", OUTPUTS, []),
            Field("confirm", kinds.FLAG, False),
            IF,
        )
    ),
    "say": StepKind((Field("say", kinds.prose(short_text_reader(MAX_PROSE)), column="text"), IF)),
    "ask": StepKind(
        (
            Field("ask", kinds.prose(short_text_reader(MAX_PROSE)), column="question", about="Question to a person."),
            Field("options", kinds.names(short_text_reader(MAX_ANSWER), MAX_OPTIONS), []),
            TIMEOUT,
            SAVE,
            IF,
        )
    ),
    "observe": StepKind(
        (Field("observe", Kind(told_flag, {**json_schema.FLAG, "const": True}, Shape.FLAG), column=None), SAVE, IF)
    ),
    "wait": StepKind((Field("wait", _WAIT, column=None, about="Seconds, or `for` a call-back."), SAVE, IF), _WAITED),
    "delegate": StepKind((Field("delegate", _DELEGATE, column=None), SAVE, FAILURE, IF), _DELEGATED),
}
"""By what a step does. Times are in seconds; a call whose `kind` is empty tells itself what it is."""

PHASE = (
    Field("description", kinds.prose()),
    Field("expected_duration", kinds.TIME, None),
    Field("steps", kinds.parts(steps_there, json_schema.ref("step")), []),
)
"""A part of a task in steps."""

# What is made of it

DEFAULTS: dict[str, Row] = {do: defaults_of((*kind.inner, *kind.keys)) for do, kind in STEP_KINDS.items()}
"""The normal form of each kind of step, less its `do`."""
NEEDED = {"call": ("tool",), "say": ("text",), "ask": ("question",), "delegate": ("name",)}
"""Keys of the normal form without which such a step says nothing."""
TELLING = {COMMAND: "call", "tool": "call"} | {do: do for do in STEP_KINDS if do != "call"}
"""The keys that say in a plan what a step does."""
EXPECTED = readers_of(EXPECTATIONS)
INNER = {do: readers_of(kind.inner) for do, kind in STEP_KINDS.items() if kind.inner}
"""Keys that a plan has in the telling key's object, and the normal form beside the others."""
NORMAL: dict[str, dict[str, Reader]] = {
    do: {each.name: each.takes.read for each in (*kind.inner, *kind.keys) if each.is_stored or do == "call"}
    for do, kind in STEP_KINDS.items()
}
"""Keys of the normal form, in which a call may still be written as a command."""
WRITTEN = {do: readers_of(kind.keys) for do, kind in STEP_KINDS.items()}
"""Keys as a plan has them."""
ALL_WRITTEN = schemas_of(each for kind in STEP_KINDS.values() for each in kind.keys)
"""The JSON Schema of each key that a step may have in a plan."""
RENAMED = {do: kind.keys[0].name for do, kind in STEP_KINDS.items() if kind.keys[0].name != do and do != "call"}
"""Telling keys by another name in the normal form."""
