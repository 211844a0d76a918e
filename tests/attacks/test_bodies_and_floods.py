"""Bodies without end, slow senders, floods over websockets: what one client does costs the others nothing."""

import contextlib
import json
import struct
import time
from http.client import HTTPConnection

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from agents.models import Token
from agents.services import sessions
from agents.services.tokens import token_revoke
from tests.agents.conftest import make_token
from tests.attacks.web_server import WAIT_S, problem_in, read_answer, web_server
from tests.project.installation import until

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

PIECE = b"x" * (1 << 20)
HUGE_MB = 300
ROOM_MB = 60
"""What the server may grow by: one body of those that are allowed, and what its first requests import."""
SHORT_S = 1.0
HEAD = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{length}\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def server(django_db_setup, tmp_path_factory):
    with web_server(tmp_path_factory.mktemp("server"), ORRERY_LIVE_VIEWS_PER_USER="2") as found:
        yield found


@pytest.fixture(scope="module")
def hasty_server(django_db_setup, tmp_path_factory):
    """Its clients have little time."""
    with web_server(tmp_path_factory.mktemp("hasty"), SHORT_S, ORRERY_CONNECTIONS_PER_ADDRESS="5") as found:
        yield found


@pytest.fixture
def live_address(server, operator):
    """Address of a session's live view, and the headers of one who may see it."""
    session = sessions.session_create(operator, "mine", by="system")
    headers = {"Authorization": f"Bearer {make_token(operator, 'read')[1]}"}
    return f"ws://127.0.0.1:{server.port}/ws/sessions/{session.pk}/", headers


def send_huge(server, path, chunked, kind="application/json"):
    """Send until the server has enough, or all of it; returns its answer."""
    length = CHUNKED if chunked else f"Content-Length: {HUGE_MB << 20}"
    with server.connect() as client:
        client.sendall(HEAD.format(path=path, kind=kind, length=length).encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(HUGE_MB):
                client.sendall(b"%x\r\n%s\r\n" % (len(PIECE), PIECE) if chunked else PIECE)
        return read_answer(client)


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "in chunks"])
def test_a_body_without_end_is_refused_while_it_comes_and_takes_no_memory(server, chunked):
    server.ask()
    before = server.memory_mb()
    kinds = {"/login/": "multipart/form-data; boundary=x", "/mcp": "application/json"}
    for path in ("/api/sessions/", "/api/import/check", "/mcp", "/login/"):
        answer = send_huge(server, path, chunked, kinds.get(path, "application/json"))
        assert (path, *problem_in(answer)) == (path, 413, "body_too_large")
    assert server.memory_mb() - before < ROOM_MB
    assert server.ask()[0] == 200


def test_a_body_of_the_allowed_size_arrives(server, operator):
    token = make_token(operator, "read", "operate")[1]
    body = json.dumps({"plan": "x" * 900_000}).encode()
    answer = server.ask(
        "POST", "/api/sessions/", body, **{"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    )
    assert answer[0] == 400  # it is no plan, but it was read
    assert b"plan" in answer[2]


@pytest.mark.parametrize(
    ("begun", "what"),
    [(b"GET / HTT", "the request"), (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", "the request"),
     (b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n", "the body"),
     (b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "the body")],
    ids=["a line", "headers", "a body", "chunks"],
)  # fmt: skip
def test_whoever_sends_too_slowly_is_told_and_loses_the_connection(hasty_server, begun, what):
    with hasty_server.connect() as client:
        client.sendall(begun)
        answer = read_answer(client)
    assert problem_in(answer) == (408, "too_slow")
    assert what in json.loads(answer[2])["detail"]


def test_a_request_that_comes_in_time_does_not_end_a_connection_that_stays(hasty_server):
    request = b"GET /health/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with hasty_server.connect() as client:
        for _ in range(3):
            client.sendall(request)
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.sendall(request[:9])
        client.sendall(request[9:-4] + b"\r\nConnection: close\r\n\r\n")
        assert read_answer(client)[0] == 200


def answered(server, held):
    """One more connection that is answered, or None where the server does not want it."""
    client = held.enter_context(server.connect())
    with contextlib.suppress(ConnectionError):
        client.sendall(b"GET /health/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if client.recv(65536).startswith(b"HTTP/1.1 200"):
            return client
    return None


def test_an_address_has_so_many_connections(hasty_server):
    """The server learns a little later that earlier ones have ended: until then they count."""
    with contextlib.ExitStack() as held:
        wanted = []
        until(lambda: wanted.append(answered(hasty_server, held)) or len([*filter(None, wanted)]) == 5, WAIT_S, str)
        assert answered(hasty_server, held) is None
    with contextlib.ExitStack() as held:
        until(lambda: answered(hasty_server, held), WAIT_S, str)


def send_without_end(client, frame):
    for _ in range(100_000):
        frame(client)


def read_to_the_end(client):
    while True:
        client.recv(WAIT_S)


def flood(client, frame):
    """The code of the close with which the server ends it."""
    with pytest.raises(ConnectionClosed):
        send_without_end(client, frame)
    with pytest.raises(ConnectionClosed) as closed:
        read_to_the_end(client)
    return closed.value.rcvd.code


FLOODS = {
    "acknowledgements": lambda client: client.send('{"type": "ack", "seq": 0}'),
    "pings": lambda client: client.ping(),
    "empty pieces": lambda client: client.send(["", "", ""]),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_client_that_floods_is_closed_with_4400(live_address, kind):
    address, headers = live_address
    with connect(address, additional_headers=headers, open_timeout=WAIT_S) as client:
        client.recv(WAIT_S)
        assert flood(client, FLOODS[kind]) == 4400


def test_a_large_message_is_refused_by_its_length(live_address, server):
    """The length alone is enough: nothing of it is waited for."""
    address, headers = live_address
    with connect(address, additional_headers=headers, open_timeout=WAIT_S) as client:
        client.recv(WAIT_S)
        client.socket.sendall(b"\x81\xff" + struct.pack("!Q", 1_000_000) + b"mask")
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(WAIT_S)
        assert closed.value.rcvd.code == 4400


def test_what_a_client_sends_is_never_unpacked(live_address):
    address, headers = live_address
    with connect(address, additional_headers=headers, open_timeout=WAIT_S, compression="deflate") as client:
        assert client.protocol.extensions == []


def test_a_user_has_so_many_live_views(live_address, server):
    address, headers = live_address
    with contextlib.ExitStack() as held:
        for _ in range(2):
            held.enter_context(connect(address, additional_headers=headers, open_timeout=WAIT_S)).recv(WAIT_S)
        with connect(address, additional_headers=headers, open_timeout=WAIT_S) as surplus:
            with pytest.raises(ConnectionClosed) as closed:
                surplus.recv(WAIT_S)
            assert closed.value.rcvd.code == 4429
        session = address.rstrip("/").rpartition("/")[2]
        assert problem_in(server.ask("GET", f"/api/sessions/{session}/stream/", **headers)) == (429, "too_many_live_views")


def test_a_page_of_another_port_gets_no_websocket_by_cookie(server, operator, client):
    client.force_login(operator)
    session = sessions.session_create(operator, "mine", by="system")
    cookie = {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}
    address = f"ws://localhost:{server.port}/ws/sessions/{session.pk}/"
    with connect(address, additional_headers=cookie, origin=f"http://localhost:{server.port}", open_timeout=WAIT_S) as own:
        assert json.loads(own.recv(WAIT_S))["type"] == "snapshot"
    for origin in (f"http://localhost:{server.port + 1}", "http://localhost", f"https://localhost:{server.port}"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(address, additional_headers=cookie, origin=origin, open_timeout=WAIT_S)


REVOKED_S = 10.0
"""It should be 2 s; the machine may be busy. It was a minute."""


@pytest.mark.parametrize("end", ["revoked", "inactive"])
def test_whoever_may_no_longer_see_a_session_is_cut_off_at_once(live_address, server, operator, end):
    address, headers = live_address
    session = address.rstrip("/").rpartition("/")[2]
    stream = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
    stream.request("GET", f"/api/sessions/{session}/stream/", headers=headers)
    answer = stream.getresponse()
    assert answer.readline().startswith(b"retry")
    with connect(address, additional_headers=headers, open_timeout=WAIT_S) as client:
        client.recv(WAIT_S)
        if end == "revoked":
            token_revoke(Token.objects.get(), by="system")
        else:
            operator.is_active = False
            operator.save()
        began = time.monotonic()
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(client)
        assert closed.value.rcvd.code == 4401
        answer.read()  # until it ends
        assert time.monotonic() - began < REVOKED_S
    stream.close()
