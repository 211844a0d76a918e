"""Devices over REST: the whole profile, what is asked of one, its history, and its tokens."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.links.holders import renew_links, take_link
from agents.links.kept_readings import keep_readings, span_now
from agents.links.moves import move_device_through
from agents.models import Device, Event
from agents.services import sessions
from agents.services.devices import device_create
from tests.agents.conftest import Rest, add_agents, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
ADDRESS = "/api/devices/"
CONNECTED = ("dial", "accepted")


@pytest.fixture
def keeper(operator):
    """Somebody who may make devices and is no admin."""
    operator.groups.add(Group.objects.get_or_create(name="devices")[0])
    return operator


@pytest.fixture
def rest(keeper):
    return Rest(keeper)


@pytest.fixture
def far():
    return device_create("far", kind="remote", by="system").pk


def test_the_whole_profile_is_made_shown_and_changed(rest, keeper, viewer, verified):
    said = {
        "name": "gpu-1", "kind": "remote", "os": "linux", "type": "gpu", "capabilities": ["cuda"], "labels": ["lab"],
        "metadata": {"rack": 7}, "max_concurrent": 2, "connection": {"heartbeat_s": 5},
        "used_by": [f"user:{viewer.username}", "group:operator"], "is_offered": True,
    }  # fmt: skip
    made = rest.post(ADDRESS, said)
    assert made.status_code == 201
    row = made.json()
    assert {name: row[name] for name in said} == said
    assert (row["owner"], row["status"], row["used"], row["current_tasks"]) == (keeper.username, "disconnected", 0, [])
    changed = rest.patch(f"{ADDRESS}{row['id']}/", {"metadata": {"rack": 8}, "owner": "", "used_by": ["everybody"]}).json()
    assert [changed[name] for name in ("metadata", "owner", "used_by", "os")] == [{"rack": 8}, "", ["everybody"], "linux"]
    assert rest.get(ADDRESS).json()["results"] == [changed]
    assert Rest(viewer).get(f"{ADDRESS}{row['id']}/").json() == changed


def test_only_local_devices_are_offered_unless_it_is_said(rest):
    kinds = {kind: rest.post(ADDRESS, {"name": f"a-{kind}", "kind": kind}).json()["is_offered"] for kind in ("local", "remote")}
    assert kinds == {"local": True, "remote": False}
    assert rest.post(ADDRESS, {"name": "told", "kind": "remote", "is_offered": True}).json()["is_offered"]


@pytest.mark.parametrize(("said", "key"), [
    ({"used_by": ["user:nobody-here"]}, "used_by[0]"), ({"used_by": ["everybody", "group:nobody-here"]}, "used_by[1]"),
    ({"used_by": ["me"]}, "used_by[0]"), ({"owner": "nobody-here"}, "owner"), ({"metadata": {"a": "x" * 10_001}}, "metadata"),
    ({"platform": "palm"}, "platform"), ({"connection": {"url": "http://x"}}, "connection.url"),
    ({"kind": "remote", "connection": {"heartbeat_s": 301}}, "connection.heartbeat_s"),
    ({"kind": "remote", "connection": {"heartbeat_s": True}}, "connection.heartbeat_s"),
    ({"kind": "remote", "connection": {"token": "ghp_0123456789abcdefghij"}}, "connection.token"),
    ({"kind": "palm"}, "kind"), ({"metadata": 7}, "metadata"), ({"is_offered": "yes and no"}, "is_offered"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_at_its_place(rest, said, key):
    answer = rest.post(ADDRESS, {"name": "mine", **said})
    assert answer.status_code == 400
    assert key in {problem["key"] for problem in answer.json()["problems"]}
    assert not Device.objects.exists()


def test_whose_processes_carry_out_its_calls_is_said_by_admins_only(rest, admin_user):
    refused = rest.post(ADDRESS, {"name": "mine", "host": "there"})
    assert (refused.status_code, refused.json()["problems"][0]["key"]) == (403, "host")
    made = Rest(admin_user).post(ADDRESS, {"name": "mine", "host": "there"}).json()
    assert rest.patch(f"{ADDRESS}{made['id']}/", {"host": ""}).status_code == 403
    assert rest.patch(f"{ADDRESS}{made['id']}/", {"host": "there", "os": "linux"}).json()["os"] == "linux"


def test_what_is_asked_of_a_device_follows_its_machine(rest, far, verified):
    def ask(what: str) -> tuple:
        answer = rest.post(f"{ADDRESS}{far}/{what}/", {"reason": "because"})
        return answer.status_code, answer.json().get("state", answer.json().get("code"))

    refused = (409, "transition_not_allowed")
    assert [ask(what) for what in ("drain", "undrain", "reset")] == [refused] * 3
    move_device_through(far, CONNECTED)
    assert [ask(what) for what in ("undrain", "drain", "drain", "undrain")] == [
        refused, (200, "draining"), refused, (200, "connected"),
    ]  # fmt: skip
    assert rest.delete(f"{ADDRESS}{far}/").status_code == 409
    assert [ask(what) for what in ("offline", "offline", "online", "online")] == [(200, "disconnected")] * 4
    move_device_through(far, (*CONNECTED, "fault"))
    assert ask("reset") == (200, "disconnected")
    assert rest.delete(f"{ADDRESS}{far}/").status_code == 204
    assert [ask(what) for what in ("drain", "offline", "online", "reset")] == [refused] * 4
    assert rest.patch(f"{ADDRESS}{far}/", {"os": "linux"}).status_code == 409


def test_a_drain_says_before_and_after_what_becomes_of_the_work(rest, far, viewer):
    move_device_through(far, CONNECTED)
    nothing = {part: {"total": 0, "tasks": []} for part in ("ends", "moves", "nowhere")}
    assert Rest(viewer).get(f"{ADDRESS}{far}/drain/").json() == nothing
    assert Device.objects.get(pk=far).state == "connected"
    drained = rest.post(f"{ADDRESS}{far}/drain/").json()
    assert (drained["state"], drained["preview"]) == ("draining", nothing)


def test_a_device_that_is_off_says_so_also_when_nothing_held_it(rest, far):
    assert rest.post(f"{ADDRESS}{far}/offline/").json()["is_off"] is True
    assert rest.post(f"{ADDRESS}{far}/online/").json()["is_off"] is False


def test_a_retired_device_is_out_of_the_list_and_keeps_its_name(rest, far):
    assert rest.delete(f"{ADDRESS}{far}/").status_code == 204
    assert rest.get(ADDRESS).json()["results"] == []
    assert [row["state"] for row in rest.get(ADDRESS, retired=1).json()["results"]] == ["retired"]
    assert rest.get(f"{ADDRESS}{far}/").json()["state"] == "retired"
    again = rest.post(ADDRESS, {"name": "Far"})
    assert (again.status_code, again.json()["detail"]) == (
        409, "there is a device called far, which is retired: a name is given once"
    )  # fmt: skip


def test_current_tasks_are_those_of_sessions_that_the_reader_may_see(rest, far, keeper, admin_user):
    mine = sessions.session_create(keeper, "mine", by="system")
    theirs = sessions.session_create(admin_user, "theirs", by="system")
    agent = add_agents(mine, device_id=far, name="fetch on far")[0]
    add_agents(theirs, device_id=far, name="secret on far")
    add_agents(mine, device_id=far, name="over on far", state="FINISH")
    shown = rest.get(f"{ADDRESS}{far}/").json()["current_tasks"]
    assert [(row["agent"], row["task"], row["session"]) for row in shown] == [(agent, "fetch", mine.pk)]
    assert len(Rest(admin_user).get(ADDRESS).json()["results"][0]["current_tasks"]) == 2
    refused = rest.delete(f"{ADDRESS}{far}/")
    assert (refused.status_code, refused.json()["code"]) == (409, "device_in_use")
    assert [row["task"] for row in refused.json()["current_tasks"]] == ["fetch"]


def test_idle_and_busy_are_computed_from_slots(rest, far):
    move_device_through(far, CONNECTED)
    assert rest.get(f"{ADDRESS}{far}/").json()["status"] == "idle"
    Device.objects.filter(pk=far).update(used=1)
    row = rest.get(f"{ADDRESS}{far}/").json()
    assert (row["state"], row["status"], row["used"]) == ("connected", "busy", 1)


def test_the_last_heartbeat_and_its_readings_are_shown(rest, far):
    fence = take_link(far, peer="10.0.0.7", version="1")
    renew_links({far: fence}, {far: {"memory": 41.5}})
    row = rest.get(f"{ADDRESS}{far}/").json()
    assert row["last_heartbeat"] == row["link"]["heard_at"]
    assert (row["link"]["readings"], row["link"]["peer"], row["link"]["version"]) == ({"memory": 41.5}, "10.0.0.7", "1")


def test_fewer_slots_than_are_taken_are_refused(rest, far):
    Device.objects.filter(pk=far).update(used=3)
    answer = rest.patch(f"{ADDRESS}{far}/", {"max_concurrent": 2})
    assert (answer.status_code, answer.json()["code"]) == (409, "device_in_use")
    assert rest.patch(f"{ADDRESS}{far}/", {"max_concurrent": 3}).status_code == 200


def test_its_readings_are_those_of_the_last_day(rest, viewer, far):
    fence = take_link(far)
    move_device_through(far, CONNECTED)
    renew_links({far: fence}, {far: {"cpu_percent": 7.0}})
    now = span_now()
    for ago in (-9, 0, 5, 280, 290):  # one of a clock that goes before ours, and one that is too old
        keep_readings(now - ago)
    found = Rest(viewer).get(f"{ADDRESS}{far}/readings/").json()["results"]
    assert [(row["readings"], row["used"], row["max_concurrent"]) for row in found] == [({"cpu_percent": 7.0}, 0, 4)] * 3
    assert Rest(viewer).get(f"{ADDRESS}{far + 1}/readings/").status_code == 404


def test_its_history_says_who_did_what_and_hides_what_its_page_hides(rest, viewer, admin_user, keeper):
    as_admin = Rest(admin_user)
    made = as_admin.post(ADDRESS, {"name": "mine", "limits": {"env": {"MODE": "quiet"}}, "kind": "remote"}).json()
    path = f"{ADDRESS}{made['id']}/"
    rest.patch(path, {"os": "linux"})
    rest.patch(path, {"os": "linux"})
    rest.post(f"{path}enrolment/")
    whole = as_admin.get(f"{path}history/").json()
    assert [(event["type"], event["by_name"]) for event in whole["results"]] == [
        ("device_created", admin_user.username), ("device_changed", keeper.username),
        ("device_enrolment_issued", keeper.username),
    ]  # fmt: skip
    assert whole["next"] is None
    first = rest.get(f"{path}history/", limit=1).json()
    assert (len(first["results"]), first["next"]) == (1, 1)
    assert "quiet" in str(whole)
    assert "quiet" not in str(Rest(viewer).get(f"{path}history/").json())
    assert Rest(viewer).get(f"{path}history/", since=1).json()["results"][0]["data"]["set"]["device"]


def test_a_connection_is_shown_whole_to_who_makes_devices(rest, viewer, far):
    Device.objects.filter(pk=far).update(connection={"heartbeat_s": 5, "url": "https://inside.example/"})
    assert rest.get(f"{ADDRESS}{far}/").json()["connection"] == {"heartbeat_s": 5, "url": "https://inside.example/"}
    assert Rest(viewer).get(f"{ADDRESS}{far}/").json()["connection"] == {"heartbeat_s": 5}


def test_a_device_enrols_once_and_its_token_opens_nothing_of_rest(rest, far):
    issued = rest.post(f"{ADDRESS}{far}/enrolment/", {"seconds": 60})
    assert issued.status_code == 201
    text = issued.json()["token"]
    device = Rest(token=text)
    answer = device.post(f"{ADDRESS}enrol/")
    assert answer.status_code == 201
    token = answer.json()["token"]
    assert device.post(f"{ADDRESS}enrol/").status_code == 401
    for given in (text, token):
        for path in (ADDRESS, "/api/sessions/", f"{ADDRESS}{far}/"):
            assert Rest(token=given).get(path).status_code == 401
    assert Rest(token=token).post(f"{ADDRESS}enrol/").status_code == 401
    assert rest.post(f"{ADDRESS}enrol/").status_code == 401, "a login is none"
    listed = rest.get(f"{ADDRESS}{far}/tokens/").json()["results"]
    assert [row["purpose"] for row in listed] == ["device", "enrolment"]
    assert text not in str(listed)
    assert Event.objects.filter(type="device_enrolled", by=f"device:{far}").count() == 1


def test_tokens_are_rotated_and_revoked(rest, far, device, keeper):
    assert rest.post(f"{ADDRESS}{device.pk}/enrolment/").json()["code"] == "not_enrolled"
    fresh = rest.post(f"{ADDRESS}{far}/tokens/rotate/").json()
    assert fresh["token"].startswith(fresh["id"])
    assert rest.delete(f"{ADDRESS}{far}/tokens/").status_code == 204
    assert all(row["revoked_at"] for row in rest.get(f"{ADDRESS}{far}/tokens/").json()["results"])
    weak = Rest(token=make_token(keeper, "read", "operate")[1])
    assert [weak.post(f"{ADDRESS}{far}/{what}/").status_code for what in ("enrolment", "tokens/rotate", "drain")] == [403] * 3


def test_the_list_costs_the_same_queries_however_many_devices_there_are(rest, django_assert_max_num_queries):
    for number in range(3):
        take_link(device_create(f"box-{number}", kind="remote", owner="operator", by="system").pk)
    with CaptureQueriesContext(connection) as few:
        rest.get(ADDRESS)
    for number in range(3, 12):
        take_link(device_create(f"box-{number}", kind="remote", owner="operator", by="system").pk)
    with django_assert_max_num_queries(len(few)):
        assert len(rest.get(ADDRESS).json()["results"]) == 12
