"""When Python searches for garbage: not while tens of thousands of rows are made, and not while others wait for a lock."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

LARGE = 1_000
"""Rows with which the search spends much time."""


class SearchPause:
    """The search waits as long as anybody wants it to: threads come and go in any order."""

    def __init__(self) -> None:
        self._lock, self._wanted, self._was_on = Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            if not self._wanted:
                self._was_on = gc.isenabled()
                gc.disable()
            self._wanted += 1

    def end(self) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted and self._was_on:
                gc.enable()


PAUSE = SearchPause()


@contextmanager
def nothing_collected() -> Iterator[None]:
    """The search for garbage waits: of many new rows none is any, and to look at them doubles the time."""
    PAUSE.begin()
    try:
        yield
    finally:
        PAUSE.end()


def note_rows_made(rows: int) -> None:
    """So many rows have just been made, to stay. Many count as old at once, or the next searches take 0.2 s for them."""
    if rows >= LARGE:
        gc.freeze()
        gc.unfreeze()
