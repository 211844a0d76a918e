"""The JSON Schemas of answers. Pure.

They keep to what providers hold a model to: one object at the root, no further keys, no recursion, at most OPTIONAL_KEYS that
may be left out, no free objects: those are JSON text. A model that is held to nothing may write objects there, and keys that
only the description of the tools has; `answers` reads both.
"""

from __future__ import annotations

from typing import Any

from constellations.plan.keys.fields import DEPENDENCY_TYPES, PRIORITIES
from constellations.plan.schemas import TOOLS

Schema = dict[str, Any]

OPTIONAL_KEYS = 24
"""Keys that may be left out, in one schema: Anthropic's bound."""

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TOOL: Schema = {"type": "string", "enum": list(TOOLS)}


def json_text(kind: str) -> Schema:
    return {"type": "string", "description": f"JSON text of {kind}."}


def closed_object(keys: dict[str, Schema], *required: str) -> Schema:
    """An object with these keys and no others."""
    return {"type": "object", "properties": keys, "required": list(required), "additionalProperties": False}


SAYING: dict[str, Schema] = {
    "observation": {**TEXT, "description": "What you see: request, devices, events, results."},
    "thought": {**TEXT, "description": "Why you decide as you do."},
}
TASK_KEYS: dict[str, Schema] = {
    "task_id": TEXT,
    "description": TEXT,
    "name": TEXT,
    "tips": TEXTS,
    "device": TEXT,
    "device_type": TEXT,
    "capabilities": TEXTS,
    "command": TEXTS,
    "tool": TEXT,
    "arguments": json_text("an object"),
    "priority": {"type": "string", "enum": list(PRIORITIES)},
    "timeout": {"type": "number"},
    "max_attempts": {"type": "integer"},
    "confirm": {"type": "boolean"},
    "result_schema": json_text("a JSON Schema"),
    "after": TEXTS,
}
"""Of a task, as far as a schema can have them."""
DEPENDENCY_KEYS: dict[str, Schema] = {
    "from": TEXT,
    "to": TEXT,
    "type": {"type": "string", "enum": list(DEPENDENCY_TYPES)},
    "condition": TEXT,
}
PARAMETER_KEYS: dict[str, Schema] = {
    **TASK_KEYS,
    **DEPENDENCY_KEYS,
    "dependency_id": TEXT,
    "replaces": TEXT,
    "tasks": json_text("a list of tasks"),
    "dependencies": json_text("a list of dependencies"),
}
"""Of all the editor's tools together."""

CREATION: Schema = closed_object(
    {
        **SAYING,
        "status": {"type": "string", "enum": ["CONTINUE", "FINISH", "FAIL"]},
        "constellation": closed_object(
            {
                "name": TEXT,
                "tasks": {"type": "array", "items": closed_object(TASK_KEYS, "task_id", "description")},
                "dependencies": {"type": "array", "items": closed_object(DEPENDENCY_KEYS, "from", "to")},
            },
            "name",
            "tasks",
            "dependencies",
        ),
        "result": {**TEXT, "description": "With FINISH the answer itself, with FAIL why; else empty."},
    },
    "observation", "thought", "status", "constellation", "result",
)  # fmt: skip
EDITING: Schema = closed_object(
    {
        **SAYING,
        "status": {"type": "string", "enum": ["CONTINUE", "FINISH", "FAIL", "START"]},
        "actions": {
            "type": "array",
            "items": closed_object({"tool": TOOL, "parameters": closed_object(PARAMETER_KEYS)}, "tool", "parameters"),
        },
        "result": {**TEXT, "description": "With FINISH the summary for the user, with FAIL why; else empty."},
    },
    "observation", "thought", "status", "actions", "result",
)  # fmt: skip
