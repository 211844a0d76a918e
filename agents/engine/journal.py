"""Group commit: what all sessions of a runner want to record at one moment goes into one transaction.

It works on the raw connection under Django's, in the loop's own thread: a commit takes less time than handing it to a
thread and back. What it must never do there is wait: a database that somebody else is writing to is asked again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.db import connection

from agents import nudges
from agents.clock import now_iso
from agents.records import WAKE, Batch, write
from agents.storage import own, store

RETRY_S = 0.0005
"""Between two attempts to begin while another process writes: SQLite's own back-off is unfair to short waits.

Nothing is left idle between two commits of ours: the time a turn takes to decide is gap enough for other writers."""
RECORDS_A_COMMIT = 1000


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

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A transaction on a raw cursor: committed at the end, undone by any error."""
        await self._begin()
        try:
            yield self.cursor()
        except BaseException:
            self._raw.execute("ROLLBACK")
            raise
        self._raw.execute("COMMIT")
        self.commits += 1

    async def _begin(self) -> None:
        """Begin without ever blocking the loop on another writer."""
        if connection.vendor != "sqlite":
            self._raw.execute("BEGIN")
            return
        while True:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            # The loop's own timers are no finer than a millisecond.
            time.sleep(RETRY_S)  # noqa: ASYNC251
            await asyncio.sleep(0)

    def cursor(self) -> Any:
        return self._raw.cursor()

    def close(self) -> None:
        """Give the connection back to Django."""
        own(None)
        connection.close()

    async def commit(self, batches: list[Batch]) -> tuple[list[Batch], list[Batch]]:
        """Record `batches`: (written, refused). What is written is durable when this returns."""
        async with self.transaction() as cursor:
            written, refused = write(self._store, cursor, batches, wait=len(batches) == 1)
            woken = {session for batch in written for session in batch.woken}
            for session in woken:
                self._store.execute(cursor, WAKE, (self._store.time(now_iso()), session))
        heads = {batch.stream: batch.head + len(batch.written()) for batch in written}
        nudges.send({**dict.fromkeys(woken, 0), **heads})
        return written, refused
