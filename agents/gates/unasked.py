"""Which calls a model may make without asking, as an installation, a device and a task write it. Pure.

What is written is an object: `commands`, argument lists; `tools`, names; `ask`, tools and argument lists that are asked about
whatever else is written. In an argument list `*` stands for any characters of one plain word, and `...`, as the last of it, for
any more plain words (docs/security.md, "Calls that a model chose").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any

from agents.devices.command_lines import SHELLS, next_command, program_name, run_by_a_shell
from agents.tools.shell_reading import RUNS_UNSEEN, TAKES_CODE, commands_seen_in

MAX_ENTRIES = 200
"""Of each key of one level."""
MAX_WORDS = 50
"""Of an argument list."""
MAX_CHARACTERS = 500
"""Of a word, or of a tool's name."""
REST = "..."
"""The last word of an argument list: any more plain words."""
COMMAND = "command"
LOOKS = ("acp.look", "browser.look", "mcp.look", "observe")
"""What agents look with, on each platform."""
READS = ("browser.read", "browser.wait", "read_file")
DEFAULT: dict[str, Any] = {"tools": sorted([*LOOKS, *READS, "edit_file", "noop", "write_file"])}
"""What an installation lets that says nothing itself: to look, and to change files of a confined workspace."""
CACHED = 1_000

Words = tuple[str, ...]


class UnaskedRejected(ValueError):
    """What is written cannot be meant; `path` leads to it."""

    def __init__(self, message: str, *path: str | int):
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class Unasked:
    """One level, or several merged: what is let, and what is asked about all the same."""

    commands: frozenset[Words] = frozenset()
    tools: frozenset[str] = frozenset()
    ask: frozenset[str | Words] = frozenset()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Unasked:
        """What `read_unasked` has let through."""
        return cls(
            frozenset(map(tuple, said.get("commands", ()))),
            frozenset(said.get("tools", ())),
            frozenset(each if isinstance(each, str) else tuple(each) for each in said.get("ask", ())),
        )

    def merge(self, *others: Unasked) -> Unasked:
        """All levels as one. What any of them asks about is asked about, so a level with `ask` alone only narrows."""
        levels = (self, *others)
        return Unasked(*(frozenset().union(*(getattr(each, key.name) for each in levels)) for key in fields(Unasked)))

    def widening_of(self, old: Unasked) -> str:
        """What this lets be done unasked that `old` does not, in words; empty where it lets no more."""
        for entry in sorted(self.commands - old.commands):
            return f"lets a model run {_in_words(entry)} unasked"
        for name in sorted(self.tools - old.tools):
            return f"lets a model call {name} unasked"
        for asked in sorted(old.ask - self.ask, key=_in_words):
            return f"lets a model do {_in_words(asked)} unasked, which was asked about"
        return ""


def _in_words(entry: str | Words) -> str:
    return entry if isinstance(entry, str) else " ".join(entry)


# Argument lists


def fits_words(pattern: Words, words: Sequence[str]) -> list[str] | None:
    """The words that a wildcard of the pattern stands for; None where the pattern does not fit."""
    fixed = pattern[:-1] if pattern[-1] == REST else pattern
    if len(words) < len(fixed) or (len(words) > len(fixed) and fixed is pattern):
        return None
    free = list(words[len(fixed) :])
    for written, word in zip(fixed, words, strict=False):
        if "*" not in written:
            if written != word:
                return None
        elif _regex(written).fullmatch(word):
            free.append(word)
        else:
            return None
    return free


def fits_name(pattern: str, name: str) -> bool:
    return _regex(pattern).fullmatch(name) is not None


@lru_cache(CACHED)
def _regex(written: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, written.split("*"))), re.DOTALL)


# What is written


def read_unasked(value: Any) -> dict[str, Any]:
    """The normal form of a level: the same, with each entry once. Raises UnaskedRejected."""
    if not isinstance(value, Mapping):
        raise UnaskedRejected("must be an object with commands, tools and ask")
    for key in value:
        if key not in READERS:
            raise UnaskedRejected(f"there is no such key; there are {', '.join(READERS)}", str(key))
    return {key: _entries(key, value[key]) for key in READERS if value.get(key)}


def _entries(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise UnaskedRejected("must be a list", key)
    if len(value) > MAX_ENTRIES:
        raise UnaskedRejected(f"has {len(value):,} entries; {MAX_ENTRIES} are allowed", key)
    found: list[Any] = []
    for place, entry in enumerate(value):
        if flaw := READERS[key](entry):
            raise UnaskedRejected(flaw, key, place)
        one = entry if isinstance(entry, str) else list(entry)
        if one not in found:
            found.append(one)
    return found


def _text_flaw(value: Any) -> str:
    if not isinstance(value, str) or not value:
        return "must be a text that is not empty"
    return "" if len(value) <= MAX_CHARACTERS else f"has {len(value):,} characters; {MAX_CHARACTERS} are allowed"


def _words_flaw(value: Any) -> str:
    if not isinstance(value, list | tuple) or not value:
        return 'must be an argument list, such as ["pytest", "-q"]'
    if len(value) > MAX_WORDS:
        return f"has {len(value)} words; {MAX_WORDS} are allowed"
    if flaw := next(filter(None, map(_text_flaw, value)), ""):
        return f"each word {flaw}"
    return f"{REST} may only be the last word" if REST in value[:-1] else ""


def _command_flaw(value: Any) -> str:
    """What keeps an argument list from being one that runs unasked."""
    if flaw := _words_flaw(value):
        return flaw
    words = ["x" if word == REST else word.replace("*", "x") for word in value]
    if run_by_a_shell(words) is not None:
        return "is a line for a shell, which is always asked about; write the argument list of the program itself"
    if words == list(value):
        return ""
    if words[0] != value[0]:
        return "its program must be written out"
    name = program_name(words[0])
    if hands_on(words):
        return f"{name} runs other programs, so each word must be written out"
    if name.rstrip("0123456789.") in TAKES_CODE and any(
        option == "-m" and ("*" in word or word == REST) for option, word in pairwise(value)
    ):
        return f"which module {name} runs must be written out"
    if doubt := next((seen.why for seen in commands_seen_in(words) if seen.why), ""):
        return f"each word must be written out, as {doubt}"
    return ""


def hands_on(words: Sequence[str]) -> bool:
    """Whether a program runs a command that stands behind it."""
    name = program_name(words[0])
    return name == "find" or name in SHELLS | RUNS_UNSEEN or next_command(words, 0) is not None


def _tool_flaw(value: Any) -> str:
    return "commands are let run by `commands`, as argument lists" if value == COMMAND else _text_flaw(value)


def _asked_flaw(value: Any) -> str:
    return _text_flaw(value) if isinstance(value, str) else _words_flaw(value)


READERS = {"commands": _command_flaw, "tools": _tool_flaw, "ask": _asked_flaw}
"""What is wrong with one entry of each key; empty for nothing."""
