"""Coding agents and tool servers that turn out hostile: what they get behind each kind of walls that this machine has."""

from __future__ import annotations

import json

import pytest

from tests.attacks.ground import KINDS, OF_THE_HOST, PACKAGES, ROOT, WALLED, laid_out, name_kind

pytestmark = pytest.mark.attack

AGENT = ROOT / "tests" / "agents" / "coding" / "scripted_agent.py"
SERVER = ROOT / "tests" / "agents" / "toolservers" / "server_program.py"
# The process of a runner's that holds the device: opens it as runners do, makes one call, prints how that ended. Arguments:
# mechanism, state folder, the device's kind, its connection, and the call's tool and arguments. All that is asked is allowed.
HOLDER = """
import asyncio, json, os, sys
mechanism, state, kind, connection, tool, arguments = sys.argv[1:]
os.environ |= {"DJANGO_SETTINGS_MODULE": "project.settings", "ORRERY_STATE_DIR": state, "ORRERY_CONFINEMENT": mechanism,
               "ORRERY_SECRET_KEY": "of the tests alone", "PYTHONPATH": ""}
import django
django.setup()
from agents.links.kinds import OPENERS
from agents.tools.calls import Call
async def main():
    device = {"id": 7, "name": "laptop", "kind": kind, "limits": {}, "facts": {}, "tools": []}
    device["connection"] = json.loads(connection)
    opened = await OPENERS[kind](device)
    call = Call(attempt=7, session=1, tool=tool, arguments=json.loads(arguments), device=device, timeout=None)
    def allow(what, data):
        if what == "leave":
            call.told.put_nowait(("answer", {"ask": data["n"], "leave": True}))
    call.on_update = allow
    ended = await opened.connection.call(call)
    await opened.connection.close()
    print(json.dumps([ended.outcome, ended.error, ended.text, dict(opened.facts)]))
asyncio.run(main())
"""


def have_agent_run(ground, argv: list[str]) -> tuple[str, dict]:
    """What a command of a coding agent prints, and the facts of its device. It leaves that in its workspace."""
    connection = {
        "profile": "opencode", "argv": [ground.python, str(AGENT)], "edits": "none", "env": {"PYTHONPATH": PACKAGES},
        "model": "m", "base_url": "http://127.0.0.1:9",
    }  # fmt: skip
    steps = [{"run": ["sh", "-c", 'exec "$@" >told', "sh", *argv]}, {"say": "Done."}]
    prompt = {"prompt": "DO: " + json.dumps(steps)}
    said, ended = ground.run("acp", json.dumps(connection), "instruction", json.dumps(prompt))
    assert ended[:2] == ["completed", ""], (said, ended)
    return (ground.state / "workspaces" / "laptop" / "told").read_text(), ended[3]


def have_server_run(ground, argv: list[str]) -> str:
    """What a command of a tool server prints."""
    connection = {"transport": "stdio", "argv": [ground.python, str(SERVER), "stdio"], "env": {"PYTHONPATH": PACKAGES}}
    said, ended = ground.run("mcp", json.dumps(connection), "laptop.run", json.dumps({"argv": argv}))
    assert ended[:2] == ["completed", ""], (said, ended)
    return ended[2]


@pytest.mark.parametrize("kind", WALLED, ids=name_kind)
def test_a_coding_agent_works_in_its_workspace_and_gets_nothing_else(kind):
    with laid_out(kind, HOLDER) as ground:
        told, facts = have_agent_run(ground, ground.break_out())
        assert (json.loads(told), facts["isolation"]) == ([], ground.mechanism)
        assert ground.working() == []


@pytest.mark.parametrize("kind", KINDS, ids=name_kind)
def test_a_tool_server_works_in_its_workspace_and_gets_nothing_else(kind):
    with laid_out(kind, HOLDER) as ground:
        got = set(json.loads(have_server_run(ground, ground.break_out())))
        assert got <= (OF_THE_HOST if ground.mechanism == "uid" else set())
        have_server_run(ground, ["touch", "mine"])
        assert (ground.state / "workspaces" / "laptop" / "mine").exists()
        assert ground.working() == []
