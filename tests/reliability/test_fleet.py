"""200 simulated devices, half of them held by another process, and 2,000 tasks of 10 sessions: limits and fairness."""

import os
import random
import subprocess
import sys
from statistics import mean, median

import pytest
from django.conf import settings

from agents.devices.host import host_name
from agents.links.kinds import OPENERS
from agents.models import Device, DeviceCall, Session, SlotRequest, Transition
from agents.services.devices import device_create
from agents.services.sessions import session_create
from agents.streams.door import door
from agents.streams.verify import verify_database
from constellations.models import Attempt, Constellation
from tests.reliability.cluster import Cluster, until
from tests.reliability.simulated import KIND, register_simulated
from tests.slots_told import SlotsTold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]

DEVICES, SESSIONS, TASKS = 200, 10, 200
"""Tasks are of each session."""
ELSEWHERE = "elsewhere"
SEED = 9
TYPES = ("", "arm", "x86", "gpu")
LIMIT = 40
"""Slots of a session. All of them together want more than there are."""


@pytest.fixture
def fleet(state_dir, monkeypatch):
    """Connections of this process by device, once all devices are connected."""
    chance, here = random.Random(SEED), {}
    monkeypatch.setitem(OPENERS, KIND, None)
    register_simulated(SEED, here)
    for number in range(DEVICES):
        made = device_create(
            f"d{number}",
            kind=KIND,
            type=chance.choice(TYPES),
            max_concurrent=chance.randint(1, 2),
            is_offered=True,
            by="system",
        )
        host = ELSEWHERE if number % 2 else host_name()
        with door(made.pk, "system") as opened:
            opened.turn.record("device_changed", set={"device": {str(made.pk): {"host": host}}})
    folder = state_dir / ELSEWHERE
    folder.mkdir()
    env = Cluster(folder).env | {"ORRERY_HOST": ELSEWHERE, "DJANGO_SETTINGS_MODULE": "project.settings"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.simulated", str(SEED)], cwd=settings.BASE_DIR, env=env, stdout=log,
            stderr=log,
        )  # fmt: skip
    until(lambda: Device.objects.filter(state="connected").count() == DEVICES // 2, f"the other half, see {folder / 'log'}")
    yield here
    process.kill()
    process.wait()


def plan(chance: random.Random) -> dict:
    """Tasks without dependencies: one of ten names its device, three of ten its type, the others go anywhere."""
    tasks = []
    for number in range(TASKS):
        task = {"task_id": f"t{number}", "tool": "browser.wait", "arguments": {"text": str(number)}}
        if number % 10 == 0:
            task["device"] = f"d{chance.randrange(DEVICES)}"
        elif number % 10 < 4:
            task["device_type"] = chance.choice(TYPES[1:])
        tasks.append(task)
    return {"tasks": tasks, "max_concurrent": LIMIT}


def waits_by_session() -> dict[int, list[float]]:
    """Seconds until each task of each session began, as the streams tell it: from when the first of all sessions had begun.

    All of them had been asked for by then, and no task waits for another.
    """
    begun = Transition.objects.filter(stream__kind="session", machine="task", to_state="RUNNING").order_by("at")
    since = Transition.objects.filter(machine="constellation").order_by("at").values_list("at", flat=True)[0]
    found: dict[int, list[float]] = {}
    for session, at in begun.values_list("stream", "at"):
        found.setdefault(session, []).append((at - since).total_seconds())
    return found


def test_limits_hold_and_sessions_get_their_share(engine, fleet, monkeypatch):
    monkeypatch.setattr("tests.conftest.PATIENCE_S", float(os.environ.get("FLEET_PATIENCE_S", "300")))
    chance = random.Random(SEED)
    for _ in range(SESSIONS):
        engine.submit(plan(chance), session_create(engine.owner, by="system"))
    engine.run()
    assert set(Constellation.objects.values_list("state", flat=True)) == {"COMPLETED"}
    assert Attempt.objects.filter(outcome="completed").count() == Attempt.objects.count() == SESSIONS * TASKS
    told, slots = SlotsTold(), dict(Device.objects.values_list("id", "max_concurrent"))
    assert {key: most for key, most in told.of_devices.items() if most > slots[key]} == {}
    assert {key: most for key, most in told.of_sessions.items() if most > LIMIT} == {}
    assert all(held.most <= slots[key] for key, held in fleet.items())
    assert len(fleet) == DEVICES // 2
    assert 0 < DeviceCall.objects.count() < SESSIONS * TASKS
    waits = waits_by_session()
    assert {session: len(each) for session, each in waits.items()} == {row.pk: TASKS for row in Session.objects.all()}
    for wait in (max, mean, median):  # of a session: until its last task begins, and of its tasks
        of_sessions = [wait(each) for each in waits.values()]
        assert max(of_sessions) <= 2 * median(of_sessions), (wait.__name__, sorted(of_sessions))
    assert not SlotRequest.objects.exists()
    assert list(verify_database()) == []
