"""A call as rules judge it: with what its paths lead to in the workspace of the device where it would be made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from agents.devices.profiles.names import name_fault
from agents.devices.workspace.paths import ResolvedPath, unresolved_path
from agents.devices.workspace.places import resolve_path
from agents.gates.policies import Act
from agents.tools.command import device_workspace


def act_on(device: Mapping[str, Any], tool: str, arguments: Mapping[str, Any], writes: str = "") -> Act:
    """`device` is its row, of this host where it is a local one."""
    return Act(tool, arguments, partial(_place_of, device), writes)


def _place_of(device: Mapping[str, Any], path: str, is_word: bool = False) -> ResolvedPath:
    if device["kind"] != "local" or name_fault(device["name"]):
        return unresolved_path(path)
    return resolve_path(device_workspace(device["name"]), path, is_word)
