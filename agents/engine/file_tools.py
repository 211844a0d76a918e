"""The tools that look at a local device's workspace and change its files (agents.devices.files, agents.devices.observation).

Their work is done in threads; an interrupted one has ended when its outcome is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents.devices import files, observation
from agents.devices.local import despite_cancels
from agents.devices.output import TEXT_CHARACTERS
from agents.engine.commands import workspace
from agents.engine.tools import Call, Outcome, check_arguments, tool
from agents.progress.digests import digest

PATH = {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Relative to the workspace."}


def schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


async def in_thread(work: Callable[[Call], Outcome], call: Call) -> Outcome:
    """Check the call's arguments and do its work. A cancel waits for the end of what cannot be cut off, then propagates."""

    def checked() -> Outcome:
        check_arguments(call.tool, dict(call.arguments))
        return work(call)

    task = asyncio.ensure_future(asyncio.to_thread(checked))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await despite_cancels(task)
        raise


READ = schema(
    ["path"],
    path=PATH,
    offset={"type": "integer", "minimum": 0, "description": "In characters."},
    limit={"type": "integer", "minimum": 1, "maximum": files.READ_CHARACTERS, "description": "In characters."},
)


@tool("read_file", READ)
async def read_file(call: Call) -> Outcome:
    """What a text file holds: {"path", "content", "offset", "size"}; offset and size are in characters."""
    return await in_thread(_read, call)


def _read(call: Call) -> Outcome:
    path = call.arguments["path"]
    part = {name: int(call.arguments[name]) for name in ("offset", "limit") if name in call.arguments}
    found = files.read(workspace(call.device["name"]), path, **part)
    result = {"path": path, "content": found.text, "offset": found.offset, "size": found.size}
    return Outcome("completed", result=result, said=digest(found.text), text=found.text[-TEXT_CHARACTERS:])


WRITE = schema(["path", "content"], path=PATH, content={"type": "string", "maxLength": files.FILE_BYTES})


@tool("write_file", WRITE)
async def write_file(call: Call) -> Outcome:
    """Make a text file or replace all it holds: {"path", "size"}."""
    return await in_thread(_write, call)


def _write(call: Call) -> Outcome:
    path, content = call.arguments["path"], call.arguments["content"]
    change = files.write(workspace(call.device["name"]), path, content)
    return Outcome("completed", result={"path": path, "size": change.size}, said=change.after, before=change.before)


EDIT = schema(
    ["path", "old", "new"],
    path=PATH,
    old={"type": "string", "minLength": 1, "description": "Text to replace, exactly as it stands."},
    new={"type": "string", "maxLength": files.FILE_BYTES},
    count={"type": "integer", "minimum": 1, "description": "In how many places it may stand at most; 1 unless given."},
)


@tool("edit_file", EDIT)
async def edit_file(call: Call) -> Outcome:
    """Replace a text in a file, everywhere it stands: {"path", "size", "replaced"}."""
    return await in_thread(_edit, call)


def _edit(call: Call) -> Outcome:
    path, old, new = (call.arguments[name] for name in ("path", "old", "new"))
    change = files.edit(workspace(call.device["name"]), path, old, new, int(call.arguments.get("count", 1)))
    result = {"path": path, "size": change.size, "replaced": change.replaced}
    return Outcome("completed", result=result, said=change.after, before=change.before)


@tool("observe", schema([]))
async def observe(call: Call) -> Outcome:
    """What the workspace and the system look like (agents.devices.observation)."""
    return await in_thread(_observe, call)


def _observe(call: Call) -> Outcome:
    seen = observation.observe(workspace(call.device["name"]))
    return Outcome("completed", result=seen, said=observation.files_digest(seen))
