"""What a browser may use: it is ended whole where a page of it takes more, and the call under way knows why."""

import asyncio
import os
import signal

import pytest

from agents.devices.host import instance_name
from agents.devices.processes import list_pids, read_mark

PATIENCE_S = 60.0
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HUNGRY = """<!doctype html><title>Hungry</title><p>eats</p><script>
const kept = []; setInterval(() => { if (kept.length < 40) kept.push(new Uint8Array(40 << 20).fill(1)) }, 100)</script>"""
"""A page that takes 40 MB at a time, to 1.6 GB: a limit that does not hold does not take the machine with it."""


def processes_of(device: int) -> list[int]:
    return [pid for pid in list_pids() if read_mark(pid) == (f"{instance_name()}-browser", device)]


async def test_a_page_that_eats_memory_ends_its_browser_and_the_call_under_way_is_lost(open_window, web):
    window = await open_window(web.address, limits={"memory_mb": 700})
    other = await open_window(web.address)
    assert (await other("open", url=web.show("/", "<p>here</p>"))).outcome == "completed"
    opened = await window("open", url=web.show("/hungry", HUNGRY))
    assert opened.result["title"] == "Hungry"
    waiting = asyncio.get_running_loop().create_task(window("wait", text="never", seconds=PATIENCE_S))
    async with asyncio.timeout(PATIENCE_S):
        assert await window.connection.closed() == "chromium was ended: memory 700 MB exceeded"
        await window.connection.close()
        lost = await waiting
    assert (lost.outcome, lost.error) == ("lost", "chromium was ended: memory 700 MB exceeded")
    assert processes_of(77 << 24) == []
    assert (await other("read")).result["content"] == "here"


async def test_a_page_whose_process_has_died_is_gone_and_others_are_not(open_window, web):
    window = await open_window(web.address)
    app = {"page": "shop", "visual": False}
    opened = await window("open", app=app, url=web.show("/", "<p>here</p>"))
    assert (await window("open", attempt=2, url=web.address + "/")).outcome == "completed"
    os.kill(opened.process["pid"], signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        while (failed := await window("read", app=app)).outcome == "completed":
            pass
    assert failed.outcome == "failed"
    again = await window("open", app=app, url=web.address + "/")
    assert (again.outcome, again.process["pid"] != opened.process["pid"]) == ("completed", True)
    told = [*(failed.result or {}).get("happened", []), *again.result.get("happened", [])]
    assert [each["kind"] for each in told] == ["crashed"]
    assert (await window("read", attempt=2)).result["content"] == "here"
