"""What a device may be called, may offer and may use: looked at before anything of it is written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings

from agents.devices.limits import CommandLimits
from agents.devices.profiles.ceilings import LIMITS, MAX_CONCURRENT, find_excesses
from agents.devices.profiles.names import name_fault
from agents.devices.profiles.recipes import recipe_problems
from agents.devices.readings import Pressure
from agents.errors import AgentsError
from agents.masks.values import environment_flaw
from agents.models import Device

ENTRIES = 100
"""Labels or capabilities of a device."""
TEXT_LENGTH = 80
"""Characters of a capability, a type, a platform."""
MOST_SLOTS = 1_000
CHANGEABLE = ("platform", "type", "capabilities", "labels", "recipes", "limits", "max_concurrent", "state", "unasked")

Found = Iterator[tuple[str, str]]


class DeviceRejected(AgentsError):
    """The device cannot be as it is described."""

    code = "device_rejected"


class BeyondCeiling(AgentsError):
    """Only an admin may give a device so much."""

    code = "beyond_ceiling"
    status = 403


def check_profile(name: str, said: Mapping[str, Any], before: Device | None, *, may_exceed: bool) -> None:
    """Raise DeviceRejected, or BeyondCeiling unless the author `may_exceed`, with the place of everything that is wrong.

    `said` are fields of a device, all of a new one, else those that are to change of `before`.
    """
    wrong = list(_problems(said))
    if before is None and (fault := name_fault(name)):
        wrong.insert(0, ("name", fault))
    if wrong:
        raise DeviceRejected(*_told(name, wrong))
    if not may_exceed and (wrong := list(_excesses(said, before))):
        raise BeyondCeiling(*_told(name, wrong))


def _told(name: str, wrong: list[tuple[str, str]]) -> tuple[str, list[dict[str, str]]]:
    shown = name if len(name) <= TEXT_LENGTH else f"{name[:TEXT_LENGTH]}..."
    told = "; ".join(f"{key}: {message}" if key else message for key, message in wrong)
    return f"device {shown}: {told}", [{"key": key, "message": message} for key, message in wrong]


def _problems(said: Mapping[str, Any]) -> Found:
    for key in said:
        if key not in (*CHANGEABLE, "kind"):
            yield key, f"there is no such field to set; there are {', '.join(CHANGEABLE)}"
    for key in ("kind", "platform", "type"):
        yield from _text_problems(key, said.get(key, ""))
    for key in ("capabilities", "labels"):
        yield from _list_problems(key, said.get(key, []))
    for each in recipe_problems(said.get("recipes", {})):
        yield f"recipes.{each['key']}".rstrip("."), each["message"]
    yield from _limit_problems(said.get("limits", {}))
    slots = said.get("max_concurrent", MAX_CONCURRENT)
    if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= MOST_SLOTS:
        yield "max_concurrent", f"must be a whole number from 1 to {MOST_SLOTS:,}, not {slots!r}"
    if said.get("state", "ONLINE") not in Device.STATES:
        yield "state", f"must be one of {', '.join(Device.STATES)}"


def _text_problems(key: str, text: Any) -> Found:
    if not isinstance(text, str) or len(text) > TEXT_LENGTH:
        yield key, f"must be text of at most {TEXT_LENGTH} characters"


def _list_problems(key: str, values: Any) -> Found:
    if not isinstance(values, list | tuple) or len(values) > ENTRIES:
        yield key, f"must be a list of at most {ENTRIES} texts"
        return
    for place, value in enumerate(values):
        if key == "labels" and (fault := name_fault(value)):
            yield f"{key}[{place}]", fault
        elif key != "labels":
            yield from _text_problems(f"{key}[{place}]", value)


def _limit_problems(limits: Any) -> Found:
    if not isinstance(limits, Mapping):
        yield "limits", "must be an object"
        return
    for key in limits:
        if key not in LIMITS:
            yield f"limits.{key}", f"there is no such limit; there are {', '.join(sorted(LIMITS))}"
    try:
        CommandLimits.of(limits)
        Pressure.of(limits)
    except ValueError as error:
        key, _, message = str(error).partition(" ")
        yield f"limits.{key}", message
    path = limits.get("path", os.defpath)
    if not isinstance(path, str) or not all(folder.startswith("/") for folder in path.split(os.pathsep)):
        yield "limits.path", f"must be whole paths of folders, parted by {os.pathsep}"
    if flaw := environment_flaw(limits.get("env", {})):
        key, _, message = flaw.partition(" ")
        yield f"limits.env{key.rstrip(':')}", message


def _excesses(said: Mapping[str, Any], before: Device | None) -> Found:
    if not {"limits", "max_concurrent"} & set(said) and before is not None:
        return
    had = None if before is None else {**before.limits, "max_concurrent": before.max_concurrent}
    slots = said.get("max_concurrent", MAX_CONCURRENT if before is None else before.max_concurrent)
    limits = said.get("limits", {} if before is None else before.limits)
    wanted = {**limits, "max_concurrent": slots}
    for name, message in find_excesses(wanted, had, settings.DEVICE_CEILINGS):
        yield name if name == "max_concurrent" else f"limits.{name}", message
