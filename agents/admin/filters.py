"""What the lists of the admin are narrowed down by, at no cost of a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents import ids
from agents.api.pagination import LARGEST
from agents.machines import MACHINES

LATEST_EVENTS = 2_000
"""Of which the types are offered to choose from."""


class StateFilter(admin.SimpleListFilter):
    """States by the machine's table, so that the list of them costs no query."""

    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        # Any: the admins with this filter name their machines, which Django's do not.
        states = dict.fromkeys(state for name in model_admin.machines for state in MACHINES[name].states)
        return [(state, state) for state in states]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state=self.value()) if self.value() else queryset


class EventTypeFilter(admin.SimpleListFilter):
    """Events of one type; the types to choose from are those of the latest events of the list, in one bounded query."""

    title = parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        latest = model_admin.get_queryset(request).order_by("-pk").values_list("type", flat=True)[:LATEST_EVENTS]
        chosen = [self.value()] if self.value() else []
        return [(each, each.replace("_", " ")) for each in sorted({*latest, *chosen})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(type=self.value()) if self.value() else queryset


class OutcomeFilter(admin.ChoicesFieldListFilter):
    """Rows by their outcome; that of what is under way is empty, and a link needs a word."""

    def choices(self, changelist: Any) -> Iterator[Any]:  # Any: the stubs keep the type of a choice to themselves
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or "under way"}


class MachineFilter(admin.SimpleListFilter):
    """Transitions of one machine."""

    title = parameter_name = "machine"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(name, name) for name in MACHINES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(machine=self.value()) if self.value() else queryset


class SessionFilter(admin.SimpleListFilter):
    """Rows of the session that an address names, by the range of keys that is its; no list of thousands to choose from."""

    title = parameter_name = "session"
    beyond = 0
    """Bits of a key below those of a row or event."""

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(session, session)] if (session := self.value()) else []

    def has_output(self) -> bool:
        return bool(self.value())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        text = self.value()
        if not text:
            return queryset
        if not (text.isascii() and text.isdigit() and int(text[:20]) <= LARGEST >> ids.BITS + self.beyond):
            return queryset.none()
        low, high = ids.row_range(int(text))
        return queryset.filter(pk__gte=low << self.beyond, pk__lt=high << self.beyond)


class TransitionSessionFilter(SessionFilter):
    """The same for transitions, of which an event has many."""

    beyond = ids.PART_BITS


def is_of_session(each: object) -> bool:
    """Whether an entry of `list_filter` narrows a list down to a session."""
    return isinstance(each, type) and issubclass(each, SessionFilter)
