"""MCP over standard input and output: `manage.py mcp` as a client starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.utils import timezone
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from agents.models import Token
from agents.services import sessions
from agents.services.devices import device_create
from agents.services.tokens import token_revoke
from constellations.models import Constellation
from tests.agents.conftest import make_token
from tests.constellations.planting import noop, plant, states
from tests.reliability.cluster import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live]
END_S = 60


@pytest.fixture
def digits(operator) -> Constellation:
    device_create("laptop", by="system")
    return plant(sessions.session_create(operator, "mine", by="system"), noop("fetch"))


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name != "ORRERY_TOKEN"}
    own = {"ORRERY_STATE_DIR": str(tmp_path), "DATABASE_URL": database_url(), "ORRERY_SECRET_KEY": settings.SECRET_KEY}
    return {**found, **own}


def talk_to(environment, token, what, mode="auto"):
    """What `what(client)` comes to with the server that the client starts."""
    env = {**environment, "ORRERY_TOKEN": token}
    manage = str(settings.BASE_DIR / "manage.py")
    server = StdioServerParameters(command=sys.executable, args=[manage, "mcp"], env=env)

    async def talk():
        async with Client(server, mode=mode) as client:
            return await what(client)

    return async_to_sync(talk)()


def run(environment, said="", **more):
    return subprocess.run(
        [sys.executable, "manage.py", "mcp"], cwd=settings.BASE_DIR, env={**environment, **more}, input=said, text=True,
        capture_output=True, timeout=END_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_edits_through_the_server_that_it_starts(environment, operator, digits, mode):
    async def edit(client):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        arguments = {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop"}
        made = await client.call_tool("add_task", arguments)
        wrong = await client.call_tool("add_task", {**arguments, "task_id": "b", "after": ["lnt"]})
        listed = await client.list_resources()
        return tools, made.structured_content, wrong, listed.resources[0].uri

    tools, made, wrong, uri = talk_to(environment, make_token(operator, "read", "edit")[1], edit, mode)
    assert ("build_constellation" in tools, made["version"]) == (True, 2)
    assert (wrong.is_error, wrong.content[0].text) == (
        True, "operation 1 (add_task), after[0]: there is no task lnt; did you mean lint?",
    )  # fmt: skip
    assert uri == f"orrery://constellations/{digits.pk}"
    assert set(states(digits)) == {"fetch", "lint"}


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_is_no_good_any_more_stops_at_once(environment, operator, digits, how):
    token, text = make_token(operator, "read")

    def end():
        if how == "revoked":
            token_revoke(token, by="system")
        else:
            Token.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))

    async def look(client):
        assert (await client.call_tool("get_constellation", {"constellation_id": digits.pk})).is_error is False
        await sync_to_async(end)()
        said = []
        for ask in (lambda: client.call_tool("get_constellation", {"constellation_id": digits.pk}), client.list_resources):
            try:
                await ask()
            except MCPError as error:
                said.append(str(error))
        return said

    said = talk_to(environment, text, look)
    words = "there is no such token" if how == "revoked" else "the token has expired"
    assert [words in each for each in said] == [True, True]


@pytest.mark.one_database
def test_a_key_that_is_there_twice_is_refused_as_over_http(environment, operator, digits):
    """The SDK would take the second."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add_task", "arguments": {"constellation_id": '
        f'{digits.pk}, "task_id": "lint", "task_id": "other", "tool": "noop"}}}}}}',
        '{"jsonrpc": "2.0", "id": 3, "id": 4, "method": "tools/list"}',
        "this is no JSON",
    ]
    done = run(environment, "".join(f"{line}\n" for line in lines), ORRERY_TOKEN=make_token(operator, "read", "edit")[1])
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    refused = {answer["id"]: answer["error"]["message"] for answer in answers if "error" in answer}
    assert refused == {
        2: "the message is not JSON: the key 'task_id' is there twice",
        None: "the message is not JSON: the key 'id' is there twice",
    }
    assert [answer["id"] for answer in answers if "result" in answer] == [1]
    assert (done.returncode, set(states(digits))) == (0, {"fetch"})


@pytest.mark.one_database
def test_without_a_token_it_says_how_to_make_one(environment):
    done = run(environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "CommandError: ORRERY_TOKEN is not set: "
        "make one with `manage.py token_create USER --scope read --scope edit` and put it into ORRERY_TOKEN"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.one_database
def test_with_a_bad_token_it_says_what_is_wrong(environment, operator):
    done = run(environment, ORRERY_TOKEN="orr_nonsense")
    assert done.returncode == 1
    assert "the token in ORRERY_TOKEN is no good: there is no such token. To have another, make one with" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.one_database
def test_it_ends_when_its_client_goes_away(environment, operator):
    done = run(environment, ORRERY_TOKEN=make_token(operator, "read")[1])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
