"""All devices whose connections this web process holds: their calls, heartbeats in bulk, and who is to be let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections

from agents.api.device_link.connection import DeviceConnection
from agents.devices.protocol.messages import Ack, Bye
from agents.links.dialled import LetIn, take_late, wants_no_more
from agents.links.holders import heartbeat_s, lose_silent_devices, release_link, renew_links
from agents.links.kept_readings import keep_readings, span_now
from agents.links.rows import OUTPUT, Ends
from agents.links.serving import Serving
from agents.per_loop import one_per_loop
from agents.streams.nudges import CALLS, NudgeListener
from agents.streams.outages import with_fresh_connection
from agents.tools.calls import Outcome

LOOK_S = 1.0
"""Between two looks at what is to be done."""
WRITES = 5
"""In the time of one heartbeat: so often those that came are written, all in one transaction, at most once in a look."""
RENEW_S = 3.0
"""What nobody was heard of is renewed so often, and looked at: is it still to be connected?"""
BACK_S = 1.0
"""Whoever is let go may come back after so long, to hear why it is not let in."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class HeldConnection:
    """The connection of a device, its client's process, this process's hold on it, and how to end it."""

    def __init__(self, connection: DeviceConnection, instance: str, found: LetIn, end: Callable[[Bye], None]):
        self.connection, self.instance, self.fence, self.end = connection, instance, found.fence, end
        self.heartbeat_s = heartbeat_s(found.device)


class DeviceHub:
    """Of one event loop. Use `device_hub()`; it looks at the database while a device is connected, and not else."""

    def __init__(self) -> None:
        self._held: dict[int, HeldConnection] = {}
        self._heard: dict[int, dict[str, Any]] = {}
        self.by_call: dict[int, DeviceConnection] = {}
        self._moved: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._errands: set[asyncio.Task[object]] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._joining: dict[int, asyncio.Lock] = {}
        self.serving = Serving(self.in_thread, self._was_late, self._were_written)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the one thread that has the hub's connection with the database."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="device-hub")
        return await asyncio.get_running_loop().run_in_executor(self._thread, with_fresh_connection, function, *arguments)

    def turn_of(self, device: int) -> asyncio.Lock:
        """Held while a device comes or goes: one after the other."""
        return self._joining.setdefault(device, asyncio.Lock())

    def held(self, device: int) -> HeldConnection | None:
        """A device's connection, where this process has it."""
        return self._held.get(device)

    def join(self, held: HeldConnection, found: LetIn) -> None:
        """Serve the device's calls from now on, and go on with those that were under way."""
        connection = held.connection
        self._held[connection.device] = held
        for call, printed in found.going_on:
            connection.expect(call.key, printed)
        self.serving.hold(connection.device, found.fence, connection.call)
        self.serving.begin_left([*(call for call, _ in found.going_on), *found.never_got])
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def leave(self, held: HeldConnection, *, lost: str = "") -> None:
        """The connection is over: whoever the device reaches next takes up its calls; where it is `lost`, they are."""
        connection, device = held.connection, held.connection.device
        connection.closed = True
        if self._held.get(device) is not held:
            return
        del self._held[device]
        self._heard.pop(device, None)
        if lost:
            self.serving.drop(device, lost)
        else:
            await self.serving.let_go(device)
        for key in [key for key, whose in self.by_call.items() if whose is connection]:
            del self.by_call[key]
        try:
            await self.in_thread(release_link, device, held.fence)
        except Exception:  # an outage: its heartbeats are missing from now on
            log.warning("device %s could not be let go", device, exc_info=True)

    def heard(self, device: int, readings: dict[str, Any]) -> None:
        """A heartbeat; it is written with the others."""
        self._heard[device] = readings

    def let_go(self, device: int, bye: Bye) -> None:
        """Close a device's connection, if this process has it."""
        held = self._held.get(device)
        if held is not None:
            held.end(bye)

    # --- inside

    async def _run(self) -> None:
        """While a device is connected."""
        listener = NudgeListener(self._on_nudge, self._on_mark)
        await listener.start()
        renewed_at = written_at = 0.0
        kept = 0
        loop = asyncio.get_running_loop()
        try:
            while self._held:
                await asyncio.sleep(LOOK_S)
                try:
                    is_due = loop.time() - renewed_at >= RENEW_S
                    if is_due or (self._heard and loop.time() - written_at >= self._pace_s()):
                        written_at = loop.time()
                        await self._renew(list(self._held) if is_due else list(self._heard))
                    if is_due or self._moved:
                        await self._look(list(self._held) if is_due else sorted(self._moved))
                    if is_due:
                        renewed_at = loop.time()
                        await self.in_thread(lose_silent_devices)
                        if (span := span_now()) != kept:
                            await self.in_thread(keep_readings, span)
                            kept = span
                except Exception:  # an outage: the devices stay connected, and are renewed when it is over
                    log.warning("connected devices could not be renewed", exc_info=True)
        finally:
            listener.stop()
            if self._thread is not None and not self._held:
                self._thread.submit(connections.close_all)
                self._thread.shutdown(wait=False)
                self._thread = None

    def _pace_s(self) -> float:
        """Between two writes of heartbeats."""
        return min((held.heartbeat_s for held in self._held.values()), default=0.0) / WRITES

    async def _renew(self, devices: list[int]) -> None:
        heard, self._heard = self._heard, {}
        fences = {device: self._held[device].fence for device in devices if device in self._held}
        try:
            gone = await self.in_thread(renew_links, fences, heard)
        except BaseException:
            self._heard = {**heard, **self._heard}
            raise
        stale = [device for device in gone if device in self._held and self._held[device].fence == fences[device]]
        if stale:
            await self._look(stale)
        for device in stale:
            self.let_go(device, Bye("another process holds its connection", retry_s=BACK_S))

    async def _look(self, devices: list[int]) -> None:
        """Let those go that are not to be connected any more: taken offline, lost, failed, retired, without a token."""
        self._moved.clear()
        unwanted = await self.in_thread(wants_no_more, [device for device in devices if device in self._held])
        for device, why in unwanted.items():
            self.let_go(device, Bye(why[:1_000], end_calls=True, retry_s=BACK_S))

    def _on_nudge(self, stream: int, head: int) -> None:
        if stream in self._held:
            self._moved.add(stream)

    def _on_mark(self, mark: str, key: int) -> None:
        if mark == CALLS:
            self.serving.nudged(key)

    def _were_written(self, ends: Ends) -> None:
        """What is durable may be forgotten by the devices."""
        for key, kind, body in ends.said:
            whose = self.by_call.get(key)
            if kind == OUTPUT and whose is not None and (ack := whose.stored(key, len(body))) is not None:
                self._soon(whose.send(ack))
        for key, _, _ in ends.outcomes:
            if (whose := self.by_call.pop(key, None)) is not None:
                self._soon(whose.send(Ack(key, None)))

    def _was_late(self, key: int, outcome: Outcome) -> None:
        whose = self.by_call.pop(key, None)
        if whose is not None and outcome.outcome not in ("lost", "cancelled"):
            self._soon(self.judge_late(whose, key, outcome))

    async def judge_late(self, connection: DeviceConnection, key: int, outcome: Outcome) -> str:
        """Take a result that nobody waits for: what `take_late` says of it. The device may forget what was its own."""
        verdict = await self.in_thread(take_late, connection.device, key, outcome)
        if verdict in ("late", "stored"):
            await connection.send(Ack(key, None))
        return verdict

    def _soon(self, errand: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)


device_hub = one_per_loop(DeviceHub)
"""The hub of the running event loop."""
