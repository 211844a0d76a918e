"""A call as rules judge it: with what its paths lead to in the workspace of the device where it would be made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from agents.devices.confinement import BUBBLEWRAP, LANDLOCK
from agents.devices.host import is_of_this_host
from agents.devices.profiles.names import name_fault
from agents.devices.workspace.files import identify_content
from agents.devices.workspace.paths import ResolvedPath, unresolved_path
from agents.devices.workspace.places import resolve_path
from agents.gates.policies import Act, Site
from agents.tools.confining import is_confined
from agents.tools.workspaces import device_workspace

WALLS = (BUBBLEWRAP, LANDLOCK)
"""By which a coding agent can be kept to its workspace."""


def act_on(
    device: Mapping[str, Any], tool: str, arguments: Mapping[str, Any], writes: str = "", *, is_chosen: bool = False,
    inputs: Mapping[str, str] | None = None,
) -> Act:  # fmt: skip
    """`device` is its row, of this host where it is a local one. `is_chosen`: by a model, which may have written what runs.

    `inputs` are digests of the files that will have been placed in the workspace by then, by path.
    """
    digest_of = partial(_digest_of, device, inputs or {}) if is_chosen and _is_here(device) else None
    return Act(tool, arguments, partial(_place_of, device), writes, digest_of)


def site_of(device: Mapping[str, Any]) -> Site:
    """Where a model's call would be made, with whether that is behind walls."""
    here = _is_here(device)
    if device["kind"] == "acp":  # a program behind walls of its own, within which a path means what it says
        walled = (device.get("facts") or {}).get("isolation") in WALLS
        return Site.of(device)._replace(is_here=walled, is_confined=walled)
    return Site.of(device)._replace(is_here=here, is_confined=here and is_confined())


def _is_here(device: Mapping[str, Any]) -> bool:
    return is_of_this_host(device) and not name_fault(device["name"])


def _place_of(device: Mapping[str, Any], path: str, is_word: bool = False) -> ResolvedPath:
    return resolve_path(device_workspace(device["name"]), path, is_word) if _is_here(device) else unresolved_path(path)


def _digest_of(device: Mapping[str, Any], inputs: Mapping[str, str], name: str) -> str:
    if inputs and (placed := inputs.get(_place_of(device, name, True).path)) is not None:
        return f"sha256 {placed}"
    return identify_content(device_workspace(device["name"]), name)
