"""MCP over standard input and output, for a client that starts its server itself."""

from __future__ import annotations

from channels.db import database_sync_to_async
from mcp.server import Server
from mcp.server.stdio import stdio_server

from constellations.mcp.access import Caller, caller_of
from constellations.mcp.server import Context, make_server


def server_of(token: str) -> Server:
    """A server for whoever has `token`, which is looked at again with each request."""

    async def admit(ctx: Context) -> Caller:
        return await database_sync_to_async(caller_of)(token)

    return make_server(admit)


async def serve(token: str) -> None:
    """Until standard input ends."""
    server = server_of(token)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
