"""Tools of a tool server that are not those that were accepted: what has changed, and an admin's word that it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import AgentsError
from agents.machines import DEVICE
from agents.models import Device
from agents.services.devices import NoSuchDevice
from agents.streams.door import door
from agents.streams.tables import fold_rows
from agents.toolservers.offers import digest_of_all, find_changes


class NothingToAccept(AgentsError):
    """The device offers nothing but what was accepted."""

    code = "nothing_to_accept"
    status = 409


class ToolsDiffer(AgentsError):
    """What was seen is not what would be accepted."""

    code = "digest_differs"
    status = 409


def describe_tools(device: Device) -> dict[str, Any]:
    """Its tools; where its server offers others by now, these, their digest, and names by what has become of them."""
    offered = device.facts.get("offered")
    return {
        "tools": device.tools,
        "offered": offered,
        "changes": {} if offered is None else find_changes(device.tools, offered),
        "digest": "" if offered is None else digest_of_all(offered),
    }


def tools_accept(device_id: int, digest: str, *, by: str) -> Device:
    """Take what a server offers now for its tools, and let it be connected again. `digest` says what was seen of them.

    Raises NoSuchDevice, NothingToAccept, ToolsDiffer.
    """
    with door(device_id, by) as opened:
        rows = fold_rows("device", "id = %s", device_id)
        if not rows:
            raise NoSuchDevice(f"there is no device {device_id}")
        row = rows[0]
        offered = row["facts"].get("offered")
        if offered is None:
            raise NothingToAccept(f"device {row['name']} offers no other tools than those that were accepted")
        if digest != digest_of_all(offered):
            raise ToolsDiffer(f"what you saw is not what device {row['name']} offers now: look at its tools again")
        changes = find_changes(row["tools"], offered)
        facts = {key: value for key, value in row["facts"].items() if key != "offered"} | {"pinned": digest}
        fields: Mapping[str, Any] = {"tools": offered, "facts": facts}
        changed = {"device": {str(device_id): dict(fields)}}
        opened.turn.record("tools_accepted", set=changed, changes=changes, digest=digest)
        row.update(fields)
        if row["state"] == "failed":
            opened.turn.transition(DEVICE, "device", row, "reset", reason="its tools were accepted")
    return Device.objects.get(pk=device_id)
