"""What the fields of messages may hold: each kind of value checks itself and says in words what it takes. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LARGEST = 2**63 - 1
"""Of a whole number: what databases store."""


class ProtocolError(Exception):
    """A message is not as the protocol says. `code` is one of `malformed`, `too_large`, `out_of_turn`, `too_many`."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Kind:
    """A kind of value: what it is called on the page, and what is wrong with one (empty: nothing)."""

    words: str
    flaw: Callable[[Any], str]


def text(most: int) -> Kind:
    def flaw(value: Any) -> str:
        if not isinstance(value, str):
            return "must be a text"
        return f"has more than {most} characters" if len(value) > most else ""

    return Kind(f"text, at most {most:,} characters", flaw)


def choice(*among: str) -> Kind:
    told = ", ".join(f"`{one}`" for one in among)
    return Kind(f"one of {told}", lambda value: "" if value in among else f"must be one of {', '.join(among)}")


def whole(most: int = LARGEST) -> Kind:
    def flaw(value: Any) -> str:
        return "" if type(value) is int and 0 <= value <= most else f"must be a whole number from 0 to {most}"

    return Kind("whole number" if most == LARGEST else f"whole number, at most {most:,}", flaw)


def number(most: float) -> Kind:
    def flaw(value: Any) -> str:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
        return "" if fits else f"must be a number from 0 to {most:g}"

    return Kind(f"number from 0 to {most:,g}", flaw)


def truth() -> Kind:
    return Kind("true or false", lambda value: "" if isinstance(value, bool) else "must be true or false")


def json_object(most: int) -> Kind:
    """Any JSON object of at most `most` characters as JSON."""

    def flaw(value: Any) -> str:
        if not isinstance(value, dict):
            return "must be an object"
        return f"has more than {most} characters" if len(json.dumps(value)) > most else ""

    return Kind(f"object, at most {most:,} characters", flaw)


def anything() -> Kind:
    return Kind("any JSON value", lambda value: "")


def maybe(kind: Kind) -> Kind:
    return Kind(f"{kind.words}, or null", lambda value: "" if value is None else kind.flaw(value))


def many(most: int, kind: Kind) -> Kind:
    def flaw(value: Any) -> str:
        if not isinstance(value, list):
            return "must be a list"
        if len(value) > most:
            return f"has more than {most} entries"
        return next((_at(f"[{place}]", wrong) for place, one in enumerate(value) if (wrong := kind.flaw(one))), "")

    return Kind(f"list of at most {most:,}: {kind.words}", flaw)


def record(**kinds: Kind) -> Kind:
    """An object with exactly these keys."""

    def flaw(value: Any) -> str:
        if not isinstance(value, dict) or set(value) != set(kinds):
            return f"must be an object with exactly the keys {', '.join(kinds)}"
        return next((_at(f".{name}", wrong) for name, kind in kinds.items() if (wrong := kind.flaw(value[name]))), "")

    told = "; ".join(f"`{name}`: {kind.words}" for name, kind in kinds.items())
    return Kind(f"object with {told}", flaw)


def said(kind: Kind, words: str, **default: Any) -> Any:
    """A field of a message: its kind, and what it means. With a `default` or a `default_factory` it may be left out."""
    return dataclasses.field(metadata={"kind": kind, "words": words}, **default)


def read_fields(message: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message of this type; raises ProtocolError naming the field that is wrong."""
    known = {field.name: field for field in dataclasses.fields(message)}
    for name in values:
        if name not in known:
            raise ProtocolError("malformed", f"{name[:40]!r} is no field of this message")
    for name, field in known.items():
        if name not in values:
            if is_needed(field):
                raise ProtocolError("malformed", f"{name} is missing")
        elif wrong := field.metadata["kind"].flaw(values[name]):
            raise ProtocolError("malformed", _at(name, wrong))
    return dict(values)


def is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _at(place: str, wrong: str) -> str:
    """What is wrong, with the place before it: `calls[1].ended must be true or false`."""
    return f"{place}{wrong}" if wrong[0] in "[." else f"{place} {wrong}"
