"""The runner: one loop that owns many sessions, decides for them in turns and records their decisions in groups.

It is the body of a django-q2 job (see agents.jobs) and lives until it is told to end: by its row, by SIGTERM, or ORPHAN_S
after its parent's death. Then it takes no new session, lets what runs end for DRAIN_S, interrupts the rest and gives
everything back.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from django.db import DatabaseError, transaction
from django.utils import timezone

from agents.devices import host
from agents.devices.host import storage_flaw
from agents.engine.bodies.deltas import forget_left_deltas
from agents.engine.drives.drive import Drive
from agents.engine.journal import Journal
from agents.engine.leases import RENEW_S, Leases, ReturnedLease, RunnerLock
from agents.engine.leftovers import end_left_of_sessions
from agents.engine.outlasting import Outlasting
from agents.engine.sessions import Sessions
from agents.errors import StorageFull
from agents.models import Lease
from agents.models import Runner as RunnerRow
from agents.streams import nudges
from agents.tools import command, confining, files

DRAIN_S = float(os.environ.get("ORRERY_DRAIN_S", "30"))
"""Running steps may end for so long once the runner is told to stop."""
ORPHAN_S = 15.0
"""A runner whose cluster has died works on for so long: whoever starts a new cluster ends it when that one works."""
LOOK_S = nudges.LOOK_S
BURY_S = 0.25
"""Between two looks for dead runners."""
DEVICES_S = 1.0
"""Between two readings of all devices and policies."""
LINGER_S = 1.0
"""A session with nothing to do is kept so long before it is given back."""
PASSES = 4
"""Of asyncio's loop between two turns: what a thread has read needs so many until the next reading begins beside a commit."""
SWITCH_S = 0.0005
"""Python's own 5 ms would be waited, while a thread reads a plan, after each statement that the loop sends to the database."""
RETURNED_AT_ONCE = 100
"""Sessions given back in one transaction."""
SESSIONS = 5000
"""Sessions one runner owns at most."""
OUTCOME_FILES_S = 3600.0
"""Outcome files of runners that are gone are kept so long."""

log = logging.getLogger(__name__)


class Runner:
    """One process's engine. `run` returns when it was told to stop and everything has been given back."""

    sessions_type = Sessions
    """Benchmarks put one here that takes notes."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._folder = host.runtime_dir()
        self._parent, self._orphan_at = os.getppid(), math.inf
        confinement = confining.confinement_text()
        with transaction.atomic():  # nobody sees the row before its lock is held, or it would be taken for dead
            self.row = RunnerRow.objects.create(
                host=host.boot_identity(), pid=os.getpid(), pid_start=host.process_start(), files=str(self._folder),
                started_at=timezone.now(), renewed_at=timezone.now(), confinement=confinement,
            )  # fmt: skip
            self._locked = RunnerLock(self._folder, self.row.pk)
        self.journal = Journal()
        self._leases = Leases(self.journal, self.row.pk)
        self.sessions = self.sessions_type(self.journal, self._folder, self.row.pk, self._wake_up, clock)
        who = f"runner {self.row.pk} (process {self.row.pid})"
        self._outlasting = Outlasting(who, self.journal, self._leases, self._locked, self.sessions)
        self._stop_at: float | None = None
        self._next = dict.fromkeys(("look", "bury", "renew", "devices"), 0.0)

    def run(self) -> None:
        """Until told to stop."""
        forget_old_outcomes(self._folder)
        try:
            with _short_waits():
                asyncio.run(self._main())
            self.sessions.reports.forget_outcomes()
        finally:
            try:
                self.sessions.close()
                self.journal.close()
                with transaction.atomic():  # whoever looks for the leases of the dead does not look at one that has ended
                    Lease.objects.filter(runner=self.row).update(runner=None, wake_at=timezone.now())
                    RunnerRow.objects.filter(pk=self.row.pk).update(state="ENDED", renewed_at=timezone.now())
            finally:
                self._locked.close()  # what cannot be written is seen by this

    # --- the loop

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake, self._look_at_devices = asyncio.Event(), asyncio.Event()
        self.sessions.begin()
        self._loop.add_signal_handler(signal.SIGTERM, self.stop)
        listener = nudges.NudgeListener(self._nudged, self._marked)
        await listener.start()
        see_to = (self._look_after_devices, self._renew_devices)
        hosting = [self._loop.create_task(self._see_to_devices(each)) for each in see_to]
        # In a thread, whose connection waits for a lock.
        self.sessions.readings.spawn(self.sessions.readings.in_thread(forget_left_deltas))
        try:
            while not self._done():
                try:
                    await self._cycle()
                except Exception as error:
                    await self._outlasting.outlast(error, self._is_over)
            await self.sessions.wind_up()
            await self._give_back(list(self.sessions.drives.values()), at_once=True)
        finally:
            listener.stop()
            for task in hosting:
                task.cancel()
            await asyncio.gather(*hosting, return_exceptions=True)
            with contextlib.suppress(DatabaseError):  # others notice that the holder is gone
                await self.sessions.hosted.release_all()
            self.sessions.end()

    async def _see_to_devices(self, do: Callable[[], Awaitable[None]]) -> None:
        """Beside the loop's own work: do something for the devices of this host over and over, whatever breaks in it."""
        while True:
            try:
                await do()
            except DatabaseError:  # the runner's own loop outlasts that, or ends
                log.warning("runner %s cannot see to its devices", self.row.pk, exc_info=True)
                await asyncio.sleep(DEVICES_S)
            except Exception:  # a fault of one device, or of ours, is none of all the others
                log.exception("runner %s broke while it saw to its devices", self.row.pk)
                await asyncio.sleep(DEVICES_S)

    async def _look_after_devices(self) -> None:
        """Take, lose and read them; then wait for a reason to look again."""
        if confining.are_walls_due() and (changed := await asyncio.to_thread(confining.try_walls_again)):
            await self.sessions.hosted.note_walls(self.row.pk, *changed)
        try:
            await self.sessions.hosted.look()
            await self.sessions.read_told()
        finally:
            self._next["devices"] = 0.0
            self._wake.set()
            self._look_at_devices.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEVICES_S):
                await self._look_at_devices.wait()

    async def _renew_devices(self) -> None:
        """Apart from looks, which take as long as what they end: whoever renews too late loses what works on its devices."""
        await self.sessions.hosted.renew()
        await asyncio.sleep(DEVICES_S)

    async def _cycle(self) -> None:
        """Wait for something to do, then one turn of every session that has something to decide."""
        if not self.sessions.ready:
            self._wake.clear()
            until = min(self._next["look"], self._next["renew"], self.sessions.next_timer())
            handle = self._loop.call_at(max(until, self._loop.time()), self._wake.set)
            await self._wake.wait()
            handle.cancel()
        if self._leases.fenced:  # asked before the chores renew the leases: others may take over, so nothing here may go on
            log.error("runner %s could not renew its leases and lets go of everything", self.row.pk)
            await self.sessions.drop_all()
            if await self._leases.release():
                await self._leases.renew()
            return
        await self._chores()
        await self.sessions.turn()
        # Bodies and readings go on, however much there is to record.
        for _ in range(PASSES if self.sessions.readings.under_way else 1):
            await asyncio.sleep(0)

    def _wake_up(self) -> None:
        self._wake.set()

    # --- who wants a look

    def _nudged(self, stream: int, head: int) -> None:
        """Somebody recorded something: in a session of ours we look at it, else we look who needs a runner."""
        drive = self.sessions.drives.get(stream)
        if drive is None or not head:
            self._next["look"] = 0.0
            if stream in self.sessions.devices:
                self._next["devices"] = 0.0
                self._look_at_devices.set()
            self._wake.set()
        elif head > drive.known.head and not drive.busy:
            self.sessions.follow_soon(drive)

    def _marked(self, mark: str, key: int) -> None:
        if mark == nudges.ANSWERS:
            self.sessions.hosted.away.nudged()
        elif mark == nudges.CALLS:
            self.sessions.hosted.serving.nudged(key)

    # --- chores

    async def _chores(self) -> None:
        now = self._loop.time()
        if now >= self._next["renew"]:
            self._next["renew"] = now + RENEW_S
            told = await self._leases.renew()
            if self._stop_at is None and (told or self._is_orphaned(now)):
                self.stop()
        if now >= self._next["devices"]:
            self._next["devices"] = now + DEVICES_S
            self.sessions.look_around()
        if now >= self._next["look"]:
            self._next["look"] = now + LOOK_S
            if storage_flaw():  # also where the database is elsewhere: workspaces and the outcome file are here
                raise StorageFull
            await self._look()
        await self.sessions.reports.flush_outputs(now)
        self.sessions.fire_timers()

    async def _look(self) -> None:
        """Who wants somebody to look: the guarantee behind the nudges."""
        now = self._loop.time()
        if now >= self._next["bury"] and self._stop_at is None:
            self._next["bury"] = now + BURY_S
            if dead := self._leases.dead():
                log.warning("runner %s takes over from %s", self.row.pk, sorted(dead))
                await self.sessions.readings.in_thread(end_left_of_sessions, set().union(*dead.values()))
                await self._leases.bury(dead)
        if (left := self.sessions.left()) and await self._leases.leave(left):
            self.sessions.forget_left(left)
        mine, nobodys = self._leases.due()
        if mine:
            await self._leases.seen(mine)
            for drive in [self.sessions.drives[stream] for stream in mine if stream in self.sessions.drives]:
                drive.woken = True
                await self.sessions.follow(drive)
        if nobodys and self._stop_at is None and len(self.sessions.drives) < SESSIONS:
            for leased in await self._leases.take(nobodys):
                self.sessions.begin_drive(leased, draining=False)
            await asyncio.sleep(0)  # their reading begins now, beside the next commit
        await self._give_back(self.sessions.idle(0.0 if self._stop_at is not None else LINGER_S))

    async def _give_back(self, drives: list[Drive], *, at_once: bool = False) -> None:
        """Return their leases, many in one transaction. `at_once`: somebody else is to go on with them now."""
        for at in range(0, len(drives), RETURNED_AT_ONCE):
            several = drives[at : at + RETURNED_AT_ONCE]
            returned = []
            for drive in several:
                wake_at = time.time() if at_once or drive.draining else drive.wake_at()
                returned.append(ReturnedLease(drive.stream, drive.known.head, drive.token, drive.numbers.unused(), wake_at))
            given = await self._leases.give_back(returned)
            for drive in several:
                if drive.stream in given:
                    self.sessions.forget(drive)
                else:
                    await self.sessions.follow(drive)

    # --- ending

    def stop(self) -> None:
        """Take nothing new, let running steps end; told twice, interrupt them at once."""
        if self._stop_at is not None:
            self._stop_at = 0.0
        else:
            self._stop_at = time.monotonic() + DRAIN_S
            self.sessions.drain()
        self._next["look"] = 0.0
        self._wake.set()

    def _done(self) -> bool:
        if self._stop_at is None:
            return False
        return not self.sessions.drives or time.monotonic() > self._stop_at

    def _is_over(self) -> bool:
        """An outage is not waited for any longer."""
        now = time.monotonic()
        return (self._stop_at is not None and now > self._stop_at) or self._is_orphaned(now)

    def _is_orphaned(self, now: float) -> bool:
        """Its parent has been dead for long enough."""
        if os.getppid() != self._parent:
            self._orphan_at = min(self._orphan_at, now)
        return now - self._orphan_at > ORPHAN_S


@contextlib.contextmanager
def _short_waits() -> Iterator[None]:
    """The loop waits for no thread for long, and not for searches for garbage among what is imported."""
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(switch_s)


def forget_old_outcomes(folder: Path) -> None:
    """Remove outcome files that nobody can need any more."""
    for path in folder.glob("outcomes-*.jsonl"):
        with contextlib.suppress(FileNotFoundError):  # another runner does the same
            if time.time() - path.stat().st_mtime > OUTCOME_FILES_S:
                path.unlink()


__all__ = ["Runner", "command", "files"]
