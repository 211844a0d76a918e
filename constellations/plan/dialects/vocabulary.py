"""What a dialect is made of: its words for what plans say, and the words that say nothing to us. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from constellations.plan.keys.step_keys import MAX_STEPS
from constellations.plan.values import Path, Reader, Row, choice_reader, list_reader

EXTENSION = "orrery"
"""Key of the object that holds what a dialect has no words for."""
ACTIONS = "actions"
"""Key of the list of what a task does."""


def as_written(value: Any) -> Any:
    return value


def any_case(words: Iterable[str]) -> Callable[[Any], str | None]:
    """One of `words`, in capitals or not; given as it stands in `words`. Nothing at all counts as left out."""
    known = {word.upper(): word for word in words}
    strict = choice_reader(tuple(known.values()))

    def read(value: Any) -> str | None:
        if value == "":
            return None
        found = known.get(value.upper()) if isinstance(value, str) else None
        return found or strict(value)

    return read


actions = list_reader(as_written, MAX_STEPS)


@dataclass(frozen=True, slots=True)
class DialectWord:
    """A key of a dialect, the key of plans that says the same, and the column that holds it.

    `read` turns the dialect's value into a plan's, `write` a column's into the dialect's; None is left out.
    `always`: written even where it says what goes without saying.
    """

    key: str
    plan: str
    column: str = ""
    read: Reader = as_written
    write: Callable[[Any], Any] = as_written
    always: bool = False


@dataclass(frozen=True)
class DialectPart:
    """A task, a dependency or a whole constellation: its words, the other keys it may have, and the way to its extension."""

    words: tuple[DialectWord, ...]
    others: Mapping[str, Reader]
    extension: Path = (EXTENSION,)

    @cached_property
    def readers(self) -> dict[str, Reader]:
        return {word.key: word.read for word in self.words} | dict(self.others)


@dataclass(frozen=True)
class Dialect:
    """A dialect other than ours. `action` names the keys of an action: the tool and its arguments."""

    name: str
    document: DialectPart
    task: DialectPart
    dependency: DialectPart
    action: tuple[str, str]
    actions: Path
    condition: str
    default_type: str
    keyed: bool = False
    """Whether tasks and dependencies are written as objects by their ids."""
    of_action: Mapping[str, Reader] = field(default_factory=dict)
    """Other keys of an action."""
    names_command: str = "command"
    """How it calls a tool that runs a command line; its argument is `command`, unless it is ours."""
    state: Callable[[str], str] = str
    """The word for a state of a constellation."""
    told: Callable[[Row], Row] = dict
    """What it writes in a task of how far that has come (writing.TOLD)."""

    @cached_property
    def action_readers(self) -> dict[str, Reader]:
        tool, arguments = self.action
        return {tool: as_written, arguments: as_written, **self.of_action}
