"""Reads a JSON body so strictly that nothing later stumbles over it."""

from __future__ import annotations

import json
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from agents.problems import BodyTooLarge

BODY_BYTES = 2_000_000
"""Bytes of a request's body at most."""
DEPTH = 50
"""Levels of nesting at most."""
WHOLE = 1 << 63
"""Numbers without a fraction fit 64 bits, as databases have them."""


class StrictJson(BaseParser):
    """Refuses bodies that are too large, not UTF-8, not JSON, too deep, or hold what a database cannot keep."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None) -> Any:
        raw = stream.read(BODY_BYTES + 1)
        if len(raw) > BODY_BYTES:
            raise BodyTooLarge(f"a body has at most {BODY_BYTES} bytes")
        try:
            value = json.loads(raw, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise ParseError(f"the body is nested more than {DEPTH} levels deep") from error
        except ValueError as error:
            raise ParseError(f"the body is not JSON: {error}") from error
        check(value)
        return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def check(value: Any) -> None:
    """Raise ParseError where `value`, or anything inside, is no text, number or depth that a database can hold."""
    waiting = [(value, "", 1)]
    while waiting:
        found, key, depth = waiting.pop()
        if depth > DEPTH:
            raise ParseError(f"the body is nested more than {DEPTH} levels deep")
        if isinstance(found, dict):
            for name, inner in found.items():
                _check_text(name, key)
                waiting.append((inner, f"{key}.{name}" if key else name, depth + 1))
        elif isinstance(found, list):
            waiting.extend((inner, f"{key}[{number}]", depth + 1) for number, inner in enumerate(found))
        else:
            _check_scalar(found, key)


def _check_scalar(value: Any, key: str) -> None:
    if isinstance(value, str):
        _check_text(value, key)
    elif isinstance(value, int | float) and not -WHOLE <= value < WHOLE:  # infinity too, which "1e999" is read as
        raise ParseError(f"{key}: the number is out of range")


def _check_text(text: str, key: str) -> None:
    if "\x00" in text:
        raise ParseError(f"{key}: text may hold no NUL byte")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParseError(f"{key}: text may hold no half of a surrogate pair")
