"""Server-sent events: the stream of a session for programs that would rather not speak websocket.

GET /api/sessions/{id}/stream/ with a token or a login's cookie. Each event of the stream is one server-sent event: its
`id` is the seq, its `event` the type, its `data` the event as everywhere else ({"type", "data", "seq", "at", ...}).
`heartbeat` and `standing` come between them and have no id (see standings.py).
`Last-Event-ID` (or ?since=) says where to go on; without it a `snapshot` comes first. The answer ends
after END_BYTES or END_S and the client comes back by itself; it outlives actors, whose ends and respawns are events on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import orjson
from channels.db import database_sync_to_async
from channels.sessions import CookieMiddleware

from agents.access.followers import ViewClosed, live_views
from agents.access.logins import Login, is_foreign_page, login_of, token_in_scope
from agents.api.live_view.standings import standing_watch
from agents.api.live_view.websocket import BEHIND_EVENTS, read_seq, requested_view
from agents.api.problems import MEDIA_TYPE, problem_body
from agents.masks.values import mask_json
from agents.streams import tail
from agents.streams.fold import stream_snapshot

END_BYTES = 5_000_000
END_S = 300.0
PING_S = 15.0
"""Between two comments that keep a silent connection open."""
RETRY_MS = 500
"""After which a client comes back when the answer has ended."""
STATUS = {
    4400: (400, "bad_request"), 4401: (401, "not_authenticated"), 4403: (403, "permission_denied"), 4404: (404, "not_found"),
    4429: (429, "too_many_live_views"),
}  # fmt: skip
"""Status and code, by the code with which a websocket would be closed."""
EVENTS_AT_ONCE = 200
HEARTBEAT = b'{"type":"heartbeat"'
"""Begins one."""
BEATS = (b"event: heartbeat\n", b"event: standing\n")
"""Begin frames that count for no bound: they come at their own pace."""

Send = Callable[[dict[str, Any]], Awaitable[None]]


def event_frame(seq: int, kind: str, data: bytes) -> bytes:
    """One server-sent event. JSON text has no line breaks of its own."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), data)


def requested_place(scope: dict[str, Any]) -> tuple[int | None, bool]:
    """The seq behind which the client stands, None where it has nothing, and whether it wants deltas; raises ViewClosed."""
    since, with_deltas = requested_view(scope)
    for name, value in scope["headers"]:
        if name == b"last-event-id" and value:
            return read_seq(value.decode("latin-1")), with_deltas
    return since, with_deltas


class SessionStream:
    """The ASGI application; `scope["session_id"]` says which."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise ViewClosed(4400, "only GET")
            session, (since, with_deltas) = scope["session_id"], requested_place(scope)
            if not token_in_scope(scope) and is_foreign_page(scope):
                raise ViewClosed(4403, "a login's cookie counts only for pages of this server")
            login = login_of(scope)
            user, head = await live_views().admit(login, session)
        except ViewClosed as closed:
            await send_refusal(send, closed)
            return
        feed = asyncio.create_task(self._feed(send, login, session, head, (since, with_deltas)))
        gone = asyncio.create_task(wait_disconnected(receive))
        with live_views().open(login, session, user) as view:
            done, _ = await asyncio.wait((feed, gone, view.refused), return_when=asyncio.FIRST_COMPLETED)
            for task in (feed, gone):
                task.cancel()
            await asyncio.gather(feed, gone, return_exceptions=True)
            if view.refused in done:
                await send_body(send, b"", more=False)  # whoever comes back is told why
        if feed in done:
            feed.result()

    async def _feed(self, send: Send, login: Login, session: int, head: int, asked: tuple[int | None, bool]) -> None:
        """Until END_BYTES or END_S; the client comes back behind the last event it got."""
        since, with_deltas = asked
        await send_headers(send)
        try:
            async with asyncio.timeout(END_S):
                if since is None or not head - BEHIND_EVENTS <= since <= head:
                    taken = await database_sync_to_async(stream_snapshot)(session)
                    since = taken["seq"]
                    await send_body(send, event_frame(since, "snapshot", mask_json(orjson.dumps(taken))))
                left = END_BYTES
                async with aclosing(follow_session(login, session, since, with_deltas)) as pieces:
                    async for piece in pieces:
                        await send_body(send, piece)
                        left -= 0 if piece.startswith(BEATS) else len(piece)
                        if left <= 0:
                            break
        except TimeoutError:
            pass  # the time is up
        await send_body(send, b"", more=False)


async def follow_session(login: Login, session: int, seq: int, with_deltas: bool = False) -> AsyncGenerator[bytes, None]:
    """Frames of the session's events after `seq` as they come, comments while there are none, and heartbeats for `login`.

    `with_deltas`: also what models say while they say it. Only events have an id.
    """
    reader, number, watch = tail.tail(), 0, standing_watch()
    with reader.follow(session, seq, with_deltas):
        beats = watch.messages(session, login)
        beat = asyncio.ensure_future(anext(beats))
        events = asyncio.ensure_future(reader.after(session, seq, EVENTS_AT_ONCE))
        deltas = asyncio.ensure_future(reader.deltas_after(session, number)) if with_deltas else None
        try:
            while True:
                waited: set[asyncio.Future[Any]] = {task for task in (beat, events, deltas) if task is not None}
                done, _ = await asyncio.wait(waited, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    yield b": ping\n\n"
                if beat in done:
                    message = beat.result()
                    beat = asyncio.ensure_future(anext(beats))
                    kind = b"heartbeat" if message.startswith(HEARTBEAT) else b"standing"
                    yield b"event: %s\ndata: %s\n\n" % (kind, message)
                if deltas is not None and deltas in done:
                    number, said = deltas.result()
                    deltas = asyncio.ensure_future(reader.deltas_after(session, number))
                    yield b"event: deltas\ndata: [%s]\n\n" % b",".join(said)
                if events in done:
                    found = events.result()
                    seq = found[-1].seq
                    events = asyncio.ensure_future(reader.after(session, seq, EVENTS_AT_ONCE))
                    watch.note_move(session)
                    yield b"".join(event_frame(event.seq, event.type, event.json) for event in found)
        finally:
            for task in (beat, events, deltas):
                if task is not None:
                    task.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            await beats.aclose()


async def send_headers(send: Send) -> None:
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send_body(send, b"retry: %d\n\n" % RETRY_MS)


async def send_body(send: Send, body: bytes, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def send_refusal(send: Send, closed: ViewClosed) -> None:
    """The same problem details as REST gives."""
    status, code = STATUS[closed.code]
    headers = [(b"content-type", MEDIA_TYPE.encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send_body(send, mask_json(orjson.dumps(problem_body(status, code, str(closed)))), more=False)


async def wait_disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


application = CookieMiddleware(SessionStream())
