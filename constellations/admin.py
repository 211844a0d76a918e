"""A read-only, searchable view of what is to be done."""

from __future__ import annotations

from django.contrib import admin

from agents.admin import ReadOnlyAdmin, StateFilter
from constellations.models import Attempt, Constellation, Dependency, Edit, Task


@admin.register(Constellation)
class ConstellationAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "session_id", "interaction_id")
    machines = ("constellation",)
    list_display = ("id", "name", "session", "state", "version", "created_at", "ended_at")
    list_select_related = ("session",)
    list_filter = (StateFilter,)
    search_fields = ("name__istartswith",)


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    session_path = "constellation__session"
    numbers = ("id", "constellation_id")
    machines = ("task",)
    list_display = (
        "id",
        "task_id",
        "name",
        "constellation",
        "state",
        "priority",
        "device",
        "attempt",
        "started_at",
        "ended_at",
    )
    list_select_related = ("constellation", "device")
    list_filter = (StateFilter,)
    search_fields = ("task_id__startswith", "name__istartswith")


@admin.register(Dependency)
class DependencyAdmin(ReadOnlyAdmin):
    session_path = "constellation__session"
    numbers = ("id", "constellation_id", "upstream_id", "downstream_id")
    list_display = ("id", "dependency_id", "constellation", "upstream", "downstream", "type", "condition")
    list_select_related = ("constellation", "upstream", "downstream")
    list_filter = ("type",)
    search_fields = ("dependency_id__startswith",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    session_path = "task__constellation__session"
    numbers = ("id", "task_id")
    list_display = ("id", "task", "number", "device", "outcome", "exit_code", "started_at", "ended_at")
    list_select_related = ("task", "device")
    list_filter = ("outcome",)
    search_fields = ("task__task_id__startswith",)


@admin.register(Edit)
class EditAdmin(ReadOnlyAdmin):
    session_path = "constellation__session"
    numbers = ("id", "constellation_id")
    list_display = ("id", "edit_id", "constellation", "author", "based_on", "version", "at")
    list_select_related = ("constellation",)
    search_fields = ("edit_id__startswith", "author__startswith")
