"""Transitions of devices (docs/machines.md, "7. Device"), told in their streams and in those of sessions with work on them."""

from __future__ import annotations

import contextlib
from typing import Any

from agents.machines import DEVICE, DEVICE_AGENT, TransitionNotAllowed
from agents.models import Agent
from agents.streams.door import door
from agents.streams.row_types import DeviceRow
from agents.streams.tables import Fields, fold_rows

REACHED = ("connected", "draining")
"""States of devices that carry out calls."""


def move_device(device: int, event: str, *, by: str = "system", reason: str = "", **fields: Any) -> DeviceRow:
    """Drive a device's machine by `event`, and set `fields` with it; its row afterwards. Raises TransitionNotAllowed."""
    return move_device_through(device, (event,), by=by, reason=reason, **fields)


def move_device_through(
    device: int, events: tuple[str, ...], *, by: str = "system", reason: str = "", **fields: Any
) -> DeviceRow:  # fmt: skip
    """Several events one after the other, in one transaction; `fields` and `reason` go with the last.

    The device's own `facts` are an event before it: those of a transition are what its machine decides by.
    """
    facts = {"facts": fields.pop("facts")} if "facts" in fields else {}
    with door(device, by) as opened:
        row: DeviceRow = fold_rows("device", "id = %s", device)[0]
        before = row["state"]
        for event in events[:-1]:
            opened.turn.transition(DEVICE, "device", row, event)
        if facts:
            opened.turn.record("device_told", set={"device": {str(device): facts}})
        opened.turn.transition(DEVICE, "device", row, events[-1], reason=reason, **fields)
    if row["state"] != before:
        told: Fields = {"device_id": device, "name": row["name"], "from_state": before, "to_state": row["state"]}
        for session in sessions_at_work_on(device):
            with door(session, by) as opened:
                opened.turn.record("device_state_changed", **told, reason=reason)
    return row


def try_move_device(device: int, event: str, *, reason: str = "", **fields: Any) -> bool:
    """As `move_device`, where somebody else may have been first: False when the device does not take the event any more."""
    with contextlib.suppress(TransitionNotAllowed):
        move_device(device, event, reason=reason, **fields)
        return True
    return False


def sessions_at_work_on(device: int) -> list[int]:
    """Sessions with an agent on the device that has not ended."""
    agents = Agent.objects.filter(device=device).exclude(state__in=sorted(DEVICE_AGENT.terminal))
    return sorted(set(agents.values_list("session_id", flat=True)))
