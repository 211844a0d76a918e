"""The matrix of access over MCP, as it comes over HTTP: tools, resources, lists. See `access_tables.py`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings

from constellations.mcp import http, resources
from constellations.mcp.tools import TOOLS as THERE
from constellations.models import Edit, Task
from tests.attacks.access_tables import ARGUMENTS, ASKED_OF_MCP, PART_OF, PARTS, RESOURCES, TOOLS, Line
from tests.attacks.test_access_matrix import asked_about, expected, named, others, told, users, worlds  # noqa: F401  fixtures
from tests.attacks.worlds import Identity, World, pairs, taken_back

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _transaction_of_the_test(monkeypatch):
    """Channels looks after its connections as Django's requests do; Django's test client leaves that out, too."""
    monkeypatch.setattr("channels.db.close_old_connections", lambda: None)


def post(who: Identity, method: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """(status, the answer) of one request with the identity's token, or with the cookie of its login."""
    headers = [
        (b"host", b"localhost"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
    ]
    if who.token:
        headers.append((b"authorization", f"Bearer {who.token}".encode()))
    elif who.role:
        cookie = who.client.cookies[settings.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    scope = {
        "type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("localhost", 80), "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    return async_to_sync(_talk)(scope, body)


async def _talk(scope: dict[str, Any], body: bytes) -> tuple[int, dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message) -> None:
        sent.append(message)

    await http.answer_mcp(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(each.get("body", b"") for each in sent[1:]))


def refused(status: int, answer: dict[str, Any]) -> bool:
    return status != 200 or "error" in answer or bool(answer["result"].get("isError"))


def wanted_of(line: Line, who: Identity, own: bool) -> str:
    """A login is none here."""
    return expected(line, who, own) if who.token else "401"


def filled(line: Line, world: World) -> dict[str, Any]:
    """The tool's arguments, about rows of that world."""
    fields = vars(world)

    def put(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return fields.get(value, re.sub(r"{(\w+)}", lambda found: str(fields[found[1]]), value))

    return {key: put(value) for key, value in ARGUMENTS.get(line.address, {}).items()}


def address_of(template: str, world: World) -> str:
    kind = template.removeprefix("orrery://").split("/{part}")[0].split("/")
    parts: dict[str, Any] = {**PARTS, "part": PART_OF.get(kind[-2], "")}
    values = {key: vars(world).get(str(value), value) for key, value in parts.items()}
    values["id"] = {"approvals": world.approval, "sessions": world.interaction}.get(kind[0], world.constellation)
    return re.sub(r"{(\w+)}", lambda found: str(values[found[1]]), template)


def test_every_tool_and_every_address_has_its_line():
    assert set(THERE) == set(TOOLS)
    assert set(resources.ALL) == set(RESOURCES)


def graphs() -> tuple[int, int]:
    return Edit.objects.count(), Task.objects.count()


def test_tools_do_what_the_table_says(users, worlds):  # noqa: F811
    wrong = []
    for who, world, own in pairs(users, worlds):
        for line in asked_about(TOOLS, who, own):
            wanted, asked, before = wanted_of(line, who, own), named(who, own, line), graphs()
            with taken_back() as writes:
                status, answer = post(who, "tools/call", {"name": line.address, "arguments": filled(line, world)})
                after = graphs()
            text = json.dumps(answer)
            if refused(status, answer) != (wanted != "yes") or (wanted == "401") != (status == 401):
                wrong.append(f"{asked}: {status}, the table says {wanted}: {text[:200]}")
            if writes.found and (wanted != "yes" or THERE[line.address].reads):
                wrong.append(f"{asked}: it wrote {writes.found}")
            if "edit" in line.scope and not who.has_scope("edit") and after != before:
                wrong.append(f"{asked}: it changed the graph")
            wrong += [f"{asked}: names {marker}" for marker in others(who, line, worlds) if marker in text]
    assert not wrong, told(wrong)


def test_resources_and_lists_do_what_the_table_says(users, worlds):  # noqa: F811
    wrong = []
    for who, world, own in pairs(users, worlds):
        calls = [
            (line, "resources/read", {"uri": address_of(line.address, world)}) for line in asked_about(RESOURCES, who, own)
        ]
        calls += [(line, line.address, {}) for line in asked_about(ASKED_OF_MCP, who, own)]
        for line, method, params in calls:
            wanted, asked = wanted_of(line, who, own), named(who, own, line)
            with taken_back() as writes:
                status, answer = post(who, method, params)
            text = json.dumps(answer)
            if refused(status, answer) != (wanted != "yes") or (wanted == "401") != (status == 401):
                wrong.append(f"{asked}: {status}, the table says {wanted}: {text[:200]}")
            if writes.found:
                wrong.append(f"{asked}: it wrote {writes.found}")
            wrong += [f"{asked}: names {marker}" for marker in others(who, line, worlds) if marker in text]
    assert not wrong, told(wrong)
