"""MCP over standard input and output, for a client that starts its server itself."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any, TextIO, cast

import anyio
from channels.db import database_sync_to_async
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import PARSE_ERROR

from agents.api.parsers import key_twice
from constellations.mcp.access import Caller, caller_of
from constellations.mcp.server import Context, make_server


def server_of(token: str) -> Server:
    """A server for whoever has `token`, which is looked at again with each request."""

    async def admit(ctx: Context) -> Caller:
        caller: Caller = await database_sync_to_async(caller_of)(token)
        return caller

    return make_server(admit)


class InputLines:
    """Lines of standard input, but for those in which an object has a key twice: these are answered here, as over HTTP.

    Readers differ on which of the two counts, and what the SDK hands on has forgotten the other.
    """

    def __init__(self, incoming: TextIO, outgoing: anyio.AsyncFile[str]):
        self._incoming, self._outgoing = incoming, outgoing

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await asyncio.to_thread(self._incoming.readline):
            if wrong := key_twice(line):
                await self._outgoing.write(_refusal(line, wrong) + "\n")
                await self._outgoing.flush()
            else:
                yield line


def _refusal(line: str, wrong: str) -> str:
    """An error for the request in the line, so that nobody waits for its answer; for none where its id is in doubt."""
    ids: list[Any] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        ids[:] = [value for name, value in pairs if name == "id"]  # the outermost object is the last one read
        return dict(pairs)

    json.loads(line, object_pairs_hook=note)
    known = len(ids) == 1 and isinstance(ids[0], (str, int))
    error = {"code": PARSE_ERROR, "message": f"the message is not JSON: {wrong}"}
    return json.dumps({"jsonrpc": "2.0", "id": ids[0] if known else None, "error": error})


def _own_standard_streams() -> tuple[TextIO, TextIO]:
    """What the client writes and reads, which from now on nobody else in this process meets: stray output goes to its log."""
    streams = os.fdopen(os.dup(0), encoding="utf-8", errors="replace"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


async def serve_stdio(token: str) -> None:
    """Until standard input ends."""
    server = server_of(token)
    incoming, to_client = _own_standard_streams()
    outgoing = anyio.wrap_file(to_client)
    lines = cast("anyio.AsyncFile[str]", InputLines(incoming, outgoing))
    async with stdio_server(lines, outgoing) as (read, write):
        await server.run(read, write, server.create_initialization_options())
