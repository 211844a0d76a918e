"""A local device is joined by one runner of its host, and only that one ends what an earlier life of it has left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from django.db.models.functions import Now

from agents.devices import host
from agents.devices.processes import ATTEMPT, INSTANCE
from agents.engine import hosted
from agents.links import holders
from agents.links.moves import move_device
from agents.models import DeviceLink
from agents.services import sessions
from agents.streams.fold import read_rows
from tests.constellations.api.test_api import add_attempts, add_constellation

pytestmark = pytest.mark.django_db(transaction=True)


def row_of(device) -> dict:
    return read_rows(device.pk, ("device",))["device"][str(device.pk)]


@pytest.fixture
def command(operator, device):
    """A process that works for an attempt on the device."""
    session = sessions.session_create(operator, by="system")
    _, nodes = add_constellation(session, 1)
    (attempt,) = add_attempts(session, nodes[0], device, 1)
    marks = {ATTEMPT: str(attempt), INSTANCE: host.instance_name()}
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, **marks})
    yield child
    child.kill()
    child.wait()


def test_who_comes_second_by_an_older_look_ends_nothing(device, command):
    move_device(device.pk, "lost")
    earlier = row_of(device)
    move_device(device.pk, "dial")
    move_device(device.pk, "accepted")
    other = f"{host.boot_identity()} {command.pid} {host.process_start(command.pid)}"
    DeviceLink.objects.update(holder=other, renewed_at=Now())
    assert hosted.join_local(earlier, host.host_name()) is None
    holders.release_link(device.pk, DeviceLink.objects.get().fence)
    assert hosted.join_local(earlier, host.host_name()) is not None
    assert command.poll() is None


def test_what_was_left_on_a_lost_device_has_ended_before_it_is_connected(device, command):
    move_device(device.pk, "lost")
    assert hosted.join_local(row_of(device), host.host_name()) is not None
    assert command.wait() == -signal.SIGKILL
    assert row_of(device)["state"] == "connected"
