"""One reader of the database for all live views of a process.

A stream that somebody follows is read once, however many follow it: woken by a nudge, and by a look every LOOK_S as the
guarantee. Followers keep nothing but a cursor: what they have not yet got they take from the stream's short memory, or
where they are further behind from the database. So a slow client costs a cursor and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from django.db import Error as DatabaseError
from django.db import connections

from agents import ids
from agents.masks.values import mask_jsons
from agents.models import Stream
from agents.per_loop import one_per_loop
from agents.streams.deltas import DeltaMemory, read_deltas, read_saying
from agents.streams.fold import events_since
from agents.streams.nudges import DELTAS, LOOK_S, NudgeListener
from agents.streams.outages import with_fresh_connection
from agents.streams.tables import Fields

READ_EVENTS = 1_000
READ_BYTES = 1_000_000
"""One read returns no more, but at least one event."""
PIECE_EVENTS = 100
"""Events of one statement: some carry a thousand rows each."""
MEMORY_BYTES = 64_000_000
"""What the short memories of all streams hold together."""
PACE_S = 0.005
"""Reads that follow each other at once leave this much time between them."""
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""After a failed read; the last one again and again."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class TailEnded(RuntimeError):
    """The tail broke off; following again starts another."""


@dataclass(frozen=True, slots=True)
class EncodedEvent:
    """An event as it goes over the wire, masked: written once, sent to many."""

    seq: int
    json: bytes
    type: str = ""


def read_events(
    stream: int, seq: int, events: int = READ_EVENTS, size: int = READ_BYTES, most_rows: int | None = None
) -> list[EncodedEvent]:
    """Events after `seq`, oldest first: at most `events`, and at most `size` bytes unless the first alone has more.

    With `most_rows` an event tells no more of the rows that it adds to a table; `left_out` says how many there are beyond.
    """
    found: list[EncodedEvent] = []
    while len(found) < events:
        wanted = min(PIECE_EVENTS, events - len(found))
        piece = events_since(stream, seq, wanted, to_be_sent=most_rows is None)
        if most_rows is not None:
            for event in piece:
                _leave_out_rows(event, most_rows)
        texts = _within(size, piece)
        for event, text in zip(piece, mask_jsons(texts), strict=False):
            size -= len(text)
            if size < 0 and found:
                return found
            found.append(EncodedEvent(event["seq"], text, event["type"]))
        if len(texts) < wanted:
            break
        seq = found[-1].seq
    return found


def _leave_out_rows(event: Fields, most: int) -> None:
    left_out: dict[str, int] = {}
    for table, rows in event["data"].get("add", {}).items():
        if len(rows) > most:
            left_out[table] = len(rows) - most
            del rows[most:]
    if left_out:
        event["left_out"] = left_out


def _within(size: int, events: Iterable[Fields]) -> list[bytes]:
    """The first of them as JSON, until they have more than `size` bytes: the rest would be written in vain."""
    texts: list[bytes] = []
    for event in events:
        texts.append(orjson.dumps(event))
        size -= len(texts[-1])
        if size < 0:
            break
    return texts


def read_heads(streams: list[int]) -> dict[int, int]:
    return dict(Stream.objects.filter(pk__in=streams).values_list("pk", "head"))


@dataclass
class StreamMemory:
    """The latest events of one stream: without a gap, and the newest is `head`. `listeners`: followers that want deltas."""

    head: int
    events: deque[EncodedEvent] = field(default_factory=deque)
    size: int = 0
    followers: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    deltas: DeltaMemory = field(default_factory=DeltaMemory)
    listeners: int = 0
    said_more: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, fresh: list[EncodedEvent], room: int) -> None:
        """Take up events that follow `head`, forget the oldest beyond `room` bytes, and wake those who wait."""
        self.events.extend(fresh)
        self.size += sum(len(event.json) for event in fresh)
        while len(self.events) > READ_EVENTS or (self.size > room and len(self.events) > 1):
            self.size -= len(self.events.popleft().json)
        self.head = fresh[-1].seq
        self.wake()

    def wake(self) -> None:
        """Let those who wait look again. Never leaves a set event behind: waiting for one would not yield to anybody."""
        self.moved.set()
        self.moved = asyncio.Event()

    def after(self, seq: int, events: int, size: int) -> list[EncodedEvent] | None:
        """Events after `seq` within the bounds; None where they are no longer (or never were) remembered."""
        if not self.events or seq + 1 < self.events[0].seq:
            return None
        found: list[EncodedEvent] = []
        for place in range(seq + 1 - self.events[0].seq, len(self.events)):
            event = self.events[place]
            size -= len(event.json)
            if len(found) == events or (size < 0 and found):
                break
            found.append(event)
        return found


class StreamTail:
    """All followed streams of one event loop. Use `tail()`; starts with the first follower, ends with the last."""

    def __init__(self) -> None:
        self._streams: dict[int, StreamMemory] = {}
        self._wanted: dict[int, int] = {}
        self._saying: dict[int, None] = {}
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    @contextmanager
    def follow(self, stream: int, head: int, with_deltas: bool = False) -> Iterator[None]:
        """While inside, `after(stream, ...)` may be used, and `deltas_after` by who said so. `head`: the seq it has reached."""
        memory = self._streams.setdefault(stream, StreamMemory(head))
        memory.followers += 1
        memory.listeners += with_deltas
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            memory.followers -= 1
            memory.listeners -= with_deltas
            if not memory.followers:
                del self._streams[stream]
                self._woken.set()

    async def after(self, stream: int, seq: int, events: int = READ_EVENTS, size: int = READ_BYTES) -> list[EncodedEvent]:
        """Events after `seq`, gapless and at least one: waits until there is one. Raises TailEnded when none will come."""
        memory = self._streams[stream]
        while True:
            while memory.head <= seq:
                if self._task is None or self._task.done():
                    raise TailEnded
                await memory.moved.wait()
            found = memory.after(seq, events, size)
            if found is None:
                found = await self._read(read_events, stream, seq, events, size)
            if found:
                return found

    async def deltas_after(self, stream: int, number: int) -> tuple[int, list[bytes]]:
        """What models say in the stream (`agents.streams.deltas`), after a running number of this process: waits for some.

        Nobody is told what was missed: the whole message comes as an event.
        """
        memory = self._streams[stream]
        while memory.deltas.last <= number:
            await memory.said_more.wait()
        return memory.deltas.last, memory.deltas.after(number)

    async def _run(self) -> None:
        """Read what moves, until nobody follows."""
        listener = NudgeListener(self._on_nudge, self._on_mark)
        try:
            await listener.start()
            while self._streams:
                await self._wait()
                await self._take_up()
        finally:
            listener.stop()
            if self._thread is not None:
                self._thread.submit(connections.close_all)
                self._thread.shutdown(wait=False)
                self._thread = None
            asyncio.get_running_loop().call_soon(self._wake_all)

    def _wake_all(self) -> None:
        for memory in self._streams.values():
            memory.wake()

    def _on_nudge(self, stream: int, head: int) -> None:
        memory = self._streams.get(stream)
        if memory is not None and head > memory.head:
            self._wanted[stream] = head
            self._woken.set()

    def _on_mark(self, mark: str, key: int) -> None:
        if mark == DELTAS and ids.stream_of(key) in self._streams:
            self._saying[key] = None
            self._woken.set()

    async def _wait(self) -> None:
        """Until a nudge, at most LOOK_S."""
        if self._wanted or self._saying:
            await asyncio.sleep(PACE_S)
            return
        try:
            async with asyncio.timeout(LOOK_S):
                await self._woken.wait()
        except TimeoutError:
            heads = await self._read(read_heads, list(self._streams))
            for stream, head in heads.items():
                if stream in self._streams and head > self._streams[stream].head:  # its last follower may have gone meanwhile
                    self._wanted[stream] = head
            await self._look_for_deltas()
        self._woken.clear()

    async def _look_for_deltas(self) -> None:
        """The guarantee behind the nudges of those who say more."""
        listened = [stream for stream, memory in self._streams.items() if memory.listeners]
        for call, kind, offset in await self._read(read_saying, listened) if listened else ():
            memory = self._streams.get(ids.stream_of(call))
            if memory is not None and offset >= memory.deltas.beyond(call)[kind]:
                self._saying[call] = None

    async def _take_up(self) -> None:
        """Read the streams that moved, each up to the bound; what is left is read in the next turn."""
        saying, self._saying = self._saying, {}
        for call in saying:
            memory = self._streams.get(ids.stream_of(call))
            if memory is not None and memory.listeners:
                memory.deltas.add(await self._read(read_deltas, call, memory.deltas.beyond(call)))
                memory.said_more.set()
                memory.said_more = asyncio.Event()
        for stream in sorted(self._wanted):
            memory = self._streams.get(stream)
            fresh = [] if memory is None else await self._read(read_events, stream, memory.head)
            if memory is not None and fresh:
                memory.add(fresh, MEMORY_BYTES // max(1, len(self._streams)))
            if memory is None or not fresh or memory.head >= self._wanted[stream]:
                del self._wanted[stream]

    async def _read(self, read: Callable[..., T], *arguments: Any) -> T:
        """`read` in the one thread that has the tail's connection; a lost database is asked again until it answers."""
        failures = 0
        while True:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="tail")
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, with_fresh_connection, read, *arguments)
            except DatabaseError as error:
                log.warning("the tail could not read and tries again: %s", error)
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1


tail = one_per_loop(StreamTail)
"""The tail of the running event loop."""
