"""What each kind of device provides: how its connection is opened, and what a call of it does.

A local device needs none: its calls are made by the tools themselves (agents.tools). A remote one dials in and is held by the
web process that it reached (agents.api.device_link). All others are opened by a runner of the host that they belong to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.errors import AgentsError
from agents.streams.row_types import DeviceRow
from agents.tools.calls import Call, Outcome


class LinkRefused(AgentsError):
    """The device cannot be connected. `fault`: nothing but a person can mend that; `offered` are then the tools that it would
    have in the place of those that were accepted.
    """

    code = "link_refused"

    def __init__(self, message: str, *, fault: bool = False, offered: list[dict[str, Any]] | None = None):
        super().__init__(message)
        self.fault, self.offered = fault, offered


class Connection(Protocol):
    """The open connection of one device, in the process that holds it."""

    async def call(self, call: Call) -> Outcome:
        """Carry out a call. It is interrupted by cancelling it; what it prints goes to `call.on_output`, and what else happens
        to `call.on_update`; what is wrong is an outcome, never raised.
        """
        ...

    async def closed(self) -> str:
        """Wait until the connection is over by itself; why. LinkRefused says that the device has failed."""
        ...

    async def close(self) -> None:
        """End it, and everything that runs for it."""


@dataclass(frozen=True)
class Opened:
    """What opening a connection gave: facts that the device told of itself, and the tools it offers (None: as it was)."""

    connection: Connection
    facts: Mapping[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] | None = None


Opener = Callable[[DeviceRow], Awaitable[Opened]]
"""Opens the connection of a device; raises LinkRefused."""
OPENERS: dict[str, Opener] = {}
"""By kind."""


def register_kind(kind: str, opener: Opener) -> None:
    """Devices of `kind` are opened by a runner of their host."""
    OPENERS[kind] = opener
