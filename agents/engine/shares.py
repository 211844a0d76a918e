"""Whose turn is next: the sessions of one runner share its loop fairly by the time that their turns take.

Start-time fair queueing: a session's turn begins, in a time of its own, where its last one ended, but not before the turn of
whoever was served last. So nobody saves up time while there is nothing to do, and whoever comes new is not behind the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class Shares:
    """Seconds of a processor that sessions have had, by their streams."""

    def __init__(self) -> None:
        self._ends: dict[int, float] = {}
        self._now = 0.0

    def in_order(self, streams: Iterable[int]) -> list[int]:
        """Who has had the least first; of equals, who came first."""
        return sorted(streams, key=lambda stream: self._ends.get(stream, 0.0))

    @contextmanager
    def taking(self, stream: int) -> Iterator[None]:
        """What happens inside is this session's turn."""
        began = time.thread_time()
        self._now = max(self._now, self._ends.get(stream, 0.0))
        try:
            yield
        finally:
            self._ends[stream] = self._now + time.thread_time() - began

    def charge(self, stream: int, seconds: float) -> None:
        """The session has had so much in a thread, too: what took long to read takes long to begin."""
        self._ends[stream] = max(self._now, self._ends.get(stream, 0.0)) + seconds

    def forget(self, stream: int) -> None:
        """The session is here no more."""
        self._ends.pop(stream, None)


def time_call(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What `function` returns, and how many seconds of a processor it took in this thread."""
    began = time.thread_time()
    return function(*arguments), time.thread_time() - began
