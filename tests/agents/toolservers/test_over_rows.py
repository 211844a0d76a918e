"""A tool server that another process holds: what a call prints, asks and is told goes over rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.models import DeviceCallMessage
from agents.toolservers.opening import open_tool_server
from tests.agents.links.conftest import far, held, make_call, session  # noqa: F401  fixtures
from tests.agents.links.test_serving import together
from tests.agents.toolservers.conftest import stdio_connection

pytestmark = pytest.mark.django_db(transaction=True)

SERVER = {"id": 77, "name": "srv", "kind": "mcp", "limits": {}, "facts": {}, "tools": [], "connection": stdio_connection()}


def test_progress_and_a_question_cross_over_and_so_does_the_answer(make_call, held):  # noqa: F811
    printed: list[str] = []
    told: list[tuple[str, dict]] = []

    async def work(sides):
        opened = await open_tool_server(SERVER)
        try:
            ((device, fence),) = held.items()
            sides.serving.hold(device, fence, opened.connection.call)
            counting = replace(make_call(1), tool="srv.count", arguments={"to": 2, "pause": 0.01}, timeout=30.0)
            counting.on_output = printed.append
            counted = await sides.away.carry(counting)
            asking = replace(make_call(2), tool="srv.reserve", arguments={}, timeout=30.0)

            def answer(kind: str, data: dict) -> None:
                told.append((kind, data))
                if kind == "question":
                    content = {"name": "Cy", "seats": 3}
                    asking.told.put_nowait(("answer", {"number": data["number"], "action": "accept", "content": content}))

            asking.on_update = answer
            return counted, await sides.away.carry(asking)
        finally:
            await opened.connection.close()

    counted, reserved = together(work)
    assert (counted.outcome, counted.result) == ("completed", {"result": "counted to 2"})
    assert "".join(printed) == "1/2 counted 1\n2/2 counted 2\ncounted to 2"
    assert (reserved.outcome, reserved.result) == ("completed", {"result": "3 seats for Cy"})
    assert "question" in [kind for kind, _ in told]
    ways = set(DeviceCallMessage.objects.filter(call=2).values_list("way", "kind"))
    assert {("up", "question"), ("down", "answer")} <= ways
