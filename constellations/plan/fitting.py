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


def why_none_fits(task: Mapping[str, Any]) -> str:
    """That there is no device such as a task asks for which names none."""
    asked = [f"the type {task['device_type']}"] if task["device_type"] else []
    asked += [f"the capabilities {', '.join(task['capabilities'])}"] if task["capabilities"] else []
    left_out = ", ".join(task["not_device"])
    if not asked:
        return f"not_device leaves no device: it names {left_out}" if left_out else "no device is there"
    return (f"leaving out {left_out} (not_device), " if left_out else "") + f"no device has {' and '.join(asked)}"
