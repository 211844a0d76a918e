"""What a call is about, and whether two calls ask for the same in other words."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from zlib import crc32

from agents.progress.kinds.tools import set_of
from agents.progress.shapes import similar
from agents.progress.state import Action

IN_COMMON = 0.6
"""Share of the shorter call's words that the other one has, from which a call is another one in other words."""
SAME_THINGS = 0.5
"""Share of things in common from which two calls are about the same."""
TARGET_LIMIT = 1_000
"""Characters of a target that are read."""
WORDS_LIMIT = 48
"""Distinct words of a target that count, the first in order."""
CACHED = 4_096
"""Targets whose words are remembered."""

_WORD = re.compile(r"[^\s'\"`|;&<>(){}\[\]$=,:]+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_THING = re.compile(r"(?!-)[~.\w@:+-]*[/._\d][\w./@:+~-]*[\w/]")
_NAME = re.compile(r"[^\W\d_][\w-]{5,}")
_PLAIN_NAMES = set_of("install select update insert delete python python3 example localhost https")
"""Long words that many calls share which have nothing else in common."""


@lru_cache(CACHED)
def words_of(target: str) -> tuple[int, ...]:
    """Numbers that stand for the words of a call's target, in any letters; programs' options do not count."""
    return _numbered(word for word in _WORD.findall(target[:TARGET_LIMIT]) if not word.startswith("-"))


@lru_cache(CACHED)
def things_of(target: str) -> tuple[int, ...]:
    """Numbers that stand for the things a call is about: paths, ids and names that are no plain words, outside of quotes."""
    return _numbered(word for word in _QUOTED.sub(" ", target[:TARGET_LIMIT]).split() if _THING.fullmatch(word))


@lru_cache(CACHED)
def names_of(target: str, programs: tuple[str, ...]) -> tuple[int, ...]:
    """Numbers that stand for the longer names in a target, parts of paths and addresses too, without the programs that run."""
    names = _NAME.findall(target[:TARGET_LIMIT].casefold())
    return _numbered(name for name in names if name not in _PLAIN_NAMES and name not in programs)


def _numbered(words: Iterable[str]) -> tuple[int, ...]:
    distinct = dict.fromkeys(word.casefold().strip(".") for word in words)
    return tuple(crc32(word.encode("utf-8", "surrogatepass")) for word in islice(distinct, WORDS_LIMIT))


def is_reworded(one: Action, other: Action) -> bool:
    """Whether one tool was asked for the same in other words: about the same things, with much the same words.

    Another thing of the same kind is other work: a file after a file, a package after a package.
    """
    if one.tool != other.tool or one.call == other.call:
        return one.call == other.call
    if not one.words or not other.words:
        return similar(one.call_shape, other.call_shape)
    mine, others = set(one.words), set(other.words)
    return is_about_the_same(one, other) and len(mine & others) >= IN_COMMON * min(len(mine), len(others))


def is_about_the_same(one: Action, other: Action) -> bool:
    """Whether two calls name the same things; two that name none are about the same as far as anybody can see."""
    mine, others = set(one.things), set(other.things)
    return len(mine & others) >= SAME_THINGS * len(mine | others)


def asks_for_the_same(one: Action, other: Action) -> bool:
    """Whether two looks ask for the same: for the same names, by whatever program, or one tool about one thing by its name."""
    mine, others = set(one.names), set(other.names)
    same_thing = one.tool == other.tool and bool(one.things) and is_about_the_same(one, other)
    return same_thing or len(mine & others) > SAME_THINGS * len(mine | others)


def has_same_goal(one: Action, other: Action) -> bool:
    """Whether two calls, of whatever tools, share a name: two ways to one goal, as far as anybody can see."""
    return not set(one.names).isdisjoint(other.names)
