"""What a runner's sessions know of the devices between two readings of the rows."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.engine.environment import Surroundings, Told, read_told
from agents.models import Device, DeviceLink
from agents.services.devices import device_create


def test_a_commit_says_how_many_slots_are_left_and_other_devices_stay_as_they_are():
    around = Surroundings()
    around.devices.update({1: {"max_concurrent": 4, "used": 0}, 2: {"max_concurrent": 2, "used": 1}})
    around.note_slots({1: 1})
    assert [device["used"] for device in around.devices.values()] == [3, 1]


HERE, ELSEWHERE = 1, 2


def around_of(**fields) -> Surroundings:
    """Surroundings with a local device of this host and a remote one, which has no more than 90% of its memory to use."""
    around = Surroundings()
    usual = {"limits": {"pause_memory_percent": 90, "pause_hold_s": 0}, "connection": {}, "low": "", "readings": {}}
    around.devices[HERE] = {"id": HERE, "name": "laptop", "kind": "local", "host": "", **usual, "limits": {}}
    around.devices[ELSEWHERE] = {"id": ELSEWHERE, "name": "pi", "kind": "remote", "host": "", **usual, **fields}
    return around


def readings_of(told: dict, silent_s: float = 0.0, **fields) -> tuple[str, dict]:
    """Why the remote device is low, and what is known of it, after it has told its readings that long ago."""
    around = around_of(**fields)
    around.hear(Told({}, {ELSEWHERE: (told, time.monotonic() - silent_s), HERE: ({"memory": 99.0}, time.monotonic())}))
    around._take_readings()
    assert around.devices[HERE]["low"] == "", "a device of this host is looked at, whatever was told of it"
    return around.devices[ELSEWHERE]["low"], around.devices[ELSEWHERE]["readings"]


def test_a_device_elsewhere_pauses_by_what_it_has_told_of_itself():
    assert readings_of({"memory": 97.0, "disk": 10}) == ("memory 97.0% for 0 s, limit 90%", {"memory": 97.0, "disk": 10.0})
    assert readings_of({"memory_percent": 97.0}) == ("memory 97.0% for 0 s, limit 90%", {"memory": 97.0})
    assert readings_of({"memory": 89.0}) == ("", {"memory": 89.0})


def test_what_is_old_or_no_number_is_not_known():
    assert readings_of({"memory": 97.0}, silent_s=44.0)[0]
    assert readings_of({"memory": 97.0}, silent_s=46.0) == ("", {})
    assert readings_of({"memory": 97.0}, silent_s=4.0, connection={"heartbeat_s": 1}) == ("", {})
    assert readings_of({"memory": "97", "disk": True, "cpu": None}) == ("", {})


def test_a_local_device_of_another_host_is_elsewhere():
    assert readings_of({"memory": 97.0}, kind="local", host="another")[0]


@pytest.mark.django_db
def test_readings_come_with_the_age_of_their_heartbeat_and_users_by_device(operator):
    device = device_create("pi", by="system")
    Device.objects.filter(pk=device.pk).update(used_by=["user:operator"])
    DeviceLink.objects.create(device=device, readings={"memory": 97.0}, heard_at=timezone.now() - timedelta(seconds=30))
    told = read_told()
    readings, heard_at = told.readings[device.pk]
    assert readings == {"memory": 97.0}
    assert 29.0 < time.monotonic() - heard_at < 40.0
    assert told.users == {device.pk: frozenset({operator.pk})}


@pytest.mark.django_db
def test_a_device_that_is_not_for_everybody_is_nobodys_until_it_is_known_for_whom():
    device = device_create("pi", by="system")
    around = Surroundings()
    around.look(0.0)
    version = around.devices.version
    assert around.devices[device.pk]["users"] is None
    Device.objects.filter(pk=device.pk).update(used_by=["user:anna"])
    around.look(1.0)
    assert around.devices[device.pk]["users"] == frozenset()
    around.hear(Told({device.pk: frozenset({7})}, {}))
    around.look(2.0)
    assert (around.devices[device.pk]["users"], around.devices.version) == (frozenset({7}), version + 2)
    assert around.devices.named("pi") is around.devices[device.pk]
