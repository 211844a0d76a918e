"""Sessions that have nothing to decide now: when they have, and since when nothing is under way in them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from agents.engine.drives.drive import Drive


class SessionTimers:
    """Timers by `clock`, a wall clock, for they are kept in rows; being idle by the loop's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._timers: list[tuple[float, int]] = []
        self._earliest: dict[int, float] = {}
        self._idle_since: dict[int, float] = {}

    def note(self, drive: Drive, now: float) -> None:
        """The session had nothing to decide at `now` (the loop's clock)."""
        wake = drive.wake_at()
        if wake is not None and wake < self._earliest.get(drive.stream, math.inf):
            self._earliest[drive.stream] = wake
            heapq.heappush(self._timers, (wake, drive.stream))
        if drive.is_idle():
            self._idle_since.setdefault(drive.stream, now)

    def busy(self, stream: int) -> None:
        """Something is under way again."""
        self._idle_since.pop(stream, None)

    def forget(self, stream: int) -> None:
        self._earliest.pop(stream, None)
        self._idle_since.pop(stream, None)

    def due(self) -> list[int]:
        """Sessions whose timers have run out; told once."""
        now, found = self._clock(), []
        while self._timers and self._timers[0][0] <= now:
            at, stream = heapq.heappop(self._timers)
            if self._earliest.get(stream) == at:
                del self._earliest[stream]
            found.append(stream)
        return found

    def next_in(self) -> float:
        """Seconds until the next timer runs out; infinity when there is none."""
        return self._timers[0][0] - self._clock() if self._timers else math.inf

    def idle(self, since: float, drive_of: Callable[[int], Drive | None]) -> list[Drive]:
        """Sessions that have been idle since then at least, and those that are to go; told once."""
        found = []
        for stream, at in list(self._idle_since.items()):
            drive = drive_of(stream)
            if drive is None or not drive.is_idle():
                del self._idle_since[stream]
            elif at <= since or drive.draining:
                del self._idle_since[stream]
                found.append(drive)
        return found
