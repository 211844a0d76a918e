"""What a device may be called, may offer and may use, and who may use it: looked at before anything of it is written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from agents.devices.limits import CommandLimits
from agents.devices.profiles.ceilings import LIMITS, MAX_CONCURRENT, find_excesses
from agents.devices.profiles.connections import connection_problems, is_code
from agents.devices.profiles.names import name_fault
from agents.devices.profiles.platforms import PLATFORMS
from agents.devices.profiles.recipes import recipe_problems
from agents.devices.readings import Pressure
from agents.errors import AgentsError
from agents.masks.values import environment_flaw
from agents.models import Device

ENTRIES = 100
"""Labels or capabilities of a device."""
TEXT_LENGTH = 80
"""Characters of a capability, a type, an operating system."""
HOST_LENGTH = 120
USERS = 100
"""Entries of `used_by`."""
METADATA_LENGTH = 10_000
"""Characters of metadata as JSON."""
MOST_SLOTS = 1_000
CHANGEABLE = (
    "platform", "os", "type", "capabilities", "labels", "recipes", "metadata", "limits", "max_concurrent", "unasked",
    "connection", "host", "owner", "used_by", "apps", "is_offered",
)  # fmt: skip
EVERYBODY = "everybody"

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
    kind = said.get("kind", "local") if before is None else before.kind
    wrong = list(_problems(said, before))
    if before is None or "connection" in said:
        found = connection_problems(kind, said.get("connection", {}))
        wrong += [(f"connection.{place}".rstrip("."), why) for place, why in found]
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


def _problems(said: Mapping[str, Any], before: Device | None) -> Found:
    for key in said:
        if key not in CHANGEABLE and (key != "kind" or before is not None):
            yield key, f"there is no such field to set; there are {', '.join(CHANGEABLE)}"
    if said.get("kind", "local") not in Device.KINDS:
        yield "kind", f"must be one of {', '.join(Device.KINDS)}"
    if said.get("platform", PLATFORMS[0]) not in PLATFORMS:
        yield "platform", f"there are no agents for the platform {said['platform']}; there are {', '.join(PLATFORMS)}"
    for key, length in (("os", TEXT_LENGTH), ("type", TEXT_LENGTH), ("host", HOST_LENGTH)):
        yield from _text_problems(key, said.get(key, ""), length)
    if not isinstance(said.get("is_offered", True), bool):
        yield "is_offered", "must be true or false"
    for key in ("capabilities", "labels"):
        yield from _list_problems(key, said.get(key, []))
    for each in recipe_problems(said.get("recipes", {})):
        yield f"recipes.{each['key']}".rstrip("."), each["message"]
    yield from _metadata_problems(said.get("metadata", {}))
    yield from _owner_problems(said.get("owner", ""))
    yield from _user_problems(said.get("used_by", []))
    yield from _limit_problems(said.get("limits", {}))
    slots = said.get("max_concurrent", MAX_CONCURRENT)
    if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= MOST_SLOTS:
        yield "max_concurrent", f"must be a whole number from 1 to {MOST_SLOTS:,}, not {slots!r}"


def _text_problems(key: str, text: Any, length: int = TEXT_LENGTH) -> Found:
    if not isinstance(text, str) or len(text) > length:
        yield key, f"must be text of at most {length} characters"


def _metadata_problems(metadata: Any) -> Found:
    if not isinstance(metadata, Mapping):
        yield "metadata", "must be an object"
    elif len(json.dumps(metadata)) > METADATA_LENGTH:
        yield "metadata", f"has more than {METADATA_LENGTH:,} characters as JSON"


def _owner_problems(owner: Any) -> Found:
    if not isinstance(owner, str):
        yield "owner", "must be the name of a user, or empty"
    elif owner and not get_user_model().objects.filter(username=owner).exists():
        yield "owner", f"there is no user called {owner[:TEXT_LENGTH]}"


def _user_problems(used_by: Any) -> Found:
    if not isinstance(used_by, list | tuple) or len(used_by) > USERS:
        yield "used_by", f"must be a list of at most {USERS} entries: everybody, user:NAME, group:NAME"
        return
    for place, entry in enumerate(used_by):
        what, _, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        if entry == EVERYBODY:
            continue
        if what not in ("user", "group") or not name:
            yield f"used_by[{place}]", "must be everybody, user:NAME or group:NAME"
        elif what == "user" and not get_user_model().objects.filter(username=name).exists():
            yield f"used_by[{place}]", f"there is no user called {name[:TEXT_LENGTH]}"
        elif what == "group" and not Group.objects.filter(name=name).exists():
            yield f"used_by[{place}]", f"there is no group called {name[:TEXT_LENGTH]}"


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
    """What only an admin may say: limits beyond ceilings, what runs on a host, and on which."""
    kind = said.get("kind", "local") if before is None else before.kind
    had = {} if before is None else before.connection
    if is_code(kind, had) or is_code(kind, said.get("connection", had)):
        yield "connection", "has a program run on the device's host: only an admin may make or change such a device"
    if said.get("host", "") != ("" if before is None else before.host) and "host" in said:
        yield "host", "says whose processes carry out its calls: only an admin may set it"
    yield from _limit_excesses(said, before)


def _limit_excesses(said: Mapping[str, Any], before: Device | None) -> Found:
    if not {"limits", "max_concurrent"} & set(said) and before is not None:
        return
    had = None if before is None else {**before.limits, "max_concurrent": before.max_concurrent}
    slots = said.get("max_concurrent", MAX_CONCURRENT if before is None else before.max_concurrent)
    limits = said.get("limits", {} if before is None else before.limits)
    wanted = {**limits, "max_concurrent": slots}
    for name, message in find_excesses(wanted, had, settings.DEVICE_CEILINGS):
        yield name if name == "max_concurrent" else f"limits.{name}", message
