"""How many ready tasks wait for a slot of each device."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Actor, Device
from agents.services.devices import device_create
from agents.streams.statements import raw_cursor
from constellations.models import Constellation, Task
from constellations.reads.queues import count_queued
from tests.agents.conftest import Rest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def devices(engine) -> dict[str, int]:
    """Three devices of another host, by name: three tasks wish for none of them, one for `a`, one for what `c` has."""
    rows = [device_create(name, max_concurrent=slots, by="system") for name, slots in (("a", 1), ("b", 2))]
    rows.append(device_create("c", capabilities=["gpu"], by="system"))
    Device.objects.update(host="elsewhere", state="disconnected")
    tasks = [{"task_id": f"t{n}", "tool": "noop"} for n in range(3)]
    tasks += [{"task_id": "only", "tool": "noop", "device": "a"}, {"task_id": "gpu", "tool": "noop", "capabilities": ["gpu"]}]
    tasks.append({"task_id": "later", "tool": "noop", "device": "a", "after": ["only"]})
    engine.submit({"tasks": tasks})
    engine.run(lambda: raw_cursor().execute("SELECT count(*) FROM constellations_task").fetchone()[0] == len(tasks))
    return {row.name: row.pk for row in rows}


def counted(devices: dict[str, int]) -> dict[str, int]:
    counts = count_queued()
    return {name: counts.get(key, 0) for name, key in devices.items()}


def test_they_wait_for_a_device_that_is_full_or_away_and_not_beside_one_with_room(devices):
    assert counted(devices) == {"a": 4, "b": 3, "c": 4}  # none is connected
    Device.objects.filter(name__in="ab").update(state="connected")
    assert counted(devices) == {"a": 0, "b": 0, "c": 1}
    Device.objects.filter(name="a").update(used=1)
    assert counted(devices) == {"a": 1, "b": 0, "c": 1}
    Device.objects.filter(name="b").update(used=2)
    assert counted(devices) == {"a": 4, "b": 3, "c": 1}


def test_what_may_not_start_yet_waits_for_no_slot(devices):
    Task.objects.filter(task_id="gpu").update(retry_at=timezone.now() + timedelta(hours=1))
    assert counted(devices) == {"a": 4, "b": 3, "c": 3}
    Actor.objects.update(state="paused")
    assert counted(devices) == {"a": 0, "b": 0, "c": 0}
    Actor.objects.update(state="running")
    Constellation.objects.update(state="PAUSED")
    assert counted(devices) == {"a": 0, "b": 0, "c": 0}


def test_rest_shows_them_for_a_page_of_devices_by_the_same_queries(devices, admin_user, django_assert_max_num_queries):
    rest = Rest(admin_user)
    assert {row["name"]: row["queued"] for row in rest.get("/api/devices/").json()["results"]} == {"a": 4, "b": 3, "c": 4}
    assert rest.get(f"/api/devices/{devices['c']}/").json()["queued"] == 4
    with django_assert_max_num_queries(2):
        count_queued()
