"""MCP over HTTP: a real daphne, another ASGI server, the SDK's own client, and requests as no client of the SDK makes them."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agents.services import sessions
from agents.services.devices import device_create
from agents.services.tokens import token_revoke
from agents.streams.verify import verify_database
from constellations.models import Constellation, Edit
from tests.agents.conftest import make_token
from tests.constellations.planting import noop, plant
from tests.reliability.cluster import database_url, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live]

STOP_S = 60.0
"""Within which a server has to be gone after SIGTERM; what is wrong when a thread or a task holds it up lasts for ever."""
SERVERS = {
    "daphne": ("-m", "project.web_server", "--bind", "127.0.0.1", "--port"),
    "uvicorn": ("-m", "uvicorn", "--host", "127.0.0.1", "--lifespan", "on", "--port"),
}
LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Web:
    """The application in a server process of its own, on the test's database."""

    def __init__(self, folder: Path, server: str = "daphne"):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._log = folder / "web.log"
        env = {
            **os.environ, "ORRERY_STATE_DIR": str(folder), "DATABASE_URL": database_url(),
            "ORRERY_SECRET_KEY": settings.SECRET_KEY,
        }  # fmt: skip
        argv = [sys.executable, *SERVERS[server], str(self.port), "project.asgi:application"]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(argv, cwd=settings.BASE_DIR, env=env, stdout=log, stderr=log)
        until(self._answers, f"{server}, see {self._log}")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        try:
            return self.request("GET", "/health/")[0] == 200
        except OSError:
            return False

    def request(self, method: str, path: str = "/mcp", body=None, **headers: str):
        """(status, headers, the body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(body) if body is not None else None, sent)
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def ask(self, token: str, what, mode: str = "auto"):
        """What `what(client)` comes to for the SDK's client with that token."""

        async def talk():
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as library,
                Client(streamable_http_client(self.url, http_client=library), mode=mode) as client,
            ):
                return await what(client)

        return async_to_sync(talk)()

    def has_library(self) -> bool:
        """Whether the SDK was imported: the compiled part of what it needs is then mapped."""
        return "pydantic_core" in Path(f"/proc/{self.process.pid}/maps").read_text()

    def end(self) -> int:
        """SIGTERM: the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture(scope="module")
def web(django_db_setup, tmp_path_factory) -> Iterator[Web]:
    """One for all: it keeps nothing between two requests, whatever becomes of the database's rows. At last it ends."""
    made = Web(tmp_path_factory.mktemp("web"))
    try:
        yield made
        assert made.end() in (0, -signal.SIGTERM)
        assert "Traceback" not in made.log()
    finally:
        made.kill()


@pytest.fixture
def digits(operator) -> Constellation:
    session = sessions.session_create(operator, "mine", by="system")
    device_create("laptop", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]))


@pytest.fixture
def token(operator) -> str:
    return make_token(operator, "read", "edit", name="claude")[1]


def added(constellation: Constellation, task_id: str):
    async def add(client):
        arguments = {"constellation_id": constellation.pk, "task_id": task_id, "tool": "noop"}
        return (await client.call_tool("add_task", arguments)).structured_content

    return add


def headers(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **ACCEPTED, **more}


@pytest.mark.parametrize("server", SERVERS)
def test_the_sdks_client_edits_over_http_and_the_server_ends_when_it_is_told_to(tmp_path, digits, token, server):
    web = Web(tmp_path, server)
    try:
        assert not web.has_library(), "nobody has asked for MCP yet"
        for number, mode in enumerate(("auto", "legacy")):
            assert web.ask(token, added(digits, f"{mode}-{number}"), mode)["changed"] is True
        text = web.ask(token, lambda client: client.read_resource(f"orrery://constellations/{digits.pk}")).contents[0].text
        assert json.loads(text)["version"] == 3
        assert web.has_library()
        assert web.end() in (0, -signal.SIGTERM)
        assert "Traceback" not in web.log()
    finally:
        web.kill()
    assert Edit.objects.count() == 2
    assert list(verify_database()) == []


def test_many_clients_at_once_are_all_answered(web, digits, token):
    async def storm(client):
        calls = [
            client.call_tool("add_task", {"constellation_id": digits.pk, "task_id": f"t{n}", "tool": "noop"}) for n in range(20)
        ]
        return [result.structured_content["changed"] for result in await asyncio.gather(*calls)]

    assert web.ask(token, storm) == [True] * 20
    assert digits.tasks.count() == 22


def test_two_servers_answer_one_client(web, tmp_path, digits, token):
    other = Web(tmp_path)
    try:
        for number, each in enumerate((web, other, web)):
            assert each.ask(token, added(digits, f"t{number}"), "legacy")["version"] == number + 2
    finally:
        other.kill()


def test_without_a_good_token_there_is_nothing(web, operator, token):
    login = SessionStore()
    login["_auth_user_id"], login["_auth_user_backend"] = str(operator.pk), "django.contrib.auth.backends.ModelBackend"
    login["_auth_user_hash"] = operator.get_session_auth_hash()
    login.save()
    cookie = f"{settings.SESSION_COOKIE_NAME}={login.session_key}"
    assert web.request("GET", "/api/sessions/", Cookie=cookie)[0] == 200
    for sent in ({}, {"Cookie": cookie}, {"Authorization": "Bearer orr_nonsense"}, {"Authorization": f"Basic {token}"}):
        status, found, body = web.request("POST", body=LISTED, **ACCEPTED, **sent)
        assert (status, found["www-authenticate"], found["content-type"]) == (401, "Bearer", "application/problem+json")
        assert json.loads(body)["code"] == "not_authenticated"


def test_a_revoked_token_is_refused_at_once(web, operator):
    row, text = make_token(operator, "read")
    assert web.request("POST", body=LISTED, **headers(text))[0] == 200
    token_revoke(row, by="system")
    status, _, body = web.request("POST", body=LISTED, **headers(text))
    assert (status, json.loads(body)["detail"]) == (401, "there is no such token")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"Host": "evil.example"}, 421, "misdirected_request"),
        ({"Host": ""}, 421, "misdirected_request"),
        ({"Origin": "https://evil.example"}, 403, "permission_denied"),
        ({"Origin": "null"}, 403, "permission_denied"),
        ({"Origin": "http://["}, 403, "permission_denied"),
    ],
)
def test_host_and_origin_are_those_of_the_installation(web, token, sent, status, code):
    found, _, body = web.request("POST", body=LISTED, **headers(token, **sent))
    assert (found, json.loads(body)["code"]) == (status, code)


def test_a_page_of_ours_may_ask(web, token):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        sent = {"Origin": f"http://{name}:{web.port}", "Host": f"{name}:{web.port}"}
        assert web.request("POST", body=LISTED, **headers(token, **sent))[0] == 200
    assert web.request("POST", "/mcp/", body=LISTED, **headers(token))[0] == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_are_no_streams_and_no_sessions(web, token, method):
    status, found, body = web.request(method, **headers(token))
    assert (status, found["allow"], json.loads(body)["code"]) == (405, "POST", "method_not_allowed")


@pytest.mark.parametrize(
    ("body", "status"),
    [("{", 400), ("[]", 400), ('{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', 200), ("x" * 3_000_000, 413)],
    ids=["not JSON", "a batch", "no such method", "too large"],
)
def test_what_is_no_request_is_refused_without_a_traceback(web, token, body, status):
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    connection.request("POST", "/mcp", body, headers(token))
    answer = connection.getresponse()
    said = answer.read().decode()
    assert answer.status == status, said
    assert "Traceback" not in said + web.log()


def test_a_body_that_is_too_large_is_refused_as_everywhere(web, token):
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    for body in ("x" * 3_000_000, iter([b"x" * 1_500_000] * 2)):  # of a length that is told, and in pieces
        connection.request("POST", "/mcp", body, headers(token))
        answer = connection.getresponse()
        said = json.loads(answer.read())
        assert (answer.status, answer.headers["content-type"]) == (413, "application/problem+json")
        assert (said["code"], said["detail"]) == ("body_too_large", "a body has at most 2000000 bytes here")


@pytest.mark.parametrize("name", ["\ud800", "a\x00b", "add_task" * 1000])
def test_a_tool_with_an_impossible_name_is_none(web, token, name):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    status, _, body = web.request("POST", body=asked, **headers(token))
    assert status in (200, 400)
    assert "Traceback" not in body.decode() + web.log()
    answer = json.loads(body)
    assert "error" in answer or answer["result"]["isError"] is True


def test_a_client_that_goes_away_leaves_nothing_behind(tmp_path, digits, token):
    """A server of its own, which ends here: what nobody waits for any more has to be over before its tables are emptied."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_constellations"}})
    web = Web(tmp_path)
    try:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", web.port)) as gone:
                lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{web.port}", f"Content-Length: {len(body)}"]
                lines += [f"{name}: {value}" for name, value in headers(token).items()]
                gone.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        assert web.request("POST", body=LISTED, **headers(token))[0] == 200
        assert web.end() in (0, -signal.SIGTERM)
        assert "Traceback" not in web.log()
    finally:
        web.kill()
