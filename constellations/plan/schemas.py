"""The Constellation Editor's seven tools: their names, what they do, and the JSON Schema of their parameters. Pure.

A schema says what the readers in `forms`, `step_forms` and `guard_forms` take of each key, in the one way of writing it that
a program needs: types, choices, forms and least values. A model reads all of it at the beginning of every conversation, so
what nobody meets by accident is left to the readers, which say it: how long a text or a list may be, how large a number, and
that a part has no other keys. What only a whole shows (a task has a command or a tool or steps; a cycle) is in the
descriptions, and is said by the editor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from agents.progress.settings import Settings
from constellations.plan import guards, step_keys, tasks
from constellations.plan.operations import DOING
from constellations.plan.values import did_you_mean

Schema = dict[str, Any]


@dataclass(frozen=True)
class EditorTool:
    """`parameters` is a JSON Schema of an object; what it refers to is in its `$defs`."""

    name: str
    description: str
    parameters: Schema


def said(description: str, schema: Schema) -> Schema:
    return {**schema, "description": description}


def whole(least: int) -> Schema:
    return {"type": "integer", "minimum": least}


def one_of(choices: tuple[str, ...]) -> Schema:
    return {"type": "string", "enum": list(choices)}


def many(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def a_part(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def an_object(properties: dict[str, Schema], *required: str) -> Schema:
    """The parameters of a tool, which has no others."""
    return {**a_part(properties, *required), "additionalProperties": False}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
TEXTS = many(TEXT)
COMMAND: Schema = {"type": ["array", "string"], "items": TEXT}
IDENT: Schema = {"type": "string", "pattern": r"^[\w.:/-]+$"}
"""As JSON Schema reads it, ids that every client understands; the readers take letters of other scripts too."""
SECONDS: Schema = {"type": "number", "minimum": 0}
TIME: Schema = {"type": "number", "exclusiveMinimum": 0}
"""Seconds, of which there have to be some."""

# What watches over calls

POLICY = a_part(
    {"tool": TEXT, "pattern": said("RE2, found in a call's target.", TEXT), "decision": one_of(guards.DECISIONS)},
    "decision",
)


def _setting(default: Any) -> Schema:
    if isinstance(default, bool):
        return FLAG
    return whole(0) if isinstance(default, int) else TEXTS


PROGRESS = a_part({each.name: _setting(each.default) for each in fields(Settings)})

# Steps

_EXPECT = a_part({"exit_code": {"type": "integer"}, "contains": TEXT, "result": said("A condition.", TEXT), "fails": FLAG})
_STEPS = many(ref("step"))
_DELEGATE = a_part({"name": TEXT, "steps": _STEPS}, "name", "steps")
_WAIT: Schema = {**a_part({"seconds": SECONDS, "for": IDENT, "timeout": TIME}), "type": ["number", "object"], "minimum": 0}
STEP_KEYS: dict[str, Schema] = {
    "command": said("As in add_task.", COMMAND),
    "shell": FLAG,
    "tool": said("To call, with `arguments`.", TEXT),
    "arguments": OBJECT,
    "kind": one_of(step_keys.CALL_KINDS),
    "expect": said("Of a call; else it has to go well.", _EXPECT),
    "timeout": TIME,
    "tries": whole(1),
    "every": said("Seconds between tries.", SECONDS),
    "on_failure": one_of(step_keys.ON_FAILURE),
    "recover": said("Calls made when stuck here.", _STEPS),
    "save": said("Name that conditions read it by.", TEXT),
    "writes": said("Workspace path that the command changes.", TEXT),
    "confirm": FLAG,
    "if": said("A condition.", TEXT),
    "say": TEXT,
    "ask": said("Question to a person.", TEXT),
    "options": TEXTS,
    "observe": {**FLAG, "const": True},
    "wait": said("Seconds, or `for` a call-back.", _WAIT),
    "delegate": _DELEGATE,
}
STEP = said(f"One of {', '.join(step_keys.TELLING)}, and the keys that go with it. Times are in seconds.", a_part(STEP_KEYS))
PHASE = a_part({"description": TEXT, "expected_duration": TIME, "steps": _STEPS}, "steps")

# Tasks

TASK_KEYS: dict[str, Schema] = {
    "task_id": IDENT,
    "name": TEXT,
    "description": TEXT,
    "tips": TEXTS,
    "device": said("Where it has to run; else any that fits.", TEXT),
    "device_type": TEXT,
    "capabilities": said("Its device has to have.", TEXTS),
    "not_device": said("Devices it must not run on.", TEXTS),
    "command": said("Argument list to run, no shell; or a line of plain words.", COMMAND),
    "shell": said("`sh -c` runs the command, which is one text.", FLAG),
    "tool": TEXT,
    "arguments": said("Of its tool.", OBJECT),
    "priority": one_of(tasks.PRIORITIES),
    "timeout": said("Seconds of one attempt.", TIME),
    "deadline": said("Seconds from the constellation's creation.", TIME),
    "max_attempts": whole(1),
    "backoff": said("Seconds before the second attempt; doubles with each.", SECONDS),
    "confirm": said("A person has to approve it before it begins.", FLAG),
    "steps": many(ref("step")),
    "phases": many(ref("phase")),
    "policies": many(ref("policy")),
    "progress": said("How patient the detection of being stuck is.", PROGRESS),
    "on_lost": one_of(tasks.ON_LOST),
}
COPY = {"copy": said("A task of which it is a copy; what else is given is otherwise.", IDENT)}
AFTER = {
    "after": said("Tasks that have to be completed before it.", many(IDENT)),
    "replaces": said("A task that failed or was cancelled: what waited for it waits for this one.", IDENT),
}
SHORT: dict[str, Schema] = {"steps": many(OBJECT), "phases": many(OBJECT), "policies": many(OBJECT), "progress": OBJECT}
"""Parts of a task that only build_constellation spells out: half of a task's schema, for what few tasks have."""

DEPENDENCY_KEYS: dict[str, Schema] = {
    "dependency_id": said("`from>to` when left out.", TEXT),
    "from": said("The upstream task.", IDENT),
    "to": said("The task that waits.", IDENT),
    "type": one_of(tasks.TYPES),
    "condition": said("Over the upstream's result: `accuracy > 0.95`.", TEXT),
    "description": TEXT,
}
WHICH = ("dependency_id", "from", "to")
"""What names a dependency: its id, or both ends."""


def bare(keys: dict[str, Schema]) -> dict[str, Schema]:
    """Keys without what is said of them: another tool says it."""
    return {key: {word: value for word, value in schema.items() if word != "description"} for key, schema in keys.items()}


def or_null(schema: Schema) -> Schema:
    """Also null, which sets the default again."""
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def changed(keys: dict[str, Schema], *names: str) -> dict[str, Schema]:
    """The keys of an update: `names` say what is updated."""
    return {key: schema if key in names else or_null(schema) for key, schema in bare(keys).items()}


DEFS: dict[str, Schema] = {
    "task": a_part(bare({**TASK_KEYS, **AFTER}), "task_id"),
    "dependency": a_part(bare(DEPENDENCY_KEYS), "from", "to"),
    "phase": PHASE,
    "policy": POLICY,
    "step": STEP,
}
"""By name: parts that a schema refers to."""
CALLING = ("task", "step")
"""Those whose `tool` is the name of one; a policy's is a pattern."""

SPELT_OUT = "steps, phases, policies and progress are as in build_constellation."
"""Each key is explained in one tool: a model reads them all."""

TOOLS: dict[str, EditorTool] = {
    tool.name: tool
    for tool in (
        EditorTool(
            "build_constellation",
            "Build the graph: `tasks` and `dependencies`. With `clear` (the default) they replace whatever may still be "
            "changed, and what has started stays, listed or not; without, they are added. What has started and is listed "
            "has to be listed as it is. Keys mean what they mean in add_task and add_dependency.",
            {
                **an_object({"tasks": many(ref("task")), "dependencies": many(ref("dependency")), "clear": FLAG}),
                "$defs": DEFS,
            },
        ),
        EditorTool(
            "add_task",
            "Add a task. It needs a task_id, and one of command, tool (with arguments), steps and copy; `after` ties it to "
            "tasks that have to be completed first. `copy` makes another one like a task that is there, also one that has "
            f"failed; it waits for the same tasks unless after is given. {SPELT_OUT}",
            an_object({**TASK_KEYS, **SHORT, **COPY, **AFTER}, "task_id"),
        ),
        EditorTool(
            "remove_task",
            "Remove a task that has never started, and the dependencies that it is part of.",
            an_object({"task_id": IDENT}, "task_id"),
        ),
        EditorTool(
            "update_task",
            "Change a task that has not started: give its task_id and what is to change, as in "
            "add_task; null sets the default again.",
            an_object(changed({**TASK_KEYS, **SHORT}, "task_id", *DOING), "task_id"),
        ),
        EditorTool(
            "add_dependency",
            "Let the task `to` wait for the task `from`. SUCCESS_ONLY: it has to be completed; COMPLETION_ONLY and "
            "UNCONDITIONAL: it has to have ended; CONDITIONAL: completed, and the condition over its result is true. "
            "Left out, the type is CONDITIONAL where there is a condition, else SUCCESS_ONLY.",
            an_object(DEPENDENCY_KEYS, "from", "to"),
        ),
        EditorTool(
            "remove_dependency",
            "Remove a dependency into a task that has not started: give its dependency_id, or from and to.",
            an_object(bare({key: DEPENDENCY_KEYS[key] for key in WHICH})),
        ),
        EditorTool(
            "update_dependency",
            "Change the type, the condition or the description of a dependency: give its dependency_id, or "
            "from and to; null sets the default again.",
            an_object(changed(DEPENDENCY_KEYS, *WHICH)),
        ),
    )
}  # fmt: skip
"""By name, in the order in which they are listed."""


def naming_tools(tool: EditorTool, names: Sequence[str]) -> EditorTool:
    """The editor's tool with the names of what tasks and steps may call; which there are is not known here."""
    parameters = {**tool.parameters, "properties": _with_names(tool.parameters["properties"], names)}
    if "$defs" in parameters:
        parts = {
            name: {**part, "properties": _with_names(part["properties"], names)} if name in CALLING else part
            for name, part in parameters["$defs"].items()
        }
        parameters["$defs"] = parts
    return replace(tool, parameters=parameters)


def _with_names(keys: dict[str, Schema], names: Sequence[str]) -> dict[str, Schema]:
    if "tool" not in keys:
        return keys
    or_none = [None] if "null" in keys["tool"]["type"] else []
    return {**keys, "tool": {**keys["tool"], "enum": [*names, *or_none]}}


def unknown_tool(name: str) -> str:
    """What is said of a tool that there is not."""
    return f"there is no tool {name}{did_you_mean(name, TOOLS)}"
