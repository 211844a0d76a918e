"""Nudges: "stream X is at N", "call X has said more", "there is something about device X", told to every process that may
care (docs/engine.md, "Nudges").

A nudge is only a hint: consumers read the stream behind their cursor, and look at the database every LOOK_S anyway, so a
lost or doubled one does no harm. On SQLite it is a datagram to the processes of this host; on PostgreSQL a NOTIFY, which
reaches other hosts too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from django.db import connection

from agents.devices.host import process_start, runtime_dir

if TYPE_CHECKING:
    from agents.streams.statements import RawCursor

LOOK_S = 0.05
"""Seconds after which a consumer looks at the database although nothing nudged it."""
ADDRESSES_S = 0.5
"""Seconds for which the list of listeners is believed, unless their folder has changed; its time is that of a coarse clock."""
CHANNEL = "orrery"
STREAMS_A_DATAGRAM = 100
DELTAS = "d"
"""What stands before the id of a call that has said more."""
CALLS = "c"
"""What stands before the id of a device for which calls wait, or are to be told something."""
ANSWERS = "a"
"""What stands before the id of a session of which calls on devices elsewhere have ended, or say something."""


def encode_nudge(heads: Mapping[int, int]) -> list[str]:
    pairs = [f"{stream}:{head}" for stream, head in heads.items()]
    return [",".join(pairs[at : at + STREAMS_A_DATAGRAM]) for at in range(0, len(pairs), STREAMS_A_DATAGRAM)]


def decode_nudge(text: str) -> list[tuple[int, int]]:
    """The (stream, head) pairs of a nudge; what is no nudge has none."""
    pairs = (pair.partition(":") for pair in text.split(","))
    return [(int(stream), int(head)) for stream, _, head in pairs if stream.isdecimal() and head.isdecimal()]


def encode_marks(mark: str, keys: Iterable[int]) -> list[str]:
    """Nudges about what `mark` stands for: DELTAS, CALLS or ANSWERS."""
    marked = [f"{mark}{key}" for key in keys]
    return [",".join(marked[at : at + STREAMS_A_DATAGRAM]) for at in range(0, len(marked), STREAMS_A_DATAGRAM)]


def decode_marks(text: str) -> list[tuple[str, int]]:
    """The (mark, key) pairs of a nudge; what is none has none."""
    known = (DELTAS, CALLS, ANSWERS)
    return [(each[0], int(each[1:])) for each in text.split(",") if each[:1] in known and each[1:].isdecimal()]


def announce_marks(cursor: RawCursor, mark: str, keys: Iterable[int]) -> None:
    """As `announce_heads`, of what `mark` stands for."""
    if connection.vendor == "postgresql":
        for text in encode_marks(mark, keys):
            cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))


def send_marks(mark: str, keys: Iterable[int]) -> None:
    """As `send_nudge`."""
    if connection.vendor == "sqlite":
        POST.send_texts(encode_marks(mark, keys))


def announce_heads(cursor: RawCursor, heads: Mapping[int, int]) -> None:
    """Inside the transaction, on PostgreSQL: tell everybody that these streams have moved, once it is committed."""
    if connection.vendor == "postgresql":
        for text in encode_nudge(heads):
            cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))


def send_nudge(heads: Mapping[int, int]) -> None:
    """The same after the commit, on SQLite. It never blocks and never fails."""
    if connection.vendor == "sqlite":
        POST.send_texts(encode_nudge(heads))


class NudgePost:
    """Datagrams to the listeners of this host."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._pid = 0
        self._ports: list[int] = []
        self._read_at = 0.0
        self._folder = ""
        self._changed_at = 0

    def send_texts(self, texts: Iterable[str]) -> None:
        """Each text to each listener."""
        if self._socket is None or self._pid != os.getpid():  # never share a socket over a fork
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._pid = os.getpid()
        for text in texts:
            for port in self._listeners():
                with contextlib.suppress(OSError):  # a listener that is gone needs no nudge
                    self._socket.sendto(text.encode(), ("127.0.0.1", port))

    def _listeners(self) -> list[int]:
        now = time.monotonic()
        if is_old := now - self._read_at > ADDRESSES_S:
            self._folder = str(listeners_dir())
        try:
            changed_at = os.stat(self._folder).st_mtime_ns
        except FileNotFoundError:  # whoever listens again makes it anew
            return []
        if is_old or changed_at != self._changed_at:
            self._ports = [int(name.rpartition("-")[2]) for name in os.listdir(self._folder)]
            self._read_at, self._changed_at = now, changed_at
        return self._ports


POST = NudgePost()


def listeners_dir() -> Path:
    path = runtime_dir() / "listeners"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


class NudgeListener:
    """Calls `on_nudge(stream, head)` on the running loop for every nudge, from `start` to `stop`.

    `on_mark(mark, key)` is called for every nudge about something else than a stream (DELTAS, CALLS, ANSWERS).
    """

    def __init__(self, on_nudge: Callable[[int, int], None], on_mark: Callable[[str, int], None] | None = None):
        self._on_nudge, self._on_mark = on_nudge, on_mark
        self._socket: socket.socket | None = None
        self._address: Path | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if connection.vendor == "postgresql":
            self._task = self._loop.create_task(self._follow_notifications(dict(connection.get_connection_params())))
            return
        forget_the_dead()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        port = self._socket.getsockname()[1]
        self._address = listeners_dir() / f"{os.getpid()}-{process_start()}-{port}"
        self._address.touch()
        self._loop.add_reader(self._socket, self._read)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        if self._address is not None:
            self._address.unlink(missing_ok=True)
        self._task = self._socket = self._address = None

    def _read(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                self._pass_on(self._socket.recv(65536).decode(errors="replace"))

    def _pass_on(self, text: str) -> None:
        for stream, head in decode_nudge(text):
            self._on_nudge(stream, head)
        if self._on_mark is not None:
            for mark, key in decode_marks(text):
                self._on_mark(mark, key)

    async def _follow_notifications(self, parameters: dict[str, Any]) -> None:
        """Listen on a connection of its own; after a lost one, again: until then the look every LOOK_S serves."""
        for key in ("cursor_factory", "context", "prepare_threshold"):
            parameters.pop(key, None)
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as own:
                    await own.execute(f"LISTEN {CHANNEL}")
                    async for notification in own.notifies():
                        self._pass_on(notification.payload)
            await asyncio.sleep(1)


def forget_the_dead() -> None:
    """Remove the addresses of processes that ended without doing so themselves."""
    for address in listeners_dir().iterdir():
        pid, start, _ = address.name.split("-")
        if process_start(int(pid)) != int(start):
            address.unlink(missing_ok=True)
