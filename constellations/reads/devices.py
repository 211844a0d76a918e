"""The devices there are, as plans and edits look at them."""

from __future__ import annotations

from agents.models import Device
from agents.streams.tables import Fields


def known_devices() -> dict[str, Fields]:
    """Devices by name, as the editor wants them."""
    fields = ("name", "type", "capabilities", "labels", "state", "kind")
    return {row["name"]: row for row in Device.objects.values(*fields)}
