"""JSON Schema as the tools of models are described: the few forms that it takes here. Pure."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


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
