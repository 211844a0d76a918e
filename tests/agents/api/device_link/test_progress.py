"""What a device says of a command under way."""

from __future__ import annotations

import asyncio

from agents.api.device_link.connection import UPDATES, DeviceConnection
from agents.devices.protocol.messages import CallBegun, Result, Update
from agents.tools.calls import Call


async def test_how_far_a_command_is_becomes_events_of_its_session_and_not_without_end():
    sent, noted = asyncio.Queue(), []
    connection = DeviceConnection(1, "far", sent.put, {})
    device = {"id": 1, "name": "far", "kind": "remote", "limits": {}}
    call = Call(attempt=3, session=2, tool="command", arguments={"argv": ["true"]}, device=device, timeout=None, key=7)
    call.note = lambda event, **data: noted.append((event, data))
    under_way = asyncio.create_task(connection.call(call))
    assert isinstance(await sent.get(), CallBegun)
    connection.hear(Update(99, 1, 1, 1.0))  # of no call here
    for number in range(UPDATES + 5):
        connection.hear(Update(7, 100 + number, 2, 5.0, 40.0))
    connection.take_result(Result(7, "completed"))
    assert (await under_way).outcome == "completed"
    told = {"attempt_id": 3, "tool": "command", "characters": 100, "lines": 2, "seconds": 5.0, "percent": 40.0}
    assert noted[0] == ("call_progressed", told)
    assert len(noted) == UPDATES
