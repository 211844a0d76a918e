"""The devices as a prompt shows them: a line of JSON for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.streams.row_types import LiveDevice
from constellations.prompts.quoting import json_line, quote_lines, shorten

DEVICES = 20_000
"""Characters of all devices together."""
SHOWN = 200
"""Devices that have a line; of more the names."""
TOOLS = 30
"""Tools of a tool server that are shown."""
RECIPES = 20
"""Recipes of a device that are shown."""
METADATA = 500
"""Characters of a device's metadata that are shown."""
DESCRIPTION = 200
"""Characters of what a recipe says of itself."""
AT_WORK = ("connected", "draining")
"""States of devices that are at work."""
NO_DEVICES = "There are no devices: no task can run."


def render_devices(devices: Sequence[LiveDevice]) -> str:
    """A line for each, by name, those that are at work before those that are not; the rest by name as far as there is room."""
    if not devices:
        return NO_DEVICES
    ordered = sorted(devices, key=lambda device: (device["state"] not in AT_WORK, device["name"]))
    lines: list[str] = []
    room = DEVICES
    for device in ordered[:SHOWN]:
        line = json_line(describe_device(device))
        if len(line) >= room:
            break
        lines.append(line)
        room -= len(line) + 1
    left = [device["name"] for device in ordered[len(lines) :]]
    if left:
        lines.append(f"and {len(left):,} more: {shorten(', '.join(left), max(0, room) // 2 + 1_000)}")
    return quote_lines("devices", lines)


def describe_device(device: LiveDevice) -> dict[str, Any]:
    """What a planner has to know of a device; keys that say nothing are left out."""
    slots, used, metadata = device["max_concurrent"], device.get("used", 0), device.get("metadata")
    found = {
        "device": device["name"],
        "type": device["type"],
        "platform": device["platform"],
        "os": device.get("os", ""),
        "capabilities": device["capabilities"],
        "labels": device["labels"],
        "state": device["state"],
        "slots": f"{max(0, slots - used)} of {slots} free",
        "queued": device.get("queued", 0),
        "paused": device.get("low", ""),
        "metadata": shorten(json_line(metadata), METADATA) if metadata else "",
        "recipes": _describe_recipes(device["recipes"]),
        "tools": [_describe_tool(tool) for tool in (device.get("tools") or ())[:TOOLS] if "digest" in tool],
    }
    return {key: value for key, value in found.items() if value not in ("", [], {}, 0, None)}


def _describe_tool(tool: Mapping[str, Any]) -> str:
    """A tool server's tool as it is called; what the server says of it is not repeated here."""
    schema = tool["arguments"]
    names = dict.fromkeys([*schema.get("required", ()), *schema.get("properties", ())])
    return shorten(f"{tool['name']}({', '.join(names)})", DESCRIPTION)


def _describe_recipes(recipes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            key: shorten(value, DESCRIPTION) if isinstance(value, str) else value
            for key, value in recipes[name].items()
            if key in ("command", "description", "parameters", "shell")
        }
        for name in sorted(recipes)[:RECIPES]
        if isinstance(recipes[name], Mapping)
    }
