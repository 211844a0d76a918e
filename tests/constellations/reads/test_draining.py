"""What draining a device would do: what ends there, where ready tasks would go, and what has nowhere to go."""

import pytest

from agents.models import Device
from agents.services.devices import NoSuchDevice, device_create, device_drain_preview
from agents.streams.statements import raw_cursor
from constellations.models import Attempt, Task
from constellations.reads.draining import SHOWN
from tests.agents.conftest import Rest
from tests.conftest import connected

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting(engine):
    """Three devices of another host; on the first a task runs, and others are ready to run there or elsewhere."""
    connected(device_create("here", by="system"))
    done = engine.carry_out({"tasks": [{"task_id": "busy", "tool": "noop", "device": "here"}]}).tasks.get()
    small, large = (device_create(name, max_concurrent=slots, by="system") for name, slots in (("a", 1), ("b", 9)))
    away = device_create("c", capabilities=["gpu"], by="system")
    Device.objects.update(host="elsewhere", state="disconnected")
    tasks = [{"task_id": f"t{n}", "tool": "noop"} for n in range(3)]
    tasks += [{"task_id": name, "tool": "noop", "device": device} for name, device in (("only", "a"), ("far", "c"))]
    engine.submit({"tasks": tasks})
    engine.run(lambda: raw_cursor().execute("SELECT count(*) FROM constellations_task").fetchone()[0] == 1 + len(tasks))
    Device.objects.filter(name__in="ab").update(state="connected")
    Attempt.objects.update(outcome="", device=small)
    Task.objects.filter(pk=done.pk).update(state="RUNNING")
    return small, large, away


def test_ready_tasks_move_or_have_nowhere_to_go(waiting, operator, user):
    told = device_drain_preview(waiting[0].pk)
    assert [task["task_id"] for task in told["ends"]["tasks"]] == ["busy"]
    assert [task["task_id"] for task in told["nowhere"]["tasks"]] == ["only"]
    moved = {task["task_id"]: task["to"] for task in told["moves"]["tasks"]}
    assert moved == dict.fromkeys(["t0", "t1", "t2"], "b")
    assert told["moves"]["total"] == 3
    assert "far" not in {task["task_id"] for part in told.values() for task in part["tasks"]}


def test_who_does_not_see_a_session_gets_numbers(waiting, operator, user):
    told, shown = (device_drain_preview(waiting[0].pk, who) for who in (user, operator))
    assert [part["total"] for part in told.values()] == [part["total"] for part in shown.values()]
    assert told["moves"]["tasks"] == []
    assert len(shown["moves"]["tasks"]) == 3 <= SHOWN


def test_it_is_read_and_answered_over_rest(waiting, admin_user):
    address = f"/api/devices/{waiting[0].pk}/drain/"
    preview = Rest(admin_user).get(address)
    drained = Rest(admin_user).post(address, {})
    assert (preview.status_code, drained.status_code) == (200, 200)
    assert drained.json()["preview"] == preview.json()
    assert drained.json()["state"] == "draining"
    assert Rest(admin_user).post(address, {}).status_code == 409


def test_a_device_that_there_is_not(db):
    with pytest.raises(NoSuchDevice, match="there is no device 12"):
        device_drain_preview(12)
