"""The history of what a machine drives: its transitions in order, each with its number and the constellation it was about.

It is the same for actors, agents, loops, tasks and constellations; the apps that know graphs say what each was about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol

from django.db.models import QuerySet, Sum
from django.utils import timezone

from agents.engine.drives.work import registered_handler
from agents.machines import MACHINES
from agents.models import Agent, Transition

PAGE_LIMIT = 1_000
"""Transitions of one answer at most."""
About = Callable[[datetime], int | None]
"""The constellation that a subject was about at a time."""


class Subject(Protocol):
    """A row with a machine."""

    pk: Any
    state: str
    entered_at: datetime


def transitions_of(subject: int) -> QuerySet[Transition]:
    return Transition.objects.filter(subject_id=subject).order_by("id")


def time_per_state(subject: Subject, machine: str) -> dict[str, float]:
    """Seconds in each state it was in; in the present one until now, unless that is its end."""
    spent = transitions_of(subject.pk).order_by().values_list("from_state").annotate(Sum("spent"))
    found = {state: seconds or 0.0 for state, seconds in spent}
    table = MACHINES.get(machine)
    if table is None or not table.is_terminal(subject.state):
        now = max(0.0, (timezone.now() - subject.entered_at).total_seconds())
        found[subject.state] = found.get(subject.state, 0.0) + now
    return found


def choices_of(machine: str, state: str) -> list[str]:
    """Events that `state` takes."""
    return list(MACHINES[machine].choices(state)) if machine in MACHINES else []


def latest_transitions(subject: int, most: int, about: About) -> list[Transition]:
    """Its last transitions, oldest first."""
    rows = list(transitions_of(subject).reverse()[:most])[::-1]
    before = transitions_of(subject).filter(id__lt=rows[0].pk).count() if len(rows) == most else 0
    return _numbered(rows, before, about)


def transitions_page(subject: Subject, machine: str, cursor: int, limit: int, about: About) -> dict[str, Any]:
    """Its transitions beyond `cursor`, oldest first, and what its machine says of it now (agents.api.serializers.machines)."""
    known = transitions_of(subject.pk)
    rows = list(known.filter(id__gt=cursor)[: limit + 1])
    before = known.filter(id__lte=cursor).count() if cursor else 0
    return {
        "id": subject.pk, "machine": machine, "state": subject.state, "entered_at": subject.entered_at,
        "time_per_state": time_per_state(subject, machine), "choices": choices_of(machine, subject.state),
        "results": _numbered(rows[:limit], before, about), "next": rows[limit - 1].pk if len(rows) > limit else None,
    }  # fmt: skip


def _numbered(rows: Iterable[Transition], before: int, about: About) -> list[Any]:
    found: list[Any] = []
    for number, row in enumerate(rows, before + 1):
        row.step, row.constellation_id = number, about(row.at)  # type: ignore[attr-defined]
        found.append(row)
    return found


def about_agent(agent: Agent) -> About:
    """What an agent was about: a restart, or a reopening, gives it another constellation."""
    subjects = registered_handler().subjects(agent)

    def at(moment: datetime) -> int | None:
        return next((subject for since, subject in reversed(subjects) if since <= moment), subjects[0][1] if subjects else None)

    return at


def about_nothing(moment: datetime) -> None:
    """An actor takes one interaction after the other."""
    return None
