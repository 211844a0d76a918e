"""Which devices a task may run on: the one place that says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from constellations.plan.keys.calls import INSTRUCTION, NEEDS_DOING
from constellations.plan.values import Finding, Row

Device = Mapping[str, Any]
Devices = Mapping[str, Device]


class KnownDevices(dict[str, dict[str, Any]]):
    """Devices by name, and the minds that tasks in words may have there: `minds` are the names of model profiles, and the empty
    name where one of them is for all such tasks that name none.
    """

    minds: frozenset[str] = frozenset()


MAX_LISTED = 20
"""Types or capabilities of devices that a message names."""
DEVICE_FIELDS = ("wanted_device", "device_type", "capabilities", "not_device")
"""Fields of a task that say where it may run."""


def device_fits(name: str, device: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Whether a device is the one that a task names, or has what the task asks for and is none that it avoids."""
    if task["wanted_device"]:
        return bool(name == task["wanted_device"])
    if name in task["not_device"] or (task["device_type"] and device["type"] != task["device_type"]):
        return False
    asked = task["capabilities"]
    return not asked or set(asked) <= set(device["capabilities"])


def why_none_fits(task: Mapping[str, Any]) -> str:
    """That there is no device such as a task asks for which names none."""
    asked = [f"the type {task['device_type']}"] if task["device_type"] else []
    asked += [f"the capabilities {', '.join(task['capabilities'])}"] if task["capabilities"] else []
    left_out = ", ".join(task["not_device"])
    if not asked:
        return f"not_device leaves no device: it names {left_out}" if left_out else "no device is there"
    return (f"leaving out {left_out} (not_device), " if left_out else "") + f"no device has {' and '.join(asked)}"


NO_MIND = "none is configured for device_agent: make a model profile (docs/models.md), or set LLM_BASE_URL and LLM_MODEL"


def missing_mind(row: Row, devices: Devices | None) -> tuple[str, str] | None:
    """(key, message) for a task in words that no model is there for."""
    minds = devices.minds if isinstance(devices, KnownDevices) else frozenset()
    if row["tool"] != INSTRUCTION or row["model"] in minds:
        return None
    if row["model"]:
        there = ", ".join(sorted(filter(None, minds))) or "none"
        return "model", f"there is no model profile {row['model']}; there is {there}"
    return "tool", f"{NEEDS_DOING}, and {NO_MIND}"


def missing_minds(tasks: Iterable[Row], devices: Devices | None, usual: str = "") -> list[Finding]:
    """As `unknown_devices`, of the models that tasks in words need; `usual` is the one for those that name none."""
    found = ((number, missing_mind({**row, "model": row["model"] or usual}, devices)) for number, row in enumerate(tasks))
    return [(("tasks", number, *({wrong[0]} - {"tool"})), wrong[1]) for number, wrong in found if wrong]


def unknown_devices(tasks: Iterable[Row], devices: Devices) -> list[Finding]:
    """Every task, in normal form, that asks for a device which is not there: its place in a plan, and what there is instead."""
    found = ((number, unknown_device(row, devices)) for number, row in enumerate(tasks))
    return [(("tasks", number, wrong[0]), wrong[1]) for number, wrong in found if wrong]


def unknown_device(row: Row, devices: Devices) -> tuple[str, str] | None:
    """(key, message) unless the devices named exist, and some device fits what is asked for."""
    named = [("device", row["wanted_device"])] if row["wanted_device"] else []
    for key, name in [*named, *(("not_device", name) for name in row["not_device"])]:
        if name not in devices:
            return key, f"there is no device {name}; {_devices_there(devices)}"
    anywhere = {**row, "wanted_device": ""}
    keys = [key for key in ("device_type", "capabilities", "not_device") if row[key]]
    if keys and not any(device_fits(name, device, anywhere) for name, device in devices.items()):
        return _wanted_in_vain(row, devices) or (keys[0], f"{why_none_fits(anywhere)}; {_devices_there(devices)}")
    return None


def _wanted_in_vain(row: Row, devices: Devices) -> tuple[str, str] | None:
    """(key, message) where no device has that type, or one of the capabilities, whatever else is asked for."""
    types = {device["type"] for device in devices.values() if device["type"]}
    capabilities = {each for device in devices.values() for each in device["capabilities"]}
    if row["device_type"] and row["device_type"] not in types:
        return "device_type", f"no device has the type {row['device_type']}{_listed('types', 'type', types)}"
    if missing := [each for each in row["capabilities"] if each not in capabilities]:
        word = "capability" if len(missing) == 1 else "capabilities"
        return (
            "capabilities",
            f"no device has the {word} {', '.join(missing)}{_listed('capabilities', 'capability', capabilities)}",
        )
    return None


def _listed(words: str, word: str, known: set[str]) -> str:
    """What there is of a kind, as far as a message lists it."""
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f"; the {words} there are: {', '.join(sorted(known)[:MAX_LISTED])}{more}" if known else f", or any {word}"


def _devices_there(devices: Devices) -> str:
    return f"there are {', '.join(sorted(devices))}" if devices else "there are no devices"
