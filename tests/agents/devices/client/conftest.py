"""A place where a client works, without walls, and the calls it knows there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.devices.client.calls import Calls
from agents.devices.client.place import Place
from agents.devices.confinement import Confinement


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "state").mkdir()
    return Place(tmp_path / "workspace", tmp_path / "state", Confinement("none"))


class Heard:
    """What a client's calls have said so far."""

    def __init__(self, place: Place, **more: float):
        self.calls = Calls(place, **more)
        self.said: list = []

    async def until(self, kind: type, count: int = 1) -> list:
        """Messages of a kind, as soon as there are so many."""
        async with asyncio.timeout(30):
            while True:
                self.calls.changed.clear()
                self.said += self.calls.next_messages()
                found = [each for each in self.said if isinstance(each, kind)]
                if len(found) >= count:
                    return found
                await self.calls.changed.wait()


@pytest.fixture
async def heard(place):
    made = Heard(place)
    yield made
    await made.calls.end_all()
