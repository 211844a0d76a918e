"""What bodies print, on its way to `Output` rows: outside the fold, written at most every FLUSH_S, and the last with the end.

What is taken up here is written by whoever records the end of its call (docs/engine.md, "Output"): the end is in the outcome
file with all that was not yet durable, so that a killed runner's successor writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agents.engine.journal import Journal
from agents.streams.statements import RawCursor, current_store, raw_cursor
from agents.tools.calls import Outcome

FLUSH_S = 0.1
COLUMNS = (("attempt_id", "int"), ("offset", "int"), ("text", "text"))
PIECE_CHARACTERS = 64_000
STATEMENT_ROWS = 64
"""Rows of one statement: some 4 MB."""
WAITING_CHARACTERS = 1_000_000
"""When more than this waits to be written, it is written at once."""
TAIL_CHARACTERS = 4_000
"""The last that a call under way has printed: its partial answer where it is cut off."""
PRINTED = 'SELECT max("offset" + length(text)) FROM agents_output WHERE attempt_id = %s'


def durable_characters(attempt: int) -> int:
    """Characters of the attempt's output that the database has."""
    return current_store().execute(raw_cursor(), PRINTED, (attempt,)).fetchone()[0] or 0


class Outputs:
    """Collects pieces by attempt; one transaction writes them all. What is being written counts as not yet written."""

    def __init__(self, journal: Journal):
        self._journal, self._store = journal, current_store()
        self._pieces: dict[int, list[str]] = {}
        self._offsets: dict[int, int] = {}
        self._tails: dict[int, str] = {}
        self._ended: set[int] = set()
        self._writing: dict[int, int] = {}
        self.waiting = 0

    # `_offsets`: where the pieces of an attempt begin; `_writing`: characters by attempt that the last `write` put into its
    # transaction; `waiting`: characters in all pieces.

    def add(self, attempt: int, text: str, printed: int) -> bool:
        """Take up a piece; True when it is the attempt's first. `printed`: characters it had printed before this call."""
        first = attempt not in self._offsets and not printed
        self._offsets.setdefault(attempt, printed)
        self._ended.discard(attempt)
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        self._pieces.setdefault(attempt, []).append(text)
        self.waiting += len(text)
        self._tails[attempt] = (self._tails.get(attempt, "") + text)[-TAIL_CHARACTERS:]
        return first

    def tail(self, attempt: int) -> str:
        """The last that the attempt's call under way has printed."""
        return self._tails.get(attempt, "")

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def end(self, attempt: int) -> tuple[int, tuple[int, str] | None]:
        """A call of the attempt has ended: the characters that it printed in all, and what is not yet durable (`Outcome`)."""
        self._tails.pop(attempt, None)
        if attempt not in self._offsets:
            return 0, None
        begins, text = self._offsets[attempt], "".join(self._pieces.get(attempt, ()))
        if not text:
            return self._offsets.pop(attempt), None
        self._ended.add(attempt)
        return begins + len(text), (begins, text)

    def adopt(self, outcome: Outcome) -> None:
        """Take up what an outcome from the file of an earlier owner says was not yet durable."""
        if outcome.unwritten is not None:
            (begins, text), outcome.unwritten = outcome.unwritten, None
            self.forget({outcome.attempt})
            self._offsets[outcome.attempt], self._pieces[outcome.attempt] = begins, [text]
            self.waiting += len(text)
            self._ended.add(outcome.attempt)

    def forget(self, attempts: Iterable[int]) -> None:
        """Somebody else writes what these have printed."""
        for attempt in attempts:
            self.waiting -= sum(map(len, self._pieces.pop(attempt, ())))
            self._offsets.pop(attempt, None)

    async def flush(self, but: Callable[[], set[int]] = set) -> None:
        """Write what has come since the last time, `but` not of these attempts: that comes with the records of their ends."""
        if self._pieces.keys() <= but():
            return
        async with self._journal.transaction() as own_cursor:
            self.write(own_cursor, self._pieces.keys() - but())  # asked again: somebody else may have been writing
        self.wrote()

    def write(self, own_cursor: RawCursor, attempts: Iterable[int]) -> None:
        """In the caller's transaction: what these attempts have printed. `wrote` is to be called once that is durable."""
        rows: list[tuple[int, int, str]] = []
        self._writing = {}
        for attempt in attempts:
            if attempt in self._pieces:
                begins, text = self._offsets[attempt], "".join(self._pieces[attempt])
                self._writing[attempt] = len(text)
                rows += [
                    (attempt, begins + at, text[at : at + PIECE_CHARACTERS]) for at in range(0, len(text), PIECE_CHARACTERS)
                ]
        for at in range(0, len(rows), STATEMENT_ROWS):
            self._store.insert(own_cursor, "agents_output", COLUMNS, rows[at : at + STATEMENT_ROWS])

    def wrote(self) -> None:
        """What `write` was called for is durable. Nothing was added in between: the loop had no turn."""
        writing, self._writing = self._writing, {}
        for attempt, size in writing.items():
            self._drop_first(attempt, size)

    def recover(self) -> None:
        """After the loss of a connection: nobody knows whether its last transaction was written, so it is looked up."""
        writing, self._writing = self._writing, {}
        for attempt in writing.keys() & self._pieces.keys():
            if (beyond := durable_characters(attempt) - self._offsets[attempt]) > 0:
                self._drop_first(attempt, beyond)

    def _drop_first(self, attempt: int, size: int) -> None:
        left = "".join(self._pieces.pop(attempt))[size:]
        self.waiting -= size
        self._offsets[attempt] += size
        if left:
            self._pieces[attempt] = [left]
        elif attempt in self._ended:
            self._ended.discard(attempt)
            self._offsets.pop(attempt)
