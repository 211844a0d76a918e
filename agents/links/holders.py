"""Which process holds the connection of a device. A holder renews; one that has not for long, or is gone, has lost it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from agents.devices.host import is_of_this_boot, is_process_gone, process_identity
from agents.links.moves import REACHED, try_move_device
from agents.links.rows import lose_calls
from agents.models import Device, DeviceCall, DeviceLink
from agents.streams.statements import current_store, update_each, write_transaction

HEARTBEAT_S = 15
"""Between two heartbeats of a device that says nothing else in its `connection`."""
MISSING = 3
"""Heartbeats that may be missing."""
RENEWED = (("device", "int"), ("held", "int"), ("is_heard", "bool"), ("readings", "json"))
"""What is told of each device when it is renewed; without readings those before it stay."""
HELD_S = 10.0
"""A holder on another host that has not renewed for so long is taken for dead..."""
STALLED_S = float(MISSING * HEARTBEAT_S)
"""...and one of this host, of which can be seen that it lives, after this: then its devices are lost all the same."""


def take_link(device: int, *, peer: str = "", version: str = "", steal: bool = False) -> int | None:
    """Hold the device from now on: the fence of that; None while another process that is alive holds it.

    `steal`: also then, as where the device itself has come to this process.
    """
    mine = process_identity()
    with write_transaction():
        DeviceLink.objects.get_or_create(device_id=device)
        link = DeviceLink.objects.select_for_update().get(device=device)
        if not steal and link.holder not in ("", mine) and not is_holder_dead(link):
            return None
        link.holder, link.fence, link.peer, link.version = mine, link.fence + 1, peer[:200], version[:40]
        link.save(update_fields=["holder", "fence", "peer", "version"])
        DeviceLink.objects.filter(device=device).update(since=Now(), renewed_at=Now(), heard_at=Now())
        return link.fence


def is_holder_dead(link: DeviceLink) -> bool:
    """Whether the process that holds a device has ended, or has not renewed for long.

    One that lives here and only was kept from its renewals still has what it holds: what it does there would be lost.
    """
    if is_process_gone(link.holder):
        return True
    patience = STALLED_S if is_of_this_boot(link.holder) else HELD_S
    old = Q(renewed_at__isnull=True) | Q(renewed_at__lt=Now() - timedelta(seconds=patience))
    return DeviceLink.objects.filter(old, device=link.device_id).exists()


def renew_links(fences: Mapping[int, int], heard: Mapping[int, Mapping[str, Any]] | None = None) -> set[int]:
    """Renew what this process holds, by device; those of which it has heard, with their readings. Returns devices it has lost.

    `heard` None: the holder itself answers for them all.
    """
    said: list[dict[str, Any]] = [
        {"device": device, "held": held, "is_heard": heard is None} for device, held in fences.items()
    ]
    for one in said:
        if heard is not None and one["device"] in heard:
            one.update(is_heard=True, readings=heard[one["device"]])
    now = current_store().now
    values = (
        f"renewed_at = {now}, heard_at = CASE WHEN r.is_heard THEN {now} ELSE t.heard_at END,"
        " readings = coalesce(r.readings, t.readings)"
    )
    held = "t.device_id = r.device AND t.fence = r.held AND t.holder = %s"
    with write_transaction():
        kept = update_each("agents_devicelink", values, RENEWED, said, held, (process_identity(),), "device_id")
    return set(fences) - kept


def release_link(device: int, fence: int) -> None:
    """Let go of a device. It stays connected until its heartbeats are missing, so that somebody may take it up at once."""
    DeviceLink.objects.filter(device=device, fence=fence).update(holder="", renewed_at=None)


def end_link(device: int) -> None:
    """Take a device from whoever holds it: that process has lost it at its next renewal (`renew_links`)."""
    DeviceLink.objects.filter(device=device).update(holder="", fence=F("fence") + 1, renewed_at=None)


def heartbeat_s(device: Mapping[str, Any]) -> float:
    """Seconds between two heartbeats of a device."""
    return float(device["connection"].get("heartbeat_s", HEARTBEAT_S))


def lose_silent_devices() -> list[int]:
    """Devices of which nothing was heard for MISSING heartbeats are disconnected; their ids. Any process may do this.

    Calls of devices that nobody can reach, from whatever reason, end as lost.
    """
    rows = Device.objects.filter(state__in=(*REACHED, "connecting")).annotate(
        silent_since=Coalesce(F("link__heard_at"), F("entered_at"), F("created_at")), now=Now()
    )
    own_pace = Q(connection__has_key="heartbeat_s")  # of 1 s at the shortest
    patience = [(own_pace, MISSING), (~own_pace, MISSING * HEARTBEAT_S)]
    silent = rows.filter(reduce(or_, (Q(of, silent_since__lt=Now() - timedelta(seconds=s)) for of, s in patience)))
    lost = []
    for device, state, connection, since, now in silent.values_list("pk", "state", "connection", "silent_since", "now"):
        if (now - since).total_seconds() <= MISSING * heartbeat_s({"connection": connection}):
            continue
        event, why = ("timeout", "the handshake took too long") if state == "connecting" else ("lost", SILENT)
        if try_move_device(device, event, reason=why):
            lost.append(device)
    for device_id, reason in devices_with_calls_left():
        lose_calls(device_id, reason or "the device is not connected")
    return lost


def devices_with_calls_left() -> list[tuple[int, str]]:
    """Devices that are not connected, and that calls still wait for; with the reasons of their states."""
    left = DeviceCall.objects.exclude(state="ended").filter(device__state__in=("disconnected", "failed", "retired"))
    return list(left.values_list("device_id", "device__reason").distinct())


SILENT = f"{MISSING} heartbeats are missing"


def held_by_this_process(devices: Iterable[int]) -> set[int]:
    """Which of these devices this process holds."""
    return set(
        DeviceLink.objects.filter(device__in=list(devices), holder=process_identity()).values_list("device_id", flat=True)
    )
