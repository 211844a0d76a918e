"""Group commit: what all sessions of a runner want to record at one moment goes into one transaction.

It works on the raw connection under Django's, in the loop's own thread: a commit takes less time than handing it to a
thread and back. What it must never do there is wait: a database that somebody else is writing to is asked again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

from agents.clock import now_iso
from agents.streams import nudges
from agents.streams.door import WAKE, one_trip, write_batches
from agents.streams.garbage import nothing_collected
from agents.streams.statements import RawCursor, current_store, raw_cursor, use_connection
from agents.streams.turn import Batch

RETRY_S = 0.0005
"""Between two attempts to begin while another process writes: SQLite's own back-off is unfair to short waits.

Nothing is left idle between two commits of ours: the time a turn takes to decide is gap enough for other writers."""
RECORDS_A_COMMIT = 250
"""More come with the next commit: whoever comes meanwhile waits for this one."""
HELD_S = 0.2
"""A row that somebody else has locked is waited for so long on PostgreSQL: its owner may have stopped while it held it."""
FATAL = (sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError)
"""The database itself is in trouble: no session is to blame. The runner outlasts an outage, and ends for anything else."""
END_OLD = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
PREPARE_AFTER = 3
"""Uses of a statement after which PostgreSQL keeps its plan."""

ONE_PLAN = ("plan_cache_mode = force_generic_plan", "enable_seqscan = off", "jit = off")
"""PostgreSQL would plan what takes an array anew each time, a sixth of a short commit. A plan that is kept must not be one for
the few rows that there were at first, so that tables are never read from end to end; to that the second and third belong."""

Again = Callable[[Batch], Batch | None]
"""Decides anew what a refused batch was about; None: there is nothing to record now."""

Also = Callable[[Any, list[Batch]], None]
"""Writes on a cursor what belongs into the same transaction as these batches."""


class CommitOutcome(NamedTuple):
    """What became of batches. `held`: all are refused because a lock was held, not because somebody came first."""

    written: list[Batch]
    refused: list[Batch]
    held: bool


class LockHeld(Exception):
    """Somebody has held a lock for longer than HELD_S: nothing is recorded, and it is to be asked for again."""


class Journal:
    """The one writer of a runner."""

    def __init__(self) -> None:
        self._store = current_store()
        self._connection = connections[DEFAULT_DB_ALIAS]
        self._connection.inc_thread_sharing()  # a lost one is replaced in another thread, as that may take its time
        self._backend: tuple[Any, ...] = ()
        self.commits = 0
        self.open()
        self.use()

    def open(self) -> None:
        """Connect, again where a connection was lost; in any thread. Raises the database's errors.

        What the server still believes of the lost one is ended: it may hold rows and locks. SQLite's is never lost.
        """
        if self._backend and self._raw.closed:
            self._connection.close()
        self._connection.ensure_connection()
        raw = self._connection.connection
        if connection.vendor == "sqlite":
            raw.execute("PRAGMA busy_timeout = 0")
            return
        if self._backend and self._backend[0] != raw.info.backend_pid:
            raw.execute(END_OLD, self._backend)
        raw.prepare_threshold = PREPARE_AFTER
        for setting in ONE_PLAN:
            raw.execute(f"SET {setting}")
        raw.execute(f"SET lock_timeout = {int(HELD_S * 1000)}")
        started = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        self._backend = raw.execute(started).fetchone()

    def use(self) -> None:
        """From now on this thread's statements go over the connection that was opened."""
        self._raw = self._connection.connection
        use_connection(self._raw)

    @asynccontextmanager
    async def transaction(self, *, pipelined: bool = False) -> AsyncIterator[Any]:
        """A transaction on a raw cursor: committed at the end, undone by any error. Raises LockHeld.

        `pipelined`: on PostgreSQL statements whose results nobody reads share one round trip with the commit.
        """
        own_cursor = raw_cursor()
        try:
            with one_trip(self._raw) if pipelined else nullcontext():
                await self._begin(own_cursor)
                with nothing_collected():  # others wait for what is locked
                    yield own_cursor
                    own_cursor.execute("COMMIT")
        except BaseException as error:  # what the last statements of a pipeline met is known at its end only
            with suppress(*FATAL):  # a lost connection has nothing to undo; the error that said so is the one to tell
                self._raw.rollback()
            if isinstance(error, psycopg.errors.LockNotAvailable):
                raise LockHeld(str(error)) from error
            raise
        self.commits += 1

    async def _begin(self, own_cursor: Any) -> None:
        """Begin without ever blocking the loop on another writer."""
        if connection.vendor != "sqlite":
            own_cursor.execute("BEGIN")
            return
        while True:
            try:
                own_cursor.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            # The loop's own timers are no finer than a millisecond.
            time.sleep(RETRY_S)  # noqa: ASYNC251
            await asyncio.sleep(0)

    def cursor(self) -> RawCursor:
        return raw_cursor()

    def close(self) -> None:
        """Give the connection back to Django."""
        use_connection(None)
        self._connection.close()
        self._connection.dec_thread_sharing()

    async def commit(self, batches: list[Batch], again: Again | None = None, also: Also | None = None) -> CommitOutcome:
        """Record `batches`, and what `also` writes with them. What is written is durable when this returns.

        A single batch that is refused is decided `again`, if that is given, under the lock that it has by then: whoever
        writes all the time cannot come first twice.
        """
        asked = batches
        try:
            async with self.transaction(pipelined=True) as own_cursor:
                written, refused = write_batches(self._store, own_cursor, asked, wait=len(asked) == 1)
                if again is not None and refused and len(asked) == 1:
                    fresh = again(refused[0])
                    asked = [fresh] if fresh is not None else []
                    written, refused = write_batches(self._store, own_cursor, asked)
                if also is not None and written:
                    also(own_cursor, written)
                woken = {session for batch in written for session in batch.woken}
                for session in sorted(woken):  # in order, as everybody locks leases
                    self._store.execute(own_cursor, WAKE, (self._store.time(now_iso()), session))
                heads = {batch.stream: batch.head + len(batch.written()) for batch in written}
                nudges.announce_heads(own_cursor, dict.fromkeys(woken, 0) | heads)
        except LockHeld:
            return CommitOutcome([], asked, held=True)
        nudges.send_nudge(dict.fromkeys(woken, 0) | heads)
        return CommitOutcome(written, refused, held=False)
