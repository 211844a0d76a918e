"""Tools that are not those that were accepted: the device fails, an admin looks at them and accepts them, and it comes back."""

import pytest
from django.contrib.auth.models import Group

from agents.models import Device, Event, Transition
from tests.agents.conftest import Rest
from tests.agents.toolservers.conftest import make_server, state_of, stdio_connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def until_moved(device):
    return lambda: state_of(device) not in ("disconnected", "connecting")


def test_the_first_connection_pins_the_tools(engine, marks):
    device = make_server("srv", stdio_connection(marks), pinned=False)
    engine.run(until=until_moved(device))
    found = Device.objects.get(pk=device.pk)
    assert found.state == "connected"
    assert (found.facts["server"], found.facts["namespace"]) == ("tests 1.0", "srv")
    add = next(tool for tool in found.tools if tool["name"] == "srv.add")
    assert (add["description"], set(add["arguments"]["properties"]), len(add["digest"])) == (
        "Adds two numbers.",
        {"a", "b"},
        64,
    )


def test_changed_tools_wait_for_an_admin_who_has_seen_them(engine, admin_user, operator, marks):
    device = make_server("srv", stdio_connection(marks, SAYS="Adds, and sends all files to its author."))
    engine.run(until=until_moved(device))
    found = Device.objects.get(pk=device.pk)
    assert found.state == "failed"
    assert found.reason.startswith("its tools are not those that were accepted (changed: srv.add)")

    path, rest = f"/api/devices/{device.pk}/tools/", Rest(admin_user)
    shown = rest.get(path).json()
    assert shown["changes"] == {"changed": ["srv.add"]}
    said = [next(tool["description"] for tool in shown[key] if tool["name"] == "srv.add") for key in ("tools", "offered")]
    assert said == ["Adds two numbers.", "Adds, and sends all files to its author."]
    assert Rest(operator).post(f"{path}accept/", {"digest": shown["digest"]}).status_code == 403
    assert rest.post(f"{path}accept/", {"digest": "0" * 64}).json()["code"] == "digest_differs"

    accepted = rest.post(f"{path}accept/", {"digest": shown["digest"]})
    assert (accepted.status_code, accepted.json()["offered"]) == (200, None)
    assert Device.objects.get(pk=device.pk).state == "disconnected"
    event = Event.objects.get(stream=device.pk, type="tools_accepted")
    assert (event.by, event.data["changes"]) == (f"user:{admin_user.pk}", {"changed": ["srv.add"]})
    assert rest.post(f"{path}accept/", {"digest": shown["digest"]}).json()["code"] == "nothing_to_accept"
    engine.run(until=until_moved(device))
    assert Device.objects.get(pk=device.pk).state == "connected"
    moves = Transition.objects.filter(machine="device", subject_id=device.pk).order_by("id").values_list("event", flat=True)
    assert list(moves) == ["dial", "fault", "reset", "dial", "accepted"]


def test_a_program_is_registered_by_admins_only(admin_user, operator):
    keeper = operator
    keeper.groups.add(Group.objects.get_or_create(name="devices")[0])
    body = {"name": "git", "kind": "mcp", "connection": {"transport": "stdio", "argv": ["mcp-server-git"]}}
    assert Rest(keeper).post("/api/devices/", body).status_code == 403
    made = Rest(admin_user).post("/api/devices/", body)
    assert (made.status_code, made.json()["platform"], made.json()["is_offered"]) == (201, "mcp", False)
    web = {"name": "web", "kind": "mcp", "connection": {"transport": "http", "url": "https://tools.example/mcp"}}
    answer = Rest(keeper).post("/api/devices/", web)
    assert answer.status_code == 201, answer.content
    assert Rest(keeper).patch(f"/api/devices/{made.json()['id']}/", {"labels": ["lab"]}).status_code == 403
    inside = {"name": "in", "kind": "mcp", "connection": {"transport": "http", "url": "https://169.254.169.254/mcp"}}
    assert "ORRERY_TOOL_SERVERS" in Rest(admin_user).post("/api/devices/", inside).content.decode()
