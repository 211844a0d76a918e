"""Which devices a task may run on: the one place that says so. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEVICE_FIELDS = ("wanted_device", "device_type", "capabilities", "not_device")
"""Fields of a task that say where it may run."""


def fits(name: str, device: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Whether a device is the one that a task names, or has what the task asks for and is none that it avoids."""
    if task["wanted_device"]:
        return name == task["wanted_device"]
    if name in task["not_device"] or (task["device_type"] and device["type"] != task["device_type"]):
        return False
    return set(task["capabilities"]) <= set(device["capabilities"])


def wish_of(task: Mapping[str, Any]) -> str:
    """What a task that names no device asks of one, in words that follow "has"; empty where any device will do."""
    asked = [f"the type {task['device_type']}"] if task["device_type"] else []
    asked += [f"the capabilities {', '.join(task['capabilities'])}"] if task["capabilities"] else []
    asked += [f"another name than {', '.join(task['not_device'])}"] if task["not_device"] else []
    return " and ".join(asked)
