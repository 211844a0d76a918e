"""How a device of kind `mcp` is connected: the first connection pins its tools, a later one must find them as they were."""

from __future__ import annotations

from agents.devices.profiles.connections import register_connection_check
from agents.links.kinds import LinkRefused, Opened, register_kind
from agents.streams.row_types import DeviceRow
from agents.tools.handing import FILE_KINDS
from agents.toolservers.connections import connection_flaws, is_code

KIND = "mcp"


async def open_tool_server(device: DeviceRow) -> Opened:
    """The opener of the kind. Raises LinkRefused; a fault where the tools are not those that were accepted."""
    if flaws := list(connection_flaws(device["connection"])):
        raise LinkRefused("; ".join(f"connection.{key}: {message}" for key, message in flaws), fault=True)
    from agents.toolservers.server import ToolServer, refuse_changed  # large, and most processes open none

    server = ToolServer(device)
    try:
        await server.open()
        if device["facts"].get("pinned"):
            refuse_changed(device["tools"], server.offer.tools)
    except BaseException:
        await server.close()
        raise
    return Opened(server, server.facts, list(server.offer.tools))


def register() -> None:
    """Let there be devices of this kind, runners open them, and tasks hand them files where they have a workspace."""
    register_connection_check(KIND, connection_flaws, is_code)
    register_kind(KIND, open_tool_server)
    FILE_KINDS.add(KIND)
