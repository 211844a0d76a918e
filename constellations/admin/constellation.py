"""The page of a constellation: its picture, what may be done with it, and the part of it that may still change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from agents.admin_filters import SessionFilter, StateFilter
from constellations.admin import commanding
from constellations.admin.editing import EditingAdmin, may
from constellations.admin.picture import draw
from constellations.admin.sheets import Sheet
from constellations.admin.shown import (
    EDITABLE,
    INTO_EDITABLE,
    Shown,
    dependencies_of,
    dependency_rows,
    is_open,
    task_rows,
    tasks_of,
)
from constellations.models import Constellation

TASKS = 50
"""Editable tasks on the page, the oldest; the list has all."""
DEPENDENCIES = 100
"""Dependencies into those."""


@admin.register(Constellation)
class ConstellationAdmin(EditingAdmin):
    full = False
    change_form_template = "admin/constellations/constellation.html"
    session_path = "session"
    numbers = ("id", "session_id", "interaction_id")
    machines = ("constellation",)
    list_display = ("id", "name", "session", "state", "version", "created_at", "ended_at")
    list_select_related = ("session",)
    list_filter = (StateFilter, SessionFilter)
    search_fields = ("name__istartswith",)
    actions = commanding.ACTIONS

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return may(request, "operate")

    def get_actions(self, request):
        """Nothing is ever deleted here."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def get_queryset(self, request):
        """With what its page names, but for the plan: that may be large."""
        rows = super().get_queryset(request)
        of_page = request.resolver_match is not None and "object_id" in request.resolver_match.kwargs
        return rows.select_related("session", "interaction", "agent").defer("interaction__payload") if of_page else rows

    def is_editable(self, row: Constellation) -> bool:
        return is_open(row)

    def constellation_of(self, row: Constellation) -> Constellation:
        return row

    def sheet_of(self, row: Constellation) -> Sheet:
        tasks = task_rows(tasks_of(row).filter(EDITABLE)[:TASKS])
        into = dependencies_of(row).filter(downstream__in=[task["id"] for task in tasks.values()])
        return Sheet(Shown(row, row.version, tasks, dependency_rows(into[:DEPENDENCIES])))

    def beside(self, request: HttpRequest, row: Constellation) -> dict[str, Any]:
        commands = commanding.offered(row) if self.has_operate_permission(request) else ()
        picture = draw(row)
        return {
            "picture": picture,
            "constellation": row,
            "successor": Constellation.objects.filter(replaces=row).first() if row.state == "CANCELLED" else None,
            "commands": [(command.__name__, getattr(command, "short_description", "")) for command in commands],
            "places": _places(row),
            "tasks_shown": TASKS,
            "dependencies_shown": DEPENDENCIES,
            "editable_tasks": picture.editable,
            "editable_dependencies": dependencies_of(row).filter(INTO_EDITABLE).count(),
        }


def _places(row: Constellation) -> list[tuple[str, str]]:
    """Where the rows of it are: (what, address)."""
    lists = (("Tasks", "task"), ("Dependencies", "dependency"), ("Edits", "edit"))
    found = [(word, f"{reverse(f'admin:constellations_{name}_changelist')}?constellation={row.pk}") for word, name in lists]
    of_session = (("Agents", "agent"), ("Approvals", "approval"), ("Transitions", "transition"), ("Events", "event"))
    found += [(word, f"{reverse(f'admin:agents_{name}_changelist')}?session={row.session_id}") for word, name in of_session]
    return found
