"""How many ready tasks wait for a slot of each device: for all devices of a page at once."""

from __future__ import annotations

from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone

from agents.access.use import users_of
from agents.models import Actor, Approval, Device
from agents.streams.tables import Fields
from constellations.assignment.wishes import why_not, wish_of
from constellations.models import Task
from constellations.plan.fitting import DEVICE_FIELDS
from constellations.plan.tasks import IN_WORDS
from constellations.reads.devices import JUDGED

GROUPS = 2_000
"""Groups of tasks with one wish that are looked at, the largest first."""


def count_queued() -> dict[int, int]:
    """Ready tasks by the devices for which they wait, as `why` says it of each: none that fits has room, or is connected.

    A task that several full devices would do for waits for each of them.
    The same few queries, however many devices and tasks there are.
    """
    groups = _ready_groups()
    if not groups:
        return {}
    rows: list[Fields] = list(Device.objects.exclude(state="retired").values(*JUDGED))
    users, counts = users_of(rows), dict.fromkeys((row["id"] for row in rows), 0)
    for group in groups:
        wish = wish_of({**group, "arguments": {}})
        fitting = [row for row in rows if not why_not(row, wish, users[row["id"]], group["owner"])]
        online = [row for row in fitting if row["state"] == "connected"]
        if any(row["used"] < row["max_concurrent"] for row in online):
            continue
        for row in online or fitting:
            counts[row["id"]] += group["tasks"]
    return counts


def _ready_groups() -> list[Fields]:
    """What a slot is all that is missing of: tasks that could start now, counted by what they wish for and whose they are."""
    session = OuterRef("constellation__session")
    at_work = Actor.objects.filter(session=session, state="running", pausing=False)
    asked = Approval.objects.filter(session=session, state="waiting", subject_id=OuterRef("id"))
    due = Q(retry_at=None) | Q(retry_at__lte=timezone.now())
    ready = Task.objects.filter(due, Exists(at_work), ~Exists(asked), state="PENDING")
    open_ones = ready.filter(constellation__state="EXECUTING").exclude(tool=IN_WORDS)
    named = open_ones.annotate(owner=F("constellation__session__owner_id")).order_by()
    counted = named.values(*DEVICE_FIELDS, "tool", "phases", "owner").annotate(tasks=Count("id"))
    return list(counted.order_by("-tasks")[:GROUPS])
