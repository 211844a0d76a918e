"""Regular expressions that people and plans write: matched in time proportional to the text, whatever they say. Pure.

The language is RE2's: what needs backtracking (look-around, back-references) is refused when a pattern is written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

LENGTH = 1_000
"""Characters of a pattern."""
CACHED = 1_024
"""Compiled patterns kept."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(CACHED)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _options())


def is_found(pattern: str, text: str) -> bool:
    """Whether `pattern`, which has no `fault`, is found anywhere in `text`."""
    return _compiled(pattern).search(text) is not None


def begins(pattern: str, text: str) -> bool:
    """Whether `pattern`, which has no `fault`, fits `text` from its first character on."""
    return _compiled(pattern).match(text) is not None


def fault(pattern: str) -> str:
    """What is wrong with a pattern; empty when it may be used."""
    if len(pattern) > LENGTH:
        return f"it has {len(pattern)} characters, at most {LENGTH} are allowed"
    try:
        _compiled(pattern)
    except re2.error as error:
        said = error.args[0] if error.args else error
        return f"it is no regular expression: {said.decode() if isinstance(said, bytes) else said}"
    return ""
