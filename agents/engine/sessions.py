"""The sessions that one runner owns: their turns and commits, their bodies, what is read for them in a thread.

Everything here happens on the runner's loop, but for `Drive.hydrate`, preparations and the ending of orphans, which run in one
reading thread. A session that is being read gets no turn; what is recorded meanwhile is followed afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from django.db import connections

from agents import runtime
from agents.devices.processes import end_attempts
from agents.engine import outcomes
from agents.engine.drive import Drive
from agents.engine.hooks import Hooks
from agents.engine.journal import FATAL, RECORDS_A_COMMIT, Journal
from agents.engine.leases import Leased
from agents.engine.outputs import FLUSH_S, Outputs
from agents.engine.registry import handler
from agents.engine.resting import Resting
from agents.engine.surroundings import Surroundings
from agents.engine.tools import Bodies, Call, Outcome
from agents.errors import AgentsError
from agents.tables import Fields
from agents.transient import is_transient, pause
from agents.turns import Batch

RETRIES = 5
"""Transient faults of a session, and of the preparation of a request, that are tried again..."""
RETRY_S, RETRY_LONGEST_S = 0.1, 5.0
"""...after pauses that double from the first to the longest."""

log = logging.getLogger(__name__)


class Sessions:
    """Owned sessions by their streams. `wake` lets the runner's loop go round; they decide by `clock`."""

    def __init__(self, journal: Journal, folder: Path, runner: int, wake: Callable[[], None], clock: Callable[[], float]):
        self._journal, self._folder, self._wake = journal, folder, wake
        self.drives: dict[int, Drive] = {}
        self.around = Surroundings()
        self.devices = self.around.devices
        self.ready: dict[int, None] = {}
        self.reading: set[Drive] = set()
        self._clock = clock
        self._resting = Resting(clock)
        self._left: list[int] = []
        self._contested: set[int] = set()
        self._bodies = Bodies(self._body_ended)
        self._outcomes = outcomes.OutcomeFile(folder, runner)
        self._outputs = Outputs(journal)
        self._hooks = Hooks()
        self._flush_at = 0.0
        self._flush_wanted = False
        self._tasks: set[asyncio.Task] = set()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reader")

    # `ready`: sessions with something to decide, first come first; `_left`: those that broke and are driven by nobody until
    # they move; `_contested`: those that came second and are now committed alone.

    def begin(self) -> None:
        """On the loop, before anything else."""
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """On the loop, after everything else."""
        for task in self._tasks:
            task.cancel()

    def close(self) -> None:
        self._reader.submit(connections.close_all).result()
        self._reader.shutdown()
        self._hooks.close()
        self._outcomes.close()

    # --- turns

    async def turn(self) -> bool:
        """One turn of every session that has something to decide, and one commit for all; False when none had."""
        batches = self._turns()
        self._flush_outcomes()
        alone = [batch for batch in batches if batch.stream in self._contested]
        for batch in alone:
            await self._commit([batch])
        if others := [batch for batch in batches if batch not in alone]:
            await self._commit(others)
        return bool(batches)

    async def wind_up(self) -> None:
        """Interrupt what still runs and record how it ended."""
        await self._bodies.interrupt_all()
        for drive in self.drives.values():
            for key, outcome in drive.outcomes.items():
                if outcome.outcome == "cancelled":
                    drive.outcomes[key] = Outcome("lost", error="its runner was told to stop", printed=outcome.printed)
        for _ in range(len(self.drives) + 10):
            if await self.turn():
                continue
            if not self.reading:
                break
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if self._outputs:
            await self._outputs.flush()

    def drain(self) -> None:
        """Nothing more starts."""
        for drive in self.drives.values():
            drive.draining = True
            self.ready[drive.stream] = None

    def _turns(self) -> list[Batch]:
        """Batches of the sessions that are ready, up to a commit's size; the others stay ready, first in line."""
        batches: list[Batch] = []
        now, records = self._clock(), 0
        for stream in list(self.ready):
            if records >= RECORDS_A_COMMIT:
                break
            del self.ready[stream]
            drive = self.drives.get(stream)
            if drive is None or drive.busy or drive in self.reading or not self._prepared(drive):
                continue
            try:
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
                records += len(batch.drafts) + sum(map(len, batch.starts.values()))
        return batches

    async def _commit(self, batches: list[Batch]) -> None:
        try:
            done = await self._journal.commit(batches, self._again)
        except FATAL:
            raise
        except Exception as error:  # what one session wants recorded cannot be: the others must not suffer for it
            await self._commit_apart(batches, error)
            return
        for batch in done.refused:
            # Where a lock is held for long the next turn does not wait for it: the other sessions go on in between.
            (self._contested.discard if done.held else self._contested.add)(batch.stream)
            await self._refused(batch)
        for batch in done.written:
            self._contested.discard(batch.stream)
            self._written(batch)
            self._hooks.after(batch)
        if not self._unrecorded():
            self._outcomes.settled()

    def _again(self, batch: Batch) -> Batch | None:
        """Somebody came first: what the session decides now that nobody else can."""
        drive = self.drives[batch.stream]
        drive.refused(batch)
        self._after_follow(drive)
        if drive.lost or drive.stale or not self._prepared(drive):
            return None
        fresh, _ = drive.turn(self._clock(), locked=True)
        return fresh

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
            self.devices[device]["used"] = self.devices[device]["max_concurrent"] - batch.free[device]
        for call in calls:
            call.on_output = partial(self._printed, call)
            self._bodies.start(call)
        for key in interrupts:
            self._bodies.interrupt(key)
        self.ready[batch.stream] = None

    async def _refused(self, batch: Batch) -> None:
        drive = self.drives[batch.stream]
        try:
            drive.refused(batch)
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)

    # --- bodies

    def _body_ended(self, call: Call, outcome: Outcome) -> None:
        """Told for every body, on the loop. The outcome is in the file before anything is decided about it."""
        printed = outcome.printed = self._outputs.end(call.attempt)
        drive = self.drives.get(call.session)
        if drive is None or drive.work is None or (drive.is_new and outcome.outcome == "cancelled"):
            return  # cancelled, or begun under a lease that was lost: the end of its body changes nothing any more
        if printed > call.printed:
            drive.note("output_ended", attempt_id=call.attempt, characters=printed)
        if outcome.outcome != "cancelled":  # an interrupted body's end is decided already, or it is lost
            outcome = self._outcomes.add(call.key, outcome)
        drive.outcomes[call.key] = outcome
        self.ready[call.session] = None
        if not self._flush_wanted:
            self._flush_wanted = True
            self._loop.call_soon(self._flush_outcomes)
        self._wake()

    def _flush_outcomes(self) -> None:
        self._flush_wanted = False
        self._outcomes.flush()

    def _printed(self, call: Call, text: str) -> None:
        if not self._outputs:
            self._flush_at = self._loop.time() + FLUSH_S
            self._wake()
        if self._outputs.add(call.attempt, text, call.printed) and call.session in self.drives:
            self.drives[call.session].note("output_started", attempt_id=call.attempt)
            self.ready[call.session] = None

    def _unrecorded(self) -> bool:
        return any(drive.outcomes for drive in self.drives.values())

    def forget_outcomes(self) -> None:
        """The file is needed no more, unless something in it was never recorded."""
        if not self._unrecorded():
            self._outcomes.remove()

    async def flush_outputs(self, now: float) -> None:
        """Write what bodies have printed, when it is time."""
        if self._outputs and now >= self._flush_at:
            await self._outputs.flush()

    # --- what others record, and what breaks

    async def follow(self, drive: Drive) -> None:
        if drive in self.reading or drive.busy or self.drives.get(drive.stream) is not drive:
            return
        try:
            drive.follow()
        except FATAL:
            raise
        except Exception as error:  # as in `_turns`
            self._broke(drive, error)
        else:
            self._after_follow(drive)
        self._wake()

    def follow_soon(self, drive: Drive) -> None:
        self._spawn(self.follow(drive))

    def _after_follow(self, drive: Drive) -> None:
        if drive.lost:
            self._drop(drive)
        elif drive.stale:
            self._read_anew(drive)
        else:
            self.ready[drive.stream] = None

    def _broke(self, drive: Drive, error: Exception) -> None:
        """A bug in one session. It is read anew; then its actor ends in Error; then nobody drives it until it moves."""
        log.error("session %s broke", drive.stream, exc_info=error)
        if is_transient(error) and drive.retries < RETRIES:
            drive.retries += 1
            drive.forget()
            self._read_anew(drive, after=pause(drive.retries, drive.stream, RETRY_S, RETRY_LONGEST_S))
        elif drive.broke(error):
            self._read_anew(drive)
        else:
            self._drop(drive)
            self._left.append(drive.stream)

    def _read_anew(self, drive: Drive, after: float = 0.0) -> None:
        if drive not in self.reading:
            self.reading.add(drive)  # at once: no turn may come before the reading begins
            self._resting.busy(drive.stream)
            self._spawn(self._hydrate(drive, after))

    def _drop(self, drive: Drive) -> None:
        """The session is somebody else's: end what runs for it here and forget it."""
        self.forget(drive)
        for key in drive.work.running() if drive.work is not None else ():
            self._bodies.interrupt(key)

    async def drop_all(self) -> None:
        """Nothing here may go on."""
        await self._bodies.interrupt_all()
        for drive in list(self.drives.values()):
            self._drop(drive)

    def forget(self, drive: Drive) -> None:
        """The session has been given back."""
        self.drives.pop(drive.stream, None)
        self.ready.pop(drive.stream, None)
        self._resting.forget(drive.stream)
        self._contested.discard(drive.stream)

    def left(self) -> list[int]:
        """Sessions that broke, and whose leases are to be given up."""
        return list(self._left)

    def forget_left(self, left: list[int]) -> None:
        """Their leases are given up."""
        self._left = [stream for stream in self._left if stream not in left]

    # --- readings

    def take_up(self, leased: Leased, draining: bool) -> None:
        if leased.stream in self.drives:  # lost to somebody who is gone, and nobody noticed
            self._drop(self.drives[leased.stream])
        drive = self.drives[leased.stream] = Drive(leased, self.devices, self.around.policies, self._outputs.tail)
        drive.draining = draining
        self._read_anew(drive)

    def _prepared(self, drive: Drive) -> bool:
        """False while the next interaction's plan is read in a thread."""
        self._resting.busy(drive.stream)
        item = drive.actor.wants_preparation()
        if item is None:
            return True
        self.reading.add(drive)
        self._spawn(self._prepare(drive, item))
        return False

    async def _prepare(self, drive: Drive, item: Fields) -> None:
        since = self._loop.time()
        for made in count(1):
            try:
                prepared = await self.in_thread(handler().prepare, item["payload"])
                break
            except Exception as error:
                if not is_transient(error) or made > RETRIES:  # the interaction's creation fails with it
                    log.error("session %s: its request cannot be prepared", drive.stream, exc_info=error)
                    prepared = AgentsError(f"{type(error).__name__}: {error}")
                    break
            await asyncio.sleep(pause(made, drive.stream, RETRY_S, RETRY_LONGEST_S))
        drive.prepared[item["id"]] = prepared, self._loop.time() - since
        await self._read(drive)

    async def _hydrate(self, drive: Drive, after: float) -> None:
        """Read a session's rows (again); after a take-over end what an earlier owner left running."""
        try:
            await asyncio.sleep(after)
            await self.in_thread(drive.hydrate)
            orphans = {key: attempt for key, attempt in drive.orphans().items() if key not in drive.outcomes}
            if drive.is_new:  # what of it runs here runs under a lease that was lost
                await self._bodies.interrupt_all(orphans)
                drive.is_new = False
            orphans = {key: attempt for key, attempt in orphans.items() if key not in self._bodies}
            if orphans:
                self._flush_outcomes()
                await self.in_thread(self._end_orphans, drive, orphans)
        except Exception as error:  # as in `_turns`
            self.reading.discard(drive)
            self._broke(drive, error)
            return
        await self._read(drive)

    def _end_orphans(self, drive: Drive, orphans: dict[int, int]) -> None:
        """Their processes are ended first; then what they left in an outcome file counts, and the others are lost."""
        end_attempts(runtime.instance(), set(orphans.values()))
        left: dict[int, Outcome] = {}
        for path in self._folder.glob("outcomes-*.jsonl"):
            left.update(outcomes.read(path))
        for key in orphans:
            drive.outcomes[key] = left.get(key) or Outcome("lost", error="its runner ended before it did")

    async def _read(self, drive: Drive) -> None:
        """The reading has ended: what was recorded meanwhile, and nudged in vain, is followed now."""
        self.reading.discard(drive)
        self._wake()
        await self.follow(drive)

    def look_around(self) -> None:
        """Devices and policies; where something has changed, every session looks again at what it can do."""
        if self.around.look(self._loop.time()):
            self.ready.update(dict.fromkeys(self.drives))

    async def in_thread(self, function, *arguments):
        return await self._loop.run_in_executor(self._reader, function, *arguments)

    def _spawn(self, coroutine) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- rest

    def _rest(self, drive: Drive) -> None:
        self._resting.note(drive, self._loop.time())

    def fire_timers(self) -> None:
        self.ready.update(dict.fromkeys(stream for stream in self._resting.due() if stream in self.drives))

    def next_timer(self) -> float:
        """When the next timer or flush is due, by the loop's clock; infinity when none is."""
        return min(self._loop.time() + self._resting.next_in(), self._flush_at if self._outputs else math.inf)

    def idle(self, linger_s: float) -> list[Drive]:
        """Sessions in which nothing has been under way for so long, and those that are to go."""

        def at_rest(stream: int) -> Drive | None:
            return self.drives.get(stream) if stream not in self.ready else None

        return self._resting.idle(self._loop.time() - linger_s, at_rest)
