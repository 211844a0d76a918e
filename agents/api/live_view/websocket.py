"""The live view of a session: a snapshot, then its events as they are committed.

Server to client: {"type": "snapshot", "seq", "rows"}, {"type": "events", "events": [...]}, {"type": "resume", "from": seq},
{"type": "error", "code", "message"}; {"type": "heartbeat"} and {"type": "standing"}, of which nothing is acknowledged
(agents.api.live_view.standings); with ?deltas=1 also {"type": "deltas", "deltas": [{"call", "offset", "kind", "text"}]}:
what models say while they say it, of which nothing is acknowledged and some may be missing. A large snapshot comes in
several messages, all but the last with "more": true, and what is larger than a message may be comes in
{"type": "part", "text", "more"} (agents.api.live_view.frames). Client to server: {"type": "ack", "seq"}, of a snapshot when
all of it is there. A client that does not acknowledge is told to resume and closed after a grace: it comes back with ?since=.

Closes: 4400 malformed or too many messages, 4401 who are you, 4403 not allowed, 4404 no such session: these are for good.
4408 no acknowledgement, 4429 too many live views, 4500 our fault (applications may not send 1011): try again after a while.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from agents.access.followers import ViewClosed, live_views
from agents.access.logins import login_of
from agents.api import parsers
from agents.api.live_view.frames import PIECE_BYTES, snapshot_messages, split_frames
from agents.api.live_view.standings import standing_watch
from agents.api.queries import query_flaws
from agents.errors import NoSuchSession
from agents.masks.values import mask_json, mask_text
from agents.rates import Allowance
from agents.streams import tail
from agents.streams.fold import stream_snapshot

WINDOW_EVENTS = 1_000
WINDOW_BYTES = 1_000_000
"""How far the server goes ahead of the last acknowledgement; a snapshot and a single event may be larger."""
BEHIND_EVENTS = 10_000
"""A client further behind gets a snapshot instead."""
UNHEARD_BYTES = 500_000
"""Of deltas to a client that acknowledges nothing; what it misses comes with the event of the whole message."""
GRACE_S = 30
"""Seconds after `resume` within which an acknowledgement must come..."""
SLOWEST_BYTES_S = 50_000
"""...and as many more as it takes at this rate to receive what was sent."""
ACKS_AT_ONCE = 200
ACKS_PER_S = 20
"""Messages of a client: one for each message that it is sent, and beside these so many at once and in a second."""
MESSAGE_LENGTH = 1_000
"""Characters of a client's message at most."""
SUBPROTOCOL = "orrery"

log = logging.getLogger(__name__)


class SendWindow:
    """What was sent and not yet acknowledged: `size` bytes."""

    def __init__(self, seq: int):
        self.sent = self.acknowledged = seq
        self.size = 0
        self._waiting: deque[tuple[int, int]] = deque()

    def add(self, seq: int, size: int) -> None:
        """`size` bytes were sent, up to and including `seq`."""
        self.sent = seq
        self.size += size
        self._waiting.append((seq, size))

    def acknowledge(self, seq: int) -> None:
        """The client has everything up to `seq`; raises ViewClosed for what was never sent."""
        if seq > self.sent:
            raise ViewClosed(4400, f"ack of {seq}, but {self.sent} was the last sent")
        self.acknowledged = max(self.acknowledged, seq)
        while self._waiting and self._waiting[0][0] <= seq:
            self.size -= self._waiting.popleft()[1]

    def room(self) -> tuple[int, int]:
        """Events and bytes that may still be sent; (0, 0) when the client must acknowledge first."""
        events, size = WINDOW_EVENTS - (self.sent - self.acknowledged), WINDOW_BYTES - self.size
        return (events, size) if events > 0 and size > 0 else (0, 0)


def requested_view(scope: dict[str, Any]) -> tuple[int | None, bool]:
    """The seq behind which the client stands, None where it has nothing, and whether it wants deltas; raises ViewClosed."""
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    for name, wrong in query_flaws(given, ["since", "deltas"]).items():
        raise ViewClosed(4400, f"{name}: {wrong}" if name else wrong)
    if given.get("deltas", ["1"]) not in (["0"], ["1"]):
        raise ViewClosed(4400, "deltas must be 0 or 1")
    return read_seq(given["since"][0]) if "since" in given else None, given.get("deltas") == ["1"]


def read_seq(text: str) -> int:
    """The seq that a client names; raises ViewClosed for anything that is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ViewClosed(4400, "since must be the seq of an event")
    return int(text)


def acknowledged_by(text: str | None) -> int:
    """The seq of a client's message; raises ViewClosed for anything that is no ack."""
    if text is None or len(text) > MESSAGE_LENGTH:
        raise ViewClosed(4400, f"a message is JSON text of at most {MESSAGE_LENGTH} characters")
    try:
        message = parsers.read_json(text)
    except parsers.KeyTwice as error:
        raise ViewClosed(4400, f"the message is not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ViewClosed(4400, "the message is not JSON") from error
    if not isinstance(message, dict) or message.get("type") != "ack" or type(message.get("seq")) is not int:
        raise ViewClosed(4400, 'the only message is {"type": "ack", "seq": N}')
    return int(message["seq"])


@database_sync_to_async
def read_snapshot(session: int) -> tuple[int, list[bytes]]:
    """(seq, messages)"""
    found = stream_snapshot(session)
    return found["seq"], [mask_json(message) for message in snapshot_messages(found)]


class SessionConsumer(AsyncWebsocketConsumer):
    """/ws/sessions/{id}/?since=SEQ"""

    _tasks: tuple[asyncio.Task[None], ...] = ()
    unheard = 0
    """Bytes of deltas since the client was last heard."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._cancel()

    async def connect(self) -> None:
        self.session = int(self.scope["url_route"]["kwargs"]["session"])
        self.login = login_of(self.scope)
        await self.accept(SUBPROTOCOL if SUBPROTOCOL in self.scope.get("subprotocols", ()) else None)
        try:
            since, with_deltas = requested_view(self.scope)
            user, head = await live_views().admit(self.login, self.session)
        except ViewClosed as closed:
            await self._refuse(closed)
            return
        self.acknowledgement = asyncio.Event()
        self.allowance = Allowance(ACKS_AT_ONCE, ACKS_PER_S, time.monotonic())
        self.window = SendWindow(since or 0)
        fresh = since is None or not head - BEHIND_EVENTS <= since <= head
        self._tasks = (
            asyncio.create_task(self._guarded(self._feed(head, fresh))),
            asyncio.create_task(self._guarded(self._stay_admitted(user))),
        )
        if with_deltas:
            self._tasks += (asyncio.create_task(self._guarded(self._feed_deltas(head))),)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not self._tasks:
            return  # closed already; what the client had under way does not matter
        try:
            if not self.allowance.take(time.monotonic()):
                raise ViewClosed(4400, "too many messages: one acknowledgement for each message received is enough")
            self.window.acknowledge(acknowledged_by(text_data))
        except ViewClosed as closed:
            await self._refuse(closed)
        self.unheard = 0
        self.acknowledgement.set()

    async def disconnect(self, code: int) -> None:
        self._cancel()

    def _cancel(self) -> None:
        tasks, self._tasks = self._tasks, ()
        for task in tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _guarded(self, work: Awaitable[Any]) -> None:
        """A background task whose end, however it comes, is the connection's."""
        try:
            await work
        except ViewClosed as closed:
            await self._refuse(closed)
        except NoSuchSession as gone:
            await self._refuse(ViewClosed(4404, str(gone)))
        except Exception:
            log.exception("the live view of session %s broke", self.session)
            await self._refuse(ViewClosed(4500, "something broke on our side; come back with since"))

    async def _refuse(self, closed: ViewClosed) -> None:
        self._cancel()
        code = {4400: "malformed", 4401: "not_authenticated", 4403: "permission_denied", 4404: "not_found"}.get(closed.code)
        if code is not None:
            await self.send(json.dumps({"type": "error", "code": code, "message": mask_text(str(closed))}))
        await self.close(closed.code)

    async def _feed(self, head: int, fresh: bool) -> None:
        """A snapshot where the client has nothing or is far behind, then events for as long as it takes them."""
        if fresh:
            head, messages = await read_snapshot(self.session)
            self.window = SendWindow(head)
            self.window.add(head, sum(map(len, messages)))  # before it is sent: the answer may come at once
            for message in messages:
                await self._send_whole(message)
        self._tasks += (asyncio.create_task(self._guarded(self._feed_standing())),)  # a snapshot comes before all else
        reader = tail.tail()
        with reader.follow(self.session, head):
            while True:
                events, size = self.window.room()
                batch = await reader.after(self.session, self.window.sent, max(events, 1), max(1, min(size, PIECE_BYTES)))
                if not events:  # there is more to send than the client has shown that it can take
                    await self._wait_for_room()
                    continue
                joined = b",".join(event.json for event in batch)
                self.window.add(batch[-1].seq, len(joined))
                await self._send_whole(b'{"type":"events","events":[' + joined + b"]}")
                standing_watch().note_move(self.session)

    async def _feed_deltas(self, head: int) -> None:
        """What models say, as long as the client is heard now and then: it acknowledges events, which follow each call."""
        reader, number = tail.tail(), 0
        with reader.follow(self.session, head, with_deltas=True):
            while True:
                number, deltas = await reader.deltas_after(self.session, number)
                message = b'{"type":"deltas","deltas":[' + b",".join(deltas) + b"]}"
                if self.unheard + len(message) > UNHEARD_BYTES:
                    continue
                self.unheard += len(message)
                await self._send_whole(message)

    async def _feed_standing(self) -> None:
        """Heartbeats, and how the session stands."""
        async with aclosing(standing_watch().messages(self.session, self.login)) as messages:
            async for message in messages:
                await self._send_whole(message)

    async def _send_whole(self, message: bytes) -> None:
        for frame in split_frames(message):
            self.allowance.add(1)
            await self.send(frame)

    async def _wait_for_room(self) -> None:
        """There is more, and the client has not acknowledged enough: say so once, and wait for it, not forever."""
        if self.window.room()[0]:
            return  # it has, since that was asked
        await self.send(json.dumps({"type": "resume", "from": self.window.sent}))
        try:
            async with asyncio.timeout(GRACE_S + self.window.size / SLOWEST_BYTES_S):
                while not self.window.room()[0]:
                    self.acknowledgement.clear()
                    await self.acknowledgement.wait()
        except TimeoutError as error:
            raise ViewClosed(4408, "no acknowledgement") from error

    async def _stay_admitted(self, user: int) -> None:
        """Raises ViewClosed as soon as the login is no longer good, or may no longer see the session."""
        with live_views().open(self.login, self.session, user) as view:
            raise await view.refused
