"""The devices there are, as plans and edits look at them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agents.access.use import may_use, users_of
from agents.llm.profiles import Profile, read_profiles
from agents.models import Device
from agents.streams.tables import Fields
from constellations.assignment.wishes import Wish, why_not
from constellations.plan.fitting import KnownDevices

JUDGED = (
    "id", "name", "type", "capabilities", "state", "used", "max_concurrent", "queued", "is_offered", "owner_id", "used_by",
    "kind", "tools",
)  # fmt: skip


def known_devices() -> KnownDevices:
    """Devices by name, as the editor wants them, and the models that tasks in words may have."""
    fields = ("name", "type", "capabilities", "labels", "state", "kind", "platform", "tools")
    known = KnownDevices({row["name"]: row for row in Device.objects.values(*fields)})
    known.minds = minds_of(read_profiles())
    return known


def judge_devices(wish: Wish, owner: int) -> list[tuple[Fields, str]]:
    """All devices by name, each with why it gets no task of such a wish in a session of `owner`; empty where it may."""
    rows: list[Fields] = list(Device.objects.order_by("name").values(*JUDGED))
    users = users_of(rows)
    return [(row, why_not(row, wish, users[row["id"]], owner)) for row in rows]


def barred_devices(owner: int, names: Collection[str]) -> set[str]:
    """Those of the named devices that a user may not use."""
    users = users_of(Device.objects.filter(name__in=names).values("id", "name", "owner_id", "used_by"))
    barred = [key for key, found in users.items() if not may_use(found, owner)]
    return set(Device.objects.filter(pk__in=barred).values_list("name", flat=True))


def minds_of(profiles: Mapping[str, Profile]) -> frozenset[str]:
    """Which models tasks in words may name; the empty name where one serves those that name none."""
    serves_all = any("device_agent" in profile.purposes for profile in profiles.values())
    return frozenset(profiles) | ({""} if serves_all else frozenset())
