"""A document of another dialect as the value of a plan, and where each of the plan's parts was written. Pure.

Only what is the dialect's own is looked at here; what plans and the dialect have alike is read, and found fault with, when the
plan is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from constellations.plan.dialects.parts.recipes import Recipes
from constellations.plan.dialects.plan_words import DOING
from constellations.plan.dialects.vocabulary import DialectPart
from constellations.plan.values import Finding, Path, Row, findings_under, read_fields

WORDS_FOR_DOING = ("command", "steps", *DOING)
"""Words of a plan for what a task does: an extension that has one of them has the say."""


@dataclass(slots=True)
class Translation:
    """The plan that a document is, in the making. `origins` leads from parts of the plan to parts of the document.

    `recipes` are those that actions may name.
    """

    value: Any = field(default_factory=dict)
    origins: dict[Path, Path] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    recipes: Recipes = field(default_factory=dict)

    def origin(self, path: Path) -> Path:
        """Where a part of the plan, or the nearest part around it, was written."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.origins:
                return self.origins[path[:end]] + path[end:]
        return path


@dataclass(slots=True)
class Piece:
    """A task, a dependency or the whole: what was read of it, and the words of a plan that it becomes."""

    to: Translation
    place: Path
    written: Path
    fields: Row
    said: Row = field(default_factory=dict)

    def say(self, word: str, value: Any, *written: str | int) -> None:
        self.said[word] = value
        self.to.origins[*self.place, word] = (*self.written, *written)

    def find(self, message: str, *path: str | int) -> None:
        self.to.findings.append(((*self.written, *path), message))

    def name_by_key(self, word: str, written: str, key: str) -> None:
        """The id of what stands under a key that is its id."""
        if key and self.fields.get(written) in (None, ""):
            self.say(word, key)
        elif key and self.fields[written] != key:
            self.find(f"is {self.fields[written]} here and {key} in its key", written)

    def extension(self, way: Path) -> Row:
        """What only we read; its words go before the dialect's."""
        held: Any = self.fields
        for step in way:
            held = held.get(step, {}) if isinstance(held, Mapping) else {}
        if not isinstance(held, Mapping):
            self.find("must be an object", *way)
            return {}
        if any(word in held for word in WORDS_FOR_DOING):
            for word in WORDS_FOR_DOING:
                self.said.pop(word, None)
        for word, value in held.items():
            self.say(word, value, *way, word)
        return dict(held)


def translate_piece(to: Translation, part: DialectPart, value: Any, place: Path, written: Path) -> Piece:
    """A part of a document with its words said as a plan says them."""
    fields, found = read_fields(value, part.readers)
    to.findings += findings_under(written, found)
    to.origins[place] = written
    made = Piece(to, place, written, fields)
    for word in part.words:
        if fields.get(word.key) is not None:
            made.say(word.plan, fields[word.key], word.key)
    return made
