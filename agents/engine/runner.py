"""The runner: one loop that owns many sessions, decides for them in turns and records their decisions in groups.

It is the body of a django-q2 job (see agents.jobs) and lives until it is told to end: by its row, SIGTERM, or the death
of its parent. Then it takes no new session, lets what runs end for DRAIN_S, interrupts the rest and gives everything back.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import math
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.db import connections, transaction
from django.utils import timezone

from agents import ids, nudges, runtime
from agents.devices.processes import attempts_at_work, end_attempts
from agents.engine import commands, outcomes
from agents.engine.drive import Drive
from agents.engine.journal import FATAL, RECORDS_A_COMMIT, Journal
from agents.engine.leases import RENEW_S, Leased, Leases, Locked
from agents.engine.outputs import FLUSH_S, Outputs
from agents.engine.registry import handler
from agents.engine.tools import Bodies, Call, Outcome
from agents.errors import AgentsError
from agents.models import Lease
from agents.models import Runner as RunnerRow
from agents.storage import cursor, store
from agents.tables import TABLES, Fields
from agents.turns import Batch

DRAIN_S = float(os.environ.get("ORRERY_DRAIN_S", "30"))
"""Running steps may end for so long once the runner is told to stop."""
LOOK_S = nudges.LOOK_S
BURY_S = 0.25
"""Between two looks for dead runners."""
DEVICES_S = 1.0
"""Between two readings of all devices."""
LINGER_S = 1.0
"""A session with nothing to do is kept so long before it is given back."""
SESSIONS = 5000
"""Sessions one runner owns at most."""
OUTCOME_FILES_S = 3600.0
"""Outcome files of runners that are gone are kept so long."""

log = logging.getLogger(__name__)


class Runner:
    """One process's engine. `run` returns when it was told to stop and everything has been given back."""

    def __init__(self) -> None:
        self._folder = runtime.runtime_dir()
        self._parent = os.getppid()
        with transaction.atomic():  # nobody sees the row before its lock is held, or it would be taken for dead
            self.row = RunnerRow.objects.create(
                host=runtime.host(), pid=os.getpid(), pid_start=runtime.process_start(), files=str(self._folder),
                started_at=timezone.now(), renewed_at=timezone.now(),
            )  # fmt: skip
            self._locked = Locked(self._folder, self.row.pk)
        self._outcomes = outcomes.OutcomeFile(self._folder, self.row.pk)
        self.journal = Journal()
        self._leases = Leases(self.journal, self.row.pk)
        self._outputs = Outputs(self.journal)
        self.drives: dict[int, Drive] = {}
        self._ready: dict[int, None] = {}
        self._timers: list[tuple[float, int]] = []
        self._idle_since: dict[int, float] = {}
        self._devices: dict[int, Fields] = {}
        self._bodies = Bodies(self._body_ended)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._hydrating: set[Drive] = set()
        self._noted: dict[int, float] = {}
        self._left: list[int] = []
        self._tasks: set[asyncio.Task] = set()
        self._stop_at: float | None = None
        self._flush_wanted = False
        self._next = dict.fromkeys(("look", "bury", "renew", "devices", "outputs"), 0.0)

    def run(self) -> None:
        """Until told to stop."""
        forget_old_outcomes(self._folder)
        try:
            asyncio.run(self._main())
            if not self._unrecorded():
                self._outcomes.remove()
        finally:
            self._reader.submit(connections.close_all).result()
            self._reader.shutdown()
            self.journal.close()
            with transaction.atomic():  # whoever looks for the leases of the dead does not look at one that has ended
                Lease.objects.filter(runner=self.row).update(runner=None, wake_at=timezone.now())
                RunnerRow.objects.filter(pk=self.row.pk).update(state="ENDED", renewed_at=timezone.now())
            self._outcomes.close()
            self._locked.close()

    # --- the loop

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGTERM, self.stop)
        listener = nudges.Listener(self._nudged)
        await listener.start()
        try:
            while not self._done():
                await self._cycle()
            await self._end()
        finally:
            listener.stop()
            for task in self._tasks:
                task.cancel()

    async def _cycle(self) -> None:
        """Wait for something to do, then one turn of every session that has something to decide."""
        if not self._ready:
            await self._sleep()
        if self._leases.fenced:  # asked before the chores renew the leases
            await self._fenced()
            return
        await self._chores()
        batches = self._turns()
        self._flush_outcomes()
        if batches:
            await self._commit(batches)
        await asyncio.sleep(0)  # bodies get their turn, however much there is to record

    async def _sleep(self) -> None:
        """Until something wakes the loop, or the next chore or timer is due."""
        self._wake.clear()
        until = min(self._next[name] for name in ("look", "renew"))
        if self._timers:
            until = min(until, self._loop.time() + self._timers[0][0] - time.time())
        if self._outputs:
            until = min(until, self._next["outputs"])
        handle = self._loop.call_at(max(until, self._loop.time()), self._wake.set)
        await self._wake.wait()
        handle.cancel()

    def _turns(self) -> list[Batch]:
        """Batches of the sessions that are ready, up to a commit's size; the others stay ready, first in line."""
        batches: list[Batch] = []
        now, records = time.time(), 0
        for stream in list(self._ready):
            if records >= RECORDS_A_COMMIT:
                break
            del self._ready[stream]
            drive = self.drives.get(stream)
            if drive is None or drive.busy or drive in self._hydrating or not self._prepared(drive):
                continue
            try:
                batch, more = drive.turn(now)
            except Exception as error:  # a bug in one session must not end the others
                self._broke(drive, error)
                continue
            if more:
                self._ready[stream] = None
            if batch is None:
                self._rest(drive)
            else:
                batches.append(batch)
                records += len(batch.drafts) + sum(map(len, batch.starts.values()))
        return batches

    async def _commit(self, batches: list[Batch]) -> None:
        try:
            written, refused = await self.journal.commit(batches)
        except FATAL:
            raise
        except Exception as error:  # what one session wants recorded cannot be: the others must not suffer for it
            await self._commit_apart(batches, error)
            return
        for batch in refused:
            await self._refused(batch)
        for batch in written:
            self._written(batch)
        if not self._unrecorded():
            self._outcomes.settled()

    async def _commit_apart(self, batches: list[Batch], error: Exception) -> None:
        if len(batches) == 1:
            self._broke(self.drives[batches[0].stream], error)
        else:
            for batch in batches:
                await self._commit([batch])

    def _written(self, batch: Batch) -> None:
        drive = self.drives[batch.stream]
        try:
            calls, interrupts = drive.written(batch)
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
            return
        for device in batch.free:
            self._devices[device]["used"] = self._devices[device]["max_concurrent"] - batch.free[device]
        for call in calls:
            call.on_output = partial(self._printed, call)
            self._bodies.start(call)
        for attempt in interrupts:
            self._bodies.interrupt(attempt)
        self._ready[batch.stream] = None

    async def _refused(self, batch: Batch) -> None:
        drive = self.drives[batch.stream]
        try:
            drive.refused(batch)
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)

    def _after_follow(self, drive: Drive) -> None:
        if drive.lost:
            self._drop(drive)
        elif drive.stale:
            self._read_anew(drive)
        else:
            self._ready[drive.stream] = None

    def _broke(self, drive: Drive, error: Exception) -> None:
        """A bug in one session. It is read anew; then its actor ends in Error; then nobody drives it until it moves."""
        log.error("session %s broke", drive.stream, exc_info=error)
        if drive.broke(error):
            self._read_anew(drive)
        else:
            self._drop(drive)
            self._left.append(drive.stream)

    def _read_anew(self, drive: Drive) -> None:
        if drive not in self._hydrating:
            self._hydrating.add(drive)  # at once: no turn may come before the reading begins
            self._idle_since.pop(drive.stream, None)
            self._spawn(self._hydrate(drive))

    def _unrecorded(self) -> bool:
        return any(drive.outcomes for drive in self.drives.values())

    # --- bodies

    def _body_ended(self, call: Call, outcome: Outcome) -> None:
        """Told for every body, on the loop. The outcome is in the file before anything is decided about it."""
        printed = self._outputs.end(call.attempt)
        drive = self.drives.get(call.session)
        if drive is None or drive.work is None:
            return  # cancelled: the end of its body changes nothing any more
        if printed:
            drive.note("output_ended", attempt_id=call.attempt, characters=printed)
        if outcome.outcome != "cancelled":  # an interrupted body's end is decided already, or it is lost
            outcome = self._outcomes.add(call.attempt, outcome)
        drive.outcomes[call.attempt] = outcome
        self._ready[call.session] = None
        if not self._flush_wanted:
            self._flush_wanted = True
            self._loop.call_soon(self._flush_outcomes)
        self._wake.set()

    def _flush_outcomes(self) -> None:
        self._flush_wanted = False
        self._outcomes.flush()

    def _printed(self, call: Call, text: str) -> None:
        if not self._outputs:
            self._next["outputs"] = self._loop.time() + FLUSH_S
            self._wake.set()
        if self._outputs.add(call.attempt, text) and call.session in self.drives:
            self.drives[call.session].note("output_started", attempt_id=call.attempt)
            self._ready[call.session] = None

    # --- sessions

    def _nudged(self, stream: int, head: int) -> None:
        """Somebody recorded something: in a session of ours we look at it, else we look who needs a runner."""
        drive = self.drives.get(stream)
        if drive is None or not head:
            self._next["look"] = 0.0
            if stream in self._devices:
                self._next["devices"] = 0.0
            self._wake.set()
        elif head > drive.head and not drive.busy:
            self._spawn(self._follow(drive))

    async def _follow(self, drive: Drive) -> None:
        if drive in self._hydrating or drive.busy or self.drives.get(drive.stream) is not drive:
            return
        try:
            drive.follow()
        except FATAL:
            raise
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)
        self._wake.set()

    def _rest(self, drive: Drive) -> None:
        """Nothing to decide now: note when it has, and since when it is idle."""
        wake = drive.wake_at()
        if wake is not None and wake < self._noted.get(drive.stream, math.inf):
            self._noted[drive.stream] = wake
            heapq.heappush(self._timers, (wake, drive.stream))
        if drive.is_idle():
            self._idle_since.setdefault(drive.stream, self._loop.time())

    def _prepared(self, drive: Drive) -> bool:
        """False while the next interaction's plan is read in a thread."""
        self._idle_since.pop(drive.stream, None)
        item = drive.actor.wants_preparation()
        if item is None:
            return True
        self._hydrating.add(drive)
        self._spawn(self._prepare(drive, item))
        return False

    async def _prepare(self, drive: Drive, item: Fields) -> None:
        try:
            drive.prepared[item["id"]] = await self._in_thread(handler().prepare, item["payload"])
        except Exception as error:  # the interaction's creation fails with it
            log.error("session %s: its request cannot be prepared", drive.stream, exc_info=error)
            drive.prepared[item["id"]] = AgentsError(f"{type(error).__name__}: {error}")
        await self._read(drive)

    async def _read(self, drive: Drive) -> None:
        """The reading has ended: what was recorded meanwhile, and nudged in vain, is followed now."""
        self._hydrating.discard(drive)
        self._wake.set()
        await self._follow(drive)

    async def _hydrate(self, drive: Drive) -> None:
        """Read a session's rows (again); after a take-over end what an earlier owner left running."""
        try:
            await self._in_thread(drive.hydrate)
            orphans = drive.orphans() - drive.outcomes.keys()
            if drive.is_new:  # what of it runs here runs under a lease that was lost
                await self._bodies.interrupt_all(orphans)
                drive.is_new = False
            orphans = {attempt for attempt in orphans if attempt not in self._bodies}
            if orphans:
                self._flush_outcomes()
                await self._in_thread(self._end_orphans, drive, orphans)
        except Exception as error:  # as in `_turns`
            self._hydrating.discard(drive)
            self._broke(drive, error)
            return
        await self._read(drive)

    def _end_orphans(self, drive: Drive, orphans: set[int]) -> None:
        """Their processes are ended first; then what they left in an outcome file counts, and the others are lost."""
        end_attempts(runtime.instance(), orphans)
        left: dict[int, Outcome] = {}
        for path in self._folder.glob("outcomes-*.jsonl"):
            left.update(outcomes.read(path))
        for attempt in orphans:
            drive.outcomes[attempt] = left.get(attempt) or Outcome("lost", error="its runner ended before it did")

    async def _in_thread(self, function, *arguments):
        return await self._loop.run_in_executor(self._reader, function, *arguments)

    def _spawn(self, coroutine) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _drop(self, drive: Drive) -> None:
        """The session is somebody else's: end what runs for it here and forget it."""
        self.drives.pop(drive.stream, None)
        self._noted.pop(drive.stream, None)
        self._ready.pop(drive.stream, None)
        self._idle_since.pop(drive.stream, None)
        for attempt in drive.work.running() if drive.work is not None else ():
            self._bodies.interrupt(attempt)

    # --- chores

    async def _chores(self) -> None:
        now = self._loop.time()
        if now >= self._next["renew"]:
            self._next["renew"] = now + RENEW_S
            told = await self._leases.renew()
            if self._stop_at is None and (told or os.getppid() != self._parent):
                self.stop()
        if now >= self._next["devices"]:
            self._next["devices"] = now + DEVICES_S
            self._read_devices()
        if now >= self._next["look"]:
            self._next["look"] = now + LOOK_S
            await self._look()
        if self._outputs and now >= self._next["outputs"]:
            await self._outputs.flush()
        self._fire_timers()

    async def _look(self) -> None:
        """Who wants somebody to look: the guarantee behind the nudges."""
        now = self._loop.time()
        if now >= self._next["bury"] and self._stop_at is None:
            self._next["bury"] = now + BURY_S
            if dead := self._leases.dead():
                log.warning("runner %s takes over from %s", self.row.pk, sorted(dead))
                await self._in_thread(end_sessions, set().union(*dead.values()))
                await self._leases.bury(dead)
        if self._left:
            left, self._left = self._left, []
            await self._leases.leave(left)
        mine, nobodys = self._leases.due()
        if mine:
            await self._leases.seen(mine)
            for stream in mine:
                if stream in self.drives:
                    self.drives[stream].woken = True
                    await self._follow(self.drives[stream])
        if nobodys and self._stop_at is None and len(self.drives) < SESSIONS:
            for leased in await self._leases.take(nobodys):
                self._take_up(leased)
        await self._give_back_idle()

    def _take_up(self, leased: Leased) -> None:
        if leased.stream in self.drives:  # lost to somebody who is gone, and nobody noticed
            self._drop(self.drives[leased.stream])
        drive = self.drives[leased.stream] = Drive(leased, self._devices)
        drive.draining = self._stop_at is not None
        self._read_anew(drive)

    def _fire_timers(self) -> None:
        now = time.time()
        while self._timers and self._timers[0][0] <= now:
            at, stream = heapq.heappop(self._timers)
            if self._noted.get(stream) == at:
                del self._noted[stream]
            if stream in self.drives:
                self._ready[stream] = None

    async def _give_back_idle(self) -> None:
        linger = 0.0 if self._stop_at is not None else LINGER_S
        long_ago = self._loop.time() - linger
        for stream, since in list(self._idle_since.items()):
            drive = self.drives.get(stream)
            if drive is None or not drive.is_idle() or stream in self._ready:
                self._idle_since.pop(stream)
            elif since <= long_ago or drive.draining:
                await self._give_back(drive)

    async def _give_back(self, drive: Drive) -> None:
        self._idle_since.pop(drive.stream, None)
        wake = time.time() if drive.draining else drive.wake_at()
        if await self._leases.give_back(drive.stream, drive.head, drive.token, drive.unused(), wake):
            self.drives.pop(drive.stream, None)
            self._noted.pop(drive.stream, None)
        else:
            await self._follow(drive)

    def _read_devices(self) -> None:
        """All devices; where one is new or has changed, every session looks again at what it can start."""
        table = TABLES["device"]
        columns = (*table.columns, ("used", "int"), ("queued", "int"))
        names = [name for name, _ in columns]
        changed = False
        for values in store().select(cursor(), table.db_table, columns, "id > %s", (0,)):
            row, known = dict(zip(names, values, strict=True)), self._devices.setdefault(values[0], {})
            changed |= any(known.get(name) != row[name] for name, _ in table.columns)
            known.update(row)
        if changed:
            self._ready.update(dict.fromkeys(self.drives))

    # --- ending

    def stop(self) -> None:
        """Take nothing new, let running steps end; told twice, interrupt them at once."""
        if self._stop_at is not None:
            self._stop_at = 0.0
        else:
            self._stop_at = time.monotonic() + DRAIN_S
            for drive in self.drives.values():
                drive.draining = True
                self._ready[drive.stream] = None
        self._next["look"] = 0.0
        self._wake.set()

    def _done(self) -> bool:
        if self._stop_at is None:
            return False
        return not self.drives or time.monotonic() > self._stop_at

    async def _end(self) -> None:
        """Interrupt what still runs, record how it ended, give everything back."""
        await self._bodies.interrupt_all()
        for drive in self.drives.values():
            for attempt, outcome in drive.outcomes.items():
                if outcome.outcome == "cancelled":
                    drive.outcomes[attempt] = Outcome("lost", error="its runner was told to stop")
        self._outcomes.flush()
        for _ in range(len(self.drives) + 10):
            if batches := self._turns():
                await self._commit(batches)
            elif self._hydrating:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                break
        if self._outputs:
            await self._outputs.flush()
        for drive in list(self.drives.values()):
            drive.draining = True
            await self._give_back(drive)

    async def _fenced(self) -> None:
        """Not renewed for too long: others may take over, so nothing here may go on."""
        log.error("runner %s could not renew its leases and lets go of everything", self.row.pk)
        await self._bodies.interrupt_all()
        for drive in list(self.drives.values()):
            self._drop(drive)
        await self._leases.release()
        await self._leases.renew()


def end_sessions(sessions: set[int]) -> None:
    """End whatever works on this host for sessions whose runner is dead, also what it had been told to interrupt."""
    instance = runtime.instance()
    end_attempts(instance, {attempt for attempt in attempts_at_work(instance) if ids.stream_of(attempt) in sessions})


def forget_old_outcomes(folder) -> None:
    """Remove outcome files that nobody can need any more."""
    for path in folder.glob("outcomes-*.jsonl"):
        with contextlib.suppress(FileNotFoundError):  # another runner does the same
            if time.time() - path.stat().st_mtime > OUTCOME_FILES_S:
                path.unlink()


__all__ = ["Runner", "commands"]
