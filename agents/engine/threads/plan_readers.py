"""The threads that read the plans of a runner's sessions: short ones first, so that a neighbour does not wait for large ones.

Reading a plan takes time with its size, and a runner may get twenty large ones at one moment. What comes later and is
short passes them; how far, is bounded, so nobody waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from django.db import connections

T = TypeVar("T")

LARGE = 100_000
"""Characters. One of the threads reads no plan that is longer: there is always one that is soon free."""
PASSED_BY = 5_000
"""Characters of a plan for which it lets others pass that come within a second..."""
PASSED_S = 5.0
"""...up to so many seconds."""


@dataclass(order=True)
class WaitingPlan:
    """A plan to be read; `due` orders them."""

    due: float
    number: int
    size: int = field(compare=False)
    turn: asyncio.Future[ThreadPoolExecutor] = field(compare=False)


class PlanReaders:
    """Two threads, each with a connection to the database that stays open."""

    def __init__(self) -> None:
        names = ("short plans", "plans")
        self._short, self._any = (ThreadPoolExecutor(1, thread_name_prefix=name) for name in names)
        self._free = [self._any, self._short]
        self._waiting: list[WaitingPlan] = []
        self._numbers = count()

    async def read(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """What `function` says, for a plan of `size` characters."""
        loop = asyncio.get_running_loop()
        due = loop.time() + min(size / PASSED_BY, PASSED_S)
        waiting = WaitingPlan(due, next(self._numbers), size, loop.create_future())
        self._waiting.append(waiting)
        self._assign()
        try:
            thread = await waiting.turn
        except asyncio.CancelledError:
            self._give_back(waiting)
            raise
        try:
            return await loop.run_in_executor(thread, function, *arguments)
        finally:
            self._free.append(thread)
            self._assign()

    def _assign(self) -> None:
        """Give free threads to those who wait, in order."""
        for waiting in sorted(self._waiting):
            thread = self._thread_for(waiting.size)
            if thread is not None:
                self._free.remove(thread)
                self._waiting.remove(waiting)
                waiting.turn.set_result(thread)

    def _give_back(self, waiting: WaitingPlan) -> None:
        """Nobody waits for this any more, whether or not it had its turn."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        elif not waiting.turn.cancelled():
            self._free.append(waiting.turn.result())
            self._assign()

    def _thread_for(self, size: int) -> ThreadPoolExecutor | None:
        allowed = (self._any,) if size > LARGE else (self._short, self._any)
        return next((thread for thread in allowed if thread in self._free), None)

    def close(self) -> None:
        """End the threads, and their connections."""
        for thread in (self._short, self._any):
            thread.submit(connections.close_all).result()
            thread.shutdown()
