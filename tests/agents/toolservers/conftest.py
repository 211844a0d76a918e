"""Tool servers of the tests: programs of their own, as devices that a real runner holds."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from mcp import Client

from agents.engine.hosted import set_device
from agents.models import Device
from agents.services.devices import device_create
from agents.streams.statements import raw_cursor
from agents.toolservers.offers import digest_of_all, make_offer
from tests.agents.toolservers.server_program import server

PROGRAM = Path(__file__).with_name("server_program.py")


def stdio_connection(marks: Path | None = None, **env: str) -> dict:
    """How the tests' server is started."""
    given = {"MARKS": str(marks)} if marks else {}
    return {"transport": "stdio", "argv": [sys.executable, str(PROGRAM), "stdio"], "env": {**given, **env}}


def make_server(name: str, connection: dict, *, pinned: bool = True, **more) -> Device:
    """A device that is a tool server; `pinned`: it has been connected before, and offered what the tests' server does."""
    made = device_create(name, kind="mcp", connection=connection, by="system", **more)
    if pinned:
        offer = make_offer(name, listed_tools(), str)
        set_device(made.pk, "device_changed", tools=list(offer.tools), facts={"pinned": digest_of_all(offer.tools)})
    return Device.objects.get(pk=made.pk)


@cache
def listed_tools() -> tuple[dict, ...]:
    """What the tests' server lists."""

    async def ask() -> tuple[dict, ...]:
        async with Client(server) as client:
            listed = await client.list_tools()
        return tuple(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools)

    return asyncio.run(ask())


def state_of(device: Device) -> str:
    """Read where the ORM may not be used, as between the turns of a runner."""
    cursor = raw_cursor()
    cursor.execute(f"SELECT state FROM agents_device WHERE id = {device.pk}")
    return cursor.fetchone()[0]


@pytest.fixture
def marks(tmp_path) -> Path:
    """Where the tests' server writes what it was asked for."""
    return tmp_path / "marks"


@pytest.fixture
def srv(transactional_db, marks) -> Device:
    """The tests' server over stdio."""
    return make_server("srv", stdio_connection(marks))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def http_server(marks, settings):
    """The tests' server over HTTP, a process of its own; its address."""
    settings.TOOL_SERVERS = type(settings.TOOL_SERVERS)(frozenset({"127.0.0.1"}), ())
    port = free_port()
    process = start_http_server(port, marks)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def start_http_server(port: int, marks: Path) -> subprocess.Popen:
    """The tests' server, listening."""
    process = subprocess.Popen([sys.executable, str(PROGRAM), "http", str(port)], env={"MARKS": str(marks), "PATH": "/usr/bin"})
    wait_for_port(port, process)
    return process


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    """Until somebody listens there, or the process has ended."""
    while process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError(f"the server ended with {process.returncode}")
