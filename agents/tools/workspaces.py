"""Where the workspaces of this host's devices are."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from agents.devices.profiles.names import name_fault
from agents.errors import AgentsError


class NoWorkspace(AgentsError):
    """The name of a device, or of what constellations share, is no name of a folder."""

    code = "no_workspace"
    error_kind = ""


def device_workspace(device: str) -> Path:
    """Where commands of a local device run. Raises NoWorkspace for a name that leads elsewhere."""
    if fault := name_fault(device):
        raise NoWorkspace(f"the device {device!r} has no workspace, because its name {fault}; make one with another name")
    return Path(settings.STATE_DIR / "workspaces" / device)
