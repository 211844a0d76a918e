"""Machines that dial in: simulated ones in one process, and the way of a call to one of them and back."""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from django.conf import settings
from websockets.asyncio.client import connect

from agents.devices.protocol.frames import FRAME_BYTES
from agents.devices.protocol.messages import VERSION, CallBegun, Heartbeat, Hello, Result, decode_message, encode_message
from agents.links.away import AwayCalls
from agents.models import Device, Stream
from agents.services.device_tokens import device_token_rotate
from agents.services.devices import device_create
from agents.streams import nudges
from agents.streams.outages import with_fresh_connection
from agents.tools.calls import Call
from benchmarks.inside import load
from benchmarks.machine import memory

HEARTBEAT_S = 15.0
AT_ONCE = 20
"""Simulated devices that shake hands at one time."""
PATIENCE_S = 120
TICKS_S = os.sysconf("SC_CLK_TCK")
READINGS = {"memory_percent": 50.0, "disk_percent": 40.0, "cpu_percent": 3.0}


def make(count: int) -> list[str]:
    """Tokens of so many new remote devices."""
    return [_make_one(f"far-{number}") for number in range(count)]


def _make_one(name: str) -> str:
    device = device_create(name, kind="remote", by="system")
    return device_token_rotate(device.pk, by="system")[1]


def idle(port: int, web: int, tokens: list[str], seconds: float) -> dict:
    """What a web process takes while so many connected devices do nothing but send heartbeats."""
    return asyncio.run(_idle(port, web, tokens, seconds))


async def _idle(port: int, web: int, tokens: list[str], seconds: float) -> dict:
    before, began = memory(web)[0], time.monotonic()
    places = asyncio.Semaphore(AT_ONCE)
    devices = [asyncio.create_task(_simulated(port, token, places)) for token in tokens]
    await _until_connected(len(tokens))
    joined = time.monotonic() - began
    await asyncio.sleep(HEARTBEAT_S)  # the heartbeats have spread
    used, at = _cpu_s(web), time.monotonic()
    await asyncio.sleep(seconds)
    share = (_cpu_s(web) - used) / (time.monotonic() - at) * 100
    found = {"before": before, "rss": memory(web)[0], "pss": memory(web)[1], "core": share, "joined": joined}
    found["connected"] = await asyncio.to_thread(_connected)
    for device in devices:
        device.cancel()
    await asyncio.gather(*devices, return_exceptions=True)
    return found


async def _until_connected(count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(_connected) < count:  # noqa: ASYNC110 - it becomes so in another process
            await asyncio.sleep(0.1)


def _connected() -> int:
    return Device.objects.filter(kind="remote", state="connected").count()


def _cpu_s(pid: int) -> float:
    """Of a process, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


async def _simulated(port: int, token: str, places: asyncio.Semaphore) -> None:
    """A device that does nothing but to be there."""
    async with places:
        opened = await connect(
            f"ws://127.0.0.1:{port}/ws/devices/", additional_headers={"Authorization": f"Bearer {token}"}, compression=None,
            ping_interval=None, open_timeout=PATIENCE_S, proxy=None,
        )  # fmt: skip
        await opened.send(encode_message(Hello(VERSION, secrets.token_hex(16), "bench 1")))
        await opened.recv()
    while True:
        await opened.send(encode_message(Heartbeat(READINGS)))
        await asyncio.sleep(HEARTBEAT_S)


def dispatch(port: int, token: str, trials: int) -> list[float]:
    """Seconds from a runner's wish to the outcome, by a device that answers at once: rows, nudges and the socket, both ways."""
    return asyncio.run(_dispatch(port, token, trials))


async def _dispatch(port: int, token: str, trials: int) -> list[float]:
    device = asyncio.create_task(_answering(port, token))
    async with _runner_side() as ask:
        await _until_connected(1)
        times = await ask("observe", {}, trials)
    device.cancel()
    await asyncio.gather(device, return_exceptions=True)
    return times


async def _answering(port: int, token: str) -> None:
    async with connect(
        f"ws://127.0.0.1:{port}/ws/devices/", additional_headers={"Authorization": f"Bearer {token}"}, compression=None,
        max_size=FRAME_BYTES, proxy=None,
    ) as opened:  # fmt: skip
        await opened.send(encode_message(Hello(VERSION, secrets.token_hex(16), "bench 1")))
        while True:
            match decode_message(str(await opened.recv()), "down"):
                case CallBegun(key=key):
                    await opened.send(encode_message(Result(key, "completed")))


def client(port: int, token: str, trials: int) -> dict[str, list[float]]:
    """The same by a real client: a file that is read, and the command `true`, behind the walls that hold here."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "workspace").mkdir()
        (Path(folder) / "workspace" / "a").write_text("content")
        argv = [sys.executable, "-m", "agents.devices.client", "--server", f"http://127.0.0.1:{port}", "--token", token]
        process = subprocess.Popen([*argv, "--state", folder, "--quiet", "--unconfined"], cwd=settings.BASE_DIR)
        try:
            return asyncio.run(_client(trials))
        finally:
            process.terminate()
            process.wait()


async def _client(trials: int) -> dict[str, list[float]]:
    async with _runner_side() as ask:
        await _until_connected(1)
        return {
            "read_file": await ask("read_file", {"path": "a"}, trials),
            "command": await ask("command", {"argv": ["true"]}, trials),
        }


@asynccontextmanager
async def _runner_side():
    """Asks one call after the other, as a runner does of a device that another process holds."""
    session = await asyncio.to_thread(load.session)
    fence = await asyncio.to_thread(Stream.objects.values_list("token", flat=True).get, pk=session)
    thread = ThreadPoolExecutor(1)

    async def in_thread(function, *arguments):
        return await asyncio.get_running_loop().run_in_executor(thread, with_fresh_connection, function, *arguments)

    away = AwayCalls(in_thread)
    listener = nudges.NudgeListener(lambda *_: None, lambda mark, _: away.nudged() if mark == nudges.ANSWERS else None)
    await listener.start()
    await asyncio.sleep(nudges.ADDRESSES_S + 0.1)
    keys = iter(range(1, 1 << 40))

    async def ask(tool: str, arguments: dict, trials: int) -> list[float]:
        device = await in_thread(Device.objects.filter(kind="remote", state="connected").values().get)
        times = []
        for _ in range(trials):
            key = (session << 24) + next(keys)
            began = time.monotonic()
            outcome = await away.carry(Call(key, session, tool, arguments, device, 30.0, key=key, fence=fence))
            times.append(time.monotonic() - began)
            if outcome.outcome != "completed":
                raise RuntimeError(f"{tool}: {outcome.error}")
        return times

    try:
        yield ask
    finally:
        listener.stop()
