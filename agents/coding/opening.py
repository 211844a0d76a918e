"""Devices of kind `acp` as links, profiles and files know them; what an agent needs is imported when there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.coding.profiles.known import PROFILES
from agents.coding.profiles.profile import ConnectionRejected, read_settings
from agents.devices.profiles.connections import is_always_code, register_connection_check
from agents.links.kinds import Opened, register_kind
from agents.streams.row_types import DeviceRow
from agents.tools.handing import FILE_KINDS

KIND = "acp"


async def open_coding_agent(device: DeviceRow) -> Opened:
    """The opener of the kind. Raises LinkRefused."""
    from agents.coding.connection import open_agent  # large, and most processes open none

    return await open_agent(device)


def connection_flaws(connection: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(place, what is wrong there), of the first that is wrong."""
    try:
        read_settings(connection, list(PROFILES))
    except ConnectionRejected as error:
        place, _, message = str(error).partition(": ")
        yield place, message


def register() -> None:
    """Let runners open devices of this kind, admins make them, and tasks hand them files."""
    register_kind(KIND, open_coding_agent)
    register_connection_check(KIND, connection_flaws, is_always_code)
    FILE_KINDS.add(KIND)
