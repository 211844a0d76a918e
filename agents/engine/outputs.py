"""What bodies print, on its way to `Output` rows: outside the fold, flushed at most every FLUSH_S."""

from __future__ import annotations

from agents.engine.journal import Journal
from agents.storage import store

FLUSH_S = 0.1
COLUMNS = (("attempt_id", "int"), ("offset", "int"), ("text", "text"))
PIECE_CHARACTERS = 64_000


class Outputs:
    """Collects pieces by attempt; one transaction writes them all."""

    def __init__(self, journal: Journal):
        self._journal, self._store = journal, store()
        self._pieces: dict[int, list[str]] = {}
        self._offsets: dict[int, int] = {}

    def add(self, attempt: int, text: str) -> None:
        self._pieces.setdefault(attempt, []).append(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))

    def __bool__(self) -> bool:
        return bool(self._pieces)

    async def flush(self) -> None:
        pieces, self._pieces = self._pieces, {}
        rows = []
        for attempt, texts in pieces.items():
            text, offset = "".join(texts), self._offsets.get(attempt, 0)
            rows += [(attempt, offset + at, text[at : at + PIECE_CHARACTERS]) for at in range(0, len(text), PIECE_CHARACTERS)]
            self._offsets[attempt] = offset + len(text)
        async with self._journal.transaction() as cursor:
            self._store.insert(cursor, "agents_output", COLUMNS, rows)

    def forget(self, attempt: int) -> None:
        """The attempt has ended; what it printed last is still written."""
        if attempt not in self._pieces:
            self._offsets.pop(attempt, None)
