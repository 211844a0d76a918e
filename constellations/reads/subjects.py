"""Which constellations an agent has worked on, and from when on."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from agents import ids
from agents.crews.script import DELEGATIONS
from agents.models import Agent
from constellations.machines import CONSTELLATION_AGENT
from constellations.models import Attempt, Constellation


def subjects_of(agent: Agent) -> list[tuple[datetime, int]]:
    """(since, constellation), oldest first. Several where its interaction was restarted.

    A device agent is on an attempt of a task, or works for one that is. A constellation that was reopened since is no longer
    its former agent's, but the attempts of that time are.
    """
    if agent.machine != CONSTELLATION_AGENT.name:
        works_for = [agent.pk]
        if agent.parent_id is not None:
            above = ["__".join(["parent"] * level) for level in range(1, DELEGATIONS + 1)]
            works_for += [each for each in Agent.objects.values_list(*above).get(pk=agent.pk) if each is not None]
        return _by_attempt(Q(agent__in=works_for), agent)
    found = Constellation.objects.filter(agent=agent.pk).order_by("id").values_list("created_at", "pk")
    return list(found) or _by_attempt(Q(agent__parent=agent.pk), agent)


def _by_attempt(condition: Q, agent: Agent) -> list[tuple[datetime, int]]:
    low, high = ids.row_range(agent.session_id)
    attempts = Attempt.objects.filter(condition, id__gte=low, id__lt=high).order_by("id")
    return list(attempts.values_list("agent__created_at", "task__constellation")[:1])
