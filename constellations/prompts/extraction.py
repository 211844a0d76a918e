"""The JSON object in a model's text: alone, in a fence, or among words. Pure.

Nothing is repaired but what has one meaning only: a comma before a closing bracket, outside of texts, means nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

STARTS = 50
"""Opening braces at which an object is looked for."""
FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_TEXT_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+\\?(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
WANTED = "it must be one JSON object"


class NoObject(ValueError):
    """There is no JSON object in the text; the message says what is wrong."""


def find_object(text: str, key: str) -> dict[str, Any]:
    """The object that a text is, that a fence in it holds, or that stands among its words; raises NoObject.

    Among words only one that has the `key` counts, so that no part of an answer that broke off is taken for it. Where several
    stand there, it is the last of the largest: models show small ones on their way to the answer.
    """
    text = text.strip().removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").strip()
    if not text:
        raise NoObject(f"it is empty; {WANTED}")
    for candidate in (text, *FENCE.findall(text)):
        if candidate.lstrip().startswith("{") and (found := _read(candidate)) is not None:
            return found
    return _find_among_words(text, key)


def _read(text: str) -> dict[str, Any] | None:
    for written in (text, without_needless_commas(text)):
        try:
            found, end = _decode(written.strip(), 0)
        except (json.JSONDecodeError, NotJson):
            continue
        if isinstance(found, dict) and end == len(written.strip()):
            return found
    return None


def without_needless_commas(text: str) -> str:
    """JSON text without the commas before closing brackets."""
    return _TEXT_OR_COMMA.sub(lambda match: match[1] or "", text)


def _find_among_words(text: str, key: str) -> dict[str, Any]:
    text = without_needless_commas(text)
    best: tuple[int, dict[str, Any]] | None = None
    place, fault = -1, ""
    for _ in range(STARTS):
        place = text.find("{", place + 1)
        if place < 0:
            break
        try:
            found, end = _decode(text, place)
        except (json.JSONDecodeError, NotJson) as error:
            fault = fault or _fault_of(error)
            continue
        if key in found and (best is None or end - place >= best[0]):
            best = end - place, found
        place = end - 1
    if best is None:
        raise NoObject(f"{WANTED}, and it is not JSON: {fault}" if fault else f"{WANTED}, and there is none")
    return best[1]


def _fault_of(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} in line {error.lineno}, column {error.colno}"
    return str(error)


class NotJson(ValueError):
    """What JSON does not have, or what has no one meaning in it."""


def _decode(text: str, place: int) -> tuple[Any, int]:
    """The value that begins at `place`, and where it ends."""
    try:
        return _DECODER.raw_decode(text, place)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise NoObject("it is nested too deeply") from error
    except NotJson:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise NoObject(str(error)) from error


def _refuse_constant(name: str) -> Any:
    raise NotJson(f"{name} is no number in JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise NotJson(f"the key {key[:80]} is there twice")
        seen.add(key)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
