"""What there is one of for each event loop: made when it is first asked for, and gone with its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


def one_per_loop(make: Callable[[], T]) -> Callable[[], T]:
    """A function that says the running loop's; `make` makes it."""
    known: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def of_this_loop() -> T:
        loop = asyncio.get_running_loop()
        if (found := known.get(loop)) is None:
            found = known[loop] = make()
        return found

    return of_this_loop
