"""What a value in a plan or an edit may be, and what is said when it is something else. Pure.

A reader takes a value and gives its normal form, or raises Misfit. A finding is (path, message); the path leads from what
was read to the part it is about: ("tips", 0).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

MAX_ID = 120
"""Characters of a task_id."""
MAX_ITEMS = 100
"""Items of a list that has no limit of its own."""
SHOWN = 40
"""Characters of a text that a message repeats."""
HINTS = 20
"""Unknown ids of one plan or edit for which a nearest one is looked for."""
MAX_COMPARED = 1_000
"""Known words among which the nearest is looked for."""
MAX_STRANGE_KEYS = 20
"""Unknown keys of one object that are reported."""

OTHER_WORDS: dict[str, tuple[str, ...]] = {
    "id": ("task_id", "dependency_id"), "needs": ("after",), "depends_on": ("after",), "requires": ("after",),
    "dependencies": ("after",), "retries": ("max_attempts",), "retry": ("max_attempts",), "run": ("command",),
    "cmd": ("command",), "script": ("command",), "exec": ("command",), "sh": ("command",), "args": ("arguments",),
    "parameters": ("arguments",), "params": ("arguments",), "host": ("device",), "agent": ("device",), "rules": ("replan",),
    "source": ("from",), "target": ("to", "device"), "add": ("add_task",), "delete_task": ("remove_task",),
    "delete": ("remove_task",), "remove": ("remove_task",), "update": ("update_task",), "then": ("edit",), "do": ("edit",),
    "edges": ("dependencies",), "add_edge": ("add_dependency",), "sleep": ("wait",), "print": ("say",), "echo": ("say",),
}  # fmt: skip
"""What others call the same thing: words that are further from ours in letters than in meaning."""

ELSEWHERE: dict[str, tuple[str, str]] = {
    "condition": (
        "after",
        "a condition belongs to a dependency: {from: ..., to: ..., condition: ...} in `dependencies`, or add_dependency",
    ),
    "env": ("command", "put it into the command, a text with `shell: true` beside it: `X=1 make`"),
    "cwd": ("command", "put it into the command, a text with `shell: true` beside it: `cd src && make`"),
    "policies": ("replan", "policies stand in a task"),
    "progress": ("replan", "progress stands in a task"),
}
"""What is not said where it was written: a key that there is beside it there, and where or how it is said instead."""

Path = tuple[str | int, ...]
Finding = tuple[Path, str]
Row = dict[str, Any]
Reader = Callable[[Any], Any]
"""Takes any value, gives its normal form or raises Misfit; tables have readers of every kind."""
TextReader = Callable[[Any], str]
Item = TypeVar("Item")

ID = re.compile(r"[\w.:/-]+")


class Misfit(ValueError):
    """A value is not what its key takes; `path` leads to the part of it that is not."""

    def __init__(self, message: str, *path: str | int):
        super().__init__(message)
        self.path = path


def key_text(path: Path) -> str:
    """A path as a message writes it: tasks[0].conditon."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def findings_under(prefix: Path, findings: Iterable[Finding]) -> list[Finding]:
    """The findings of a part as findings of the whole."""
    return [((*prefix, *path), message) for path, message in findings]


def value_kind(value: Any) -> str:
    """A value as a message calls it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {quote_value(value)}"
    if isinstance(value, str):
        return f"the text '{quote_value(value)}'"
    return "an object" if isinstance(value, Mapping) else "a list"


def quote_value(value: Any) -> str:
    """The beginning of a text or a number."""
    said = str(value)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for the end of a message: the nearest known word, or all of them when they are few."""
    known = sorted(filter(None, known))
    close = [same for same in OTHER_WORDS.get(word, ()) if same in known]
    close = close or get_close_matches(word[:MAX_ID], known[:MAX_COMPARED], 1)
    if close:
        return f"; did you mean {close[0]}?"
    if not known:
        return ""
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known[:12])}{' ...' if len(known) > 12 else ''}"


class Hints:
    """did_you_mean for many words: looking for the nearest of thousands takes milliseconds, so only the first few get it."""

    def __init__(self, known: Iterable[Any]):
        self._known, self._left = known, HINTS

    def __call__(self, word: str) -> str:
        self._left -= 1
        return did_you_mean(word, self._known) if self._left >= 0 else ""


def text_reader(limit: int) -> TextReader:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            hint = "; put it in quotes" if isinstance(value, bool | int | float) else ""
            raise Misfit(f"must be text, not {value_kind(value)}{hint}")
        if len(value) > limit:
            raise Misfit(f"has {len(value):,} characters; {limit:,} are allowed")
        return value

    return read


def identifier_reader(limit: int) -> TextReader:
    read_text = text_reader(limit)

    def read(value: Any) -> str:
        name = read_text(value)
        if not ID.fullmatch(name):
            raise Misfit(f"'{name}' is not an id: letters, digits and _ - . : / make one" if name else "is empty")
        return name

    return read


def number_reader(low: float, high: float, exclusive: bool = False) -> Callable[[Any], float]:
    """Seconds, of which there may be parts."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
            raise Misfit(f"must be a number of seconds, not {value_kind(value)}")
        if value < low or value > high or (exclusive and value == low):
            raise Misfit(
                f"is {quote_value(value)}; it must be {'above' if exclusive else 'at least'} {low:,} and at most {high:,}"
            )
        return value

    return read


def whole_reader(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Misfit(f"must be a whole number, not {value_kind(value)}")
        if not low <= value <= high:
            raise Misfit(f"is {quote_value(value)}; it must be from {low:,} to {high:,}")
        return value

    return read


def read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        meant = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
        word = meant.get(value.lower(), "") if isinstance(value, str) else ""
        raise Misfit(f"must be true or false, not {value_kind(value)}{word and f'; write {word}, without quotes'}")
    return value


def choice_reader(words: tuple[str, ...]) -> TextReader:
    def read(value: Any) -> str:
        near: list[str] = []
        if isinstance(value, str):
            if value in words:
                return value
            near = [word for word in words if word.lower() == value.lower()] or get_close_matches(value, words, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Misfit(f"must be one of {', '.join(words)}, not {value_kind(value)}{hint}")

    return read


def list_reader(read_item: Callable[[Any], Item], limit: int = MAX_ITEMS) -> Callable[[Any], list[Item]]:
    def read(value: Any) -> list[Item]:
        if not isinstance(value, list | tuple):
            hint = "; write each item behind a dash" if isinstance(value, Mapping) else ""
            if isinstance(value, str) and value and len(value) <= SHOWN:
                hint = f"; put it in brackets: [{value}]"
            raise Misfit(f"must be a list, not {value_kind(value)}{hint}")
        if len(value) > limit:
            raise Misfit(f"has {len(value):,} items; {limit:,} are allowed")
        items = []
        for place, item in enumerate(value):
            try:
                items.append(read_item(item))
            except Misfit as misfit:
                raise Misfit(str(misfit), place, *misfit.path) from misfit
        return items

    return read


def one_or_list_reader(read_item: Callable[[Any], Item]) -> Callable[[Any], list[Item]]:
    """A list, or its only item by itself."""
    read_list = list_reader(read_item, MAX_COMPARED)
    return lambda value: read_list([value] if isinstance(value, str) else value)


def read_mapping(value: Any) -> Row:
    if not isinstance(value, Mapping):
        raise Misfit(f"must be an object (key: value), not {value_kind(value)}")
    return dict(value)


def read_fields(value: Any, readers: Mapping[str, Reader]) -> tuple[Row, list[Finding]]:
    """The fields of an object by their readers. A field without a value is left out, as if it were not there."""
    if not isinstance(value, Mapping):
        return {}, [((), f"must be an object (key: value), not {value_kind(value)}")]
    fields: Row = {}
    findings: list[Finding] = []
    strange = [key for key in value if key not in readers] if not value.keys() <= readers.keys() else ()
    for key in strange[:MAX_STRANGE_KEYS]:
        beside, said_elsewhere = ELSEWHERE.get(str(key), ("", ""))
        hint = f"; {said_elsewhere}" if beside in readers else did_you_mean(str(key), readers)
        findings.append(((key,), f"there is no key {str(key)[:SHOWN]} here{hint}"))
    for key, given in value.items():
        if given is not None and key in readers:
            try:
                fields[key] = readers[key](given)
            except Misfit as misfit:
                findings.append(((key, *misfit.path), str(misfit)))
    return fields, findings
