"""The sessions that one runner owns: their turns and commits, what others record in them, and what breaks.

Everything here happens on the runner's loop. What takes its time is read in threads (`readings`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import connections

from agents.engine.bodies.reports import Reports
from agents.engine.drives.drive import Drive
from agents.engine.environment import Surroundings, read_told
from agents.engine.hosted import HostedDevices
from agents.engine.journal import FATAL, RECORDS_A_COMMIT, Journal
from agents.engine.leases import LeasedSession
from agents.engine.shares import Shares
from agents.engine.threads.hooks import Hooks
from agents.engine.threads.preparing import RETRIES, RETRY_LONGEST_S, RETRY_S
from agents.engine.threads.readings import Readings
from agents.engine.timers import SessionTimers
from agents.faults import is_transient, pause_seconds
from agents.links.moves import REACHED
from agents.streams.outages import with_fresh_connection
from agents.streams.turn import Batch

TURN_S = 0.01
"""Seconds of deciding after which what there is goes into a commit: whoever is not in it comes in the next."""

log = logging.getLogger(__name__)


class Sessions:
    """Owned sessions by their streams. `wake` lets the runner's loop go round; they decide by `clock`."""

    reports_type = Reports
    """A replay puts one here that gives recorded outcomes."""

    def __init__(self, journal: Journal, folder: Path, runner: int, wake: Callable[[], None], clock: Callable[[], float]):
        self._journal, self._wake = journal, wake
        self.drives: dict[int, Drive] = {}
        self.around = Surroundings()
        self.devices = self.around.devices
        self.ready: dict[int, None] = {}
        self._clock = clock
        self._resting = SessionTimers(clock)
        self._shares = Shares()
        self._left: list[int] = []
        self._contested: set[int] = set()
        self._links = ThreadPoolExecutor(1, thread_name_prefix="links")
        self.hosted = HostedDevices(self._beside, lambda device, why: self.reports.bodies.lose(device, why))
        self.reports = self.reports_type(journal, folder, runner, self.drives, self.ready, wake, self.hosted.carrier_of)
        self._hooks = Hooks()
        self._deciding: dict[int, Batch] = {}
        self._trouble: Exception | None = None
        self.readings = Readings(self.drives, folder, self.reports, self._shares.charge, self._was_read, self._broke)

    # `ready`: sessions with something to decide, first come first; `_left`: those that broke and are driven by nobody until
    # they move; `_contested`: those that came second and are now committed alone. `_deciding`: batches of which it is not
    # known here whether they are written; `_trouble`: an outage that a task has met, for the runner's loop to raise.

    def begin(self) -> None:
        """On the loop, before anything else."""
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """On the loop, after everything else."""
        self.readings.cancel()

    def close(self) -> None:
        self._links.submit(connections.close_all).result()
        self._links.shutdown()
        self.readings.close()
        self._hooks.close()
        self.reports.close()

    async def _beside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function about devices in a thread, which has a connection of its own and waits for locks."""
        return await asyncio.get_running_loop().run_in_executor(self._links, with_fresh_connection, function, *arguments)

    async def read_told(self) -> None:
        """What is known of devices beside their rows, for the next look around."""
        self.around.hear(await self._beside(read_told))

    # --- turns

    async def turn(self) -> bool:
        """One turn of every session that has something to decide, and one commit for all; False when none had."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble
        batches = self._turns()
        self.reports.flush_outcomes()
        alone = [batch for batch in batches if batch.stream in self._contested]
        for batch in alone:
            await self._commit([batch])
        if others := [batch for batch in batches if batch not in alone]:
            await self._commit(others)
        return bool(batches)

    async def wind_up(self) -> None:
        """Interrupt what still runs and record how it ended."""
        await self.reports.bodies.interrupt_all()
        for drive in self.drives.values():
            for key, outcome in drive.outcomes.items():
                if outcome.outcome == "cancelled":
                    drive.outcomes[key] = replace(outcome, outcome="lost", error="its runner was told to stop")
        for _ in range(len(self.drives) + 10):
            if await self.turn():
                continue
            if not self.readings.under_way:
                break
            await self.readings.wait_for_one()
        await self.reports.outputs.flush()

    def drain(self) -> None:
        """Nothing more starts."""
        for drive in self.drives.values():
            drive.draining = True
            self.ready[drive.stream] = None

    def _turns(self) -> list[Batch]:
        """Batches of the sessions that are ready, up to a commit's size; the others stay ready.

        Who has had the least time comes first, so that a short request does not wait for large ones.
        """
        batches: list[Batch] = []
        now, records, began = self._clock(), 0, self._loop.time()
        for stream in self._shares.in_order(self.ready):
            if records >= RECORDS_A_COMMIT or self._loop.time() - began > TURN_S:
                break
            del self.ready[stream]
            drive = self.drives.get(stream)
            if drive is None or drive.busy or drive in self.readings.under_way or not self._prepared(drive):
                continue
            try:
                with self._shares.taking(stream):
                    batch, more = drive.turn(now)
            except Exception as error:  # a bug in one session must not end the others
                self._broke(drive, error)
                continue
            if more:
                self.ready[stream] = None
            if batch is None:
                self._rest(drive)
            else:
                batches.append(batch)
                self._deciding[stream] = batch
                records += len(batch.events) + sum(map(len, batch.starts.values()))
        return batches

    async def _commit(self, batches: list[Batch]) -> None:
        try:
            done = await self._journal.commit(batches, self._again, self.reports.last_words)
        except FATAL:
            raise
        except Exception as error:  # what one session wants recorded cannot be: the others must not suffer for it
            if len(batches) == 1:
                self._deciding.pop(batches[0].stream, None)
                self._broke(self.drives[batches[0].stream], error)
                return
            for batch in batches:
                await self._commit([batch])
            return
        if done.written:
            self.reports.outputs.wrote()
        for batch in done.refused:
            # Where a lock is held for long the next turn does not wait for it: the other sessions go on in between.
            (self._contested.discard if done.held else self._contested.add)(batch.stream)
            await self._refused(batch)
        for batch in done.written:
            self._contested.discard(batch.stream)
            self._written(batch)
            self._hooks.after(batch)
        self.reports.recorded()

    def _again(self, batch: Batch) -> Batch | None:
        """Somebody came first: what the session decides now that nobody else can."""
        del self._deciding[batch.stream]
        drive = self.drives[batch.stream]
        drive.refused(batch)
        self._after_follow(drive)
        if drive.known.lost or drive.known.stale or not self._prepared(drive):
            return None
        fresh, _ = drive.turn(self._clock(), locked=True)
        if fresh is not None:
            self._deciding[batch.stream] = fresh
        return fresh

    def _written(self, batch: Batch) -> None:
        self._deciding.pop(batch.stream, None)
        drive = self.drives[batch.stream]
        self.around.note_slots(batch.free)
        try:
            calls, interrupts, told = drive.written(batch)
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
            return
        for call in calls:
            self.reports.begin(call)
        for key, kind, data in told:
            self.reports.bodies.tell(key, kind, data)
        for key in interrupts:
            self.reports.bodies.interrupt(key)
        self.ready[batch.stream] = None

    async def _refused(self, batch: Batch) -> None:
        drive = self.drives[batch.stream]
        try:
            drive.refused(batch)
            self._deciding.pop(batch.stream, None)
        except FATAL:
            raise
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)

    # --- after an outage

    async def recover(self, cause: str, lasted_s: float) -> None:
        """The database is back: what was under way when it was lost is looked up, and every session goes on from there."""
        self._trouble = None
        self.reports.outputs.recover()
        for stream, batch in list(self._deciding.items()):
            drive = self.drives.get(stream)
            if drive is None:
                del self._deciding[stream]
            elif drive.has_recorded(batch):
                self._written(batch)
                self._hooks.after(batch)
            else:
                await self._refused(batch)
        for drive in list(self.drives.values()):
            if drive.hand.work is not None:
                drive.pending.note("outage", cause=cause, lasted_s=round(lasted_s, 3))
                self.ready[drive.stream] = None
            await self.follow(drive)

    # --- what others record, and what breaks

    async def follow(self, drive: Drive) -> None:
        if drive in self.readings.under_way or drive.busy or self.drives.get(drive.stream) is not drive:
            return
        try:
            drive.follow()
        except FATAL as error:
            self._trouble = error
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)
        self._wake()

    def follow_soon(self, drive: Drive) -> None:
        self.readings.spawn(self.follow(drive))

    def _after_follow(self, drive: Drive) -> None:
        if drive.known.lost:
            self._drop(drive)
        elif drive.known.stale:
            self._read_anew(drive)
        else:
            self.ready[drive.stream] = None

    def _broke(self, drive: Drive, error: Exception) -> None:
        """A bug in one session. It is read anew; then its actor ends in Error; then nobody drives it until it moves."""
        log.error("session %s broke", drive.stream, exc_info=error)
        if is_transient(error) and drive.retries < RETRIES:
            drive.retries += 1
            drive.forget()
            self._read_anew(drive, after=pause_seconds(drive.retries, drive.stream, RETRY_S, RETRY_LONGEST_S))
        elif drive.broke(error):
            self._read_anew(drive)
        else:
            self._drop(drive)
            self._left.append(drive.stream)

    def _read_anew(self, drive: Drive, after: float = 0.0) -> None:
        self._resting.busy(drive.stream)
        self.readings.read(drive, after)

    def _drop(self, drive: Drive) -> None:
        """The session is somebody else's: end what runs for it here and forget it."""
        self.forget(drive)
        # They are in the outcome file, for whoever has the session now.
        self.reports.outputs.forget(found.attempt for found in drive.outcomes.values() if found.outcome != "cancelled")
        for key in drive.hand.work.running() if drive.hand.work is not None else ():
            self.reports.bodies.interrupt(key)

    async def drop_all(self) -> None:
        """Nothing here may go on."""
        await self.reports.bodies.interrupt_all()
        for drive in list(self.drives.values()):
            self._drop(drive)

    def forget(self, drive: Drive) -> None:
        """The session has been given back."""
        self.drives.pop(drive.stream, None)
        self.ready.pop(drive.stream, None)
        self._resting.forget(drive.stream)
        self._shares.forget(drive.stream)
        self._contested.discard(drive.stream)

    def left(self) -> list[int]:
        """Sessions that broke, and whose leases are to be given up."""
        return list(self._left)

    def forget_left(self, left: list[int]) -> None:
        """Their leases are given up."""
        self._left = [stream for stream in self._left if stream not in left]

    # --- readings

    def begin_drive(self, leased: LeasedSession, draining: bool) -> None:
        if leased.stream in self.drives:  # lost to somebody who is gone, and nobody noticed
            self._drop(self.drives[leased.stream])
        drive = self.drives[leased.stream] = Drive(
            leased, self.devices, self.around.policies, self.around.profiles, self.reports.printed
        )
        drive.draining = draining
        self._read_anew(drive)

    def _prepared(self, drive: Drive) -> bool:
        """False while the next interaction's plan is read in a thread."""
        self._resting.busy(drive.stream)
        item = drive.actor.wants_preparation()
        if item is None:
            return True
        self.readings.prepare(drive, item)
        return False

    async def _was_read(self, drive: Drive) -> None:
        """What was recorded meanwhile, and nudged in vain, is followed now.

        What is to be read next is begun at once: a turn of all others may come before this session's.
        """
        self._wake()
        await self.follow(drive)
        if drive.stream in self.ready and drive not in self.readings.under_way:
            self._prepared(drive)

    def look_around(self) -> None:
        """Devices and policies; where something has changed, every session looks again at what it can do."""
        reached = {key for key, row in self.devices.items() if row["state"] in REACHED}
        changed = self.around.look(self._loop.time())
        for key in reached:
            if (row := self.devices[key])["state"] not in REACHED:
                self.reports.bodies.lose(
                    key, f"{row['name']} is {row['state']}" + (f": {row['reason']}" if row["reason"] else "")
                )
        if changed:
            self.ready.update(dict.fromkeys(self.drives))

    # --- rest

    def _rest(self, drive: Drive) -> None:
        self._resting.note(drive, self._loop.time())

    def fire_timers(self) -> None:
        self.ready.update(dict.fromkeys(stream for stream in self._resting.due() if stream in self.drives))

    def next_timer(self) -> float:
        """When the next timer or flush is due, by the loop's clock; infinity when none is."""
        return min(self._loop.time() + self._resting.next_in(), self.reports.next_flush())

    def idle(self, linger_s: float) -> list[Drive]:
        """Sessions in which nothing has been under way for so long, and those that are to go."""

        def at_rest(stream: int) -> Drive | None:
            return self.drives.get(stream) if stream not in self.ready else None

        return self._resting.idle(self._loop.time() - linger_s, at_rest)
