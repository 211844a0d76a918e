"""The frames between an agent and us: one JSON object a line, bounded, in their order, with a tap in front of the SDK.

The SDK answers each message in a task of its own, so what has to keep its order is taken here: updates and questions never
reach it. What the agent puts into `_meta` is dropped, because the SDK would let it stand in the place of arguments.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

FRAME_BYTES = 8_000_000
"""Of one message of an agent; a longer one ends the connection."""
KEPT_FRAMES = 400
KEPT_CHARACTERS = 2_000
"""The last frames that are remembered, and of each its beginning: what is looked at when something went wrong."""
MINE = ("session/update", "session/request_permission")
"""Methods that the tap takes; everything else is the SDK's."""

Tap = Callable[[Mapping[str, Any]], None]
"""Gets messages of MINE, one after the other; must not raise."""


class BadFrame(Exception):
    """What the agent wrote is no message."""


class FramePipe:
    """A transport of the SDK over an agent's streams. `fault` says why it has ended, where that was not the agent's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tap: Tap):
        self._reader, self._writer, self._tap = reader, writer, tap
        self._kept: deque[str] = deque(maxlen=KEPT_FRAMES)
        self.fault = ""

    async def send(self, message: dict[str, Any]) -> None:
        """Raises ConnectionError where the agent reads no more."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        self._kept.append(f"> {text[:KEPT_CHARACTERS]}")
        self._writer.write(text.encode(errors="replace") + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message for the SDK; None at the end, also where the agent wrote what is no message."""
        try:
            while (message := await self._read()) is not None:
                if message.get("method") not in MINE:
                    return message
                self._tap(message)
        except BadFrame as error:
            self.fault = str(error)
        return None

    async def close(self) -> None:
        self._writer.close()

    def last_frames(self) -> list[str]:
        """The last frames, `>` before those that were sent and `<` before those of the agent."""
        return list(self._kept)

    async def _read(self) -> dict[str, Any] | None:
        """Raises BadFrame."""
        line = b"\n"
        while line.strip() == b"":
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                if not error.partial.strip():
                    return None
                raise BadFrame("the agent ended in the middle of a message") from error
            except asyncio.LimitOverrunError as error:
                raise BadFrame(f"the agent sent a message of more than {FRAME_BYTES:,} bytes") from error
        self._kept.append(f"< {line[:KEPT_CHARACTERS].decode(errors='replace').rstrip()}")
        return read_frame(line)


def read_frame(line: bytes) -> dict[str, Any]:
    """A line as a message, without `_meta` in its parameters. Raises BadFrame."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"the agent sent what is not JSON: {line[:80].decode(errors='replace')}") from error
    if not isinstance(message, dict):
        raise BadFrame(f"the agent sent {type(message).__name__} in the place of an object")
    if isinstance(message.get("params"), dict):
        message["params"].pop("_meta", None)
    return message
