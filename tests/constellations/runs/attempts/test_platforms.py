"""Agents of several platforms: each looks with the tool of its own, and whoever is asked is shown what that saw."""

import asyncio

import pytest

from agents.devices.profiles.platforms import platform_of_kind
from agents.links import kinds
from agents.models import Agent, Approval, Evidence
from agents.services import policies
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.tools.calls import Outcome
from constellations.models import Task
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.constellations.runs.attempts.test_crews import WAITING
from tests.constellations.runs.attempts.test_minds import call, model  # noqa: F401  a fixture, too

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


CLOCK = {"name": "clock.now", "description": "d", "arguments": {"type": "object"}}


class Connection:
    """The connection of a device that answers every call with its name, and is there until it is closed."""

    def __init__(self):
        self.made: list[str] = []

    async def call(self, call):
        self.made.append(call.tool)
        return Outcome("completed", result={"saw": call.tool})

    async def closed(self):
        return await asyncio.get_running_loop().create_future()

    async def close(self):
        pass


@pytest.fixture
def connect(monkeypatch):
    """A function that makes a device of a kind that this test connects itself; its connection."""

    def make(kind: str, **more) -> Connection:
        connection = Connection()

        async def opener(row):
            return kinds.Opened(connection, {"version": "1"}, [CLOCK])

        monkeypatch.setitem(kinds.OPENERS, kind, opener)
        device_create("far", kind=kind, by="system", **more)
        return connection

    return make


def gated(**more) -> dict:
    return {"tasks": [{"task_id": "work", "device": "far", "tool": "noop", "confirm": True, **more}]}


def decide(engine, decision: str = "approve") -> Approval:
    engine.run(WAITING)
    approval = Approval.objects.get(state="waiting")
    approval_decide(approval.pk, decision, by="user:1", digest=approval.digest)
    engine.run()
    return approval


@pytest.mark.parametrize(
    ("kind", "platform"),
    [("local", "shell"), ("remote", "shell"), ("mcp", "mcp"), ("acp", "acp"), ("browser", "browser"), ("odd", "odd")],
)
def test_the_platform_of_a_device_follows_from_its_kind(kind, platform):
    assert platform_of_kind(kind) == platform


def test_unless_it_is_said(transactional_db):
    assert device_create("far", kind="browser", by="system").platform == "browser"
    assert device_create("other", kind="browser", platform="shell", by="system").platform == "shell"


def test_who_is_asked_about_a_browsers_task_sees_what_its_own_tool_saw(engine, connect):
    connection = connect("browser")
    engine.submit(gated())
    approval = decide(engine)
    assert approval.observed == {"saw": "browser.look"}
    assert connection.made == ["browser.look", "noop"]
    assert Evidence.objects.get(kind="observe").tool == "browser.look"
    assert Task.objects.get().state == "COMPLETED"


def test_what_a_tool_server_looks_like_is_what_it_said_of_itself(engine, connect):
    connection = connect("mcp", connection={"transport": "http", "url": "https://tools.example/mcp"})
    engine.submit(gated())
    assert decide(engine).observed == {"device": "far", "facts": {"version": "1"}, "tools": ["clock.now"]}
    assert connection.made == ["noop"]


def test_a_look_is_judged_by_the_name_of_the_tool_that_would_look(engine, connect):
    policies.policy_create(by="system", decision="deny", tool="browser.look")
    connection = connect("browser")
    engine.submit(gated())
    assert decide(engine).observed is None
    assert connection.made == ["noop"]


def test_a_step_that_looks_brings_what_the_platform_sees(engine, connect):
    connect("browser")
    found = engine.carry_out({"tasks": [{"task_id": "work", "device": "far", "steps": [{"observe": True, "save": "seen"}]}]})
    assert found.tasks.get().result == {"seen": {"saw": "browser.look"}}


def test_who_is_to_confirm_a_models_call_sees_what_it_is_about(engine, connect, model):  # noqa: F811
    connection = connect("browser", unasked={"tools": ["noop"]})
    model(call("confirm", tool="clock__now", arguments={}, why="It costs."), call("finish", result="bought"))
    engine.submit({"tasks": [{"task_id": "work", "device": "far", "description": "Buy it."}]})
    approval = decide(engine)
    assert (approval.observed, approval.action["tool"]) == ({"saw": "browser.look"}, "clock.now")
    assert connection.made == ["browser.look", "clock.now"]
    assert (Task.objects.get().result, Agent.objects.get(machine="device_agent").state) == ("bought", "FINISH")
