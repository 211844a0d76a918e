"""Devices: one function for each thing that a person or another program asks of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.access.approvers import NotApprover, why_no_approver
from agents.devices.profiles.ceilings import MAX_CONCURRENT
from agents.devices.profiles.profile import DeviceRejected, check_profile
from agents.errors import AgentsError
from agents.gates.unasked import Unasked, UnaskedRejected, read_unasked
from agents.machines import DEVICE_AGENT
from agents.models import Agent, Device, Stream
from agents.streams.door import door, new_stream, system_stream
from agents.streams.statements import write_transaction


class NoSuchDevice(AgentsError):
    """There is no device {id}."""

    code = "no_such_device"
    status = 404


class DeviceExists(AgentsError):
    """There is a device of that name."""

    code = "device_exists"
    status = 409


def device_create(
    name: str,
    *,
    by: str,
    kind: str = "local",
    platform: str = "shell",
    type: str = "",
    capabilities: Iterable[str] = (),
    labels: Iterable[str] = (),
    recipes: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    unasked: dict[str, Any] | None = None,
    may_exceed: bool = True,
) -> Device:
    """Register a device. `may_exceed`: whether its limits may be beyond the installation's ceilings.

    Raises DeviceExists when the name is taken, in whatever case, DeviceRejected when something makes no sense, BeyondCeiling,
    and NotApprover where it lets models do something `unasked` that its author may not approve.
    """
    said: dict[str, Any] = {
        "kind": kind, "platform": platform, "type": type, "capabilities": list(capabilities), "labels": list(labels),
        "recipes": {} if recipes is None else recipes, "limits": limits or {}, "max_concurrent": max_concurrent,
        "unasked": unasked or {},
    }  # fmt: skip
    check_profile(name, said, None, may_exceed=may_exceed)
    _check_unasked(name, said, {}, by)
    with write_transaction():
        Stream.objects.select_for_update().get(pk=system_stream())  # nobody else gives out a name meanwhile
        if taken := Device.objects.filter(name__iexact=name).values_list("name", flat=True).first():
            raise DeviceExists(f"there is a device called {taken} already")
        stream = new_stream("device")
        with door(stream, by) as opened:
            row = {"id": stream, "name": name, **said, "state": "ONLINE", "created_at": opened.turn.at}
            opened.turn.record("device_created", add={"device": [row]})
    return Device.objects.get(pk=stream)


def device_change(device_id: int, *, by: str, may_exceed: bool = True, **fields: Any) -> Device:
    """Change a device's profile or state; its name stays. Raises as device_create, and NoSuchDevice.

    A change of state is also told in the streams of the sessions that have work on the device.
    """
    before = Device.objects.filter(pk=device_id).first()
    if before is None:
        raise NoSuchDevice(f"there is no device {device_id}")
    check_profile(before.name, fields, before, may_exceed=may_exceed)
    _check_unasked(before.name, fields, before.unasked, by)
    if not fields:
        return before
    with door(device_id, by) as opened:
        opened.turn.record("device_changed", set={"device": {str(device_id): fields}})
    if fields.get("state", before.state) != before.state:
        told = {"device_id": device_id, "name": before.name, "from_state": before.state, "to_state": fields["state"]}
        for session in sessions_at_work_on(device_id):
            with door(session, by) as opened:
                opened.turn.record("device_state_changed", **told)
    return Device.objects.get(pk=device_id)


def _check_unasked(name: str, said: dict[str, Any], before: dict[str, Any], by: str) -> None:
    """Put the normal form into `said`. Raises DeviceRejected, and NotApprover where it widens what stands."""
    if "unasked" not in said:
        return
    try:
        said["unasked"] = read_unasked(said["unasked"])
    except UnaskedRejected as error:
        key = ".".join(["unasked", *map(str, error.path)])
        raise DeviceRejected(f"device {name}: {key}: {error}", [{"key": key, "message": str(error)}]) from error
    let = Unasked.of(said["unasked"]).widening_of(Unasked.of(before))
    if let and (why := why_no_approver(by)):
        raise NotApprover(f"device {name}: unasked {let}, and who changes it may only narrow that: {why}")


def sessions_at_work_on(device_id: int) -> list[int]:
    """Sessions with an agent on the device that has not ended."""
    agents = Agent.objects.filter(device=device_id).exclude(state__in=sorted(DEVICE_AGENT.terminal))
    return sorted(set(agents.values_list("session_id", flat=True)))
