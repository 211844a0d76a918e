"""What a runner does about a device of its host whose connection ends while it looks at the rows."""

from __future__ import annotations

import asyncio

import pytest

from agents.devices.host import host_name
from agents.engine.hosted import HostedDevices, devices_of_host
from agents.links.holders import take_link
from agents.links.kinds import OPENERS, Opened
from agents.links.moves import move_device_through
from agents.models import Device, DeviceReading, Transition
from agents.services.devices import device_create
from agents.tools.calls import Call, Outcome

pytestmark = pytest.mark.django_db(transaction=True)


class Line:
    """A connection that is over when somebody says so."""

    def __init__(self) -> None:
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.closed_times = 0

    async def call(self, call: Call) -> Outcome:
        return Outcome("completed")

    async def closed(self) -> str:
        return await asyncio.shield(self.over)

    async def close(self) -> None:
        self.closed_times += 1


@pytest.fixture
def lines(monkeypatch) -> list[Line]:
    """The connections that were opened."""
    opened: list[Line] = []

    async def open_line(row) -> Opened:
        opened.append(Line())
        return Opened(opened[-1])

    monkeypatch.setitem(OPENERS, "browser", open_line)
    monkeypatch.setattr("agents.engine.hosted.RETRY_S", 0.0)
    return opened


async def seen(condition) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  what it waits for tells nobody
            await asyncio.sleep(0)


@pytest.mark.parametrize("is_read_before", [True, False], ids=["rows of before", "rows of after"])
def test_a_connection_that_ends_during_a_look_is_let_go_of_once_and_opened_again(lines, is_read_before, transactional_db):
    device = device_create("window", kind="browser", connection={"allow": []}, by="system")
    lost: list[str] = []

    async def run() -> None:
        async def in_thread(function, *arguments):
            if function is not devices_of_host or not lines or lines[0].over.done():
                return await asyncio.to_thread(function, *arguments)
            before = await asyncio.to_thread(function, *arguments)
            lines[0].over.set_result("it has ended")
            await seen(lambda: lines[0].closed_times)
            return before if is_read_before else await asyncio.to_thread(function, *arguments)

        hosted = HostedDevices(in_thread, lambda device, why: lost.append(why))
        await hosted.look()
        await seen(lambda: lines and not hosted._opening)
        await hosted.look()  # it ends meanwhile
        assert (lines[0].closed_times, lost) == (1, ["it has ended"])
        await hosted.look()
        await seen(lambda: len(lines) == 2 and not hosted._opening)
        await hosted.release_all()

    asyncio.run(run())
    moves = Transition.objects.filter(machine="device").order_by("id").values_list("event", flat=True)
    assert list(moves) == ["dial", "accepted", "lost", "dial", "accepted"]
    assert (Device.objects.get(pk=device.pk).host, lines[1].closed_times) == (host_name(), 1)


def test_what_is_held_is_renewed_while_a_look_takes_its_time(engine, monkeypatch):
    renewed: list[HostedDevices] = []

    async def take_for_ever(self) -> None:
        await asyncio.Event().wait()

    async def renew(self) -> None:
        renewed.append(self)

    monkeypatch.setattr(HostedDevices, "look", take_for_ever)
    monkeypatch.setattr(HostedDevices, "renew", renew)
    engine.run(lambda: renewed)
    assert len(set(map(id, renewed))) == 1


def test_a_runner_keeps_a_reading_of_what_is_connected_once_in_a_span_of_time(transactional_db):
    far = device_create("far", kind="remote", by="system")
    take_link(far.pk)
    move_device_through(far.pk, ("dial", "accepted"))

    async def run() -> list[str]:
        asked: list[str] = []

        async def in_thread(function, *arguments):
            asked.append(function.__name__)
            return await asyncio.to_thread(function, *arguments)

        hosted = HostedDevices(in_thread, lambda device, why: None)
        for _ in range(2):
            hosted._silent_at = 0.0
            await hosted.look()
        await hosted.release_all()
        return asked

    asked = asyncio.run(run())
    assert asked.count("lose_silent_devices") == 2
    assert DeviceReading.objects.filter(device=far.pk).count() == asked.count("keep_readings") >= 1
