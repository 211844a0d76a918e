"""The kinds of steps, and what each of their keys takes. Pure."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any

from constellations.conditions import tasks_read
from constellations.plan.calls import COMMAND, MAX_PROSE, MAX_SECONDS, MAX_WORD, command, condition, prose
from constellations.plan.values import Misfit, Reader, Row, flag, identifier, list_of, mapping, number, one_of, text, whole

MAX_STEPS = 2_000
"""Steps of a task in all its phases, those of agents it delegates to and those that recover counted."""
MAX_TRIES = 1_000
MAX_OPTIONS = 100
"""Answers that a question offers."""
MAX_ANSWER = 500
"""Characters of an offered answer."""
MAX_PATH = 1_000
"""Characters of a path in a workspace."""
MAX_EXIT_CODE = 255
"""Of a command; as far below 0 are ends by a signal."""
WAIT_S = 60.0
"""Seconds that an answer or a call-back is waited for when nothing is said."""

CALL_KINDS = ("tool", "test", "poll")
ON_FAILURE = ("fail", "continue")

DEFAULTS: dict[str, Row] = {
    "call": {
        "tool": "", "arguments": {}, "kind": "", "expect": {}, "timeout": None, "tries": 1, "every": 0.0, "on_failure": "fail",
        "recover": [], "save": "", "writes": "", "confirm": False, "if": "",
    },
    "say": {"text": "", "if": ""},
    "ask": {"question": "", "options": [], "timeout": WAIT_S, "save": "", "if": ""},
    "observe": {"save": "", "if": ""},
    "wait": {"seconds": None, "for": "", "timeout": WAIT_S, "save": "", "if": ""},
    "delegate": {"name": "", "steps": [], "save": "", "on_failure": "fail", "if": ""},
}  # fmt: skip
"""The normal form of each kind of step, less its `do`. Times are in seconds; `kind` empty: told by the call itself."""
NEEDED = {"call": ("tool",), "say": ("text",), "ask": ("question",), "delegate": ("name", "steps")}
"""Keys of the normal form without which such a step says nothing."""
TELLING = {
    COMMAND: "call", "tool": "call", "say": "say", "ask": "ask", "observe": "observe", "wait": "wait", "delegate": "delegate",
}  # fmt: skip
"""The keys that say in a plan what a step does."""


def word(limit: int) -> Reader:
    """Text that is not empty."""
    read_text = text(limit)

    def read(value: Any) -> str:
        if not read_text(value):
            raise Misfit("is empty")
        return value

    return read


def saved_name(value: Any) -> str:
    """A key of the blackboard: whatever is saved can be read in a condition."""
    name = text(MAX_WORD)(value)
    if name and (not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__")):
        raise Misfit(f"'{name}' is not a name that a condition can read: letters, digits and _ make one")
    if name in ("result", "results"):
        raise Misfit(f"{name} means something else in conditions; take another name")
    return name


def own_condition(value: Any) -> str:
    """A condition over the keys at hand; results of other tasks are not among them."""
    written = condition(value)
    if "results" in written and (others := sorted(tasks_read(written))):
        raise Misfit(f"it reads the result of the task {others[0]}; a step knows only its own task")
    return written


def inner_path(value: Any) -> str:
    path = text(MAX_PATH)(value)
    if path.startswith("/") or ".." in path.split("/"):
        raise Misfit(f"'{path}' does not lead to a place inside the workspace")
    return path


def callback_name(value: Any) -> str:
    return value if value == "" else identifier(MAX_WORD)(value)


def call_kind(value: Any) -> str:
    return value if value == "" else one_of(CALL_KINDS)(value)


def steps_there(value: Any) -> list:
    """A list as it stands, if it has steps and not too many."""
    steps = maybe_steps(value)
    if not steps:
        raise Misfit("is empty")
    return steps


def told_flag(value: Any) -> bool:
    if not flag(value):
        raise Misfit("false observes nothing; leave the step out")
    return True


def time_or_object(value: Any) -> dict:
    """`wait: 5` is short for its seconds."""
    return dict(value) if isinstance(value, Mapping) else {"seconds": seconds(value)}


maybe_steps = list_of(lambda step: step, MAX_STEPS)
seconds = number(0, MAX_SECONDS)
above_zero = number(0, MAX_SECONDS, exclusive=True)

EXPECTED: dict[str, Reader] = {
    "exit_code": whole(-MAX_EXIT_CODE, MAX_EXIT_CODE),
    "contains": prose,
    "result": own_condition,
    "fails": flag,
}
"""What may be expected of a call."""

_CALL: dict[str, Reader] = {
    COMMAND: command, "shell": flag, "tool": text(MAX_WORD), "arguments": mapping, "kind": call_kind, "expect": mapping,
    "timeout": above_zero, "tries": whole(1, MAX_TRIES), "every": seconds, "on_failure": one_of(ON_FAILURE),
    "recover": maybe_steps, "save": saved_name, "writes": inner_path, "confirm": flag, "if": own_condition,
}  # fmt: skip
_ASK: dict[str, Reader] = {
    "options": list_of(word(MAX_ANSWER), MAX_OPTIONS), "timeout": above_zero, "save": saved_name, "if": own_condition,
}  # fmt: skip
_SAVE: dict[str, Reader] = {"save": saved_name, "if": own_condition}
_DELEGATE: dict[str, Reader] = {**_SAVE, "on_failure": one_of(ON_FAILURE)}

INNER: dict[str, dict[str, Reader]] = {
    "wait": {"seconds": seconds, "for": callback_name, "timeout": above_zero},
    "delegate": {"name": word(MAX_WORD), "steps": steps_there},
}
"""Keys that a plan has in the telling key's object, and the normal form beside the others."""
NORMAL: dict[str, dict[str, Reader]] = {
    "call": _CALL,
    "say": {"text": word(MAX_PROSE), "if": own_condition},
    "ask": {"question": word(MAX_PROSE), **_ASK},
    "observe": _SAVE,
    "wait": {**INNER["wait"], **_SAVE},
    "delegate": {**INNER["delegate"], **_DELEGATE},
}
"""Keys of the normal form."""
WRITTEN: dict[str, dict[str, Reader]] = {
    "call": _CALL,
    "say": {"say": word(MAX_PROSE), "if": own_condition},
    "ask": {"ask": word(MAX_PROSE), **_ASK},
    "observe": {"observe": told_flag, **_SAVE},
    "wait": {"wait": time_or_object, **_SAVE},
    "delegate": {"delegate": mapping, **_DELEGATE},
}
"""Keys as a plan has them."""
ALL_WRITTEN = frozenset(key for readers in WRITTEN.values() for key in readers)
RENAMED = {"say": "text", "ask": "question"}
"""Telling keys by another name in the normal form."""
