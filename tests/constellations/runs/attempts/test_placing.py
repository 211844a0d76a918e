"""Ready tasks and devices: which get them, in what order, and how many a session has at a time."""

import random
from contextlib import contextmanager
from itertools import pairwise

import pytest
from django.utils import timezone

from agents.models import Device, Runner, SlotRequest
from agents.services.devices import device_create, device_drain
from agents.services.sessions import session_change, session_create
from agents.streams.door import door
from agents.streams.statements import raw_cursor
from constellations.errors import PlanRejected
from constellations.models import Attempt, Constellation, Task
from constellations.reads.why import explain_task
from tests.conftest import connected
from tests.slots_told import SlotsTold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def noop(task_id: str, **more) -> dict:
    return {"task_id": task_id, "tool": "noop", **more}


def sleeps(task_id: str, seconds: float = 0.05, **more) -> dict:
    return {"task_id": task_id, "command": ["sleep", str(seconds)], **more}


def make(name: str, slots: int = 4, **fields) -> Device:
    """A connected device; the registry's own fields are set in its row."""
    device = connected(device_create(name, max_concurrent=slots, by="system"))
    return change(device, **fields) if fields else device


def change(device: Device, **fields) -> Device:
    with door(device.pk, "system") as opened:
        opened.turn.record("device_changed", set={"device": {str(device.pk): fields}})
    device.refresh_from_db()
    return device


def where(found: Constellation) -> dict[str, str]:
    return dict(Attempt.objects.filter(task__constellation=found).values_list("task__task_id", "device__name"))


def explained(task_id: str) -> tuple[str, str]:
    told = explain_task(Task.objects.get(task_id=task_id))
    return told["kind"], told["text"]


def completed() -> int:
    """Tasks that are; asked on the runner's loop, where only a raw cursor may be used."""
    return raw_cursor().execute("SELECT count(*) FROM constellations_task WHERE state = 'COMPLETED'").fetchone()[0]


@pytest.fixture
def lives():
    """A runner lives meanwhile, as far as its row says."""

    @contextmanager
    def while_one_lives():
        Runner.objects.update(state="LIVE", renewed_at=timezone.now())
        yield
        Runner.objects.update(state="ENDED")

    return while_one_lives


# Which device


def test_a_task_without_a_wish_never_lands_on_what_is_not_offered(engine):
    make("laptop")
    make("private", 50, is_offered=False)
    found = engine.carry_out({"tasks": [*(noop(f"t{n}") for n in range(12)), noop("named", device="private")]})
    assert {**where(found), "named": ""} == {"named": "", **{f"t{n}": "laptop" for n in range(12)}}
    assert where(found)["named"] == "private"


def test_a_task_that_only_avoids_a_device_waits_where_none_is_offered_and_says_so(engine, lives):
    make("pi")
    private = make("private", is_offered=False)
    engine.submit({"tasks": [noop("a", not_device=["pi"]), noop("b", device="private")]})
    engine.run(lambda: completed() == 1)
    with lives():
        assert explained("a") == (
            "not_offered", "it wishes for no device, and those that are there are not offered to such tasks: private"
        )  # fmt: skip
    change(private, is_offered=True)
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"


def test_a_session_never_gets_a_device_that_its_owner_may_not_use(engine, viewer, lives):
    barred = make("barred", used_by=["user:viewer"], capabilities=["gpu"])
    with pytest.raises(PlanRejected, match=r"tasks\[1\]\.device: the session's owner may not use barred"):
        engine.submit({"tasks": [noop("a"), noop("b", device="barred")]})
    make("laptop")
    engine.submit({"tasks": [*(noop(f"t{n}") for n in range(9)), noop("z", capabilities=["gpu"])]})
    engine.run(lambda: completed() == 9)
    assert set(Attempt.objects.values_list("device__name", flat=True)) == {"laptop"}
    with lives():
        assert explained("z") == ("not_allowed", "its session's owner may not use what it could run on: barred")
    change(barred, used_by=["group:operator"])
    engine.run()
    assert Attempt.objects.get(task__task_id="z").device == barred


def test_no_task_waits_for_one_device_while_another_stands_idle(engine):
    make("slow", 1)
    make("fast", 1)
    tasks = [sleeps("long", 0.6, device="slow"), *(sleeps(f"t{n}", 0.01) for n in range(10))]
    found = engine.carry_out({"tasks": tasks})
    places = where(found)
    assert sum(place == "fast" for place in places.values()) >= 9


@pytest.mark.parametrize(("strategy", "used"), [("least_loaded", {"a": 2, "b": 2}), ("pack", {"a": 4})])
def test_a_plan_chooses_how_its_tasks_get_devices(engine, strategy, used):
    make("a")
    make("b")
    found = engine.carry_out({"assignment": strategy, "tasks": [sleeps(f"t{n}", 0.2) for n in range(4)]})
    places = list(where(found).values())
    assert {name: places.count(name) for name in sorted(set(places))} == used
    assert found.assignment == strategy


def test_the_installation_chooses_where_the_plan_says_nothing(engine, settings):
    settings.ASSIGNMENT = "tests.constellations.runs.attempts.test_placing.last_by_name"
    for name in ("a", "b", "c"):
        make(name, 9)
    assert set(where(engine.carry_out({"tasks": [noop(f"t{n}") for n in range(9)]})).values()) == {"c"}


def last_by_name(candidates, task, session):
    return max(candidates, key=lambda each: each.name)


def test_a_drained_device_gets_nothing_new_and_what_waits_goes_elsewhere(engine):
    first, second = make("a", 1), make("b", 1)
    engine.submit({"tasks": [sleeps(f"t{n}", 0.2) for n in range(6)]})
    engine.run(lambda: completed() >= 1)  # two that end in one commit are seen together
    assert completed() < 6
    device_drain(first.pk, by="system")
    before = Attempt.objects.filter(device=first).count()
    engine.run()
    assert completed() == 6
    assert Attempt.objects.filter(device=first).count() == before
    assert Attempt.objects.filter(device=second).count() == 6 - before


# How many at a time


@pytest.mark.parametrize("said", ["plan", "session", "setting"])
def test_a_session_has_no_more_slots_than_is_said(engine, settings, said):
    make("a", 4)
    make("b", 4)
    plan = {"tasks": [sleeps(f"t{n}") for n in range(12)]}
    session = None
    if said == "plan":
        plan["max_concurrent"] = 3
    elif said == "session":
        session = session_create(engine.owner, by="system", max_concurrent=3)
    else:
        settings.SESSION_CONCURRENT = 3
    found = engine.carry_out(plan, session)
    assert found.state == "COMPLETED"
    assert set(SlotsTold().of_sessions.values()) == {3}


def test_the_lower_of_plan_and_session_counts_and_a_change_counts_at_once(engine):
    make("a", 8)
    session = session_create(engine.owner, by="system", max_concurrent=5)
    engine.submit({"max_concurrent": 2, "tasks": [sleeps(f"t{n}") for n in range(8)]}, session)
    engine.run(lambda: completed() >= 1)
    session_change(session.pk, by="system", max_concurrent=1)
    begun = set(Attempt.objects.values_list("id", flat=True))
    engine.run()
    later = Attempt.objects.exclude(id__in=begun).order_by("started_at").values_list("started_at", "ended_at")
    assert SlotsTold().of_sessions[session.pk] == 2
    assert all(end <= start for (_, end), (start, _) in pairwise(later))


@pytest.mark.parametrize("seed", [1, 2])
def test_no_limit_is_exceeded_at_any_moment(engine, seed):
    """Random graphs of several sessions on devices of several sizes, with waits and retries; a second runner takes over."""
    chance = random.Random(seed)
    sizes = {name: chance.randint(1, 3) for name in ("a", "b", "c")}
    limits = {}
    for name, slots in sizes.items():
        sizes[name] = make(name, slots, type=chance.choice(["", "big"])).max_concurrent
    for number in range(3):
        limit = chance.randint(1, 4)
        session = session_create(engine.owner, by="system", max_concurrent=limit)
        limits[session.pk] = limit
        engine.submit({"tasks": list(random_tasks(chance, number))}, session)
    engine.run(lambda: completed() >= 10)
    engine.run()
    assert set(Constellation.objects.values_list("state", flat=True)) <= {"COMPLETED", "PARTIALLY_FAILED"}
    told = SlotsTold()
    assert {key: told.of_sessions[key] for key, limit in limits.items() if told.of_sessions[key] > limit} == {}
    sizes = dict(Device.objects.values_list("id", "max_concurrent"))
    assert {key: told.of_devices[key] for key, slots in sizes.items() if told.of_devices[key] > slots} == {}
    assert not told.left
    assert not SlotRequest.objects.exists()
    assert set(Device.objects.values_list("used", flat=True)) == {0}


def random_tasks(chance: random.Random, number: int):
    for each in range(15):
        after = [f"t{chance.randrange(each)}"] if each and chance.random() < 0.4 else []
        kind = chance.random()
        more = {"priority": chance.choice(["LOW", "MEDIUM", "HIGH"]), "after": after}
        if kind < 0.2:
            yield {"task_id": f"t{each}", "steps": [{"wait": 0.05}, {"tool": "noop"}], **more}
        elif kind < 0.3:
            yield {"task_id": f"t{each}", "command": ["false"], "max_attempts": 2, "backoff": 0, **more, "after": []}
        else:
            yield sleeps(f"t{each}", chance.choice([0, 0.02, 0.05]), **more)
