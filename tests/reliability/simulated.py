"""Simulated devices: a connection that waits a random time for each call; and a process that holds those of another host.

`python -m tests.reliability.simulated SEED` holds and serves the devices of its host (ORRERY_HOST) until it is killed.
"""

from __future__ import annotations

import asyncio
import random
import sys
from concurrent.futures import ThreadPoolExecutor

KIND = "browser"
"""A kind that runners open; its real opener is not asked here."""
SHORTEST_S, LONGEST_S = 0.01, 0.1
"""Of a call."""


class SimulatedConnection:
    """Ends each call well, after a while; `most` is how many were under way at one time."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.under_way = self.most = 0

    async def call(self, call):
        from agents.tools.calls import Outcome

        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self._chance.uniform(SHORTEST_S, LONGEST_S))
        finally:
            self.under_way -= 1
        return Outcome("completed", result=call.arguments.get("result"))

    async def closed(self) -> str:
        return await self._over

    async def close(self) -> None:
        self._over.cancel()


def register_simulated(seed: int, made: dict[int, SimulatedConnection]) -> None:
    """Let runners of this process open simulated devices; those that were opened are in `made`, by device."""
    from agents.links.kinds import OPENERS, Opened

    chance = random.Random(seed)

    async def open_simulated(row) -> Opened:
        made[row["id"]] = SimulatedConnection(chance)
        return Opened(made[row["id"]])

    OPENERS[KIND] = open_simulated


async def hold(seed: int) -> None:
    """Hold and serve the devices of this host."""
    from agents.engine.hosted import HostedDevices
    from agents.links.rows import nudges

    register_simulated(seed, {})
    threads = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    hosted = HostedDevices(lambda *asked: loop.run_in_executor(threads, *asked), lambda device, why: None)
    listener = nudges.NudgeListener(
        lambda stream, head: None, lambda mark, key: hosted.serving.nudged(key) if mark == nudges.CALLS else None
    )
    await listener.start()
    while True:
        await hosted.look()
        await hosted.renew()
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    import django

    django.setup()
    asyncio.run(hold(int(sys.argv[1])))
