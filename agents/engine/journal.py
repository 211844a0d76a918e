"""Group commit: what all sessions of a runner want to record at one moment goes into one transaction.

It works on the raw connection under Django's, in the loop's own thread: a commit takes less time than handing it to a
thread and back. What it must never do there is wait: a database that somebody else is writing to is asked again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import psycopg
from django.db import connection

from agents import nudges
from agents.clock import now_iso
from agents.records import WAKE, write
from agents.storage import cursor, own, store
from agents.turns import Batch

RETRY_S = 0.0005
"""Between two attempts to begin while another process writes: SQLite's own back-off is unfair to short waits.

Nothing is left idle between two commits of ours: the time a turn takes to decide is gap enough for other writers."""
RECORDS_A_COMMIT = 1000
FATAL = (sqlite3.OperationalError, psycopg.OperationalError)
"""The database itself is in trouble: no session is to blame, and the runner ends."""
PREPARE_AFTER = 3
"""Uses of a statement after which PostgreSQL keeps its plan."""

Again = Callable[[Batch], Batch | None]
"""Decides anew what a refused batch was about; None: there is nothing to record now."""


class Journal:
    """The one writer of a runner."""

    def __init__(self) -> None:
        connection.ensure_connection()
        self._store = store()
        self._raw = connection.connection
        own(self._raw)
        self.commits = 0
        if connection.vendor == "sqlite":
            self._raw.execute("PRAGMA busy_timeout = 0")
        else:
            self._raw.prepare_threshold = PREPARE_AFTER

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A transaction on a raw cursor: committed at the end, undone by any error."""
        own_cursor = cursor()
        await self._begin(own_cursor)
        try:
            yield own_cursor
            own_cursor.execute("COMMIT")
        except BaseException:
            self._raw.rollback()
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

    def cursor(self) -> Any:
        return cursor()

    def close(self) -> None:
        """Give the connection back to Django."""
        own(None)
        connection.close()

    async def commit(self, batches: list[Batch], again: Again | None = None) -> tuple[list[Batch], list[Batch]]:
        """Record `batches`: (written, refused). What is written is durable when this returns.

        A single batch that is refused is decided `again`, if that is given, under the lock that it has by then: whoever
        writes all the time cannot come first twice.
        """
        with self._pipeline():
            async with self.transaction() as own_cursor:
                written, refused = write(self._store, own_cursor, batches, wait=len(batches) == 1)
                if again is not None and refused and len(batches) == 1:
                    fresh = again(refused[0])
                    written, refused = write(self._store, own_cursor, [fresh]) if fresh is not None else ([], [])
                woken = {session for batch in written for session in batch.woken}
                for session in sorted(woken):  # in order, as everybody locks leases
                    self._store.execute(own_cursor, WAKE, (self._store.time(now_iso()), session))
                heads = {batch.stream: batch.head + len(batch.written()) for batch in written}
                nudges.announce(own_cursor, dict.fromkeys(woken, 0) | heads)
        nudges.send(dict.fromkeys(woken, 0) | heads)
        return written, refused

    def _pipeline(self) -> AbstractContextManager[Any]:
        """On PostgreSQL statements whose results nobody reads share one round trip with the commit."""
        return nullcontext() if connection.vendor == "sqlite" else self._raw.pipeline()
