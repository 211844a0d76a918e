"""The matrix of access over what lasts: websockets and server-sent events; and which doors the ASGI application has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings

from project import asgi
from tests.agents.conftest import closed_connections  # noqa: F401  a fixture
from tests.attacks.access_tables import LIVE, Line
from tests.attacks.test_access_matrix import asked_about, expected, named, others, readable, told, users, worlds  # noqa: F401  fixtures
from tests.attacks.worlds import Identity, World, pairs

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

PATIENCE_S = 60
CLOSED = {4401: "401", 4403: "403", 4404: "404"}


def test_every_door_of_the_application_has_its_line():
    """What is not Django's: routes of websockets, and addresses that are recognised before Django sees them.

    Devices open theirs with a token that no person has: tests/attacks/test_device_link.py.
    """
    sockets = {readable(str(route.pattern)) for route in asgi.routes} - {"/"}
    assert sockets == {
        re.sub("{pk}", "{session}", each.address.split()[1]).rstrip("/") for each in LIVE.values() if "/ws/" in each.address
    }
    assert {name for name, value in vars(asgi).items() if isinstance(value, re.Pattern)} == {"DEVICES", "MCP", "STREAM"}


def headers_of(who: Identity) -> list[tuple[bytes, bytes]]:
    found = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    if who.token:
        found.append((b"authorization", f"Bearer {who.token}".encode()))
    elif who.role:
        cookie = who.client.cookies[settings.SESSION_COOKIE_NAME].value
        found.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    return found


async def over_websocket(path: str, who: Identity) -> tuple[str, str]:
    """(yes or a status, the first message)"""
    client = WebsocketCommunicator(asgi.application, path, headers=headers_of(who))
    accepted, code = await client.connect(timeout=PATIENCE_S)
    try:
        if not accepted:
            return str(code), ""
        first = await client.receive_from(timeout=PATIENCE_S)
        if json.loads(first)["type"] != "error":
            return "yes", first
        closed = await client.receive_output(PATIENCE_S)
        return CLOSED.get(closed["code"], str(closed["code"])), first
    finally:
        await client.disconnect(timeout=PATIENCE_S)


async def over_sse(path: str, who: Identity) -> tuple[str, str]:
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers_of(who),
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    wire = ApplicationCommunicator(asgi.application, scope)
    await wire.send_input({"type": "http.request", "body": b""})
    status = (await wire.receive_output(PATIENCE_S))["status"]
    text = (await wire.receive_output(PATIENCE_S))["body"].decode()
    if status == 200:
        text += (await wire.receive_output(PATIENCE_S))["body"].decode()
        await wire.send_input({"type": "http.disconnect"})
    await wire.wait(PATIENCE_S)
    return ("yes" if status == 200 else str(status)), text


DOORS = {"websocket": over_websocket, "SSE": over_sse}


async def wrong_of(asked: list[tuple[Identity, bool, Line, World]], worlds: dict[str, World]) -> list[str]:  # noqa: F811
    wrong = []
    for who, own, line, world in asked:
        door, path = line.address.split()
        status, text = await DOORS[door](path.replace("{pk}", str(world.session)), who)
        wanted = expected(line, who, own)
        if status != wanted:
            wrong.append(f"{named(who, own, line)}: {status}, the table says {wanted}")
        wrong += [f"{named(who, own, line)}: names {marker}" for marker in others(who, line, worlds) if marker in text]
    return wrong


@pytest.fixture
def asked(users, worlds) -> list[tuple[Identity, bool, Line, World]]:  # noqa: F811
    return [(who, own, line, world) for who, world, own in pairs(users, worlds) for line in asked_about(LIVE, who, own)]


async def test_live_views_do_what_the_table_says(asked, worlds, closed_connections):  # noqa: F811
    wrong = await wrong_of(asked, worlds)
    assert not wrong, told(wrong)


PATHS = (
    "/static/../secret_key",
    "/static/%2e%2e/secret_key",
    "/static/..%2fsecret_key",
    "/static//etc/passwd",
    "/static/./../db",
)


@pytest.mark.parametrize("path", PATHS)
async def test_static_files_are_those_of_the_static_folders(path):
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"host", b"localhost")]}
    wire = ApplicationCommunicator(asgi.application, scope)
    await wire.send_input({"type": "http.request", "body": b""})
    assert (await wire.receive_output(PATIENCE_S))["status"] in (400, 404)
