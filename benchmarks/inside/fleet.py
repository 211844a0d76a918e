"""Many simulated devices and more tasks than slots: what placing costs, and how the sessions share."""

import asyncio
import random
import statistics

from agents.links.kinds import Opened, register_kind
from agents.models import Device
from agents.services.devices import device_create
from agents.tools.calls import Outcome
from benchmarks.inside import load
from constellations.models import Attempt

KIND = "browser"
"""A kind that runners open; here each call of such a device waits a random time."""
CALL_S = (0.01, 0.1)


class Simulated:
    """The connection of a device that is none."""

    async def call(self, call):
        await asyncio.sleep(random.uniform(*CALL_S))
        return Outcome("completed")

    async def closed(self):
        return await asyncio.get_running_loop().create_future()

    async def close(self):
        """Nothing runs for it."""


async def open_simulated(row) -> Opened:
    return Opened(Simulated())


def measure(devices: int, sessions: int, tasks: int) -> dict:
    """Carry out `tasks` in each of `sessions`, any device for each. Times in seconds; `share` is worst to median wait."""
    register_kind(KIND, open_simulated)
    for number in range(devices):
        device_create(f"s{number}", kind=KIND, max_concurrent=2, is_offered=True, by="system")
    Device.objects.exclude(kind=KIND).update(is_offered=False)
    task = {"tool": "browser.wait", "arguments": {"text": "x"}}
    plan = {"tasks": [{"task_id": str(number), **task} for number in range(tasks)], "max_concurrent": 40}
    for _ in range(sessions):
        load.submit(plan)
    runner = load.Measured(sessions)
    runner.run()
    rows = Attempt.objects.values_list("agent__session", "started_at", "task__constellation__created_at", "ended_at")
    waits: dict[int, list[float]] = {}
    for session, started_at, created_at, _ in rows:
        waits.setdefault(session, []).append((started_at - created_at).total_seconds())
    medians = [statistics.median(each) for each in waits.values()]
    assert len(rows) == sessions * tasks, f"{len(rows)} of {sessions * tasks} attempts"
    wall = (max(row[3] for row in rows) - min(row[1] for row in rows)).total_seconds()
    return {"wall": wall, "cpu": runner.ended_cpu - runner.began_cpu, "share": max(medians) / statistics.median(medians)}
