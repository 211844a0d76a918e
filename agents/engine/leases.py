"""Who owns which session, and who is dead.

A lease names its runner; the stream's token fences whoever had it before. A runner is dead when its lock can be taken
(a file lock on the same machine, an advisory lock on PostgreSQL), else, where another installation has started it, when it has
not renewed its row for LEASE_S. One of this installation that stands still is ended by its watchdog (`project.up.watchdog`).

A lost lease is noticed in three ways. A runner that has not renewed for FENCE_S lets go of everything (`fenced`). Others take
leases from the dead (`dead`, `bury`). One that lives on has its next batch refused, and finds another token
(`agents.engine.drives.drive`, `follow`).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from django.db import connection

from agents.clock import to_iso
from agents.devices.host import boot_identity, runtime_dir
from agents.engine.journal import Journal, LockHeld
from agents.streams.statements import current_store, raw_cursor

RENEW_S = 3.0
"""Between two renewals of a runner's row, from the loop that works."""
FENCE_S = 6.0
"""A runner that has not renewed for so long starts nothing and interrupts what runs."""
LEASE_S = 10.0
"""A runner elsewhere that has not renewed for so long has lost its leases."""
ALONE_S = 1.0
"""A runner that has lost its connection, and so its advisory lock, goes on so long where runners of other hosts live..."""
LOCK_FREE_S = 2.0
"""...and those believe it dead when its lock has been free for so long, if they have lived for LEASE_S themselves."""
ROWS_AHEAD = 64
"""Row numbers that come with a lease."""
ADVISORY = 0x0E77E7
"""First key of the advisory locks of runners on PostgreSQL."""
SESSIONS_AT_ONCE = 200
"""Sessions that a runner takes up in one transaction."""


@dataclass(slots=True)
class LeasedSession:
    """A session just taken up: its fence, and the row numbers that came with it, (first, beyond]."""

    stream: int
    token: int
    rows_from: int
    rows_to: int


class ReturnedLease(NamedTuple):
    """A session to be given back: where its owner has seen it, its fence, row numbers not used, when it wants a look."""

    stream: int
    head: int
    token: int
    unused: tuple[int, int]
    wake_at: float | None


class RunnerLock:
    """The lock that a living runner holds; the kernel, or the database server, frees it when the runner dies."""

    def __init__(self, folder: Path, runner: int):
        self.path = lock_path(folder, runner)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        self._runner = runner
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.hold()

    def hold(self) -> None:
        """Hold the database's lock too; it goes with the connection, and is taken again over another one."""
        if connection.vendor == "postgresql":
            raw_cursor().execute("SELECT pg_advisory_lock(%s, %s)", (ADVISORY, self._runner))

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._file)


def lock_path(folder: Path, runner: int) -> Path:
    return folder / f"runner-{runner}.lock"


def is_dead(runner: int, host: str, folder: str, renewed_ago_s: float) -> bool:
    """Whether a runner can no longer be at work, as its lock or its renewals show (see also `Leases.dead`)."""
    if host == boot_identity() and is_lock_free(runner, Path(folder)):
        return True
    return is_elsewhere(host, folder) and renewed_ago_s > LEASE_S


def is_elsewhere(host: str, folder: str) -> bool:
    """Whether a runner is another installation's, also of this machine. On SQLite all are one: there a lock alone decides."""
    return host != boot_identity() or (connection.vendor == "postgresql" and Path(folder) != runtime_dir())


def is_lock_free(runner: int, folder: Path) -> bool:
    """Whether no process holds the file lock of a runner of this machine."""
    try:
        file = os.open(lock_path(folder, runner), os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)  # with it goes the lock that was only taken to see whether somebody has it
    return True


def session_is_gone(runner: int) -> bool:
    """Whether the database session that held the runner's advisory lock has ended."""
    gone: bool = raw_cursor().execute("SELECT pg_try_advisory_lock(%s, %s)", (ADVISORY, runner)).fetchone()[0]
    if gone:
        raw_cursor().execute("SELECT pg_advisory_unlock(%s, %s)", (ADVISORY, runner))
    return gone


class Leases:
    """The leases of one runner, kept on the journal's connection."""

    def __init__(self, journal: Journal, runner: int):
        self._journal, self._runner, self._store = journal, runner, current_store()
        self._renewed = self._began = time.monotonic()
        self._free_since: dict[int, float] = {}
        self.has_company = False

    # `_free_since`: runners of other hosts whose advisory lock was seen free; `has_company`: there are runners of other hosts.

    def hold(self) -> None:
        """Others can see that this runner lives although it cannot renew."""
        self._renewed = time.monotonic()

    @property
    def fenced(self) -> bool:
        """Others may think this runner dead: it must not start anything."""
        return time.monotonic() - self._renewed > FENCE_S

    def _now(self) -> str:
        return self._store.time(to_iso(time.time()))

    async def renew(self) -> bool:
        """Say that this runner is alive; True when it is told to stop. Where somebody holds its row, nothing is said."""
        try:
            async with self._journal.transaction() as cursor:
                # One that was taken for dead and is not has lost its leases, not its life.
                self._store.execute(
                    cursor,
                    "UPDATE agents_runner SET renewed_at = %s, state = 'LIVE' WHERE id = %s",
                    (self._now(), self._runner),
                )
                self._store.execute(cursor, "SELECT stop_wanted FROM agents_runner WHERE id = %s", (self._runner,))
                row = cursor.fetchone()
        except LockHeld:
            return False
        self._renewed = time.monotonic()
        return row is None or bool(row[0])

    def due(self) -> tuple[list[int], list[int]]:
        """Sessions that want somebody to look at them: (those of this runner, those of nobody)."""
        found = self._store.execute(
            self._journal.cursor(),
            "SELECT stream_id, runner_id FROM agents_lease WHERE wake_at <= %s AND (runner_id IS NULL OR runner_id = %s)"
            " ORDER BY wake_at LIMIT %s",
            (self._now(), self._runner, SESSIONS_AT_ONCE),
        )
        rows = found.fetchall()
        return [s for s, owner in rows if owner == self._runner], [s for s, owner in rows if owner is None]

    async def seen(self, streams: list[int]) -> None:
        """Forget that these sessions of ours wanted a look; call it before reading them. Held: all want it still."""
        with suppress(LockHeld):
            async with self._journal.transaction() as cursor:
                for stream in sorted(streams):
                    self._store.execute(
                        cursor,
                        "UPDATE agents_lease SET wake_at = NULL WHERE stream_id = %s AND runner_id = %s",
                        (stream, self._runner),
                    )

    async def take(self, streams: list[int]) -> list[LeasedSession]:
        """Become the owner of those of `streams` that are still nobody's, and that nobody is writing to."""
        own = "UPDATE agents_lease SET runner_id = %s, wake_at = NULL WHERE stream_id = %s AND runner_id IS NULL"
        fence = "UPDATE agents_stream SET token = token + 1, rows = rows + %s WHERE id = %s RETURNING token, rows"
        taken = []
        try:
            async with self._journal.transaction() as cursor:
                for stream in sorted(self._store.lock(cursor, streams, wait=False)):
                    self._store.execute(cursor, own, (self._runner, stream))
                    if cursor.rowcount == 1:  # else another runner came first
                        self._store.execute(cursor, fence, (ROWS_AHEAD, stream))
                        token, rows = cursor.fetchone()
                        taken.append(LeasedSession(stream, token, rows - ROWS_AHEAD, rows))
        except LockHeld:
            return []
        return taken

    async def give_back(self, sessions: Sequence[ReturnedLease]) -> set[int]:
        """Return leases; says which: none where somebody writes to the stream, or it has moved beyond what its owner has seen.

        A look that somebody has asked for meanwhile stays asked for: a granted slot moves no stream.
        """
        numbers = "UPDATE agents_stream SET rows = %s WHERE id = %s AND rows = %s"
        lease = (
            "UPDATE agents_lease SET runner_id = NULL, wake_at = COALESCE(wake_at, %s) WHERE stream_id = %s AND runner_id = %s"
        )
        try:
            async with self._journal.transaction() as cursor:
                found = self._store.lock(cursor, [session.stream for session in sessions], wait=False)
                given = {s.stream for s in sessions if found.get(s.stream, ())[::2] == (s.head, s.token)}
                for session in sorted(sessions, key=lambda s: s.stream):
                    if session.stream in given:
                        first, beyond = session.unused
                        self._store.execute(cursor, numbers, (first, session.stream, beyond))
                        wake = None if session.wake_at is None else self._store.time(to_iso(session.wake_at))
                        self._store.execute(cursor, lease, (wake, session.stream, self._runner))
        except LockHeld:
            return set()
        return given

    async def release(self) -> bool:
        """Let go of all leases at once; whoever looks first takes the sessions up. False where somebody holds one."""
        try:
            async with self._journal.transaction() as cursor:
                self._store.execute(
                    cursor,
                    "UPDATE agents_lease SET runner_id = NULL, wake_at = %s WHERE runner_id = %s",
                    (self._now(), self._runner),
                )
        except LockHeld:
            return False
        return True

    async def leave(self, streams: list[int]) -> bool:
        """Let go of these sessions; nobody looks at them until somebody records something there. False where one is held."""
        try:
            async with self._journal.transaction() as cursor:
                for stream in sorted(streams):
                    self._store.execute(
                        cursor,
                        "UPDATE agents_lease SET runner_id = NULL, wake_at = NULL WHERE stream_id = %s AND runner_id = %s",
                        (stream, self._runner),
                    )
        except LockHeld:
            return False
        return True

    def dead(self) -> dict[int, set[int]]:
        """Runners that are dead and not yet buried, with the sessions whose leases they have."""
        found = self._store.execute(
            self._journal.cursor(),
            f"SELECT id, host, files, {self._store.seconds_since('renewed_at')} FROM agents_runner"
            " WHERE state <> 'ENDED' AND id <> %s",
            (self._runner,),
        )
        rows = found.fetchall()
        self.has_company = any(row[1] != boot_identity() for row in rows)
        leases = "SELECT stream_id FROM agents_lease WHERE runner_id = %s"
        dead: dict[int, set[int]] = {}
        for row in rows:
            if is_dead(*row) or self._has_lost_its_lock(row[0], row[1]):
                held = self._store.execute(self._journal.cursor(), leases, (row[0],)).fetchall()
                dead[row[0]] = {stream for (stream,) in held}
        return dead

    def _has_lost_its_lock(self, runner: int, host: str) -> bool:
        """Whether a runner elsewhere is without its advisory lock for LOCK_FREE_S: it may only have lost its connection."""
        now = time.monotonic()
        if connection.vendor != "postgresql" or host == boot_identity() or now - self._began < LEASE_S:
            return False
        if not session_is_gone(runner):
            self._free_since.pop(runner, None)
            return False
        return now - self._free_since.setdefault(runner, now) >= LOCK_FREE_S

    async def bury(self, dead: Iterable[int]) -> None:
        """Take their leases from dead runners; whoever looks first takes the sessions up. Where one is held, none is taken."""
        with suppress(LockHeld):
            async with self._journal.transaction() as cursor:
                for runner in sorted(dead):
                    self._store.execute(
                        cursor,
                        "UPDATE agents_lease SET runner_id = NULL, wake_at = %s WHERE runner_id = %s",
                        (self._now(), runner),
                    )
                    self._store.execute(cursor, "UPDATE agents_runner SET state = 'ENDED' WHERE id = %s", (runner,))
