"""How a device's resources are read, and when it is low on one."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.devices import readings
from agents.devices.readings import DEFAULTS, HOLD_S, Pressure, Reading

LOW = "memory 97.1% for 30 s, limit 95%"


def of(memory=0.0, disk=0.0, cpu=0.0, at=0.0):
    return Reading(memory, disk, cpu, at)


def told(pressure, *memory, step=10.0):
    """What is said to readings of the memory, one every `step` seconds."""
    return [pressure.take(of(memory=value, at=step * number)) for number, value in enumerate(memory)]


# --- reading


def test_this_host_can_be_read(tmp_path):
    first = readings.take_reading(tmp_path / "no such folder")
    assert 0 < first.memory_percent < 100
    assert 0 < first.disk_percent <= 100
    assert first.cpu_percent is None
    assert readings.uptime_s() > 0
    second = first
    while second.ticks == first.ticks:  # the kernel counts them a hundred times a second
        second = readings.take_reading(tmp_path, first)
    assert 0 <= second.cpu_percent <= 100
    assert second.at >= first.at


def test_memory_in_use_is_what_is_not_available():
    assert readings.memory_percent("MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable:   250 kB\n") == 75.0


@pytest.mark.parametrize(
    "text",
    ["", "MemTotal: 1000 kB", "MemTotal: x kB\nMemAvailable: 1 kB", "MemTotal: 0\nMemAvailable: 0", "MemTotal:\nMemAvailable:"],
)
def test_damaged_memory_is_none(text):
    assert readings.memory_percent(text) is None


def test_processors_are_busy_with_all_but_idle_and_waiting():
    before = readings.cpu_ticks("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 1 1 1\n")
    now = readings.cpu_ticks("cpu  30 0 20 130 20 0 0 0 9 0\n")
    assert (before, now) == ((20, 100), (50, 200))
    assert readings.cpu_percent(before, now) == 30.0


@pytest.mark.parametrize("text", ["", "cpu", "cpu a b c d e", "cpu 1 2 3", "intr 1 2 3 4 5"])
def test_damaged_processors_are_none(text):
    assert readings.cpu_ticks(text) is None


def test_processors_that_have_not_moved_are_none():
    assert readings.cpu_percent((1, 2), (1, 2)) is None
    assert readings.cpu_percent(None, (1, 2)) is None
    assert readings.cpu_percent((1, 2), None) is None


def test_a_disk_counts_what_is_free_for_everybody(tmp_path, monkeypatch):
    block = os.statvfs_result((4096, 4096, 1000, 300, 100, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: block)
    assert readings.disk_percent(tmp_path) == 87.5


def test_a_proc_that_cannot_be_read_gives_a_damaged_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(readings, "_proc", lambda name: "")
    found = readings.take_reading(tmp_path)
    assert (found.memory_percent, found.cpu_percent, found.ticks) == (None, None, None)
    assert readings.uptime_s() is None


# --- judging


def test_a_limit_counts_only_when_exceeded_for_30_seconds():
    assert told(Pressure(), 97.1, 97.1, 97.1, 97.1, 97.1) == ["", "", "", LOW, LOW]


def test_an_interruption_begins_the_30_seconds_anew():
    assert told(Pressure(), 99, 99, 99, 95, 97.1, 97.1, 97.1, 97.1) == ["", "", "", "", "", "", "", LOW]


def test_it_ends_five_points_below_the_limit():
    assert told(Pressure(), 97.1, 97.1, 97.1, 97.1, 94, 90.1, 90, 94) == ["", "", "", LOW, LOW, LOW, "", ""]


def test_the_reason_stays_as_it_was_when_it_began():
    assert told(Pressure(), 96, 96, 96, 97.1, 99.9)[-1] == LOW


@pytest.mark.parametrize("damaged", [None, float("nan")])
def test_a_damaged_reading_never_makes_a_device_low(damaged):
    assert told(Pressure(), 99, damaged, 99, damaged, 99, 99, 99) == [""] * 7
    assert told(Pressure(), 99, 99, 99, 99, damaged)[-1] == ""


def test_processors_have_no_limit_unless_one_is_set():
    for pressure, expected in ((Pressure(), ""), (Pressure.of({"pause_cpu_percent": 80}), "cpu 99.0% for 30 s, limit 80%")):
        pressure.take(of(cpu=99.0))
        assert pressure.take(of(cpu=99.0, at=30)) == expected


def test_several_shortages_are_all_named():
    pressure = Pressure()
    pressure.take(of(memory=96, disk=97))
    assert pressure.take(of(memory=96, disk=97, at=30)) == "memory 96.0% for 30 s, limit 95%; disk 97.0% for 30 s, limit 95%"


def test_a_device_sets_its_own_limits():
    pressure = Pressure.of({"seconds": 5, "pause_memory_percent": 50.5, "pause_disk_percent": 0, "pause_hold_s": 0})
    assert pressure.take(of(memory=50.5, disk=100)) == ""
    assert pressure.take(of(memory=51, disk=100)) == "memory 51.0% for 0 s, limit 50.5%"


def test_nothing_said_means_the_defaults_and_null_no_limit():
    assert Pressure.of({}) == Pressure(DEFAULTS, HOLD_S)
    assert Pressure.of({"pause_memory_percent": None}).limits["memory"] == 0


def test_a_low_limit_ends_at_half_of_it():
    pressure = Pressure.of({"pause_cpu_percent": 4, "pause_hold_s": 0})
    assert [bool(pressure.take(of(cpu=value))) for value in (5, 2.1, 2)] == [True, True, False]


@pytest.mark.parametrize("key", ["pause_memory_percent", "pause_disk_percent", "pause_cpu_percent", "pause_hold_s"])
@pytest.mark.parametrize("value", [-1, 100_000, "90", True, float("nan")])
def test_a_limit_that_is_none_is_named(key, value):
    with pytest.raises(ValueError, match=key):
        Pressure.of({key: value})


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 100)), st.floats(0.1, 20)), max_size=60))
def test_a_device_is_low_only_after_thirty_seconds_beyond_the_limit(course):
    pressure, at, beyond = Pressure(), 0.0, None
    was_low = False
    for value, seconds in course:
        at += seconds
        low = bool(pressure.take(of(memory=value, at=at)))
        beyond = (at if beyond is None else beyond) if value is not None and value > 95 else None
        expected = (beyond is not None and at - beyond >= HOLD_S) or (was_low and value is not None and value > 90)
        assert low == expected
        was_low = low
