"""What a runner's sessions know of the devices between two readings of the rows."""

from agents.engine.environment import Surroundings


def test_a_commit_says_how_many_slots_are_left_and_other_devices_stay_as_they_are():
    around = Surroundings()
    around.devices.update({1: {"max_concurrent": 4, "used": 0}, 2: {"max_concurrent": 2, "used": 1}})
    around.note_slots({1: 1})
    assert [device["used"] for device in around.devices.values()] == [3, 1]
