"""Row numbers of one session, given out before the stream counts them."""

from __future__ import annotations

from collections import deque

from agents import ids
from agents.engine.leases import LeasedSession
from agents.streams.turn import Batch

REFILL = 1024
"""Row numbers a busy session keeps ahead."""


class RowNumbers:
    """`known`: the stream's count as of the head that decisions are made on; `beyond`: how many were taken past it."""

    __slots__ = ("_ahead", "_stream", "beyond", "known")

    def __init__(self, leased: LeasedSession):
        self._stream = leased.stream
        self._ahead: deque[tuple[int, int]] = deque([(leased.rows_from, leased.rows_to)])
        self.known = leased.rows_to
        self.beyond = 0

    def take(self) -> int:
        """A fresh row id: from the numbers kept ahead, else from beyond the stream's count."""
        while self._ahead:
            first, last = self._ahead[0]
            if first < last:
                self._ahead[0] = (first + 1, last)
                return ids.row_id(self._stream, first + 1)
            self._ahead.popleft()
        self.beyond += 1
        return ids.row_id(self._stream, self.known + self.beyond)

    def wanted(self) -> int:
        """How many the next batch adds to the stream's count: those taken past it, and new ones to keep ahead."""
        ahead = sum(last - first for first, last in self._ahead)
        return self.beyond + (REFILL if ahead < REFILL // 2 else 0)

    def settle(self, batch: Batch) -> None:
        """The batch is written, and with it what it wanted."""
        refill = batch.rows - self.beyond
        if refill:
            self._ahead.append((batch.rows_after - refill, batch.rows_after))
        self.known, self.beyond = batch.rows_after, 0

    def unused(self) -> tuple[int, int]:
        """The last of the row numbers kept ahead, to be given back."""
        return self._ahead[-1] if self._ahead else (self.known, self.known)
