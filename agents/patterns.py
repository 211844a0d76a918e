"""Regular expressions that people and plans write: matched in time proportional to the text, whatever they say. Pure.

The language is RE2's: what needs backtracking (look-around, back-references) is refused when a pattern is written.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

LENGTH = 1_000
"""Characters of a pattern."""
TIED = re.compile(r"(?:\^|\\A)([A-Za-z0-9 _/@:,=-]*)(?![A-Za-z0-9 _/@:,=*?{+-])")
"""What every fitting text begins with: the plain characters behind `^`, where no count follows the last of them."""
CACHED = 1_024
"""Compiled patterns kept."""


def _options() -> Any:
    import re2  # a library of the system: what needs no pattern (a device's client) runs without it

    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(CACHED)
def _compiled(pattern: str) -> Any:
    import re2

    return re2.compile(pattern, _options())


def is_found(pattern: str, text: str, any_case: bool = False) -> bool:
    """Whether `pattern`, in which `pattern_fault` finds none, is anywhere in `text`; `any_case`: small or capital letters."""
    return _compiled(f"(?i:{pattern})" if any_case else pattern).search(text) is not None


def may_fit(pattern: str, beginning: str) -> bool:
    """Whether `pattern` could be found in a text of which only the `beginning` is known.

    Only a pattern that is tied to the beginning by `^` and goes on with plain characters can be ruled out.
    """
    tied = None if "|" in pattern or "(?" in pattern else TIED.match(pattern)
    return tied is None or tied[1].startswith(beginning) or beginning.startswith(tied[1])


def fits_beginning(pattern: str, text: str) -> bool:
    """Whether `pattern`, in which `pattern_fault` finds none, fits `text` from its first character on."""
    return _compiled(pattern).match(text) is not None


def pattern_fault(pattern: str) -> str:
    """What is wrong with a pattern; empty when it may be used."""
    if len(pattern) > LENGTH:
        return f"it has {len(pattern)} characters, at most {LENGTH} are allowed"
    import re2

    try:
        _compiled(pattern)
    except re2.error as error:
        said = error.args[0] if error.args else error
        return f"it is no regular expression: {said.decode() if isinstance(said, bytes) else said}"
    return ""
