"""Plain text to clauses, each with its words, commands in backquotes, parameters and condition. Pure.

What the words mean is not known here. Everything keeps its place in the text, so that problems can name line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

QUOTED = r"""(?<!\w)(?:"[^"\n]*"|'[^'\n]*')(?!\w)"""
"""Between words, and not the apostrophe in one."""
PIECE = re.compile(
    rf"(?P<kept>`[^`]*`|{QUOTED})|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<quote>`)"
    r"|(?P<separator>[,;\n]|(?<![\w=-])(?:and[ \t]+)?then(?![\w=-]))",
    re.IGNORECASE,
)
ENUMERATION = re.compile(r"\s*(?:(?:[-*•]|\d{1,3}[.)])\s+)?")
"""What stands before a clause in a list."""
TOKEN = re.compile(
    r"`(?P<command>[^`]*)`"
    r"""|(?P<name>[^\W\d][\w-]*)=(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s`,()"'][^\s`,()]*)(?![^\s,()])"""
    r"|(?P<word>[^\s`,()]+|`)"
)
"""Commas and brackets are only seen here when they are around parameters: train (model=a, epochs=3)."""
EDGES = ".:!?\"'"
"""Punctuation around a word."""

Flaw = tuple[int, str]
"""Where in the text, from 0, and what is wrong there."""


@dataclass(frozen=True)
class ClauseToken:
    """A word, a command in backquotes, or a parameter; its `text` is the word, the command, or the parameter's value."""

    kind: str
    at: int
    text: str
    name: str = ""

    @property
    def bare(self) -> str:
        """A word without the punctuation around it."""
        return self.text.strip(EDGES)

    def says(self, *words: str) -> bool:
        return self.kind == "word" and self.bare.casefold() in words


@dataclass
class Clause:
    """`at` is where it begins; `condition` is None when there is no `if`, and may be empty when there is."""

    at: int
    text: str
    tokens: list[ClauseToken] = field(default_factory=list)
    condition: str | None = None
    condition_at: int = 0

    def of_kind(self, kind: str) -> list[ClauseToken]:
        return [token for token in self.tokens if token.kind == kind]


def split_clauses(text: str) -> tuple[list[Clause], list[Flaw]]:
    """The clauses that are not empty, in order, and brackets and backquotes that are never closed.

    Clauses are separated by commas, semicolons, newlines, `then` and `and then`, outside backquotes, quotes and brackets.
    """
    opened: list[int] = []
    flaws: list[Flaw] = []
    cuts = [(0, 0)]
    for piece in PIECE.finditer(text):
        if piece["open"]:
            opened.append(piece.start())
        elif piece["close"] and opened:
            opened.pop()
        elif piece["quote"]:
            flaws.append((piece.start(), "the backquote is never closed"))
        elif piece["separator"] and not opened:
            cuts.append(piece.span())
    flaws += [(at, f"the {text[at]} is never closed") for at in opened[:1]]
    cuts.append((len(text), len(text)))
    spans = [(before[1], after[0]) for before, after in pairwise(cuts)]
    return [clause for start, end in spans if (clause := _clause(text, start, end)).text], flaws


def _clause(text: str, start: int, end: int) -> Clause:
    written = text[start:end]
    begin = ENUMERATION.match(written)
    at = start + (begin.end() if begin else 0)
    written = text[at:end].rstrip()
    clause = Clause(at, written.removesuffix(".").rstrip())
    for token in _tokens(clause):
        if token.says("if"):
            rest = clause.text[token.at - at + len(token.text) :]
            clause.condition = rest.strip()
            clause.condition_at = token.at + len(token.text) + len(rest) - len(rest.lstrip())
            break
        clause.tokens.append(token)
    return clause


def _tokens(clause: Clause) -> Iterator[ClauseToken]:
    for found in TOKEN.finditer(clause.text):
        at = clause.at + found.start()
        if found["command"] is not None:
            yield ClauseToken("command", at, found["command"])
        elif found["name"]:
            value = found["value"]
            yield ClauseToken("parameter", at, value[1:-1] if value[0] in "\"'" else value, found["name"])
        else:
            yield ClauseToken("word", at, found["word"])
