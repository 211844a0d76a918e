"""Calls on devices that this process holds, asked for by other processes: taken from their rows, carried out, answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agents.links.rows import NOTE, OUTPUT, THINKING, Due, Ends, calls_left_by_others, take_due, write_ends
from agents.tools.calls import Bodies, Call, Outcome, Tool
from agents.tools.handing import tool_with_files

LOOK_S = 0.25
"""Between two looks that nothing nudged, while calls are under way..."""
IDLE_LOOK_S = 1.0
"""...and while devices are held that nobody asks anything."""
FLUSH_S = 0.05
"""What calls print is written so often at most."""

log = logging.getLogger(__name__)

Carry = Callable[[Call], Awaitable[Outcome]]


@dataclass
class Held:
    """A device that this process holds: the fence of its link, and what carries out calls (None: their tools do)."""

    fence: int
    carry: Carry | None


class Serving:
    """Of one process. `in_thread` calls a function that uses the database in a thread of its own.

    `on_late(call key, outcome)` is told of outcomes that came when nobody waited for them any more, `on_written(ends)` of what
    is durable from then on.
    """

    def __init__(
        self, in_thread: Callable[..., Awaitable[Any]], on_late: Callable[[int, Outcome], None] = lambda key, late: None,
        on_written: Callable[[Ends], None] = lambda ends: None,
    ):  # fmt: skip
        self._in_thread, self._on_late, self._on_written = in_thread, on_late, on_written
        self._held: dict[int, Held] = {}
        self._calls: dict[int, tuple[Call, int]] = {}
        self._lasts: dict[int, int] = {}
        self._ends = Ends()
        self._woken, self._writing = asyncio.Event(), asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.bodies = Bodies(self._ended, carrier=self._carrier_of)

    def hold(self, device: int, fence: int, carry: Carry | None) -> None:
        """Serve the calls of a device from now on."""
        self._held[device] = Held(fence, carry)
        self._wake()

    def drop(self, device: int, why: str) -> None:
        """Serve them no more: those under way have ended as lost."""
        self._held.pop(device, None)
        self.bodies.lose(device, why)

    async def let_go(self, device: int) -> None:
        """Whoever takes them up serves them from now on: those under way here are forgotten, and not answered.

        Returns when nothing is under way here any more, and what had ended before is written, if the database answers.
        """
        self._held.pop(device, None)
        keys = {key for key, (call, _) in self._calls.items() if call.device["id"] == device}
        for key in keys:
            del self._calls[key]
            self._lasts.pop(key, None)
        await self.bodies.interrupt_all(keys)
        async with self._writing:
            await self._write()

    def begin_left(self, calls: list[Call]) -> None:
        """Go on with calls of devices that are held here, which an earlier holder had begun (`calls_left_by_others`)."""
        for call in calls:
            self._begin(call)

    async def fail_left(
        self, device: int, fence: int, why: str, end: Callable[[list[int]], Any] = lambda attempts: None
    ) -> None:  # fmt: skip
        """End what an earlier holder had begun, and what died with it, as lost.

        `end` is called before with their attempts, in a thread: it ends what has outlived that holder.
        """
        left: list[Call] = await self._in_thread(calls_left_by_others, device, fence)
        if left:
            await self._in_thread(end, [call.attempt for call in left])
        for call in left:
            self._ends.outcomes.append((call.key, fence, Outcome("lost", error=why)))
        self._wake()

    async def gone(self, device: int) -> None:
        """Wait until nothing is under way here on a device that was dropped."""
        await self.bodies.gone(device)

    def nudged(self, device: int) -> None:
        """Something is about calls of a device."""
        if device in self._held:
            self._wake()

    async def close(self) -> None:
        """Interrupt what is under way and write how it ended."""
        await self.bodies.interrupt_all()
        self._held.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._ends:
            await self._in_thread(write_ends, self._ends)

    # --- inside

    def _wake(self) -> None:
        self._woken.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _carrier_of(self, call: Call) -> Tool | None:
        held = self._held.get(call.device["id"])
        return tool_with_files(call) if held is None or held.carry is None else held.carry

    async def _run(self) -> None:
        while self._held or self._calls or self._ends:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if self._calls else IDLE_LOOK_S):
                    await self._woken.wait()
            self._woken.clear()
            try:
                async with self._writing:
                    written = await self._write()
                fences = {device: held.fence for device, held in self._held.items()}
                due: Due = await self._in_thread(take_due, fences, {key: self._lasts.get(key, 0) for key in self._calls})
            except Exception:  # an outage; so is one that `_write` has met
                log.warning("calls of devices could not be read", exc_info=True)
                written = False
            if not written:
                await asyncio.sleep(LOOK_S)
                continue
            self._lasts.update(due.last)
            for call in due.begin:
                self._begin(call)
            for key, kind, body in due.told:
                self.bodies.tell(key, kind, body)
            for key in due.cancel:
                self.bodies.interrupt(key)

    async def _write(self) -> bool:
        """Write what has ended and what was said; False where that has to wait until an outage is over."""
        ends, self._ends = self._ends, Ends()
        try:
            late = set(await self._in_thread(write_ends, ends)) if ends else set()
        except Exception:
            log.warning("calls of devices could not be answered", exc_info=True)
            self._ends.outcomes[:0], self._ends.said[:0] = ends.outcomes, ends.said
            return False
        for key, _, outcome in ends.outcomes:
            if key in late:
                self._on_late(key, outcome)
        ends.outcomes = [each for each in ends.outcomes if each[0] not in late]
        self._on_written(ends)
        return True

    def _begin(self, call: Call) -> None:
        held = self._held.get(call.device["id"])
        if held is None or call.key in self._calls:
            return  # it is another's by now, and so is the call; or this process has gone on with it already
        self._calls[call.key] = call, held.fence
        call.on_output = lambda text: self._say(call.key, OUTPUT, text)
        call.on_thinking = lambda text: self._say(call.key, THINKING, text)
        call.on_update = lambda kind, data: self._update(call.key, kind, data)
        call.note = lambda event, **data: self._say(call.key, NOTE, {**data, "event": event})
        self.bodies.start(call)

    def _update(self, key: int, kind: str, data: Any) -> None:
        """What a device reports is never what this process itself has to say of the call."""
        if kind not in (NOTE, OUTPUT, THINKING):
            self._say(key, kind, data)

    def _say(self, key: int, kind: str, body: Any) -> None:
        said = self._ends.said
        if kind in (OUTPUT, THINKING) and said and said[-1][:2] == (key, kind):
            said[-1] = key, kind, said[-1][2] + body
        else:
            said.append((key, kind, body))
        loop = asyncio.get_running_loop()
        if kind not in (OUTPUT, THINKING):
            self._wake()
        elif len(said) == 1:
            loop.call_later(FLUSH_S, self._wake)

    def _ended(self, call: Call, outcome: Outcome) -> None:
        _, fence = self._calls.pop(call.key, (call, None))
        self._lasts.pop(call.key, None)
        if fence is not None:  # not let go of
            self._ends.outcomes.append((call.key, fence, outcome))
            self._wake()
