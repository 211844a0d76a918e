"""Other processes pause, cancel and edit a session while a runner works in it: nothing is lost, nothing half done."""

import asyncio
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agents.models import Device, SlotRequest
from agents.services.devices import device_create
from agents.streams.verify import verify_database
from agents.tools.calls import TOOLS, Call, Outcome
from constellations.machines.constellation import CLOSED
from constellations.models import Attempt, Constellation, Edit, Task
from tests.conftest import TestRunner
from tests.reliability.conflicts import Outsider, check_story, plan

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]

DEVICES = ["laptop", "gpu"]
EXAMPLES = settings(
    derandomize=True,
    max_examples=8,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def _nap(monkeypatch):
    async def nap(call: Call) -> Outcome:
        await asyncio.sleep(call.arguments["s"])
        return Outcome("failed", error="on purpose") if call.arguments["fails"] else Outcome("completed", result={"ok": 1})

    monkeypatch.setitem(TOOLS, "nap", nap)


@pytest.fixture
def devices(device):
    return [device, device_create("gpu", max_concurrent=2, by="system")]


def carry_out(engine, random: Random, commands: tuple[str, ...], sessions: int = 2) -> Outsider:
    """Run random graphs while an outsider acts on them; returns it when everything rests."""
    streams = [engine.submit(plan(random, DEVICES, 25))[0].pk for _ in range(sessions)]
    outsider = Outsider(streams, random, 12 * sessions, DEVICES, commands)
    runner = TestRunner(lambda: outsider.finished.is_set() and runner._all_rest())
    outsider.start()
    runner.run()
    outsider.join()
    if outsider.error is not None:
        raise outsider.error
    assert not runner.gave_up, "the engine did not come to rest"
    return outsider


def check_all(outsider: Outsider) -> None:
    assert list(verify_database()) == []
    for session in outsider.sessions:
        check_story(session)
        found = Constellation.objects.filter(session=session).first()
        if found is None:  # on a busy machine a cancel comes before the work has begun
            assert "cancel" in outsider.commands
            assert outsider.edits[session] == 0
            continue
        by_hand = Edit.objects.filter(constellation=found).exclude(author="planner")
        assert by_hand.count() == outsider.edits[session]
        there = set(Task.objects.filter(constellation=found).values_list("task_id", flat=True))
        assert outsider.added[session] - outsider.removed[session] <= there
        assert not (outsider.removed[session] - outsider.added[session]) & there
    assert not Attempt.objects.filter(outcome="").exists()
    numbers = list(Attempt.objects.values_list("task_id", "number"))
    assert len(numbers) == len(set(numbers))
    assert {number for _, number in numbers} <= {1}
    assert SlotRequest.objects.count() == 0
    assert set(Device.objects.values_list("used", "queued")) == {(0, 0)}


@given(random=st.integers(0, 10**6).map(Random))
@EXAMPLES
def test_edits_and_pauses_by_others_are_neither_lost_nor_half_done(engine, devices, random):
    outsider = carry_out(engine, random, ("ping", "pause", "resume", "resume"))
    check_all(outsider)
    assert set(Constellation.objects.values_list("state", flat=True)) <= set(CLOSED)


@given(random=st.integers(0, 10**6).map(Random))
@EXAMPLES
def test_a_cancel_at_any_moment_ends_everything(engine, devices, random):
    outsider = carry_out(engine, random, ("ping", "pause", "resume", "cancel"))
    check_all(outsider)
    assert set(Constellation.objects.values_list("state", flat=True)) <= {*CLOSED, "CANCELLED"}
