"""The live view of a session over the websocket."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.sessions.models import Session as LoginSession
from django.db import connection
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from agents import ids
from agents.access import followers
from agents.api.live_view import frames as pieces
from agents.api.live_view import standings, websocket
from agents.api.live_view.frames import snapshot_messages, split_frames
from agents.api.live_view.websocket import SendWindow, ViewClosed, acknowledged_by, requested_view
from agents.models import ModelDelta, Token
from agents.services import sessions
from agents.streams import fold, nudges
from project.asgi import application
from tests.agents.conftest import NOW, NUMBERS, add_rows, make_token, record

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.usefixtures("closed_connections")
DEADLINE_S = 30
BEATS = ("heartbeat", "standing")
PLAN = "tasks: [{task_id: a, command: [echo, a]}]"
START_S = 120
STOP_S = 60
"""Seconds a server's process may take to start and to stop."""
HOST = (b"host", b"localhost:8000")
ORIGIN = (b"origin", b"http://localhost:8000")


# bounds and messages, without a connection


def test_a_window_has_room_until_a_thousand_events_are_unacknowledged():
    window = SendWindow(10)
    window.add(1009, 100)
    assert window.room() == (1, websocket.WINDOW_BYTES - 100)
    window.add(1010, 100)
    assert window.room() == (0, 0)
    window.acknowledge(500)
    assert window.room()[0] == 490
    window.acknowledge(1009)
    assert window.room() == (999, websocket.WINDOW_BYTES - 100)


def test_a_window_has_room_until_a_million_bytes_are_unacknowledged():
    window = SendWindow(0)
    window.add(1, websocket.WINDOW_BYTES)
    assert window.room() == (0, 0)
    window.acknowledge(1)
    assert window.room() == (websocket.WINDOW_EVENTS, websocket.WINDOW_BYTES)


def test_an_older_acknowledgement_changes_nothing_and_one_of_the_future_is_refused():
    window = SendWindow(5)
    window.add(9, 1)
    window.acknowledge(8)
    window.acknowledge(6)
    assert window.acknowledged == 8
    with pytest.raises(ViewClosed, match="10"):
        window.acknowledge(10)


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "7", "null", '{"type": "ack"}', '{"type": "ack", "seq": "7"}', '{"type": "ack", "seq": true}',
     '{"type": "ack", "seq": 1.5}', '{"type": "hello", "seq": 1}', '{"type": "ack", "seq": 1}' + " " * 1000, "[" * 900],
)  # fmt: skip
def test_a_message_that_is_no_acknowledgement_is_refused(text):
    with pytest.raises(ViewClosed) as refused:
        acknowledged_by(text)
    assert refused.value.code == 4400


def test_since_is_a_seq_or_absent():
    assert requested_view({"query_string": b""}) == (None, False)
    assert requested_view({"query_string": b"since=17&deltas=1"}) == (17, True)
    for text in (b"since=", b"since=-1", b"since=x", b"since=" + b"9" * 40, "since=\u0663".encode()):
        with pytest.raises(ViewClosed):
            requested_view({"query_string": text})


def test_a_small_snapshot_is_one_message():
    given = {"seq": 4, "rows": {"session": {"1": {"id": 1}}, "task": {}}}
    assert [json.loads(message) for message in snapshot_messages(given)] == [{"type": "snapshot", **given}]


def test_a_large_snapshot_is_cut_between_rows_and_names_every_table():
    rows = {str(key): {"id": key, "text": "x" * (key % 90) * 1000} for key in range(1, 100)}
    given = {"seq": 9, "rows": {"agent": {}, "task": rows, "dependency": rows, "edit": {}}}
    sent = snapshot_messages(given)
    assert all(len(message) <= pieces.FRAME_BYTES for message in sent)
    assert len(sent) < 2 * sum(map(len, sent)) / pieces.PIECE_BYTES
    messages = [json.loads(message) for message in sent]
    assert [message.get("more", False) for message in messages] == [True] * (len(messages) - 1) + [False]
    assert whole(messages) == given


@pytest.mark.parametrize("text", ["x", '"', "\\", "\n", "\u20ac", "\U0001f30d"])
def test_parts_stay_within_a_message_whatever_they_hold(text):
    message = json.dumps({"type": "events", "events": [text * 300_000]}, ensure_ascii=False).encode()
    sent = list(split_frames(message))
    assert len(sent) > 1
    assert all(len(frame.encode()) <= pieces.FRAME_BYTES for frame in sent)
    found = [json.loads(frame) for frame in sent]
    assert [frame.get("more", False) for frame in found] == [True] * (len(found) - 1) + [False]
    assert joined(found) == json.loads(message)


# connections


@pytest.fixture
def session(transactional_db, operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def token(session, operator):
    return make_token(operator, "read")[1]


@sync_to_async
def write(session, count=1, **data):
    for _ in range(count):
        record(session.pk, **data)


def cookie_of(user):
    client = Client()
    client.force_login(user)
    return (b"cookie", f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode())


def joined(frames):
    """The message that consecutive frames make."""
    return json.loads("".join(frame["text"] for frame in frames)) if frames[0]["type"] == "part" else frames[0]


def whole(messages):
    """The snapshot that messages make; each row must be in one of them only."""
    rows = {}
    for message in messages:
        assert (message["type"], message["seq"]) == ("snapshot", messages[0]["seq"])
        for table, more in message["rows"].items():
            assert not rows.get(table, {}).keys() & more.keys()
            rows.setdefault(table, {}).update(more)
    return {"seq": messages[0]["seq"], "rows": rows}


class Live(WebsocketCommunicator):
    """A client of the live view."""

    def __init__(self, application, path, headers=(), **more):
        super().__init__(application, path, headers=[HOST, *headers], **more)
        self.beats = []

    async def message(self):
        """The next one that is no heartbeat, from its parts where it came in parts."""
        return joined([frame async for frame in self._frames()])

    async def receive_from(self, timeout=DEADLINE_S):  # noqa: ASYNC109  as the class above has it
        while json.loads(text := await super().receive_from(timeout))["type"] in BEATS:
            self.beats.append(json.loads(text))
        return text

    async def _frames(self):
        more = True
        while more:
            frame = json.loads(await self.receive_from(timeout=DEADLINE_S))
            more = frame["type"] == "part" and frame.get("more", False)
            yield frame

    async def receive_nothing(self, timeout=0.1, interval=0.01):  # noqa: ASYNC109
        while not await super().receive_nothing(timeout, interval):
            told = json.loads(await WebsocketCommunicator.receive_from(self, timeout))
            if told["type"] not in BEATS:
                return False
        return True

    async def snapshot(self):
        """{"seq", "rows"} from all its messages."""
        messages = [await self.message()]
        while messages[-1].get("more"):
            messages.append(await self.message())
        return whole(messages)

    async def events(self, until):
        """Events from here to `until`, each batch acknowledged."""
        found = []
        while not found or found[-1]["seq"] < until:
            message = await self.message()
            if message["type"] == "events":
                found += message["events"]
                await self.acknowledge(found[-1]["seq"])
        return found

    async def acknowledge(self, seq):
        await self.send_json_to({"type": "ack", "seq": seq})

    async def closed(self):
        """The close's code, after the messages that were under way."""
        while True:
            output = await self.receive_output(DEADLINE_S)
            if output["type"] == "websocket.close":
                return output["code"]


@asynccontextmanager
async def live(session, token="", since=None, headers=(), **more):
    path = f"/ws/sessions/{getattr(session, 'pk', session)}/" + ("" if since is None else f"?since={since}")
    own = [(b"authorization", f"Bearer {token}".encode())] if token else []
    client = Live(application, path, headers=[*own, *headers], **more)
    client.accepted, client.detail = await client.connect(timeout=DEADLINE_S)
    try:
        yield client
    finally:
        await client.disconnect(timeout=DEADLINE_S)


async def test_a_snapshot_comes_first_and_then_every_event(session, token):
    await write(session, 3)
    async with live(session, token) as client:
        assert await client.message() == {"type": "snapshot", **await sync_to_async(fold.stream_snapshot)(session.pk)}
        await client.acknowledge(4)
        await write(session, 2, note="x")
        events = await client.events(6)
        assert events == await sync_to_async(fold.events_since)(session.pk, 4)


@sync_to_async
def say(call, offset, text):
    ModelDelta.objects.create(call_id=call, offset=offset, kind="text", text=text)
    nudges.announce_marks(connection.cursor(), nudges.DELTAS, [call])
    nudges.send_marks(nudges.DELTAS, [call])


@asynccontextmanager
async def live_with_deltas(session, token):
    client = Live(application, f"/ws/sessions/{session.pk}/?deltas=1", headers=[(b"authorization", f"Bearer {token}".encode())])
    await client.connect(timeout=DEADLINE_S)
    try:
        yield client
    finally:
        await client.disconnect(timeout=DEADLINE_S)


async def test_who_wants_deltas_gets_what_a_model_says_beside_the_events(session, token):
    call = ids.row_id(session.pk, 9)
    async with live_with_deltas(session, token) as client:
        assert (await client.message())["type"] == "snapshot"
        await write(session)  # the view follows, once this has come
        assert (await client.message())["type"] == "events"
        await say(call, 0, "Fetch, ")
        assert await client.message() == {
            "type": "deltas", "deltas": [{"call": call, "offset": 0, "kind": "text", "text": "Fetch, "}],
        }  # fmt: skip
        await say(call, 7, "then train.")
        assert (await client.message())["deltas"][0]["text"] == "then train."
        await write(session, note="x")
        assert (await client.message())["events"][0]["data"] == {"note": "x"}


async def test_who_acknowledges_nothing_gets_no_more_deltas_after_a_while(session, token, monkeypatch):
    monkeypatch.setattr(websocket, "UNHEARD_BYTES", 350)
    call = ids.row_id(session.pk, 9)
    async with live_with_deltas(session, token) as client:
        await client.message()
        await write(session)
        await client.message()
        await say(call, 0, "x" * 100)
        assert (await client.message())["type"] == "deltas"
        await say(call, 100, "x" * 200)
        await write(session)
        message = await client.message()
        assert message["type"] == "events"
        await client.acknowledge(message["events"][-1]["seq"])
        await write(session)
        await client.message()  # so the acknowledgement has been read
        await say(call, 300, "more")
        assert (await client.message())["deltas"][0]["text"] == "more"


async def test_folding_what_comes_gives_the_rows(session, token):
    async with live(session, token) as client:
        rows = (await client.message())["rows"]
        await sync_to_async(sessions.request_submit)(session.pk, "ping", "p", {}, by="system")
        rows = fold.fold_events(await client.events(2), rows)
        assert rows == await sync_to_async(fold.read_rows)(session.pk)


@pytest.mark.parametrize("since", [0, 1, 700, 1499, 1500])
async def test_it_resumes_from_any_seq_without_a_gap(session, token, since):
    await write(session, 1499)
    async with live(session, token, since) as client:
        await write(session, 10)
        events = await client.events(1510)
    assert [event["seq"] for event in events] == list(range(since + 1, 1511))


@pytest.mark.parametrize("since", [99, 5])
async def test_a_client_too_far_behind_or_ahead_gets_a_snapshot(session, token, since, monkeypatch):
    monkeypatch.setattr(websocket, "BEHIND_EVENTS", 10)
    await write(session, 20)
    async with live(session, token, since) as client:
        message = await client.message()
        assert (message["type"], message["seq"]) == ("snapshot", 21)


async def test_a_client_that_does_not_acknowledge_is_told_to_resume_and_goes_on_when_it_does(session, token):
    await write(session, 2499)
    async with live(session, token, 0) as client:
        got, message = [], await client.message()
        while message["type"] == "events":
            got += message["events"]
            message = await client.message()
        assert message == {"type": "resume", "from": 1000}
        assert len(got) == 1000
        assert await client.receive_nothing(0.1)
        await client.acknowledge(1000)
        got += await client.events(2500)
    assert [event["seq"] for event in got] == list(range(1, 2501))


async def test_a_client_that_never_acknowledges_is_closed_after_a_grace(session, token, monkeypatch):
    monkeypatch.setattr(websocket, "GRACE_S", 0.05)
    monkeypatch.setattr(websocket, "WINDOW_EVENTS", 2)
    await write(session, 5)
    async with live(session, token, 0) as client:
        assert await client.closed() == 4408


async def test_the_window_counts_bytes_too(session, token, monkeypatch):
    monkeypatch.setattr(websocket, "WINDOW_BYTES", 5_000)
    await write(session, 10, text="x" * 2_000)
    async with live(session, token, 0) as client:
        sent = 0
        while (message := await client.message())["type"] == "events":
            sent += len(json.dumps(message))
        assert message["type"] == "resume"
        assert sent < 8_000


def add_notes(session, count, size):
    """Rows of about `size` bytes each."""
    row = {
        "session_id": session.pk, "kind": "interaction", "by": "system", "created_at": NOW, "payload": {"plan": "x" * size},
    }  # fmt: skip
    add_rows(session.pk, "inbox", [{**row, "client_id": f"note-{next(NUMBERS)}"} for _ in range(count)])


async def test_a_large_snapshot_comes_in_pieces_and_is_followed_by_the_events(session, token, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(websocket, "WINDOW_BYTES", 30_000)
    await sync_to_async(add_notes)(session, 100, 1_000)
    expected = await sync_to_async(fold.stream_snapshot)(session.pk)
    async with live(session, token) as client:
        assert await client.snapshot() == expected
        await write(session, 3)
        assert await client.message() == {"type": "resume", "from": expected["seq"]}
        await client.acknowledge(expected["seq"])
        assert [event["seq"] for event in await client.events(expected["seq"] + 3)][-1] == expected["seq"] + 3


async def test_the_snapshot_alone_never_waits_for_an_acknowledgement(session, token, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(websocket, "WINDOW_BYTES", 2_000)
    monkeypatch.setattr(websocket, "GRACE_S", 0)
    await sync_to_async(add_notes)(session, 50, 500)
    async with live(session, token) as client:
        snapshot = await client.snapshot()
        assert len(snapshot["rows"]["inbox"]) == 50
        assert await client.receive_nothing(0.1)
        monkeypatch.setattr(websocket, "GRACE_S", DEADLINE_S)
        await client.acknowledge(snapshot["seq"])
        await write(session)
        assert len(await client.events(snapshot["seq"] + 1)) == 1


async def test_a_batch_of_events_stays_within_a_message(session, token):
    await write(session, 6, text="x" * 100_000)
    async with live(session, token, 1) as client:
        got = []
        while len(got) < 6:
            text = await client.receive_from(timeout=DEADLINE_S)
            assert len(text) < pieces.FRAME_BYTES
            got += json.loads(text)["events"]
            await client.acknowledge(got[-1]["seq"])
    assert [event["seq"] for event in got] == [2, 3, 4, 5, 6, 7]


async def test_an_event_larger_than_a_message_comes_in_parts(session, token):
    text = '"\\\n\u20ac\U0001f30d' * 200_000
    await write(session, 1, text=text)
    await write(session, 1, text="short")
    async with live(session, token, 1) as client:
        first, second = await client.events(3)
    assert first["data"]["text"] == text
    assert second["data"]["text"] == "short"


async def test_an_event_larger_than_the_window_is_sent_alone(session, token, monkeypatch):
    monkeypatch.setattr(websocket, "WINDOW_BYTES", 1_000)
    await write(session, 2, text="x" * 5_000)
    async with live(session, token, 1) as client:
        first = await client.message()
        assert [event["seq"] for event in first["events"]] == [2]
        await client.acknowledge(2)
        assert [event["seq"] for event in await client.events(3)] == [3]


# who is let in


async def test_a_token_may_come_as_a_subprotocol(session, token):
    async with live(session, subprotocols=["orrery", f"token.{token}"]) as client:
        assert (client.accepted, client.detail) == (True, "orrery")
        assert (await client.message())["type"] == "snapshot"


async def test_a_login_comes_with_a_cookie_from_a_page_of_ours(session, operator):
    cookie = await sync_to_async(cookie_of)(operator)
    async with live(session, headers=[cookie, ORIGIN]) as client:
        assert (await client.message())["type"] == "snapshot"


@pytest.mark.parametrize(
    "origin",
    [
        [],
        [(b"origin", b"https://evil.example")],
        [(b"origin", b"null")],
        [(b"origin", b"http://localhost:9000")],
        [(b"origin", b"http://localhost")],
        [(b"origin", b"https://localhost:8000")],
    ],
)
async def test_a_cookie_from_elsewhere_is_refused_before_the_handshake(session, operator, origin):
    cookie = await sync_to_async(cookie_of)(operator)
    client = Live(application, f"/ws/sessions/{session.pk}/", headers=[cookie, *origin])
    assert (await client.connect())[0] is False


@pytest.mark.parametrize(
    "headers", [[ORIGIN], [ORIGIN, (b"cookie", b"sessionid=nonsense")], [(b"authorization", b"Bearer nonsense")]]
)
async def test_without_a_login_it_closes_with_4401(session, headers):
    async with live(session, headers=headers) as client:
        assert (await client.message())["code"] == "not_authenticated"
        assert await client.closed() == 4401


async def test_a_token_without_the_scope_read_is_closed_with_4403(session, operator):
    _, text = await sync_to_async(make_token)(operator, "operate")
    async with live(session, text) as client:
        assert "read" in (await client.message())["message"]
        assert await client.closed() == 4403


async def test_a_session_of_somebody_else_is_closed_with_4404(session, viewer):
    _, text = await sync_to_async(make_token)(viewer, "read")
    for which in (session, 999_999):
        async with live(which, text) as client:
            assert await client.closed() == 4404


@pytest.mark.parametrize(
    ("since", "said"),
    [
        ("yesterday", "since must be the seq of an event"),
        ("1&since=2", "since: is given 2 times, and has one value"),
        ("1&sinse=2", "sinse: unknown parameter; did you mean since? Known are deltas, since"),
    ],
)
async def test_a_place_that_is_none_is_closed_with_4400(session, token, since, said):
    async with live(session, token, since=since) as client:
        assert (await client.message())["message"] == said
        assert await client.closed() == 4400


async def test_an_address_that_is_none_is_refused(token):
    client = Live(application, "/ws/nothing/", headers=[ORIGIN])
    assert (await client.connect())[0] is False


@pytest.mark.parametrize("message", [{"text_data": "{"}, {"bytes_data": b"\x00"}, {"text_data": '{"type": "ack", "seq": 99}'}])
async def test_a_malformed_message_is_answered_and_closed_with_4400(session, token, message):
    async with live(session, token, 1) as client:
        await client.send_to(**message)
        assert (await client.message())["code"] == "malformed"
        assert await client.closed() == 4400


@pytest.mark.parametrize("end", ["revoked", "expired", "inactive", "given away"])
async def test_a_login_that_ends_ends_the_connection(session, token, operator, viewer, end, monkeypatch):
    monkeypatch.setattr(followers, "RECHECK_S", 0.05)

    @sync_to_async
    def spoil():
        if end == "revoked":
            Token.objects.all().delete()
        elif end == "expired":
            Token.objects.update(expiry="2020-01-01T00:00:00Z")
        elif end == "inactive":
            type(operator).objects.filter(pk=operator.pk).update(is_active=False)
        else:
            type(session).objects.filter(pk=session.pk).update(owner=viewer)

    async with live(session, token) as client:
        assert (await client.message())["type"] == "snapshot"
        await spoil()
        assert await client.closed() == (4404 if end == "given away" else 4401)


async def test_a_logout_ends_the_connection(session, operator, monkeypatch):
    monkeypatch.setattr(followers, "RECHECK_S", 0.05)
    cookie = await sync_to_async(cookie_of)(operator)
    async with live(session, headers=[cookie, ORIGIN]) as client:
        assert (await client.message())["type"] == "snapshot"
        await sync_to_async(LoginSession.objects.all().delete)()
        assert await client.closed() == 4401


async def test_a_fault_of_ours_closes_with_4500(session, token, monkeypatch):
    def broken(stream):
        raise RuntimeError("a bug")

    monkeypatch.setattr(websocket, "stream_snapshot", broken)
    async with live(session, token) as client:
        assert await client.closed() == 4500


async def test_a_connection_that_ends_leaves_no_task_behind(session, token):
    before = asyncio.all_tasks()
    async with live(session, token) as client:
        await client.message()
    left = asyncio.all_tasks() - before
    assert not left or not (await asyncio.wait(left, timeout=DEADLINE_S))[1]


# the application around it, and a real server


async def test_the_application_answers_lifespan():
    sent, received = [], iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(received)

    async def send(message):
        sent.append(message["type"])

    await application({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.fixture
def listening():
    """A socket that listens already, so that nobody has to wait for the server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def daphne(listening, session, tmp_path):
    """Daphne as a process of its own on the test's database; gives its address."""
    own = {"DATABASE_URL": database_url(), "ORRERY_STATE_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "project.settings"}
    command = [sys.executable, "-m", "project.web_server", "--fd", str(listening.fileno()), "project.asgi:application"]
    log = tmp_path / "daphne.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **own}, stdout=out, stderr=out, pass_fds=[listening.fileno()]
        )
        try:
            yield f"ws://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait(STOP_S)
    assert "Traceback" not in log.read_text(), log.read_text()


def database_url():
    described = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{described['NAME']}"
    place = f"{described['HOST']}:{described['PORT']}" if described["PORT"] else described["HOST"]
    return f"postgresql://{described['USER']}:{described['PASSWORD']}@{place}/{described['NAME']}"


def read_message(client):
    frames = [read_frame(client)]
    while frames[-1]["type"] == "part" and frames[-1].get("more"):
        frames.append(read_frame(client))
    return joined(frames)


def read_frame(client):
    while (frame := json.loads(client.recv(START_S)))["type"] in BEATS:
        pass
    return frame


def read_snapshot(client):
    messages = [read_message(client)]
    while messages[-1].get("more"):
        messages.append(read_message(client))
    client.send(json.dumps({"type": "ack", "seq": messages[0]["seq"]}))
    return whole(messages)


def read_events(client, until):
    found = []
    while not found or found[-1]["seq"] < until:
        message = read_message(client)
        found += message.get("events", [])
        client.send(json.dumps({"type": "ack", "seq": found[-1]["seq"] if found else message["from"]}))
    return found


def test_on_daphne_events_of_another_process_come_and_are_resumed_without_a_gap(daphne, session, token):
    address, login = f"{daphne}/ws/sessions/{session.pk}/", {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=login, open_timeout=START_S) as client:
        assert read_snapshot(client)["seq"] == 1
        for number in range(60):
            record(session.pk, number=number)
        first = read_events(client, 61)
    for number in range(40):
        record(session.pk, number=number)
    with connect(f"{address}?since=61", additional_headers=login, open_timeout=START_S) as client:
        record(session.pk, number=40)
        later = read_events(client, 102)
    assert [event["seq"] for event in first + later] == list(range(2, 103))


def test_on_daphne_more_comes_than_it_sends_in_one_message(daphne, session, token):
    add_notes(session, 5_000, 800)
    add_notes(session, 1, 1_500_000)
    address, login = f"{daphne}/ws/sessions/{session.pk}/", {"Authorization": f"Bearer {token}"}
    expected = fold.stream_snapshot(session.pk)
    with connect(address, additional_headers=login, open_timeout=START_S) as client:
        assert read_snapshot(client) == expected
        record(session.pk, text="\u20ac" * 1_500_000)
        record(session.pk, text="after it")
        seq = expected["seq"]
        assert [len(event["data"]["text"]) for event in read_events(client, seq + 2)] == [1_500_000, len("after it")]
    with connect(f"{address}?since=1", additional_headers=login, open_timeout=START_S) as client:
        assert [event["seq"] for event in read_events(client, seq + 2)] == list(range(2, seq + 3))


def test_on_daphne_a_client_learns_why_it_is_refused(daphne, session):
    address = f"{daphne}/ws/sessions/{session.pk}/"
    with connect(address, open_timeout=START_S, subprotocols=["orrery", "token.nonsense"]) as client:
        assert json.loads(client.recv(START_S))["code"] == "not_authenticated"
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(START_S)
    assert closed.value.rcvd.code == 4401
    with pytest.raises(InvalidStatus, match="403"), connect(address, open_timeout=START_S, origin="https://evil.example"):
        pass


# heartbeats


async def heard(client, kind):
    """The next message of that kind."""
    while True:
        told = json.loads(await WebsocketCommunicator.receive_from(client, DEADLINE_S))
        if told["type"] == kind:
            return told


async def test_a_heartbeat_says_the_head_who_holds_it_and_how_it_stands(session, token):
    async with live(session, token) as client:
        beat = await heard(client, "heartbeat")
    assert (beat["seq"], beat["lease"]) == (1, None)
    assert beat["standing"] == {
        "name": "idle", "word": "Idle", "tone": "waiting", "waiting": 0, "waiting_others": 0,
        "reason": "Nothing was asked yet.",
    }  # fmt: skip


async def test_heartbeats_go_on_where_nothing_happens(session, token, monkeypatch):
    monkeypatch.setattr(standings, "BEAT_S", 0.01)
    async with live(session, token) as client:
        assert [(await heard(client, "heartbeat"))["seq"] for _ in range(3)] == [1, 1, 1]


async def test_another_standing_is_told_at_once(session, token):
    async with live(session, token) as client:
        await heard(client, "heartbeat")
        await sync_to_async(sessions.request_submit)(session.pk, "interaction", "c", {"plan": PLAN}, by="user:1")
        told = await heard(client, "standing")
    assert (told["standing"]["name"], told["standing"]["word"]) == ("queued", "Queued")
