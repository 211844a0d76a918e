"""Devices as they are shown: with who holds them, what they said last, and what runs there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet

from agents.engine.drives.work import registered_handler
from agents.machines import DEVICE, DEVICE_AGENT
from agents.masks.values import shown_limits
from agents.models import Agent, Device, Session
from agents.reads.authors import names_of
from agents.streams.tail import read_events

TASKS_SHOWN = 50
"""Current tasks of one device."""
AGENTS_READ = 2_000
"""Of all devices of a page."""
HIDDEN_CONNECTION = ("heartbeat_s",)
"""Keys of a connection that whoever makes no devices sees."""


def listed_devices(with_retired: bool = False) -> QuerySet[Device]:
    """Devices with their links and owners; retired ones only if they are asked for."""
    rows = Device.objects.select_related("link", "owner")
    return rows if with_retired else rows.exclude(state__in=DEVICE.terminal)


def status_of(device: Any) -> str:
    """A device's state; in the place of `connected` whether it is idle or busy, by its slots."""
    if device.state != "connected":
        return str(device.state)
    return "busy" if device.used else "idle"


def set_current_tasks(devices: Iterable[Device], reader: AbstractBaseUser) -> None:
    """Set `current_tasks` of each: agents at work there, of sessions that the reader may see, oldest first."""
    by_id: dict[int, Any] = {device.pk: device for device in devices}
    for device in by_id.values():
        device.current_tasks = []
    agents = Agent.objects.filter(device__in=by_id, session__in=Session.objects.visible_to(reader))
    at_work = agents.filter(machine=DEVICE_AGENT.name).exclude(state__in=sorted(DEVICE_AGENT.terminal)).order_by("id")
    for agent in at_work.values("id", "name", "session_id", "device_id", "state", "entered_at")[:AGENTS_READ]:
        device = by_id[agent["device_id"]]
        if len(device.current_tasks) < TASKS_SHOWN:
            task = agent["name"].removesuffix(f" on {device.name}")
            device.current_tasks.append({**agent, "task": task})


def set_queued_tasks(devices: Iterable[Device]) -> None:
    """Set `queued_tasks` of each: how many ready tasks of all sessions wait for a slot there."""
    counts = registered_handler().count_queued()
    for device in cast(Iterable[Any], devices):
        device.queued_tasks = counts.get(device.pk, 0)


def shown_connection(connection: Mapping[str, Any], to_maker: bool) -> dict[str, Any]:
    """How a device is reached: whole to those who may make devices."""
    return {name: value for name, value in connection.items() if to_maker or name in HIDDEN_CONNECTION}


def device_events(
    device: int, since: int, limit: int, size: int, *, to_admin: bool, to_maker: bool
) -> list[dict[str, Any]]:  # fmt: skip
    """Events of a device's stream after `since`, oldest first, masked, with `by_name`: what its pages hide is hidden here."""
    events = [orjson.loads(event.json) for event in read_events(device, since, limit, size)]
    names = names_of({event["by"] for event in events})
    names[f"device:{device}"] = "the device itself"
    for event in events:
        event["by_name"] = names[event["by"]]
        data = event["data"]
        rows = [*data.get("add", {}).get("device", []), *data.get("set", {}).get("device", {}).values()]
        for row in rows:
            if "limits" in row:
                row["limits"] = shown_limits(row["limits"], to_admin)
            if "connection" in row:
                row["connection"] = shown_connection(row["connection"], to_maker)
    return events
