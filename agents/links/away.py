"""Calls on devices that another process holds, as the session's runner sees them: written as rows, and waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from agents.links.rows import NOTE, OUTPUT, THINKING, News, Wishes, read_news, write_wishes
from agents.tools.calls import Call, Outcome

LOOK_S = 0.25
"""Between two looks at calls under way that nothing nudged: the guarantee behind the nudges."""
CANCEL_S = 10.0
"""A call that is to end may take so long; who waited for it goes on without it then."""

InThread = Callable[..., Awaitable[Any]]


class AwayCalls:
    """Of one runner. What several calls want at one time is written, and what has become of them read, together.

    `in_thread` calls a function that uses the database in a thread of its own.
    """

    def __init__(self, in_thread: InThread):
        self._in_thread = in_thread
        self._wishes = Wishes()
        self._waiting: dict[int, tuple[Call, asyncio.Future[Outcome]]] = {}
        self._lasts: dict[int, int] = {}
        self._known: dict[int, int] = {}
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def carry(self, call: Call) -> Outcome:
        """Make a call that is new."""
        self._wishes.calls.append(call)
        return await self.wait(call)

    async def wait(self, call: Call) -> Outcome:
        """Wait for a call that has its row, or is about to get it. Known output of an adopted one is passed over."""
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[call.key], self._lasts[call.key] = (call, ended), 0
        self._known[call.key] = call.adopted or 0
        self._wake()
        try:
            while True:
                hearing: asyncio.Future[Any] = asyncio.ensure_future(call.hear())
                try:
                    await asyncio.wait([hearing, ended], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not hearing.done():
                        hearing.cancel()
                if hearing.done() and not hearing.cancelled():
                    self._wishes.told.append((call.key, *hearing.result()))
                    self._wake()
                if ended.done():
                    return ended.result()
        except asyncio.CancelledError:
            self._wishes.cancels.append((call.key, call.fence))
            self._wake()
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(CANCEL_S):
                    await asyncio.shield(ended)
            raise
        finally:
            self._waiting.pop(call.key, None)
            del self._lasts[call.key], self._known[call.key]

    def nudged(self) -> None:
        """Something has become of a call, of whomever."""
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        self._woken.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Write and read until nobody waits."""
        while self._waiting or self._wishes:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._woken.wait()
            self._woken.clear()
            wishes, self._wishes = self._wishes, Wishes()
            try:
                refused = await self._in_thread(write_wishes, wishes) if wishes else []
                news: News = await self._in_thread(read_news, dict(self._lasts))
            except Exception:  # an outage: the runner outlasts it (agents.engine.outlasting), and so do the calls
                self._wishes.calls[:0] = wishes.calls
                self._wishes.cancels[:0] = wishes.cancels
                self._wishes.told[:0] = wishes.told
                await asyncio.sleep(LOOK_S)
                continue
            for key in refused:
                self._settle(key, Outcome("cancelled", error="its session has another owner"))
            for key, number in news.last.items():
                if key in self._lasts:
                    self._lasts[key] = number
            for key, kind, body in news.said:
                self._pass_on(key, kind, body)
            for key, outcome in news.ended.items():
                self._settle(key, outcome)

    def _pass_on(self, key: int, kind: str, body: Any) -> None:
        if key not in self._waiting:
            return
        call, _ = self._waiting[key]
        if kind == OUTPUT:
            known = min(self._known[key], len(body))
            self._known[key] -= known
            if known < len(body):
                call.on_output(body[known:])
        elif kind == THINKING:
            call.on_thinking(body)
        elif kind == NOTE:
            call.note(body["event"], **{key: each for key, each in body.items() if key != "event"})
        else:
            call.on_update(kind, body)

    def _settle(self, key: int, outcome: Outcome) -> None:
        if key in self._waiting and not self._waiting[key][1].done():
            self._waiting[key][1].set_result(outcome)
