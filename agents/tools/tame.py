"""JSON Schemas from outside, as far as they may be checked here: what could cost without bound, or call somebody, is left
out. Pure.

That is patterns (a regular expression may run for hours), references beyond the schema itself, formats, and conditions. What is
left says less, so it refuses less; the server itself looks at its arguments all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPTH = 12
NODES = 2_000
NAME = 100
"""Characters of an argument's name."""
TEXT = 500
"""Characters of a description."""
VALUES = 200
"""Of an `enum`."""
NUMBERS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties",
)  # fmt: skip
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
TABLES = ("#/$defs/", "#/definitions/")


def tame_schema(schema: Any) -> dict[str, Any]:
    """The schema of an object with nothing in it but what is understood here; references are written out."""
    found = _Tamed(schema if isinstance(schema, Mapping) else {}).whole
    return {**found, "type": "object"}


def split_descriptions(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A tame schema without what is said in it, and that as lines: whoever shows it can mark it as somebody else's words."""
    said: list[str] = []

    def strip(part: Any, place: str) -> Any:
        if isinstance(part, list):
            return [strip(each, place) for each in part]
        if not isinstance(part, Mapping):
            return part
        if isinstance(text := part.get("description"), str) and text:
            said.append(f"{place or 'arguments'}: {text}")
        kept = {
            word: each if word in ("enum", "const", "default") else strip(each, place)
            for word, each in part.items()
            if word not in ("description", "properties")
        }
        if isinstance(parts := part.get("properties"), Mapping):
            kept["properties"] = {key: strip(each, f"{place}.{key}".lstrip(".")) for key, each in parts.items()}
        return kept

    return strip(schema, ""), list(dict.fromkeys(said))


class _Tamed:
    def __init__(self, schema: Mapping[str, Any]):
        self._root, self._left = schema, NODES
        self.whole = self._tame(schema, 0)

    def _tame(self, schema: Any, depth: int) -> dict[str, Any]:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > DEPTH or self._left < 0:
            return {}
        if "$ref" in schema:
            return self._tame(self._referred(schema["$ref"]), depth + 1)
        found = self._words(schema)
        if isinstance(items := schema.get("items"), Mapping):
            found["items"] = self._tame(items, depth + 1)
        if isinstance(parts := schema.get("properties"), Mapping):
            named = ((str(key), each) for key, each in parts.items() if len(str(key)) <= NAME)
            found["properties"] = {key: self._tame(each, depth + 1) for key, each in named}
        if isinstance(more := schema.get("additionalProperties"), bool | Mapping):
            found["additionalProperties"] = more if isinstance(more, bool) else self._tame(more, depth + 1)
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(several := schema.get(word), list) and several:
                found[word] = [self._tame(each, depth + 1) for each in several]
        return found

    def _referred(self, reference: Any) -> Any:
        if isinstance(reference, str) and (table := next(filter(reference.startswith, TABLES), "")):
            return (self._root.get(table[2:-1]) or {}).get(reference[len(table) :])
        return None

    @staticmethod
    def _words(schema: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords that stand for themselves."""
        found: dict[str, Any] = {}
        kinds = schema.get("type")
        if kinds in TYPES or (isinstance(kinds, list) and kinds and all(kind in TYPES for kind in kinds)):
            found["type"] = kinds
        if isinstance(schema.get("description"), str):
            found["description"] = schema["description"][:TEXT]
        if isinstance(values := schema.get("enum"), list) and 0 < len(values) <= VALUES:
            found["enum"] = values
        if isinstance(needed := schema.get("required"), list) and needed:
            found["required"] = [str(each) for each in needed]
        for word in ("const", "default"):
            if word in schema:
                found[word] = schema[word]
        for word in NUMBERS:
            if isinstance(number := schema.get(word), int | float) and not isinstance(number, bool):
                found[word] = number
        return found
