"""The admin's pages of devices: made and changed by the services, for who may make devices."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agents.links.moves import move_device_through
from agents.models import Device, Event
from agents.services.device_tokens import enrolment_create
from agents.services.devices import device_create
from tests.conftest import person

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
LIST = "/admin/agents/device/"
JSON = ("capabilities", "labels", "recipes", "metadata", "limits", "unasked", "connection", "used_by")


def staff(user) -> Client:
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def keeper(roles):
    """Staff who may make devices and are no admins."""
    user = person("keeper", "viewer")
    user.groups.add(Group.objects.get_or_create(name="devices")[0])
    return staff(user)


def sent(device: Device | None = None, **changes: object) -> dict[str, str]:
    """What the form of a device sends when nothing but `changes` is filled in otherwise."""
    row = device or Device(name="", used_by=["everybody"])
    names = ("platform", "os", "type", "max_concurrent", "host")
    said = {**{name: getattr(row, name) for name in names}, **{name: getattr(row, name) for name in JSON}, **changes}
    whole = {name: json.dumps(value) if name in JSON else value for name, value in said.items()}
    owner = "" if row.owner is None else row.owner.username
    return {"owner_name": owner, "is_offered": "true" if row.is_offered else "false", **whole}


def test_a_device_is_made_and_changed_through_the_services(keeper, verified):
    made = keeper.post(f"{LIST}add/", sent(name="far", kind="remote", is_offered="unknown", metadata={"rack": 7}))
    assert made.status_code == 302, made.content.decode()
    device = Device.objects.get(name="far")
    assert (device.kind, device.metadata, device.is_offered, device.used_by) == ("remote", {"rack": 7}, False, ["everybody"])
    page = keeper.get(f"{LIST}{device.pk}/change/").content.decode()
    assert "disconnected" in page
    answer = keeper.post(f"{LIST}{device.pk}/change/", sent(device, os="linux", owner_name="keeper", labels=["lab"]))
    assert answer.status_code == 302
    device.refresh_from_db()
    assert (device.os, device.owner.username, device.labels) == ("linux", "keeper", ["lab"])
    last = Event.objects.filter(stream_id=device.pk).latest("seq")
    assert (last.by, set(last.data["set"]["device"][str(device.pk)])) == (
        f"user:{device.owner_id}", {"os", "owner_id", "labels"},
    )  # fmt: skip


@pytest.mark.parametrize(("changes", "field"), [
    ({"used_by": ["user:nobody-here"]}, "used_by"), ({"owner_name": "nobody-here"}, "owner_name"),
    ({"connection": {"url": "x"}}, "connection"), ({"limits": {"processes": 10_000}}, "limits"), ({"name": ".."}, "name"),
    ({"host": "there"}, "host"), ({"name": "Laptop"}, None),
])  # fmt: skip
def test_what_is_refused_is_said_at_its_field(keeper, device, changes, field):
    answer = keeper.post(f"{LIST}add/", sent(**{"name": "far", "kind": "remote", **changes}))
    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == {field or "__all__"}
    assert Device.objects.count() == 1


def test_an_environment_stays_as_it_was_where_it_is_hidden(keeper):
    device = device_create("box", by="system", limits={"env": {"MODE": "quiet-please"}})
    assert "quiet-please" not in keeper.get(f"{LIST}{device.pk}/change/").content.decode()
    shown = keeper.get(f"{LIST}{device.pk}/change/").context["adminform"].form.initial["limits"]
    assert keeper.post(f"{LIST}{device.pk}/change/", sent(device, limits=shown, os="linux")).status_code == 302
    device.refresh_from_db()
    assert (device.os, device.limits) == ("linux", {"env": {"MODE": "quiet-please"}})


def test_what_the_list_offers_is_asked_of_each_device_that_was_chosen(keeper, verified):
    one, other = (device_create(name, kind="remote", by="system").pk for name in ("one", "other"))
    move_device_through(one, ("dial", "accepted"))
    answer = keeper.post(LIST, {"action": "drain", "_selected_action": [one, other]}, follow=True)
    said = [str(message) for message in answer.context["messages"]]
    assert said == ["one: drain: nothing new begins there", "device other is disconnected: it takes no `drain`"]
    assert sorted(Device.objects.values_list("state", flat=True)) == ["disconnected", "draining"]


def test_who_may_make_no_devices_looks_at_them(viewer, device):
    client = staff(viewer)
    assert client.get(f"{LIST}{device.pk}/change/").status_code == 200
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{device.pk}/change/", sent(device, os="linux")).status_code == 403


def test_a_token_is_shown_by_its_name_only(admin_user):
    row, text = enrolment_create(device_create("far", kind="remote", by="system").pk, by="system")
    page = staff(admin_user).get(f"/admin/agents/devicetoken/{row.pk}/change/").content.decode()
    assert row.token_key in page
    assert text not in page
    assert row.digest not in page
