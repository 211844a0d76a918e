"""The Constellation Editor's seven tools: their names, what they do, and the JSON Schema of their parameters. Pure.

A schema says what the readers in `forms`, `step_forms` and `guard_forms` take of each key, in the one way of writing it that
a program needs. What only a whole shows (a task has a command or a tool or steps; a cycle) is in the descriptions, and is
said by the editor.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from agents.progress.settings import Settings
from constellations import conditions, forms, guard_forms, operations, step_forms, step_keys
from constellations.call_forms import MAX_PROSE, MAX_SECONDS, MAX_WORD, MAX_WORDS
from constellations.values import MAX_COMPARED, MAX_ID, MAX_ITEMS, did_you_mean

Schema = dict[str, Any]

ID_PATTERN = r"^[A-Za-z0-9_.:/-]+$"
"""Ids that every client understands; the readers take letters of other scripts too."""


@dataclass(frozen=True)
class EditorTool:
    """`parameters` is a JSON Schema of an object; what it refers to is in its `$defs`."""

    name: str
    description: str
    parameters: Schema


def said(description: str, schema: Schema) -> Schema:
    return {**schema, "description": description}


def words(limit: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": limit, **more}


def number(low: float, high: float = MAX_SECONDS) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


def above_zero(high: float = MAX_SECONDS) -> Schema:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": high}


def whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def one_of(choices: tuple[str, ...]) -> Schema:
    return {"type": "string", "enum": list(choices)}


def many(items: Schema, limit: int = MAX_ITEMS, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "maxItems": limit, **({"minItems": least} if least else {})}


def an_object(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object", "properties": properties, "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }  # fmt: skip


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
PROSE = words(MAX_PROSE)
WORD = words(MAX_WORD)
IDENT = words(MAX_ID, pattern=ID_PATTERN)
CONDITION = words(conditions.MAX_LENGTH, format="condition")
"""A condition over results, such as `accuracy > 0.95`: docs/plans.md, "Conditions"."""
ARGV = {**many(PROSE, MAX_WORDS, 1), "prefixItems": [words(MAX_PROSE, minLength=1)]}
"""The program and its arguments. (A plan may also write a text that is split; a program that edits has no need of that.)"""

# What watches over calls

POLICY = an_object(
    {"tool": words(MAX_WORD, minLength=1), "pattern": words(guard_forms.MAX_PATTERN, format="re2"),
     "decision": one_of(guard_forms.DECISIONS)},
    "decision",
)  # fmt: skip


def _setting(default: Any) -> Schema:
    if isinstance(default, bool):
        return FLAG
    if isinstance(default, int):
        return whole(0, guard_forms.MAX_COUNT)
    return many(words(guard_forms.MAX_PATTERN, format="re2"))


PROGRESS = an_object({each.name: _setting(each.default) for each in fields(Settings)})

# Steps

_SECONDS = number(0)
_EXPECT = an_object(
    {
        "exit_code": whole(-step_keys.MAX_EXIT_CODE, step_keys.MAX_EXIT_CODE),
        "contains": PROSE,
        "result": CONDITION,
        "fails": FLAG,
    }
)
_STEPS = many(ref("step"), step_keys.MAX_STEPS)
_DELEGATE = an_object({"name": words(MAX_WORD, minLength=1), "steps": {**_STEPS, "minItems": 1}}, "name", "steps")
_WAIT: Schema = {
    "anyOf": [
        _SECONDS,
        an_object({"seconds": _SECONDS}, "seconds"),
        an_object({"for": words(MAX_WORD, pattern=ID_PATTERN), "timeout": above_zero()}, "for"),
    ]
}
STEP_KEYS: dict[str, Schema] = {
    "command": said("A call of this argument list; no shell runs it.", ARGV),
    "tool": said("A call of this tool, with `arguments`.", words(MAX_WORD, minLength=1)),
    "arguments": OBJECT,
    "kind": one_of(step_keys.CALL_KINDS),
    "expect": said("What has to come of a call; else it has to go well.", _EXPECT),
    "timeout": said("Seconds.", above_zero()),
    "tries": whole(1, step_keys.MAX_TRIES),
    "every": said("Seconds between two tries.", _SECONDS),
    "on_failure": one_of(step_keys.ON_FAILURE),
    "recover": said("Calls made when the agent is stuck here.", _STEPS),
    "save": said("A name that conditions read it by.", words(MAX_WORD, pattern="^[A-Za-z][A-Za-z0-9_]*$", format="name")),
    "writes": said("A path in the workspace that the command changes.", words(step_keys.MAX_PATH, format="path")),
    "confirm": FLAG,
    "if": CONDITION,
    "say": words(MAX_PROSE, minLength=1),
    "ask": said("A question to a person.", words(MAX_PROSE, minLength=1)),
    "options": many(words(step_keys.MAX_ANSWER, minLength=1), step_keys.MAX_OPTIONS),
    "observe": {"const": True},
    "wait": _WAIT,
    "delegate": _DELEGATE,
}
STEP = said(f"One of {', '.join(step_keys.TELLING)}, and the keys that go with it.", an_object(STEP_KEYS))
PHASE = an_object({"description": PROSE, "expected_duration": above_zero(), "steps": {**_STEPS, "minItems": 1}}, "steps")

# Tasks

TASK_KEYS: dict[str, Schema] = {
    "task_id": said("Unique in its constellation.", IDENT),
    "name": words(forms.MAX_NAME),
    "description": PROSE,
    "tips": many(PROSE),
    "device": said("Where it has to run; left out: any device that fits.", WORD),
    "wanted_device": said("The same as device.", WORD),
    "device_type": WORD,
    "capabilities": said("What its device has to have.", many(WORD)),
    "command": said("The argument list it runs. A task has a command, a tool or steps.", ARGV),
    "tool": words(MAX_WORD, minLength=1),
    "arguments": said("Of its tool.", OBJECT),
    "priority": one_of(forms.PRIORITIES),
    "timeout": said("Seconds that one attempt may run.", above_zero()),
    "deadline": said("Seconds from the constellation's creation.", above_zero()),
    "max_attempts": whole(1, forms.MAX_ATTEMPTS),
    "backoff": said("Seconds before the second attempt; doubles with each.", _SECONDS),
    "confirm": said("Whether a person has to approve it before it begins.", FLAG),
    "steps": many(ref("step"), step_keys.MAX_STEPS, 1),
    "phases": many(ref("phase"), step_forms.MAX_PHASES),
    "policies": many(ref("policy"), guard_forms.MAX_POLICIES),
    "progress": said("Settings of the detection of being stuck that differ.", PROGRESS),
    "on_lost": one_of(forms.ON_LOST),
}
NEW_TASK_KEYS = {**TASK_KEYS, "after": said("Tasks that have to be completed before it.", many(IDENT, MAX_COMPARED))}

DEPENDENCY_KEYS: dict[str, Schema] = {
    "dependency_id": said("`from>to` when it is left out.", words(forms.MAX_DEPENDENCY_ID)),
    "from": said("task_id of the upstream task.", IDENT),
    "to": said("task_id of the task that waits.", IDENT),
    "type": said("CONDITIONAL with a condition, else SUCCESS_ONLY, unless it says otherwise.", one_of(forms.TYPES)),
    "condition": said("Over the upstream's result, for example `accuracy > 0.95`; the type is then CONDITIONAL.", CONDITION),
    "description": PROSE,
}
WHICH = ("dependency_id", "from", "to")
"""What names a dependency: its id, or both ends."""


def or_null(schema: Schema) -> Schema:
    """Also null, which sets the default again."""
    return {"anyOf": [schema, {"type": "null"}]}


def changed(keys: dict[str, Schema], *names: str) -> dict[str, Schema]:
    """The keys of an update: `names` say what is updated."""
    return {key: schema if key in names else or_null(schema) for key, schema in keys.items()}


DEFS: dict[str, tuple[Schema, tuple[str, ...]]] = {
    "task": (an_object(NEW_TASK_KEYS, "task_id"), ("phase", "policy", "step")),
    "dependency": (an_object(DEPENDENCY_KEYS, "from", "to"), ()),
    "phase": (PHASE, ("step",)),
    "policy": (POLICY, ()),
    "step": (STEP, ()),
}
"""By name: a part, and the parts that it refers to."""
OF_TASKS = ("phase", "policy", "step")


def defined(schema: Schema, *names: str) -> Schema:
    """A schema with the parts that it refers to."""
    return {**schema, "$defs": {name: DEFS[name][0] for name in names}} if names else schema


TOOLS: dict[str, EditorTool] = {
    tool.name: tool
    for tool in (
        EditorTool(
            "build_constellation",
            "Build the graph: `tasks` and `dependencies`. With `clear` (the default) they replace whatever may still be "
            "changed, and it is refused where a task that has started would go; without, they are added.",
            defined(
                an_object(
                    {
                        "tasks": many(ref("task"), operations.MAX_TASKS, 1),
                        "dependencies": many(ref("dependency"), operations.MAX_DEPENDENCIES),
                        "clear": FLAG,
                    },
                    "tasks",
                ),
                "task", "dependency", *OF_TASKS,
            ),
        ),
        EditorTool(
            "add_task",
            "Add a task. It needs a task_id, and one of command, tool (with arguments) and steps; `after` ties it to tasks "
            "that have to be completed first.",
            defined(an_object(NEW_TASK_KEYS, "task_id"), *OF_TASKS),
        ),
        EditorTool(
            "remove_task",
            "Remove a task that has never started, and the dependencies that it is part of.",
            an_object({"task_id": IDENT}, "task_id"),
        ),
        EditorTool(
            "update_task",
            "Change a task that has not started: give its task_id and what is to change; null sets the default again.",
            defined(an_object(changed(TASK_KEYS, "task_id"), "task_id"), *OF_TASKS),
        ),
        EditorTool(
            "add_dependency",
            "Let the task `to` wait for the task `from`. SUCCESS_ONLY: it has to be completed; COMPLETION_ONLY and "
            "UNCONDITIONAL: it has to have ended; CONDITIONAL: completed, and the condition over its result is true.",
            an_object(DEPENDENCY_KEYS, "from", "to"),
        ),
        EditorTool(
            "remove_dependency",
            "Remove a dependency into a task that has not started: give its dependency_id, or from and to.",
            an_object({key: DEPENDENCY_KEYS[key] for key in WHICH}),
        ),
        EditorTool(
            "update_dependency",
            "Change the type, the condition or the description of a dependency: give its dependency_id, or from and to; null "
            "sets the default again.",
            an_object(changed(DEPENDENCY_KEYS, *WHICH)),
        ),
    )
}  # fmt: skip
"""By name, in the order in which they are listed."""


def unknown_tool(name: str) -> str:
    """What is said of a tool that there is not."""
    return f"there is no tool {name}{did_you_mean(name, TOOLS)}"
