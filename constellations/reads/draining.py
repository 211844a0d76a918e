"""What would become of the work of a device that is drained: what ends there, what goes elsewhere, what has nowhere to go."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Q

from agents.access.use import users_of
from agents.models import Device, Session
from agents.streams.tables import Fields
from constellations.assignment.candidates import Candidate, SessionFacts
from constellations.assignment.strategies import choose_device, find_strategy
from constellations.assignment.wishes import Wish, why_not, wish_of
from constellations.machines.constellation import CONSTELLATION
from constellations.models import Attempt, Task
from constellations.plan.fitting import CALL_FIELDS, DEVICE_FIELDS
from constellations.reads.devices import JUDGED

SHOWN = 100
"""Tasks of each part that are named; all are counted."""
LOOKED_AT = 10_000
"""Ready tasks that are looked at, the most urgent first."""
READY = ("task_id", "priority", "constellation_id", "constellation__assignment", "constellation__session_id")
OWNER = "constellation__session__owner_id"
TASK_OF = ("task__task_id", "task__constellation_id", "agent__session_id", "number", "holds_slot")


@dataclass(slots=True)
class Part:
    """One part of the preview: how many tasks there are, and those among the first SHOWN that the reader may see."""

    visible: Collection[int] | None
    total: int = 0
    tasks: list[Fields] = field(default_factory=list)

    def add(self, session: int, constellation: int, task_id: str, **told: Any) -> None:
        self.total += 1
        if len(self.tasks) < SHOWN and (self.visible is None or session in self.visible):
            self.tasks.append({"session": session, "constellation": constellation, "task_id": task_id, **told})

    def as_json(self) -> Fields:
        return {"total": self.total, "tasks": self.tasks}


def preview_drain(device: int, user: Any = None) -> Fields:
    """{"ends", "moves", "nowhere"}: each {"total", "tasks"}; inside `consistent_read`.

    What runs there ends there. Of the ready tasks that could run there each is `moves` with the device (`to`) that its strategy
    would choose if all stayed as it is, or `nowhere`. With a `user` only tasks of sessions that they see are named.
    """
    visible = None if user is None else set(Session.objects.visible_to(user).values_list("id", flat=True))
    ends, moves, nowhere = Part(visible), Part(visible), Part(visible)
    here = Q(device=device) | Q(slot_device=device)
    under_way = Attempt.objects.filter(here, outcome="", task__state="RUNNING").order_by("id")
    for task_id, constellation, session, number, holds in under_way.values_list(*TASK_OF):
        ends.add(session, constellation, task_id, attempt=number, waits=not holds)
    elsewhere = _Elsewhere(device)
    for row in _ready_tasks():
        if not elsewhere.concerns(row):
            continue
        told = row["constellation__session_id"], row["constellation_id"], row["task_id"]
        to = elsewhere.choose(row)
        if to is None:
            nowhere.add(*told)
        else:
            moves.add(*told, to=to)
    return {"ends": ends.as_json(), "moves": moves.as_json(), "nowhere": nowhere.as_json()}


def _ready_tasks() -> list[Fields]:
    open_ones = Task.objects.filter(state="PENDING").exclude(constellation__state__in=sorted(CONSTELLATION.terminal))
    return list(open_ones.order_by("-priority", "id").values(*READY, OWNER, *DEVICE_FIELDS, *CALL_FIELDS)[:LOOKED_AT])


class _Elsewhere:
    """The other devices that take work, with what they would have if one after the other were assigned."""

    def __init__(self, device: int):
        self._device = device
        self._rows: list[Fields] = list(Device.objects.filter(state="connected").exclude(pk=device).values(*JUDGED, "labels"))
        self._rows += Device.objects.filter(pk=device).values(*JUDGED, "labels")
        self._users = users_of(self._rows)
        self._candidates = {row["id"]: _candidate_of(row) for row in self._rows}
        self._known: dict[tuple[Wish, int], list[int]] = {}

    def _fitting(self, row: Fields) -> list[int]:
        wish, owner = wish_of(row), row[OWNER]
        if (wish, owner) not in self._known:
            judged = ((each["id"], why_not(each, wish, self._users[each["id"]], owner)) for each in self._rows)
            self._known[wish, owner] = [key for key, why in judged if not why]
        return self._known[wish, owner]

    def concerns(self, row: Fields) -> bool:
        """Whether a ready task could run on the device that is drained."""
        return self._device in self._fitting(row)

    def choose(self, row: Fields) -> str | None:
        """The name of the device that a ready task would get instead."""
        others = [self._candidates[key] for key in self._fitting(row) if key != self._device]
        if not others:
            return None
        strategy = find_strategy(row["constellation__assignment"] or settings.ASSIGNMENT)
        facts = SessionFacts(row["constellation__session_id"], row[OWNER], 0, settings.SESSION_CONCURRENT)
        chosen = choose_device(strategy, others, row, facts)
        chosen.taken += 1
        return chosen.name


def _candidate_of(row: Fields) -> Candidate:
    return Candidate(
        row["id"], row["name"], row["max_concurrent"], row["used"], 0, row["queued"], row["type"], row["capabilities"],
        row["labels"],
    )  # fmt: skip
