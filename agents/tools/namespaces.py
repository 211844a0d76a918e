"""Tools of tool servers: their names have a namespace, `git.git_log`, and a device says which it offers. Pure.

`Device.tools` holds each as {name, description, arguments, digest}: its whole name, what the server says of it, the JSON Schema
of its arguments as far as it is kept (agents.tools.tame), and a digest of the whole definition.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from agents.devices.profiles.platforms import PLATFORMS

NAME_CHARACTERS = 80
"""Of a tool's name, its namespace included."""
NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
RESERVED = PLATFORMS
"""Namespaces of what agents of each platform do themselves: `mcp.look`, `browser.look`."""
OWN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
"""A tool's name without its namespace."""
WIRE_CHARACTERS = 64
"""Of a tool's name as providers of models take it: letters, digits, _ and -."""
LISTED = 10
"""Names that a message lists."""

Tool = Mapping[str, Any]


OFFERED: dict[str, tuple[Tool, ...]] = {}
"""By kind of device, which is their namespace, where all of a kind offer the same: also one that has told nothing yet."""
OWN_TOOLS = ("mcp", "browser")
"""Kinds of devices that have no workspace, and no tools but those that they offer."""


def is_namespaced(name: str) -> bool:
    """Whether a name is that of a tool which devices offer: those that every workspace has are without a dot."""
    namespace, dot, own = name.partition(".")
    is_free = namespace not in RESERVED or namespace in OFFERED
    fits = is_free and NAMESPACE.fullmatch(namespace) and OWN_NAME.fullmatch(own)
    return bool(dot and fits) and len(name) <= NAME_CHARACTERS


def tools_of(device: Mapping[str, Any]) -> Sequence[Tool]:
    """What a device offers."""
    return device.get("tools") or OFFERED.get(str(device.get("kind")), ())


def find_tool(device: Mapping[str, Any], name: str) -> Tool | None:
    """The tool of that name which a device offers; one that is retired offers none."""
    if device.get("state") == "retired":
        return None
    return next((tool for tool in tools_of(device) if tool["name"] == name), None)


def has_own_tools_only(device: Mapping[str, Any]) -> bool:
    """Whether a device has no tools but those that it offers."""
    return device.get("kind") in OWN_TOOLS


def no_such_tool(name: str, devices: Iterable[Mapping[str, Any]]) -> str:
    """That no device offers a tool of that name, and what is nearest to it; empty where one does."""
    there = (device for device in devices if device.get("state") != "retired")
    offered = sorted({tool["name"] for device in there for tool in tools_of(device)})
    if name in offered:
        return ""
    same = [each for each in offered if each.partition(".")[0] == name.partition(".")[0]]
    close = get_close_matches(name, offered, 1)
    listed = ", ".join((same or offered)[:LISTED]) + (" and more" if len(same or offered) > LISTED else "")
    said = f"; there are {listed}" if listed else "; no device is a tool server"
    return f"no device offers a tool {name}{said}" + (f"; did you mean {close[0]}?" if close else "")


def wire_name(name: str) -> str:
    """A tool's name as models are told it; two of them never have the same."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name.replace(".", "__", 1))
    if plain == name.replace(".", "__", 1) and len(plain) <= WIRE_CHARACTERS and "__" not in name:
        return plain
    return f"{plain[: WIRE_CHARACTERS - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
