"""Where the time of an interaction went: making its constellation, and tasks that were ready and did not run."""

import pytest

from agents.models import Agent, Transition
from agents.services.devices import device_change, device_take_offline
from constellations.models import Constellation, NormalForm
from constellations.reads.statistics import figures_of, statistics_of
from tests.constellations.runs.test_run import command, noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def test_a_constellation_agent_is_in_start_while_its_request_is_read(engine, device):
    engine.carry_out({"tasks": [noop(f"task_{number}") for number in range(200)]})
    agent = Agent.objects.get(machine="constellation_agent")
    created = Transition.objects.get(machine="constellation_agent", event="created")
    assert created.spent > 0
    assert (created.at - agent.created_at).total_seconds() == pytest.approx(created.spent, abs=1e-5)


def test_so_it_is_when_nothing_can_be_created(engine, device):
    engine.submit({"tasks": [noop("a")]})
    NormalForm.objects.all().delete()  # so the runner has to read the plan itself
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constellations.services.plans.known_devices", dict)
        engine.run()
    failed = Transition.objects.get(machine="constellation_agent")
    assert (failed.event, failed.spent > 0) == ("creation_failed", True)


def test_the_result_says_how_long_tasks_were_ready_and_did_not_run(engine, device):
    device_change(device.pk, by="system", max_concurrent=1)
    found = engine.carry_out({"tasks": [command("a", "sleep", "0.2"), command("b", "sleep", "0.2"), noop("c", after=["b"])]})
    counted = statistics_of(figures_of(found))
    assert found.result["waiting_s"] >= 0.2
    assert found.result["waiting_s"] == pytest.approx(counted["waiting_s"], abs=0.001)
    assert found.interaction.result["waiting_s"] == found.result["waiting_s"]


def test_what_ends_with_the_constellation_has_waited_too(engine, device):
    """The deadline is decided in the turn that closes the constellation, before anything of it is recorded."""
    device_take_offline(device.pk, by="system")
    found = engine.carry_out({"tasks": [noop("a", deadline=0.2)]})
    assert Constellation.objects.count() == 1
    assert found.result["waiting_s"] >= 0.2
    assert found.result["waiting_s"] == pytest.approx(statistics_of(figures_of(found))["waiting_s"], abs=0.001)
