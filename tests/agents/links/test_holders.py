"""Who holds a device, and when nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.devices import host
from agents.links import holders
from agents.models import Device, DeviceLink, Event
from agents.services.devices import device_create

pytestmark = pytest.mark.django_db(transaction=True)


def held_by(device, holder: str, seconds_ago: float = 0.0) -> None:
    then = Now() - timedelta(seconds=seconds_ago)
    DeviceLink.objects.update_or_create(device=device, defaults={"holder": holder})
    DeviceLink.objects.filter(device=device).update(renewed_at=then, heard_at=then)


@pytest.fixture
def other_process():
    """The identity of a process that is alive; ended by the test or at its end."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child, f"{host.boot_identity()} {child.pid} {host.process_start(child.pid)}"
    child.kill()
    child.wait()


def test_a_device_is_held_by_one_process_until_that_has_ended(far, other_process):
    child, identity = other_process
    held_by(far, identity)
    assert holders.take_link(far.pk) is None
    child.kill()
    child.wait()
    assert holders.take_link(far.pk) == 1
    assert DeviceLink.objects.get().holder == host.process_identity()


def test_a_process_of_another_host_loses_what_it_has_not_renewed(far):
    held_by(far, "elsewhere/1234 77 8", seconds_ago=holders.HELD_S / 2)
    assert holders.take_link(far.pk) is None
    held_by(far, "elsewhere/1234 77 8", seconds_ago=holders.HELD_S * 2)
    assert holders.take_link(far.pk) == 1


def test_a_process_of_this_host_that_lives_keeps_what_it_was_too_busy_to_renew(far, other_process):
    """Beside much other work a renewal comes late: the device's calls must not be lost by that."""
    held_by(far, other_process[1], seconds_ago=holders.HELD_S * 2)
    assert holders.take_link(far.pk) is None
    held_by(far, other_process[1], seconds_ago=holders.STALLED_S + 1)
    assert holders.take_link(far.pk) == 1


def test_a_device_that_has_come_here_itself_is_taken_from_whoever_held_it(far, other_process):
    held_by(far, other_process[1])
    assert holders.take_link(far.pk, steal=True, peer="10.0.0.7", version="1") == 1
    link = DeviceLink.objects.get()
    assert (link.holder, link.peer, link.version) == (host.process_identity(), "10.0.0.7", "1")


def test_renewing_says_what_is_held_no_more(far, held, other_process):
    assert holders.renew_links(held) == set()
    held_by(far, other_process[1])
    assert holders.renew_links(held) == {far.pk}


def test_readings_come_with_the_heartbeats_that_were_heard(far, held):
    holders.renew_links(held, {far.pk: {"memory": 41.5}})
    assert DeviceLink.objects.get().readings == {"memory": 41.5}


def test_who_only_renews_what_it_holds_has_heard_nothing_of_the_device(far, held):
    before = DeviceLink.objects.get().heard_at
    holders.renew_links(held, {})
    link = DeviceLink.objects.get()
    assert (link.heard_at, link.renewed_at > before) == (before, True)


def test_a_device_of_which_three_heartbeats_are_missing_is_lost(far, held):
    Device.objects.update(state="connected", connection={"heartbeat_s": 2})
    DeviceLink.objects.update(heard_at=Now() - timedelta(seconds=5))
    assert holders.lose_silent_devices() == []
    DeviceLink.objects.update(heard_at=Now() - timedelta(seconds=7))
    assert holders.lose_silent_devices() == [far.pk]
    far.refresh_from_db()
    assert (far.state, far.reason) == ("disconnected", "3 heartbeats are missing")
    assert Event.objects.filter(stream=far.pk, type="state_changed").get().data["event"] == "lost"
    assert holders.lose_silent_devices() == []


def test_a_handshake_that_nobody_goes_on_with_is_over_in_time(far):
    Device.objects.update(state="connecting", entered_at=Now() - timedelta(seconds=holders.MISSING * holders.HEARTBEAT_S + 1))
    assert holders.lose_silent_devices() == [far.pk]
    far.refresh_from_db()
    assert (far.state, far.reason) == ("disconnected", "the handshake took too long")


def test_two_folders_of_state_are_two_hosts(settings, tmp_path):
    names = []
    for folder in ("one", "two", "one"):
        settings.STATE_DIR = tmp_path / folder
        names.append(host.host_name())
    assert names[0] == names[2] != names[1]
    assert (tmp_path / "one" / "host").read_text() == names[0]
    settings.HOST_NAME = "rack-7"
    assert host.host_name() == "rack-7"


def test_a_process_is_gone_only_where_that_can_be_known(other_process):
    child, identity = other_process
    assert not host.is_process_gone(identity)
    assert not host.is_process_gone(f"elsewhere/1 {os.getpid()} 1")
    child.kill()
    child.wait()
    assert host.is_process_gone(identity)


def test_a_device_is_found_in_the_machines_first_state(transactional_db):
    made = device_create("new", by="system")
    assert (made.state, made.entered_at) == ("disconnected", made.created_at)
