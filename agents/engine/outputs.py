"""What bodies print, on its way to `Output` rows: outside the fold, flushed at most every FLUSH_S."""

from __future__ import annotations

from agents.engine.journal import Journal
from agents.storage import store

FLUSH_S = 0.1
COLUMNS = (("attempt_id", "int"), ("offset", "int"), ("text", "text"))
PIECE_CHARACTERS = 64_000
TAIL_CHARACTERS = 4_000
"""The last that a call under way has printed: its partial answer where it is cut off."""


class Outputs:
    """Collects pieces by attempt; one transaction writes them all."""

    def __init__(self, journal: Journal):
        self._journal, self._store = journal, store()
        self._pieces: dict[int, list[str]] = {}
        self._offsets: dict[int, int] = {}
        self._tails: dict[int, str] = {}
        self._ended: set[int] = set()

    def add(self, attempt: int, text: str, printed: int) -> bool:
        """Take up a piece; True when it is the attempt's first. `printed`: characters it had printed before this call."""
        first = attempt not in self._offsets and not printed
        self._offsets.setdefault(attempt, printed)
        self._ended.discard(attempt)
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        self._pieces.setdefault(attempt, []).append(text)
        self._tails[attempt] = (self._tails.get(attempt, "") + text)[-TAIL_CHARACTERS:]
        return first

    def tail(self, attempt: int) -> str:
        """The last that the attempt's call under way has printed."""
        return self._tails.get(attempt, "")

    def __bool__(self) -> bool:
        return bool(self._pieces)

    async def flush(self) -> None:
        """Write what has come since the last time."""
        pieces, self._pieces = self._pieces, {}
        ended, self._ended = self._ended, set()
        rows: list[tuple[int, int, str]] = []
        for attempt, texts in pieces.items():
            rows += self._rows(attempt, "".join(texts))
        async with self._journal.transaction() as cursor:
            self._store.insert(cursor, "agents_output", COLUMNS, rows)
        for attempt in ended - self._pieces.keys():  # others have printed more while this was written
            self._offsets.pop(attempt, None)

    def _rows(self, attempt: int, text: str) -> list[tuple[int, int, str]]:
        offset = self._offsets[attempt]
        self._offsets[attempt] = offset + len(text)
        return [(attempt, offset + at, text[at : at + PIECE_CHARACTERS]) for at in range(0, len(text), PIECE_CHARACTERS)]

    def end(self, attempt: int) -> int:
        """A call of the attempt has ended: how many characters it printed in all. The last are written with the next flush."""
        self._tails.pop(attempt, None)
        if attempt not in self._offsets:
            return 0
        self._ended.add(attempt)
        return self._offsets[attempt] + sum(map(len, self._pieces.get(attempt, ())))
