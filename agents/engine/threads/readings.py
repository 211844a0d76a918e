"""What is read in threads, beside the runner's loop: the rows of sessions, and what their next requests ask for.

All readings of rows share one thread, and so do the ends of attempts whose owner is gone. A session that is being read gets no
turn; what is recorded meanwhile is followed afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from django.db import connections

from agents.engine.bodies.outcomes import ends_of_orphans
from agents.engine.bodies.outputs import durable_characters
from agents.engine.bodies.reports import Reports
from agents.engine.drives.drive import Drive
from agents.engine.threads.plan_readers import PlanReaders
from agents.engine.threads.preparing import OUTAGE_RETRY_S, prepare_item
from agents.links.rows import adopt_calls
from agents.streams.outages import outage_refusal, with_fresh_connection
from agents.streams.row_types import InboxRow
from agents.tools.calls import Call

T = TypeVar("T")


def calls_to_adopt(keys: list[int], session: int, fence: int) -> list[tuple[Call, int]]:
    """Calls of an earlier owner on devices elsewhere, each with how much of its attempt's output the database has."""
    return [(call, durable_characters(call.attempt)) for call in adopt_calls(keys, session, fence)]


class Readings:
    """Of one runner. `drives` are those of its sessions, `under_way` those being read. Who has been read is told to `on_read`,
    and what breaks in a reading to `on_fault`.
    """

    def __init__(
        self, drives: Mapping[int, Drive], folder: Path, reports: Reports, charge: Callable[[int, float], None],
        on_read: Callable[[Drive], Awaitable[None]], on_fault: Callable[[Drive, Exception], None],
    ):  # fmt: skip
        self._drives, self._folder, self._reports = drives, folder, reports
        self._charge, self._on_read, self._on_fault = charge, on_read, on_fault
        self.under_way: set[Drive] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._plan_readers = PlanReaders()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def close(self) -> None:
        self._reader.submit(connections.close_all).result()
        self._reader.shutdown()
        self._plan_readers.close()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let it run beside the loop's own work."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait_for_one(self) -> None:
        """Until something that runs beside the loop's own work has ended."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call `function` in the reading thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, with_fresh_connection, function, *arguments)

    def prepare(self, drive: Drive, item: InboxRow) -> None:
        """Begin to read what the request `item` asks for."""
        self.under_way.add(drive)
        self.spawn(self._prepare(drive, item))

    async def _prepare(self, drive: Drive, item: InboxRow) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        found, spent = await prepare_item(item, drive.stream, self._plan_readers)
        self._charge(drive.stream, spent)
        drive.hand.prepared[item["id"]] = found, loop.time() - since
        await self._end(drive)

    def read(self, drive: Drive, after: float = 0.0) -> None:
        """Begin to read the session's rows, again after so many seconds where that broke; once at a time."""
        if drive not in self.under_way:
            self.under_way.add(drive)  # at once: no turn may come before the reading begins
            self.spawn(self._read(drive, after))

    async def _read(self, drive: Drive, after: float) -> None:
        """Read a session's rows (again); after a take-over end what an earlier owner left running."""
        try:
            if after:
                await asyncio.sleep(after)
            await self.in_thread(drive.hydrate)
            orphans = {key: attempt for key, attempt in drive.orphans().items() if key not in drive.outcomes}
            if drive.is_new:  # what of it runs here runs under a lease that was lost
                await self._reports.bodies.interrupt_all(orphans)
                drive.is_new = False
            orphans = {key: attempt for key, attempt in orphans.items() if key not in self._reports.bodies}
            if orphans:
                self._reports.flush_outcomes()
                for call, durable in await self.in_thread(calls_to_adopt, list(orphans), drive.stream, drive.token):
                    del orphans[call.key]  # it goes on, on its device
                    self._reports.adopt(call, durable)
                drive.outcomes.update(await self.in_thread(ends_of_orphans, self._folder, orphans))
                for outcome in drive.outcomes.values():
                    self._reports.outputs.adopt(outcome)
        except Exception as error:  # a bug in one session must not end the others
            self.under_way.discard(drive)
            if self._drives.get(drive.stream) is not drive:
                return
            if outage_refusal(error):
                drive.forget()
                self.read(drive, after=OUTAGE_RETRY_S)
            else:
                self._on_fault(drive, error)
            return
        await self._end(drive)

    async def _end(self, drive: Drive) -> None:
        self.under_way.discard(drive)
        await self._on_read(drive)
