"""The example of a published tool server: its device is made as its README says, and its plan runs on a real runner."""

import json
import shutil
from pathlib import Path

import pytest

from agents.devices.local import DEFAULT_PATH
from agents.models import Device, Evidence, Session
from constellations.models import Constellation, Task
from tests.agents.conftest import Rest
from tests.agents.toolservers.conftest import state_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "toolserver"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("verified"),
    pytest.mark.skipif(
        not shutil.which("mcp-server-time", path=DEFAULT_PATH),
        reason="mcp-server-time is not installed: pip install -r requirements-dev.txt",
    ),
]


@pytest.fixture(autouse=True)
def behind_walls(settings):
    """As an installation has them."""
    settings.CONFINEMENT = "auto"


def test_the_server_is_enrolled_and_used_by_the_plan(engine, device, admin_user):
    made = Rest(admin_user).post("/api/devices/", json.loads((EXAMPLE / "device.json").read_text()))
    assert made.status_code == 201, made.content
    server = Device.objects.get(pk=made.json()["id"])
    engine.run(until=lambda: state_of(server) not in ("disconnected", "connecting"))
    server.refresh_from_db()
    assert (server.state, [tool["name"] for tool in server.tools]) == (
        "connected", ["time.convert_time", "time.get_current_time"],
    )  # fmt: skip

    found = engine.carry_out((EXAMPLE / "plan.yaml").read_text())
    tasks = {row.task_id: row for row in Task.objects.filter(constellation=found)}
    assert {row.state for row in tasks.values()} == {"COMPLETED"}
    assert {name: row.device.name for name, row in tasks.items()} == {"noon": "time", "both_ways": "time", "invite": "laptop"}
    assert tasks["noon"].result["time_difference"].startswith("+")
    assert set(tasks["both_ways"].result) == {"back", "now"}
    assert Evidence.objects.filter(tool__startswith="time.", success=True).count() == 3


def test_a_plan_that_calls_the_server_wrongly_is_refused_with_what_is_there(device, admin_user, engine):
    Rest(admin_user).post("/api/devices/", json.loads((EXAMPLE / "device.json").read_text()))
    server = Device.objects.get(name="time")
    engine.run(until=lambda: state_of(server) not in ("disconnected", "connecting"))
    rest = Rest(engine.owner)
    for task, said in [
        ({"tool": "time.convert_tim", "arguments": {}}, "did you mean time.convert_time?"),
        ({"tool": "time.get_current_time", "arguments": {}}, "time.get_current_time needs timezone"),
        ({"tool": "time.get_current_time", "arguments": {"timezone": 3}}, "must be text, not the number 3"),
        ({"tool": "time.get_current_time", "arguments": {"timezone": "UTC"}, "device": "laptop"}, "laptop does not offer"),
        ({"command": ["ls"], "device": "time"}, "time is a tool server, which has no tool command"),
    ]:
        answer = rest.post("/api/sessions/", {"title": "t", "plan": json.dumps({"tasks": [{"task_id": "one", **task}]})})
        assert (answer.status_code, said in answer.content.decode()) == (400, True), answer.content
    assert not Constellation.objects.exists()
    assert Session.objects.count() <= 1
