"""Reads a JSON body so strictly that nothing later stumbles over it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from agents.api.problems import BodyTooLarge

DEPTH = 50
"""Levels of nesting at most."""
KEY_SHOWN = 100
"""Characters of a key that an error shows."""
WHOLE = 1 << 63
"""Numbers without a fraction fit 64 bits, as databases have them."""


class StrictJson(BaseParser):
    """Refuses bodies that are too large, not UTF-8, not JSON, too deep, or hold what a database cannot keep."""

    media_type = "application/json"

    @property
    def size(self) -> int:
        """Bytes of a body at most."""
        return settings.BODY_BYTES

    def parse(self, stream: Any, media_type: str | None = None, parser_context: dict[str, Any] | None = None) -> Any:
        raw = stream.read(self.size + 1)
        if len(raw) > self.size:
            raise BodyTooLarge(f"a body has at most {self.size} bytes")
        try:
            value = read_json(raw)
        except RecursionError as error:
            raise ParseError(f"the body is nested more than {DEPTH} levels deep") from error
        except ValueError as error:
            raise ParseError(f"the body is not JSON: {error}") from error
        check_storable(value)
        return value


class DocumentJson(StrictJson):
    """The same for bodies that hold a whole document."""

    @property
    def size(self) -> int:
        return settings.IMPORT_BODY_BYTES


def read_json(text: str | bytes) -> Any:
    """What JSON says; raises ValueError, also for a key that an object has twice, RecursionError."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=each_key_once)


def key_twice(text: str | bytes) -> str:
    """What is wrong where an object has a key twice; empty for all else, JSON or not: that is for others to say."""
    try:
        read_json(text)
    except KeyTwice as error:
        return str(error)
    except (ValueError, RecursionError):
        pass
    return ""


class KeyTwice(ValueError):
    """An object of JSON has a key twice: readers would differ on which of the two counts."""


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object that JSON has with these pairs; raises KeyTwice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise KeyTwice(f"the key {twice[:KEY_SHOWN]!r} is there twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def check_storable(value: Any) -> None:
    """Raise ParseError where `value`, or anything inside, is no text, number or depth that a database can hold."""
    _check(value, "", 1)


def _check(value: Any, key: str, depth: int) -> None:
    if depth > DEPTH:
        raise ParseError(f"the body is nested more than {DEPTH} levels deep")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, key)
            _check(inner, f"{key}.{name}" if key else name, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, f"{key}[{number}]", depth + 1)
    elif isinstance(value, str):
        _check_text(value, key)
    elif isinstance(value, int | float) and not -WHOLE <= value < WHOLE:  # infinity too, which "1e999" is read as
        raise ParseError(f"{key}: the number is out of range")


def _check_text(text: str, key: str) -> None:
    if "\x00" in text:
        raise ParseError(f"{key}: text may hold no NUL byte")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParseError(f"{key}: text may hold no half of a surrogate pair")
