"""Walls whose trial took too long are tried again: what was found on a busy machine does not hold for a runner's life."""

from __future__ import annotations

import pytest

from agents.coding import starting
from agents.devices import confinement
from agents.devices.confinement import NONE, TOLD
from agents.devices.host import host_name
from agents.models import Device, Event, Runner
from agents.tools import confining
from tests.constellations.runs.attempts.test_crews import found

TOO_SHORT_S = 1e-6


@pytest.fixture
def clock(monkeypatch, settings, state_dir) -> list[float]:
    """The seconds of the clock by which trials are made again, before any has been made."""
    now = [1_000.0]
    settings.CONFINEMENT = "auto"
    monkeypatch.setattr(confining, "_findings", {})
    monkeypatch.setattr(confining.time, "monotonic", lambda: now[0])
    return now


def holds_here(state_dir) -> str:
    found = confinement.find_confinement("auto", state_dir)
    if found.mechanism == NONE:
        pytest.skip("no walls hold on this machine")
    return found.told


def test_a_trial_that_takes_too_long_is_no_answer_and_is_made_again_ever_more_rarely(clock, monkeypatch, state_dir):
    there = holds_here(state_dir)
    with monkeypatch.context() as busy:
        busy.setattr(confinement, "PROBE_S", TOO_SHORT_S)
        assert confining.current_confinement().mechanism == NONE
        assert any("its trial took longer" in why for why in confining.current_confinement().reasons)
        for pause in (30, 60, 120):
            clock[0] += pause - 1
            assert not confining.are_walls_due()
            clock[0] += 1
            assert confining.are_walls_due()
            assert confining.try_walls_again() is None
    clock[0] += confining.LONGEST_AGAIN_S
    assert confining.try_walls_again() == (TOLD[NONE], there)
    assert confining.confinement_text() == there
    clock[0] += 10 * confining.LONGEST_AGAIN_S
    assert not confining.are_walls_due()


def test_walls_that_do_not_hold_for_sure_are_not_tried_again(clock, monkeypatch, settings):
    settings.CONFINEMENT = NONE
    assert confining.current_confinement().mechanism == NONE
    clock[0] += 10 * confining.LONGEST_AGAIN_S
    assert not confining.are_walls_due()


@pytest.mark.django_db(transaction=True)
def test_a_runner_that_finds_walls_later_says_so_in_the_history_of_its_devices(
    engine, device, monkeypatch, settings, state_dir
):
    there = holds_here(state_dir)
    settings.CONFINEMENT = "auto"
    Device.objects.update(host=host_name())
    find, times = confinement.find_confinement, iter([TOO_SHORT_S])

    def find_when_busy(*asked):
        with monkeypatch.context() as busy:
            busy.setattr(confinement, "PROBE_S", next(times, confinement.PROBE_S))
            return find(*asked)

    monkeypatch.setattr(confining, "_findings", {})
    monkeypatch.setattr(confining, "AGAIN_S", 0.0)
    monkeypatch.setattr(confining, "find_confinement", find_when_busy)
    told = Event.objects.filter(stream=device.pk, type="walls_changed")
    engine.run(found("agents_event", f"stream_id = {device.pk} AND type = 'walls_changed'"))
    data = told.get().data
    assert (data["before"], data["now"]) == (TOLD[NONE], there)
    assert Runner.objects.get(pk=data["runner"]).confinement == there


def test_namespaces_that_could_not_be_tried_in_time_are_tried_the_next_time(monkeypatch):
    starting._try_namespaces.cache_clear()
    with monkeypatch.context() as busy:
        busy.setattr(starting, "PROBE_S", TOO_SHORT_S)
        assert not starting._namespaces_hold()
    assert starting._namespaces_hold() == starting._try_namespaces()
