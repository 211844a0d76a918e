"""The tools that look at a local device's workspace and change its files (agents.devices, `workspace` and `observation`).

Their work is done in threads; an interrupted one has ended, or can change nothing any more, when its outcome is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

from agents.devices import answers
from agents.devices.workspace import files
from agents.per_loop import one_per_loop
from agents.tools.calls import Call, Outcome, check_arguments, register_tool
from agents.tools.workspaces import device_workspace

SECONDS = 60.0
"""Of a call that says nothing itself."""
ENDS_S = 1.0
"""The work of a call that is cancelled may end so long."""
LOOK_S = 0.05
"""Between two looks at a change that is being made just when it is to be given up."""
THREADS = 32
"""Calls that one loop has under way at once; the others wait."""
places = one_per_loop(lambda: asyncio.Semaphore(THREADS))

PATH = {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Relative to the workspace."}


def file_tool_schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


async def in_thread(call: Call, work: Callable[[], Outcome], leave: files.ChangeLeave | None = None) -> Outcome:
    """Check the call's arguments and do its work in a thread of its own.

    A cancel waits for the end of what cannot be cut off, at most ENDS_S; then it takes back the `leave` to change anything
    and goes on without it. What a thread that is stuck comes back to has no effect.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome | None, error: Exception | None) -> None:
        if ended.done():
            return  # given up
        if error is not None:
            ended.set_exception(error)
        elif outcome is not None:
            ended.set_result(outcome)

    def run() -> None:
        outcome, error = None, None
        try:
            check_arguments(call.tool, dict(call.arguments))
            outcome = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, outcome, error)

    async with places():
        threading.Thread(target=run, name=f"{call.tool} {call.key}", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await _end_or_give_up(ended, leave or files.ChangeLeave())
            raise


async def _end_or_give_up(ended: asyncio.Future[Outcome], leave: files.ChangeLeave) -> None:
    """Wait for the end of a thread's work, however often the waiting task is cancelled meanwhile, and not for ever."""
    loop = asyncio.get_running_loop()
    last = loop.time() + ENDS_S
    while not ended.done():
        left = last - loop.time()
        if left <= 0 and leave.take_back():
            ended.cancel()
            return
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ended], timeout=max(left, LOOK_S))
    if not ended.cancelled():
        ended.exception()  # nobody else asks


READ = file_tool_schema(
    ["path"],
    path=PATH,
    offset={"type": "integer", "minimum": 0, "description": "In characters."},
    limit={"type": "integer", "minimum": 1, "maximum": files.READ_CHARACTERS, "description": "In characters."},
)


@register_tool("read_file", READ, seconds=SECONDS, paths=("path",))
async def read_file(call: Call) -> Outcome:
    """What a text file holds: {"path", "content", "offset", "size"}; offset and size are in characters."""

    def read() -> Outcome:
        return Outcome(**answers.read_answer(device_workspace(call.device["name"]), call.arguments, call.place))

    return await in_thread(call, read)


WRITE = file_tool_schema(["path", "content"], path=PATH, content={"type": "string", "maxLength": files.FILE_BYTES})


@register_tool("write_file", WRITE, seconds=SECONDS, paths=("path",))
async def write_file(call: Call) -> Outcome:
    """Make a text file or replace all it holds: {"path", "size"}."""
    leave = files.ChangeLeave()

    def write() -> Outcome:
        return Outcome(**answers.write_answer(device_workspace(call.device["name"]), call.arguments, leave, call.place))

    return await in_thread(call, write, leave)


EDIT = file_tool_schema(
    ["path", "old", "new"],
    path=PATH,
    old={"type": "string", "minLength": 1, "description": "Text to replace, exactly as it stands."},
    new={"type": "string", "maxLength": files.FILE_BYTES},
    count={"type": "integer", "minimum": 1, "description": "In how many places it may stand at most; 1 unless given."},
)


@register_tool("edit_file", EDIT, seconds=SECONDS, paths=("path",))
async def edit_file(call: Call) -> Outcome:
    """Replace a text in a file, everywhere it stands: {"path", "size", "replaced"}."""
    leave = files.ChangeLeave()

    def edit() -> Outcome:
        return Outcome(**answers.edit_answer(device_workspace(call.device["name"]), call.arguments, leave, call.place))

    return await in_thread(call, edit, leave)


@register_tool("observe", file_tool_schema([]), seconds=SECONDS)
async def observe_device(call: Call) -> Outcome:
    """What the workspace and the system look like (agents.devices.observation)."""

    def observe() -> Outcome:
        return Outcome(**answers.observe_answer(device_workspace(call.device["name"])))

    return await in_thread(call, observe)
