"""Query filters that say no to what they do not understand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field

from agents import ids
from agents.api.pagination import LARGEST
from agents.machines import MACHINES
from agents.models import Agent, Approval


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": LARGEST})
class IdFilter(django_filters.NumberFilter):
    """A whole number that may be a key."""

    field_class = forms.IntegerField

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, min_value=0, max_value=LARGEST, **kwargs)

    def get_max_validator(self) -> None:
        return None


class SessionFilter(IdFilter):
    """Rows of one session, by the range of keys that is its."""

    def filter(self, queryset: QuerySet[Any], value: int | None) -> QuerySet[Any]:
        if value is None:
            return queryset
        low, high = ids.row_range(int(value))
        return queryset.filter(id__gte=low, id__lt=high)


def one_of(values: Iterable[str]) -> django_filters.ChoiceFilter:
    """One of some words. It says its schema itself: to find it out, drf-spectacular would look for the libraries of GIS."""
    choices = list(values)
    refused = {"invalid_choice": f"there is no %(value)s here; there are {', '.join(choices)}"}
    found = django_filters.ChoiceFilter(choices=[(value, value) for value in choices], error_messages=refused)
    return extend_schema_field({"type": "string", "enum": choices})(found)


AGENTS = tuple(MACHINES[name] for name in sorted(MACHINES) if name.endswith("_agent"))
"""The machines that agents are; those of the app above are registered when its models are read, before any address."""


class AgentFilter(django_filters.FilterSet):
    session = SessionFilter()
    interaction = IdFilter(field_name="interaction_id")
    machine = one_of(machine.name for machine in AGENTS)
    state = one_of(dict.fromkeys(state for machine in AGENTS for state in machine.states))

    class Meta:
        model = Agent
        fields = ()


class ApprovalFilter(django_filters.FilterSet):
    session = SessionFilter()
    state = one_of(Approval.STATES)
    kind = one_of(Approval.KINDS)

    class Meta:
        model = Approval
        fields = ()
