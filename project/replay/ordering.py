"""The order in which a recorded run went on: whatever ends in its replay waits until all that came before has come."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress

STALL_S = 3.0
"""Without anything new for so long, nothing that is missing is waited for: the replay goes another way than its recording."""


class Order:
    """The begins and ends of recorded calls by their times. `spans` are (begun, ended) of each, in seconds."""

    def __init__(self, spans: Sequence[tuple[float, float]]):
        # What begins at the same time as something ends follows from it.
        marks = [(begun, 1, number) for number, (begun, _) in enumerate(spans)]
        marks += [(max(ended, begun + 1e-9), 0, number) for number, (begun, ended) in enumerate(spans)]
        self._marks = sorted(marks)
        self._places = {(kind, number): place for place, (_, kind, number) in enumerate(self._marks)}
        self._met = set[int]()
        self._at, self._moved_at, self._moved = 0, time.monotonic(), asyncio.Event()
        self.asking = 0

    # `asking`: models that are really asked now; while there are any, nothing is given up.

    def begin(self, number: int) -> None:
        """On the loop: this call has begun."""
        self._meet(self._places[1, number])

    async def end(self, number: int) -> None:
        """On the loop: wait until this call may end."""
        place = self._places[0, number]
        while self._at < place:
            before = self._at
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(STALL_S):
                    await self._moved.wait()
            if self._at == before and not self.asking:
                self._go_to(place)
        self._meet(place)

    def is_due(self, at: float) -> bool:
        """In any thread: whether all before the time `at` has come, or nothing comes any more."""
        stalled = not self.asking and time.monotonic() - self._moved_at > STALL_S
        return self._at >= bisect_right(self._marks, (at, 2, 0)) or stalled

    def _meet(self, place: int) -> None:
        self._met.add(place)
        self._go_to(self._at)

    def _go_to(self, place: int) -> None:
        self._at = place
        while self._at in self._met:
            self._at += 1
        self._moved_at = time.monotonic()
        self._moved.set()
