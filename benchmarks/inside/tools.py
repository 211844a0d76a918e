"""Bodies of work that say when they ran. Times are of the host's monotonic clock, the same in every process."""

import asyncio
import os
import time
from pathlib import Path

from django.conf import settings

from agents.tools.calls import Call, Outcome, register_tool

clock = time.monotonic


def witnesses() -> Path:
    """Where `witness` writes: outside the database, so that it survives whatever happens to a runner."""
    return settings.STATE_DIR / "witnesses"


@register_tool("stamp")
def stamp(call: Call) -> Outcome:
    """A no-op whose result is when it ran."""
    return Outcome("completed", result={"at": clock()})


@register_tool("pause")
async def pause(call: Call) -> Outcome:
    """Waits for `seconds`."""
    await asyncio.sleep(call.arguments["seconds"])
    return Outcome("completed")


@register_tool("blink")
async def blink(call: Call) -> Outcome:
    """Waits for 50 ms; without arguments, so that a plan of 10,000 is small enough."""
    await asyncio.sleep(0.05)
    return Outcome("completed")


@register_tool("witness")
def witness(call: Call) -> Outcome:
    """A no-op that appends when it ran, in which process, for which attempt."""
    file = os.open(witnesses(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{clock()} {os.getpid()} {call.attempt}\n".encode())
    os.close(file)
    return Outcome("completed")


@register_tool("nap")
async def nap(call: Call) -> Outcome:
    """Waits for `seconds`; its result is when it ended."""
    await asyncio.sleep(call.arguments["seconds"])
    return Outcome("completed", result={"at": clock()})
