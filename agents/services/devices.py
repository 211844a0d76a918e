"""Devices: one function for each thing that a person or another program asks of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError

from agents.access.approvers import NotApprover, why_no_approver
from agents.devices.profiles.ceilings import MAX_CONCURRENT
from agents.devices.profiles.platforms import platform_of_kind
from agents.devices.profiles.profile import EVERYBODY, DeviceRejected, check_profile
from agents.engine.drives.work import registered_handler
from agents.errors import AgentsError
from agents.gates.unasked import Unasked, UnaskedRejected, read_unasked
from agents.links.holders import end_link
from agents.links.moves import move_device, sessions_at_work_on
from agents.links.rows import lose_calls
from agents.machines import DEVICE, TransitionNotAllowed
from agents.models import Device, Stream
from agents.services.device_apps import app_problems
from agents.streams.door import door, new_stream, system_stream
from agents.streams.fold import consistent_read
from agents.streams.statements import write_transaction
from agents.streams.tables import Fields


class NoSuchDevice(AgentsError):
    """There is no device {id}."""

    code = "no_such_device"
    status = 404


class DeviceStateRefused(AgentsError):
    """The device's state does not allow that."""

    code = "transition_not_allowed"
    status = 409


class DeviceInUse(AgentsError):
    """Tasks run on the device."""

    code = "device_in_use"
    status = 409


class DeviceExists(AgentsError):
    """There is a device of that name."""

    code = "device_exists"
    status = 409


def device_create(
    name: str,
    *,
    by: str,
    kind: str = "local",
    platform: str = "",
    os: str = "",
    type: str = "",
    capabilities: Iterable[str] = (),
    labels: Iterable[str] = (),
    recipes: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    unasked: dict[str, Any] | None = None,
    connection: dict[str, Any] | None = None,
    host: str = "",
    owner: str = "",
    used_by: Iterable[str] = (EVERYBODY,),
    apps: dict[str, Any] | None = None,
    is_offered: bool | None = None,
    may_exceed: bool = True,
) -> Device:
    """Register a device. `may_exceed`: whether its author may do what only admins may (agents.devices.profiles.profile).

    `owner` is a user's name. Unless they are said, its platform follows from its kind, and only a local device is offered.
    Raises DeviceExists when the name is taken, in whatever case, DeviceRejected when something makes no sense, BeyondCeiling,
    and NotApprover where it lets models do something `unasked` that its author may not approve.
    """
    said: dict[str, Any] = {
        "kind": kind, "platform": platform or platform_of_kind(kind), "os": os, "type": type,
        "capabilities": list(capabilities), "labels": list(labels),
        "recipes": {} if recipes is None else recipes, "metadata": {} if metadata is None else metadata,
        "limits": limits or {}, "max_concurrent": max_concurrent, "unasked": unasked or {},
        "connection": {} if connection is None else connection, "host": host, "owner": owner, "used_by": list(used_by),
        "apps": {} if apps is None else apps,
        "is_offered": kind == "local" if is_offered is None else is_offered,
    }  # fmt: skip
    fields = _as_columns(check_device(name, said, None, by=by, may_exceed=may_exceed))
    with write_transaction():
        Stream.objects.select_for_update().get(pk=system_stream())  # nobody else gives out a name meanwhile
        _check_name_is_free(name)
        stream = new_stream("device")
        with door(stream, by) as opened:
            at = opened.turn.at
            row = {"id": stream, "name": name, **fields, "state": DEVICE.initial, "created_at": at, "entered_at": at}
            opened.turn.record("device_created", add={"device": [row]})
    return Device.objects.get(pk=stream)


def device_change(device_id: int, *, by: str, may_exceed: bool = True, **fields: Any) -> Device:
    """Change a device's profile; its name and kind stay, and what is so already is not recorded.

    Raises as device_create, NoSuchDevice, DeviceStateRefused for a retired one, and DeviceInUse for fewer slots than are taken.
    """
    before = known_device(device_id)
    columns = _as_columns(check_device(before.name, fields, device_id, by=by, may_exceed=may_exceed))
    changes = {name: value for name, value in columns.items() if value != getattr(before, name)}
    if not changes:
        return before
    try:
        with door(device_id, by) as opened:
            opened.turn.record("device_changed", set={"device": {str(device_id): changes}})
    except IntegrityError as error:  # the database's own check, slots_within_limit
        raise DeviceInUse(f"device {before.name} has more slots taken than {fields.get('max_concurrent')}") from error
    return Device.objects.get(pk=device_id)


def check_device(
    name: str, said: dict[str, Any], device_id: int | None, *, by: str, may_exceed: bool = True
) -> dict[str, Any]:  # fmt: skip
    """What `said` is in its normal form, of a new device or as changes of one that is there. Raises as those two do."""
    before = None if device_id is None else known_device(device_id)
    if before is not None and before.state in DEVICE.terminal:
        raise DeviceStateRefused(f"device {before.name} is {before.state}")
    check_profile(name, said, before, may_exceed=may_exceed)
    _check_apps(name, said, before)
    if before is None:
        _check_name_is_free(name)
    return _with_unasked(name, said, {} if before is None else before.unasked, by)


def _check_apps(name: str, said: dict[str, Any], before: Device | None) -> None:
    """Raises DeviceRejected with the place of everything that is wrong with the apps."""
    known = {"kind": said["kind"]} if before is None else {"kind": before.kind, "tools": before.tools}
    if wrong := [{"key": key, "message": why} for key, why in app_problems(said.get("apps", {}), known)]:
        told = "; ".join(f"{each['key']}: {each['message']}" for each in wrong)
        raise DeviceRejected(f"device {name}: {told}", wrong)


def _check_name_is_free(name: str) -> None:
    if taken := Device.objects.filter(name__iexact=name).first():
        kept = ", which is retired: a name is given once" if taken.state in DEVICE.terminal else " already"
        raise DeviceExists(f"there is a device called {taken.name}{kept}")


def known_device(device_id: int) -> Device:
    """The device of that id; raises NoSuchDevice."""
    device = Device.objects.filter(pk=device_id).first()
    if device is None:
        raise NoSuchDevice(f"there is no device {device_id}")
    return device


def device_drain(device_id: int, *, by: str, reason: str = "") -> Device:
    """Let nothing new begin on a device; what runs ends. Raises NoSuchDevice and DeviceStateRefused."""
    return _move(device_id, "drain", by, reason)


def device_drain_preview(device_id: int, user: Any = None) -> Fields:
    """What would become of the work of a device that is drained; of sessions that `user` does not see only the numbers.

    {"ends", "moves", "nowhere"}, each {"total", "tasks"}. Raises NoSuchDevice.
    """
    with consistent_read():
        if not Device.objects.filter(pk=device_id).exists():
            raise NoSuchDevice(f"there is no device {device_id}")
        return registered_handler().preview_drain(device_id, user)


def device_undrain(device_id: int, *, by: str, reason: str = "") -> Device:
    """Let a draining device take work again. Raises as device_drain."""
    return _move(device_id, "undrain", by, reason)


def device_take_offline(device_id: int, *, by: str, reason: str = "taken offline") -> Device:
    """Disconnect a device until it is brought back; what runs there is lost, and `on_lost` decides. Raises as device_drain."""
    device = known_device(device_id)
    if device.state in ("disconnected", "failed"):
        return _switch(device, by, reason, is_off=True)
    device = _move(device_id, "disconnect", by, reason, is_off=True)
    if device.kind == "remote":
        end_link(device_id)
    lose_calls(device_id, reason)
    return device


def device_bring_back(device_id: int, *, by: str, reason: str = "") -> Device:
    """Let a device that was taken offline be connected again. Raises as device_drain."""
    return _switch(known_device(device_id), by, reason, is_off=False)


def _switch(device: Device, by: str, reason: str, *, is_off: bool) -> Device:
    """Say whether a device is to be connected, where its state stays."""
    if device.state in DEVICE.terminal:
        raise DeviceStateRefused(f"device {device.name} is {device.state}")
    if device.is_off != is_off:
        with door(device.pk, by) as opened:
            opened.turn.record("device_changed", set={"device": {str(device.pk): {"is_off": is_off}}}, reason=reason)
    return Device.objects.get(pk=device.pk)


def device_reset(device_id: int, *, by: str, reason: str = "") -> Device:
    """Let a device that has failed be connected again. Raises as device_drain."""
    return _move(device_id, "reset", by, reason)


def device_retire(device_id: int, *, by: str, reason: str = "") -> Device:
    """End a device for good. Raises as device_drain, and DeviceInUse while something runs there."""
    if at_work := sessions_at_work_on(device_id):
        raise DeviceInUse(f"device {known_device(device_id).name} has tasks of {len(at_work)} sessions that run there")
    return _move(device_id, "retire", by, reason)


def _move(device_id: int, event: str, by: str, reason: str, **fields: Any) -> Device:
    device = known_device(device_id)
    try:
        move_device(device_id, event, by=by, reason=reason, **fields)
    except TransitionNotAllowed as error:
        raise DeviceStateRefused(f"device {device.name} is {error.state}: it takes no `{event}`") from error
    return Device.objects.get(pk=device_id)


def _as_columns(said: dict[str, Any]) -> dict[str, Any]:
    """What is said of a device as the columns of its row: its owner by id."""
    columns = dict(said)
    if "owner" in columns:
        owner = columns.pop("owner")
        columns["owner_id"] = get_user_model().objects.values_list("pk", flat=True).get(username=owner) if owner else None
    return columns


def _with_unasked(name: str, said: dict[str, Any], before: dict[str, Any], by: str) -> dict[str, Any]:
    """`said` with the normal form of its `unasked`. Raises DeviceRejected, and NotApprover where it widens what stands."""
    if "unasked" not in said:
        return said
    try:
        said = {**said, "unasked": read_unasked(said["unasked"])}
    except UnaskedRejected as error:
        key = ".".join(["unasked", *map(str, error.path)])
        raise DeviceRejected(f"device {name}: {key}: {error}", [{"key": key, "message": str(error)}]) from error
    let = Unasked.of(said["unasked"]).widening_of(Unasked.of(before))
    if let and (why := why_no_approver(by)):
        raise NotApprover(f"device {name}: unasked {let}, and who changes it may only narrow that: {why}")
    return said
