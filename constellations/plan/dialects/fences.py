"""A document in a code fence, with text around it, as language models answer. Pure."""

from __future__ import annotations

import re

from constellations.plan.documents import Unreadable

OPENING = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+.-]*)[^`]*")
LANGUAGES = ("", "json", "yaml", "yml")
"""What a code block may say that it holds."""


def strip_fence(text: str) -> str | None:
    """The text of the one code block, in the lines where it stands; None where there is no block.

    Raises Unreadable where there are several, or where it does not end.
    """
    lines = text.split("\n")
    blocks = _blocks(lines)
    if not blocks:
        return None
    documents = [(first, last) for first, last, language in blocks if language.lower() in LANGUAGES]
    if not documents:
        held = ", ".join(dict.fromkeys(language for _, _, language in blocks))
        raise Unreadable(f"the code block holds {held}; give JSON or YAML", blocks[0][0])
    if len(documents) > 1:
        raise Unreadable(f"there are {len(documents)} code blocks of JSON or YAML; give one", documents[1][0])
    first, last = documents[0]
    return "\n" * first + "\n".join(lines[first:last])


def _blocks(lines: list[str]) -> list[tuple[int, int, str]]:
    """(line of the opening, from 1; lines before the closing; language) of each code block."""
    found: list[tuple[int, int, str]] = []
    opened: tuple[int, str, str] | None = None
    for number, line in enumerate(lines):
        word = line.strip()
        if opened is None and (opening := OPENING.fullmatch(line.rstrip("\r"))):
            opened = number + 1, opening[1], opening[2]
        elif opened is not None and len(word) >= len(opened[1]) and set(word) == {opened[1][0]}:
            found.append((opened[0], number, opened[2]))
            opened = None
    if opened is not None:
        raise Unreadable("the code block that begins here does not end: the answer was cut off", opened[0])
    return found
