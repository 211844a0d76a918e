"""What the agents of each platform look with: the tool of an observation, called in SCREENSHOT and before CONFIRM.

`states` registers what an agent does in each state of a platform, `strategies` the pipes of its processing phases. The platform
of a device follows from its kind (agents.devices.profiles.platforms).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agents.errors import AgentsError
from agents.tools.calls import Call, Outcome


@dataclass(frozen=True)
class Look:
    """A tool that is called without arguments, and the seconds that may take. `body` does it where the device itself need not
    be asked.
    """

    tool: str
    seconds: float = 30.0
    body: Callable[[Call], Awaitable[Outcome]] | None = None


LOOKS: dict[str, Look] = {}
"""By platform."""


class UnknownPlatform(AgentsError):
    """There are no agents for the platform."""

    code = "unknown_platform"


def register_look(platform: str, look: Look) -> None:
    LOOKS[platform] = look


def look_of(platform: str) -> Look:
    """What agents of a platform look with. Raises UnknownPlatform, which says which platforms there are."""
    if platform not in LOOKS:
        raise UnknownPlatform(f"there are no agents for the platform {platform}; there are {', '.join(sorted(LOOKS))}")
    return LOOKS[platform]


def look_tool(platform: str) -> str:
    """The tool's name, as policies judge it. An unknown platform has one of its own, so that it does not pass as another's."""
    return LOOKS[platform].tool if platform in LOOKS else f"{platform}.look"


async def tell_profile(call: Call) -> Outcome:
    """What a device said of itself when it was connected: its facts, and the names of the tools that it offers."""
    device = call.device
    tools = [tool["name"] for tool in device.get("tools") or () if isinstance(tool, dict) and "name" in tool]
    return Outcome("completed", result={"device": device["name"], "facts": device.get("facts") or {}, "tools": tools})


register_look("shell", Look("observe"))
register_look("mcp", Look("mcp.look", body=tell_profile))
register_look("acp", Look("acp.look", body=tell_profile))
register_look("browser", Look("browser.look", 60.0))
