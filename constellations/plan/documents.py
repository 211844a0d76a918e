"""Text of a plan, YAML or JSON, as plain values whose lines are known. Pure.

JSON goes the fast way; lines are looked for only when there is something to say about them. YAML is read event by event,
so depth and aliases are refused before they cost anything, and by version 1.2's core schema: `yes` is text, not true.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from agents.masks.masking import is_hidden

MAX_BYTES = 1_000_000
"""Size of YAML in UTF-8: it is read event by event, about a megabyte in two seconds."""
MAX_JSON_BYTES = 10_000_000
"""Size of JSON in UTF-8, of what is exported as of what is read. No lines are told of more than MAX_BYTES."""
MAX_DEPTH = 20
"""Objects and lists within each other."""
BEYOND = 1 << 63
"""Numbers are below it, and from its negative on: what 64 bits hold, with a sign. Beyond them events cannot be written, and
PostgreSQL gives 1e+25 back as a whole number."""
OUT_OF_RANGE = "the number is out of range; put it in quotes if it is text"

Path = tuple[str | int, ...]
Flaw = tuple[Path, str]

WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,299})")
OTHER_WHOLE = re.compile(r"0x[0-9a-fA-F]{1,16}|0o[0-7]{1,21}")
REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


COLUMNS = "; the keys of one item stand in one column, and so do the dashes of a list"
HINTS = {
    "cannot start any token": "; indent with spaces, not with tabs; put text that begins with @ or a backquote in quotes",
    "mapping values are not allowed": "; a colon and a space make a key: the line before lacks one, or this text its quotes",
    "did not find expected key": COLUMNS,
    "did not find expected '-'": COLUMNS,
    "did not find expected ','": "; a bracket is not closed, or a text in brackets needs quotes",
}
"""What to do, by what YAML's reader says."""


class Unreadable(Exception):
    """The text is neither YAML nor JSON, or more than is read. `line` is None when it is not known."""

    def __init__(self, message: str, line: int | None = None, path: Path = ()):
        super().__init__(message)
        self.line, self.path = line, path


class Document:
    """A value read from text, and where its parts stand."""

    def __init__(self, text: str, value: Any, places: ValuePlace | None = None, repeated: list[Flaw] | None = None):
        self.text, self.value, self.repeated = text, value, repeated or []
        self._places = places

    def line(self, path: Path) -> int | None:
        """The line, from 1, of the part at `path`, or of the nearest part around it."""
        if self._places is None:
            if len(self.text) > MAX_BYTES:
                return None
            try:
                self._places = _Builder(MAX_BYTES).build(self.text)._places
            except Unreadable:  # JSON that YAML cannot read: paths must do
                return None if "\n" in self.text.strip() else 1
        place: ValuePlace = self._places or ValuePlace(1)
        for step in path:
            inner = place.within(step)
            if inner is None:
                break
            place = inner
        return place.line


def read_document(text: str | bytes) -> Document:
    """Raises Unreadable. Keys that are there twice are in `repeated`; the first one counts."""
    text = _decode(text)
    if not text.lstrip().startswith(("{", "[")):
        return _yaml(text)
    try:
        return Document(text, json.loads(text, object_pairs_hook=_object, parse_constant=_no_number))
    except json.JSONDecodeError as error:
        return _read_again(text, Unreadable(f"it is not JSON: {error.msg.lower()} at column {error.colno}", error.lineno))
    except KeyError as error:
        return _read_again(text, Unreadable(f"the key {error.args[0]} is there twice"))
    except RecursionError:
        if len(text) <= MAX_BYTES:
            return _yaml(text)
        raise Unreadable(f"nested more than {MAX_DEPTH} deep") from None
    except OverflowError as error:
        raise Unreadable(str(error)) from error
    except ValueError as error:
        raise Unreadable(f"a number has more than {sys.get_int_max_str_digits()} digits") from error


def _read_again(text: str, refusal: Unreadable) -> Document:
    """What is not JSON may be YAML; if it is neither, what JSON has against it says more."""
    try:
        return _yaml(text)
    except Unreadable:
        raise refusal from None


def _yaml(text: str) -> Document:
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        raise Unreadable(f"the text has {size:,} bytes; {MAX_BYTES:,} are allowed, and {MAX_JSON_BYTES:,} of JSON")
    return _Builder().build(text)


def _decode(text: str | bytes) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_JSON_BYTES:
        raise Unreadable(f"the text has {size:,} bytes; {MAX_JSON_BYTES:,} are allowed")
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"the text is not UTF-8: byte {error.start + 1} is {text[error.start]:#04x}", line) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise KeyError(next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))
    return value


def _no_number(word: str) -> float:
    raise OverflowError(f"{word} is not a number that JSON knows")


def value_flaws(value: Any, path: Path = (), max_depth: int = MAX_DEPTH) -> Iterator[Flaw]:
    """What no database keeps: nesting beyond `max_depth`, numbers from BEYOND on, NUL, half characters, keys not of text."""
    return _flaws(value, path, len(path) + max_depth)


def _flaws(value: Any, path: Path, deepest: int) -> Iterator[Flaw]:
    if not isinstance(value, dict | list | tuple):
        yield from ((path, flaw) for flaw in _leaf_flaws(value))
        return
    if len(path) >= deepest:
        yield path, f"nested more than {MAX_DEPTH} deep"
        return
    if isinstance(value, dict):
        strange = (key for key in value if type(key) is not str or not _is_plain(key))
        yield from ((path, flaw) for key in strange for flaw in _key_flaws(key))
    steps: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in steps:
        if not _is_plain(inner):
            yield from _flaws(inner, (*path, step), deepest)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return value.isascii() and "\0" not in value
    return kind is bool or value is None or (kind is int and -BEYOND <= value < BEYOND)


def _key_flaws(key: Any) -> Iterator[str]:
    if not isinstance(key, str):
        yield f"the key {key!r} is not text"
    else:
        yield from (f"in a key: {flaw}" for flaw in _leaf_flaws(key))


def _leaf_flaws(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield "text may not hold the character NUL"
        if is_hidden(value):
            yield "text may not hold what is shown in the place of a secret: write the name of the secret, or the text itself"
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield "text may not hold half a character (a lone surrogate)"
    elif isinstance(value, int | float):
        yield from _number_flaws(value)
    elif value is not None:
        yield f"{type(value).__name__} is not a value that JSON knows"


def _number_flaws(value: float) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{value} is not a number that JSON knows"
    elif not -BEYOND <= value < BEYOND:
        yield OUT_OF_RANGE


class ValuePlace:
    """Where a value stands, and the places of what is in it."""

    __slots__ = ("inner", "line")

    def __init__(self, line: int, inner: dict[str, ValuePlace] | list[ValuePlace] | None = None):
        self.line, self.inner = line, inner

    def within(self, step: str | int) -> ValuePlace | None:
        if isinstance(self.inner, dict):
            return self.inner.get(step) if isinstance(step, str) else None
        if isinstance(self.inner, list) and isinstance(step, int) and step < len(self.inner):
            return self.inner[step]
        return None


class _Builder:
    """Builds values and places from YAML's events. `open` holds the containers that have not ended."""

    def __init__(self, max_depth: int = MAX_DEPTH) -> None:
        self.max_depth = max_depth
        self.open: list[_Container] = []
        self.repeated: list[Flaw] = []
        self.root: tuple[Any, ValuePlace] | None = None

    def build(self, text: str) -> Document:
        try:
            loader = yaml.CSafeLoader(text)
            while loader.check_event():
                self._take(loader.get_event())
        except yaml.YAMLError as error:
            raise _unreadable(error, text) from error
        value, places = self.root or (None, ValuePlace(1))
        return Document(text, value, places, self.repeated)

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.NodeEvent):
            self._refuse_references(event, line)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(_Container(isinstance(event, yaml.MappingStartEvent), line), line)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self.open.pop()
            self._add(ended.value, ended.place)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root:
            raise Unreadable("a second document begins (---); a plan is one", line)

    def _refuse_references(self, event: Any, line: int) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise Unreadable(f"anchors and aliases (&{event.anchor}, *{event.anchor}) are not read; write it out", line)
        if event.tag and event.tag != "!":
            raise Unreadable(f"tags are not read: {event.tag.replace('tag:yaml.org,2002:', '!!')}", line)

    def _begin(self, container: _Container, line: int) -> None:
        if len(self.open) >= self.max_depth:
            raise Unreadable(f"nested more than {self.max_depth} deep", line)
        if self.open and self.open[-1].wants_key:
            raise Unreadable("a key is text, not an object or a list", line)
        self.open.append(container)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        if self.open and self.open[-1].wants_key:
            self.open[-1].take_key(event.value, line)
        else:
            self._add(_plain(event.value) if event.implicit[0] else event.value, ValuePlace(line))

    def _add(self, value: Any, place: ValuePlace) -> None:
        if not self.open:
            self.root = value, place
        elif not self.open[-1].add(value, place):
            path = tuple(container.step for container in self.open)
            self.repeated.append((path, f"the key {path[-1]} is there twice, again in line {self.open[-1].key_line}"))


class _Container:
    """An object or a list that is being read. `step` is the key or place of what is read into it next."""

    __slots__ = ("_items", "_keys", "_places", "_values", "key_line", "place", "step", "value", "wants_key")

    def __init__(self, is_object: bool, line: int):
        self._keys: dict[str, Any] = {}
        self._items: list[Any] = []
        self._values: dict[str, ValuePlace] = {}
        self._places: list[ValuePlace] = []
        self.value: Any = self._keys if is_object else self._items
        self.place = ValuePlace(line, self._values if is_object else self._places)
        self.wants_key = is_object
        self.step: str | int = "" if is_object else 0
        self.key_line = line

    def take_key(self, key: str, line: int) -> None:
        self.step, self.key_line, self.wants_key = key, line, False

    def add(self, value: Any, place: ValuePlace) -> bool:
        """False when the key is there already: the first one counts."""
        if isinstance(self.step, int):
            self._items.append(value)
            self._places.append(place)
            self.step += 1
            return True
        self.wants_key = True
        if self.step in self._keys:
            return False
        self._keys[self.step] = value
        self._values[self.step] = ValuePlace(self.key_line, place.inner)
        return True


def _plain(word: str) -> Any:
    """The value of an unquoted word."""
    if word in WORDS:
        return WORDS[word]
    if WHOLE.fullmatch(word):
        return int(word)
    if OTHER_WHOLE.fullmatch(word):
        return int(word, 0)
    return float(word) if REAL.fullmatch(word) and not _leads_with_zero(word) else word


def _leads_with_zero(word: str) -> bool:
    """Whether it is more likely a name than a number, as 007 is."""
    digits = word.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def _unreadable(error: yaml.YAMLError, text: str) -> Unreadable:
    if isinstance(error, yaml.reader.ReaderError):
        return Unreadable(f"it is not YAML: {error.reason}", text.count("\n", 0, error.position) + 1)
    said = [getattr(error, "context", None), getattr(error, "problem", None)]
    mark = getattr(error, "problem_mark", None)
    why = ", ".join(part for part in said if part)
    hint = next((hint for part, hint in HINTS.items() if part in why), "")
    return Unreadable(f"it is not YAML: {why}{hint}", mark.line + 1 if mark else None)
