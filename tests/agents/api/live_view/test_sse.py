"""Server-sent events of a session: replay, snapshot, resumption, refusals, the end that is none."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from agents.api.live_view import sse
from agents.services import sessions
from agents.services.tokens import token_create
from project.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "streamed", by="user:1")


@pytest.fixture
def token(operator):
    from datetime import timedelta

    return token_create(operator, "t", ["read"], timedelta(days=1), by="user:1")[1]


class Client:
    """One request for a session's stream."""

    def __init__(self, session: int, token: str = "", *, after: int | None = None, method: str = "GET", query: str = ""):
        headers = [(b"host", b"localhost")]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        if after is not None:
            headers.append((b"last-event-id", str(after).encode()))
        scope = {
            "type": "http", "method": method, "path": f"/api/sessions/{session}/stream/", "headers": headers,
            "query_string": query.encode(), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        self.wire = ApplicationCommunicator(application, scope)
        self.text = b""
        self.beats: list[tuple[str, dict]] = []

    async def start(self) -> dict:
        await self.wire.send_input({"type": "http.request", "body": b""})
        return await self.wire.receive_output(5)

    async def body(self) -> bytes:
        return (await self.wire.receive_output(5))["body"]

    async def events(self, count: int) -> list[dict]:
        """The next events, {"id", "event", "data"} each; what has no id is kept in `beats`."""
        found: list[dict] = []
        while len(found) < count:
            while b"\n\n" not in self.text:
                self.text += await self.body()
            piece, _, self.text = self.text.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in piece.decode().split("\n") if not line.startswith(":"))
            if "data" in fields and "id" not in fields:
                self.beats.append((fields["event"], json.loads(fields["data"])))
            elif "data" in fields:
                found.append({"id": int(fields["id"]), "event": fields["event"], "data": json.loads(fields["data"])})
        return found

    async def beat(self) -> None:
        """Read one body, and keep the heartbeats in it."""
        self.text += await self.body()
        while b"\n\n" in self.text:
            piece, _, self.text = self.text.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in piece.decode().split("\n") if not line.startswith(":"))
            if "data" in fields and "id" not in fields:
                self.beats.append((fields["event"], json.loads(fields["data"])))

    async def leave(self) -> None:
        await self.wire.send_input({"type": "http.disconnect"})
        await self.wire.wait(5)


def ping(session, name: str) -> None:
    sessions.request_submit(session.pk, "ping", name, {}, by="user:1")


async def test_without_a_place_a_snapshot_comes_first_and_then_what_happens(session, token):
    client = Client(session.pk, token)
    assert (await client.start())["status"] == 200
    (taken,) = await client.events(1)
    assert (taken["event"], taken["id"]) == ("snapshot", 1)
    assert taken["data"]["rows"]["session"][str(session.pk)]["title"] == "streamed"
    await sync_to_async(ping)(session, "a")
    (event,) = await client.events(1)
    assert (event["id"], event["event"], event["data"]["type"]) == (2, "command_received", "command_received")
    await client.leave()


async def test_last_event_id_goes_on_without_a_gap(session, token):
    for name in ("a", "b", "c"):
        await sync_to_async(ping)(session, name)
    client = Client(session.pk, token, after=2)
    await client.start()
    assert [event["id"] for event in await client.events(2)] == [3, 4]
    await client.leave()


async def test_since_in_the_address_does_the_same(session, token):
    await sync_to_async(ping)(session, "a")
    client = Client(session.pk, token, query="since=1")
    await client.start()
    assert [event["id"] for event in await client.events(1)] == [2]
    await client.leave()


async def test_a_silent_stream_is_kept_open_by_pings(session, token, monkeypatch):
    monkeypatch.setattr(sse, "PING_S", 0.01)
    client = Client(session.pk, token, after=1)
    await client.start()
    pieces = [await client.body() for _ in range(4)]
    assert [piece for piece in pieces[1:] if piece == b": ping\n\n"][:2] == [b": ping\n\n"] * 2
    await client.leave()


async def test_the_answer_ends_after_its_bytes_and_the_next_goes_on(session, token, monkeypatch):
    monkeypatch.setattr(sse, "END_BYTES", 1)
    monkeypatch.setattr(sse, "EVENTS_AT_ONCE", 1)
    for name in ("a", "b"):
        await sync_to_async(ping)(session, name)
    seen = []
    for after in (1, 2):
        client = Client(session.pk, token, after=after)
        await client.start()
        seen += [event["id"] for event in await client.events(1)]
        while (last := await client.body()).startswith(sse.BEATS):
            pass
        assert last == b""
        await client.wire.wait(5)
    assert seen == [2, 3]


async def test_the_answer_ends_after_its_time(session, token, monkeypatch):
    monkeypatch.setattr(sse, "END_S", 0.02)
    client = Client(session.pk, token, after=1)
    await client.start()
    bodies = [await client.body()]
    while bodies[-1]:  # the first heartbeat may still come
        assert len(bodies) < 4
        bodies.append(await client.body())
    await client.wire.wait(5)


@pytest.mark.parametrize(
    ("which", "with_token", "query", "status"),
    [
        ("own", False, "", 401),
        ("none", True, "", 404),
        ("own", True, "since=x", 400),
        ("own", True, "sinse=1", 400),
        ("own", True, "since=1&since=2", 400),
    ],
)
async def test_who_may_not_is_told_by_a_problem(session, token, which, with_token, query, status):
    client = Client(session.pk if which == "own" else 4711, token if with_token else "", query=query)
    assert (await client.start())["status"] == status
    assert json.loads(await client.body())["status"] == status
    await client.wire.wait(5)


async def test_a_session_of_somebody_else_is_not_there(session, user):
    from datetime import timedelta

    _, other = await sync_to_async(token_create)(user, "t", ["read"], timedelta(days=1), by="x")
    client = Client(session.pk, other)
    assert (await client.start())["status"] == 404
    await client.wire.wait(5)


async def test_nothing_is_left_running_when_the_client_goes(session, token):
    before = len(asyncio.all_tasks())
    client = Client(session.pk, token)
    await client.start()
    await client.events(1)
    await client.leave()
    async with asyncio.timeout(30):  # what reads the database ends when it has been answered
        while len(asyncio.all_tasks()) > before + 2:  # noqa: ASYNC110  who looks at all views, and at how sessions stand, stays
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("query", "after", "said"),
    [
        ("sinse=1", None, "sinse: unknown parameter; did you mean since? Known are deltas, since"),
        ("limit=5", 1, "limit: unknown parameter; known are deltas, since"),
        ("since=1&since=2", None, "since: is given 2 times, and has one value"),
    ],
)
async def test_a_parameter_that_there_is_not_is_refused_by_its_name(session, token, query, after, said):
    client = Client(session.pk, token, query=query, after=after)
    assert (await client.start())["status"] == 400
    assert json.loads(await client.body())["detail"] == said


async def test_a_heartbeat_comes_without_an_id_and_says_how_the_session_stands(session, token):
    client = Client(session.pk, token, after=1)
    await client.start()
    await sync_to_async(ping)(session, "first")
    while not client.beats:
        await client.beat()
    kind, told = client.beats[0]
    assert (kind, told["lease"], told["standing"]["name"]) == ("heartbeat", None, "idle")
    await client.leave()
