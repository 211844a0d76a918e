"""The devices there are, as plans and edits look at them."""

from __future__ import annotations

from collections.abc import Mapping

from agents.llm.profiles import Profile, read_profiles
from agents.models import Device
from constellations.plan.fitting import KnownDevices


def known_devices() -> KnownDevices:
    """Devices by name, as the editor wants them, and the models that tasks in words may have."""
    fields = ("name", "type", "capabilities", "labels", "state", "kind")
    known = KnownDevices({row["name"]: row for row in Device.objects.values(*fields)})
    known.minds = minds_of(read_profiles())
    return known


def minds_of(profiles: Mapping[str, Profile]) -> frozenset[str]:
    """Which models tasks in words may name; the empty name where one serves those that name none."""
    serves_all = any("device_agent" in profile.purposes for profile in profiles.values())
    return frozenset(profiles) | ({""} if serves_all else frozenset())
