"""Devices as a way out: names that lead elsewhere, limits without end, and who may make them."""

import json
import threading

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections

from agents.devices.profiles.ceilings import CEILINGS
from agents.devices.profiles.names import name_fault
from agents.devices.profiles.profile import BeyondCeiling, DeviceRejected
from agents.models import Device, Event
from agents.services.devices import DeviceExists, device_change, device_create
from agents.tools.command import artifacts_folder
from agents.tools.workspaces import NoWorkspace, device_workspace
from constellations.models import Task
from project.environment import ceilings_of
from tests.agents.conftest import Rest, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]
BAD = [
    "", ".", "..", "...", "../x", "/", "a/b", "a\\b", "-rf", ".hidden", "x.", "a..b", " x", "x ", "a b", "a\nb", "x\n",
    "a\x00b", "a\x1b[2J", "con", "NUL", "nul.txt", "com1", "LPT9.log", "x" * 81, "l\u0430ptop", "\uff4captop", "cafe\u0301",
    "a\u200bb", "\u202eabc", "~", "$HOME", "*", "%2e%2e",
]  # fmt: skip
GOOD = ["laptop", "gpu_server", "a", "7", "x.y-z_1", "console", "x" * 80]


@pytest.fixture
def keeper(operator):
    """Somebody who may make devices and is no admin."""
    operator.groups.add(Group.objects.get_or_create(name="devices")[0])
    return operator


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_leads_elsewhere_is_none(admin_user, name):
    answer = Rest(admin_user).post("/api/devices/", {"name": name})
    assert answer.status_code == 400
    assert {each["key"] for each in answer.json()["problems"]} <= {"name"}  # a body with NUL is refused as a whole
    with pytest.raises(DeviceRejected):
        device_create(name, by="system")
    with pytest.raises(NoWorkspace, match="has no workspace"):
        device_workspace(name)
    assert not Device.objects.exists()


@pytest.mark.parametrize("name", GOOD)
def test_other_names_are_good(name, settings):
    assert name_fault(name) == ""
    assert device_workspace(device_create(name, by="system").name).parent == settings.STATE_DIR / "workspaces"


@pytest.mark.parametrize("name", [7, None, True, ["x"], {"a": 1}])
def test_a_name_is_text(admin_user, name):
    assert Rest(admin_user).post("/api/devices/", {"name": name}).status_code == 400


def test_a_name_is_taken_in_whatever_case(admin_user):
    device_create("Laptop", by="system")
    answer = Rest(admin_user).post("/api/devices/", {"name": "lAPTOP"})
    assert (answer.status_code, answer.json()["detail"]) == (409, "there is a device called Laptop already")


@pytest.mark.django_db(transaction=True)
def test_of_many_who_want_one_name_at_once_one_gets_it():
    begin, ends = threading.Barrier(6), []

    def make(name: str) -> None:
        begin.wait(20)
        try:
            device_create(name, by="system")
            ends.append("made")
        except DeviceExists:
            ends.append("taken")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=make, args=(name,)) for name in ("box", "Box", "BOX", "bOx", "boX", "BoX")]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(ends) == ["made"] + ["taken"] * 5


def test_a_device_that_was_called_so_before_has_no_workspace_and_harms_nobody(engine, device, settings, tmp_path):
    (settings.STATE_DIR / "secret_key").write_text("the key")
    row = {
        "id": 7 << 24, "name": "..", "kind": "local", "platform": "shell", "type": "", "capabilities": [], "recipes": {},
        "limits": {}, "max_concurrent": 4, "state": "connected", "created_at": "2026-11-21T03:04:05Z",
        "entered_at": "2026-11-21T03:04:05Z",
    }  # fmt: skip
    fixture = tmp_path / "devices.json"
    told = {"model": "agents.device", "pk": row.pop("id"), "fields": row}
    fixture.write_text(json.dumps([told]))
    call_command("loaddata", str(fixture), verbosity=0)
    tasks = [
        {"task_id": "file", "device": "..", "tool": "read_file", "arguments": {"path": "secret_key"}},
        {"task_id": "line", "device": "..", "command": ["cat", "secret_key"]},
        {"task_id": "look", "device": "..", "tool": "observe"},
        {"task_id": "steps", "device": "..", "steps": [{"observe": True, "save": "seen"}]},
        {"task_id": "other", "device": "laptop", "command": ["true"]},
    ]
    engine.submit({"tasks": tasks})
    engine.run()
    ends = {task.task_id: task for task in Task.objects.all()}
    assert ends.pop("other").state == "COMPLETED"
    assert {task.state for task in ends.values()} == {"FAILED"}
    assert all("has no workspace" in task.error for task in ends.values())
    assert "the key" not in str([task.result for task in ends.values()])


@pytest.mark.parametrize("scope", ["..", ".", "a/b", "", "1/../..", "secret_key"])
def test_what_constellations_share_has_a_number(scope):
    with pytest.raises(NoWorkspace):
        artifacts_folder(scope)
    with pytest.raises(NoWorkspace):
        artifacts_folder("5", inherits=scope or "..")


# who makes them


def test_whoever_submits_work_makes_no_device(operator, viewer, user):
    _, work = make_token(operator, "read", "operate", "edit", "approve", "devices", "admin")
    for client in (Rest(operator), Rest(viewer), Rest(user), Rest(token=work)):
        assert client.post("/api/devices/", {"name": "mine"}).status_code == 403
    device = device_create("laptop", by="system")
    for client in (Rest(operator), Rest(viewer), Rest(user), Rest(token=work)):
        assert client.patch(f"/api/devices/{device.pk}/", {"labels": ["prod"]}).status_code == 403
        assert client.delete(f"/api/devices/{device.pk}/").status_code in (403, 405)
    assert Device.objects.get().labels == []


@pytest.mark.parametrize(
    ("scopes", "status"), [(["read", "operate", "edit", "approve"], 403), (["devices"], 201), (["admin"], 201)]
)
def test_a_token_makes_devices_by_a_scope_of_its_own(admin_user, scopes, status):
    _, text = make_token(admin_user, *scopes)
    assert Rest(token=text).post("/api/devices/", {"name": "mine"}).status_code == status


def test_who_may_make_devices_labels_them(keeper, verified):
    made = Rest(keeper).post("/api/devices/", {"name": "mine", "labels": ["lab"]}).json()
    changed = Rest(keeper).patch(f"/api/devices/{made['id']}/", {"labels": ["lab", "own"], "max_concurrent": 2})
    assert (changed.status_code, changed.json()["labels"], changed.json()["max_concurrent"]) == (200, ["lab", "own"], 2)
    assert Rest(keeper).patch(f"/api/devices/{made['id']}/", {"name": "other"}).status_code == 400
    assert Event.objects.filter(type="device_changed").get().by == f"user:{keeper.pk}"


# limits


@pytest.mark.parametrize("name", [*CEILINGS])
def test_a_ceiling_is_raised_by_admins_only(keeper, admin_user, name):
    value = {"pause_memory_percent": 96, "pause_disk_percent": 0, "max_concurrent": 65}.get(name, int(CEILINGS[name]) + 1)
    said = {"max_concurrent": value} if name == "max_concurrent" else {"limits": {name: value}}
    refused = Rest(keeper).post("/api/devices/", {"name": "mine", **said})
    assert (refused.status_code, refused.json()["code"]) == (403, "beyond_ceiling")
    assert refused.json()["problems"][0]["key"].endswith(name)
    _, weak = make_token(admin_user, "read", "devices")
    assert Rest(token=weak).post("/api/devices/", {"name": "mine", **said}).status_code == 403
    made = Rest(admin_user).post("/api/devices/", {"name": "mine", **said})
    assert made.status_code == 201
    path = f"/api/devices/{made.json()['id']}/"
    assert Rest(keeper).patch(path, said).status_code == 200, "as an admin has set it"
    assert Rest(keeper).patch(path, {"labels": ["lab"]}).status_code == 200


@pytest.mark.parametrize("limits", [{"env": {"LD_PRELOAD": "/x"}}, {"path": "/tmp/evil"}])
def test_what_commands_see_is_said_by_admins_only(keeper, admin_user, limits):
    assert Rest(keeper).post("/api/devices/", {"name": "mine", "limits": limits}).json()["code"] == "beyond_ceiling"
    made = Rest(admin_user).post("/api/devices/", {"name": "mine", "limits": limits}).json()
    taken_away = Rest(keeper).patch(f"/api/devices/{made['id']}/", {"limits": {}})
    assert taken_away.json()["code"] == "beyond_ceiling"


@pytest.mark.parametrize(
    "limits",
    [{"path": 5}, {"env": 7}, {"path": "bin"}, {"env": {"A=B": "x"}}, {"sekonds": 5}, {"seconds": 0}, {"processes": 0}],
)
def test_a_limit_that_makes_no_sense_is_nobodys(admin_user, limits):
    answer = Rest(admin_user).post("/api/devices/", {"name": "mine", "limits": limits})
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, f"limits.{next(iter(limits))}")


def test_a_ceiling_below_what_counts_unsaid_has_to_be_kept(keeper, settings):
    settings.DEVICE_CEILINGS = {**CEILINGS, "seconds": 60}
    with pytest.raises(BeyondCeiling, match="is 3,600 unless it is given"):
        device_create("mine", by="user:1", may_exceed=False)
    assert Rest(keeper).post("/api/devices/", {"name": "mine", "limits": {"seconds": 60}}).status_code == 201


@pytest.mark.parametrize("fields", [{"name": ".."}, {"used": 0}, {"state": "GONE"}, {"max_concurrent": 0}, {"labels": [".."]}])
def test_no_change_is_made_of_what_is_none(fields):
    device = device_create("laptop", by="system")
    with pytest.raises(DeviceRejected):
        device_change(device.pk, by="system", **fields)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "must be JSON"), ("[]", "must be a JSON object"), ('{"a": 1}', "no ceiling a"), ('{"seconds": "5"}', "above 0"),
        ('{"seconds": 0}', "above 0"), ('{"processes": true}', "above 0"),
    ],
)  # fmt: skip
def test_ceilings_that_make_no_sense_are_told(monkeypatch, text, says):
    monkeypatch.setenv("ORRERY_DEVICE_CEILINGS", text)
    with pytest.raises(ImproperlyConfigured, match=says):
        ceilings_of("ORRERY_DEVICE_CEILINGS")
    monkeypatch.setenv("ORRERY_DEVICE_CEILINGS", '{"processes": 5}')
    assert ceilings_of("ORRERY_DEVICE_CEILINGS") == {**CEILINGS, "processes": 5}


def test_a_network_that_was_taken_away_is_given_back_by_an_admin_only(keeper, admin_user):
    device = device_create("lab", by="system", limits={"network": False, "processes": 5})
    for limits in ({}, {"network": True}, {"processes": 5}):
        answer = Rest(keeper).patch(f"/api/devices/{device.pk}/", {"limits": limits})
        assert (answer.status_code, answer.json()["problems"][0]["key"]) == (403, "limits.network")
    assert Rest(keeper).patch(f"/api/devices/{device.pk}/", {"limits": {"network": False}}).status_code == 200
    assert Rest(admin_user).patch(f"/api/devices/{device.pk}/", {"limits": {}}).status_code == 200
