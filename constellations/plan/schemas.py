"""The Constellation Editor's seven tools: their names, what they do, and the JSON Schema of their parameters. Pure.

A schema says what the readers of `fields`, `step_keys` and `guards` take of each key, in the one way of writing it that
a program needs: types, choices, forms and least values. A model reads all of it at the beginning of every conversation, so
what nobody meets by accident is left to the readers, which say it: how long a text or a list may be, how large a number, and
that a part has no other keys. What only a whole shows (a task has a command or a tool or steps; a cycle) is in the
descriptions, and is said by the editor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from constellations.plan.keys.fields import DEPENDENCY, NAMING, TASK
from constellations.plan.keys.guards import POLICY_SCHEMA
from constellations.plan.keys.json_schema import FLAG, IDENT, OBJECT, Schema, a_part, an_object, many, ref, said
from constellations.plan.keys.kinds import schemas_of
from constellations.plan.keys.step_keys import ALL_WRITTEN, PHASE, TELLING
from constellations.plan.operations import DOING
from constellations.plan.values import did_you_mean


@dataclass(frozen=True)
class EditorTool:
    """`parameters` is a JSON Schema of an object; what it refers to is in its `$defs`."""

    name: str
    description: str
    parameters: Schema


STEP = said(f"One of {', '.join(TELLING)}, and the keys that go with it. Times are in seconds.", a_part(ALL_WRITTEN))

TASK_KEYS = schemas_of(field for field in TASK if not field.is_new)
NEW_KEYS = schemas_of(field for field in TASK if field.is_new)
COPY = {"copy": said("A task of which it is a copy; what else is given is otherwise.", IDENT)}
SHORT: dict[str, Schema] = {
    "steps": many(OBJECT), "phases": many(OBJECT), "policies": many(OBJECT), "progress": OBJECT,
    "unasked": OBJECT,
}  # fmt: skip
"""Parts of a task that only build_constellation spells out: half of a task's schema, for what few tasks have."""

DEPENDENCY_KEYS = schemas_of(DEPENDENCY)


def bare_keys(keys: dict[str, Schema]) -> dict[str, Schema]:
    """Keys without what is said of them: another tool says it."""
    return {key: {word: value for word, value in schema.items() if word != "description"} for key, schema in keys.items()}


def nullable_schema(schema: Schema) -> Schema:
    """Also null, which sets the default again."""
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def keys_of_update(keys: dict[str, Schema], *names: str) -> dict[str, Schema]:
    """The keys of an update: `names` say what is updated."""
    return {key: schema if key in names else nullable_schema(schema) for key, schema in bare_keys(keys).items()}


DEFS: dict[str, Schema] = {
    "task": a_part(bare_keys({**TASK_KEYS, **NEW_KEYS}), "task_id"),
    "dependency": a_part(bare_keys(DEPENDENCY_KEYS), "from", "to"),
    "phase": a_part(schemas_of(PHASE), "steps"),
    "policy": POLICY_SCHEMA,
    "step": STEP,
}
"""By name: parts that a schema refers to."""
CALLING = ("task", "step")
"""Those whose `tool` is the name of one; a policy's is a pattern."""

SPELT_OUT = "steps, phases, policies, progress and unasked are as in build_constellation."
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
            "Add a task. It needs a task_id, and one of command, tool (with arguments), steps and copy, or a description that "
            "an agent with a model carries out; `after` ties it to "
            "tasks that have to be completed first. `copy` makes another one like a task that is there, also one that has "
            f"failed; it waits for the same tasks unless after is given. {SPELT_OUT}",
            an_object({**TASK_KEYS, **SHORT, **COPY, **NEW_KEYS}, "task_id"),
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
            an_object(keys_of_update({**TASK_KEYS, **SHORT}, "task_id", *DOING), "task_id"),
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
            an_object(bare_keys({key: DEPENDENCY_KEYS[key] for key in NAMING})),
        ),
        EditorTool(
            "update_dependency",
            "Change the type, the condition or the description of a dependency: give its dependency_id, or "
            "from and to; null sets the default again.",
            an_object(keys_of_update(DEPENDENCY_KEYS, *NAMING)),
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


def unknown_editor_tool_text(name: str) -> str:
    """What is said of a tool that there is not."""
    return f"there is no tool {name}{did_you_mean(name, TOOLS)}"
