"""The pages of tasks, dependencies and attempts.

Which keys of plans are columns of the list of tasks is said in `constellations.plan.keys.fields`; `list_display` adds the
others.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join

from agents.admin.filters import SessionFilter, StateFilter
from agents.admin.readonly import ReadOnlyAdmin
from agents.api.pagination import LARGEST
from agents.masks.values import mask_text
from constellations.admin.forms.sheets import Sheet
from constellations.admin.lifecycle.commanding import (
    action_buttons,
    cancel_tasks,
    offered_task_actions,
    retry_tasks,
    skip_tasks,
)
from constellations.admin.removing import RemovingAdmin, remove
from constellations.admin.shown import (
    EDITABLE,
    INTO_EDITABLE,
    ShownRows,
    dependencies_of,
    dependency_rows,
    is_open,
    task_rows,
    tasks_of,
)
from constellations.editor.draft import may_change
from constellations.models import Attempt, Constellation, Dependency, Task
from constellations.plan.keys.fields import STORED
from constellations.plan.keys.kinds import Lists, Shape
from constellations.reads.excerpts.narrowing import FILTERS, having
from constellations.reads.why import explain_task

TEXT = 200
"""Characters of a name that is looked for."""
LISTED = tuple(key for key, field in STORED.items() if Lists.ADMIN in field.lists)
"""Keys of a task that the list shows."""
DEPENDENCIES = 100
"""Dependencies on the page of what they lead into; the list has all."""


class ConstellationFilter(admin.SimpleListFilter):
    """The constellation that an address names; no list of thousands to choose from."""

    title = parameter_name = column = "constellation"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        written = self.value()
        number = self._number(written)
        if written is None or number is None:
            return []
        found = Constellation.objects.filter(pk=number).only("name").first()
        return [(written, str(found or number))]

    @staticmethod
    def _number(text: str | None) -> int | None:
        return min(int(text[:20]), LARGEST) if text and text.isascii() and text.isdigit() else None

    def has_output(self) -> bool:
        return self.used_parameters.get(self.parameter_name) is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        number = self._number(self.value())
        return queryset.none() if number is None else queryset.filter(**{self.column: number})


class EditableFilter(admin.SimpleListFilter):
    """Whether an edit may change them: they have not started, and may still do so."""

    title = parameter_name = "editable"
    which = EDITABLE

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [("yes", "yes"), ("no", "no")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = {"yes": queryset.filter(self.which), "no": queryset.exclude(self.which)}
        return chosen.get(self.value() or "", queryset)


class IntoEditableFilter(EditableFilter):
    which = INTO_EDITABLE


def list_filter_of(key: str) -> type[admin.SimpleListFilter]:
    """Tasks that have a name in one of their lists; the list of tasks leads there from each name."""

    class NameFilter(admin.SimpleListFilter):
        title = parameter_name = key

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
            return [(name, name)] if (name := self.value()) else []

        def has_output(self) -> bool:
            return bool(self.value())

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return having(queryset, FILTERS[key], name[:TEXT]) if (name := self.value()) else queryset

    return NameFilter


def column_of(key: str) -> Any:
    """What the list shows of a key: of a list of names each, as the way to all tasks that have it."""
    if STORED[key].takes.shape is not Shape.NAMES:
        return key

    @admin.display(description=key)
    def names(row: Task) -> str:
        shown = [mask_text(name) for name in getattr(row, key)]  # before an address writes them otherwise
        return format_html_join(", ", '<a href="?{}">{}</a>', ((urlencode({key: name}), name) for name in shown))

    return names


@admin.register(Task)
class TaskAdmin(RemovingAdmin):
    change_form_template = "admin/constellations/task.html"
    actions = (retry_tasks, skip_tasks, cancel_tasks, remove)
    session_path = "constellation__session"
    numbers = ("id", "constellation_id")
    machines = ("task",)
    list_display = (*map(column_of, LISTED), "constellation", "state", "device", "attempt", "started_at", "ended_at")
    list_select_related = ("constellation", "device")
    list_filter = (ConstellationFilter, EditableFilter, StateFilter, *map(list_filter_of, FILTERS), SessionFilter)
    search_fields = ("task_id__startswith", "name__istartswith")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("constellation")

    def is_editable(self, row: Task) -> bool:
        return may_change({"state": row.state, "reason": row.reason}) and is_open(row.constellation)

    def constellation_of(self, row: Task) -> Constellation:
        return row.constellation

    def sheet_of(self, row: Task) -> Sheet:
        into = dependencies_of(row.constellation).filter(downstream=row)[:DEPENDENCIES]
        tasks = task_rows(tasks_of(row.constellation).filter(pk=row.pk))
        return Sheet(ShownRows(row.constellation, row.constellation.version, tasks, dependency_rows(into)), full=True)

    def beside(self, request: HttpRequest, row: Task) -> dict[str, Any]:
        return {
            "constellation": row.constellation,
            "why": explain_task(row),
            "dependencies_shown": DEPENDENCIES,
            "commands": action_buttons(offered_task_actions(row) if self.has_operate_permission(request) else ()),
            "once": secrets.token_hex(12),
        }

    def operation_of(self, row: Task) -> dict[str, Any]:
        return {"op": "remove_task", "parameters": {"task_id": row.task_id}}

    def what_goes(self, rows: Iterable[Any]) -> list[str]:
        return [f"task {row.task_id} ({row.state}), and the dependencies that it hangs on and that hang on it" for row in rows]


@admin.register(Dependency)
class DependencyAdmin(RemovingAdmin):
    session_path = "constellation__session"
    numbers = ("id", "constellation_id", "upstream_id", "downstream_id")
    list_display = ("id", "dependency_id", "constellation", "upstream", "downstream", "type", "condition")
    list_select_related = ("constellation", "upstream", "downstream")
    list_filter = (ConstellationFilter, IntoEditableFilter, "type", SessionFilter)
    search_fields = ("dependency_id__startswith",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("constellation", "upstream", "downstream")

    def is_editable(self, row: Dependency) -> bool:
        down = row.downstream
        return may_change({"state": down.state, "reason": down.reason}) and is_open(row.constellation)

    def constellation_of(self, row: Dependency) -> Constellation:
        return row.constellation

    def sheet_of(self, row: Dependency) -> Sheet:
        lines = dependency_rows(dependencies_of(row.constellation).filter(pk=row.pk))
        return Sheet(ShownRows(row.constellation, row.constellation.version, {}, lines))

    def beside(self, request: HttpRequest, row: Dependency) -> dict[str, Any]:
        return {"constellation": row.constellation}

    def operation_of(self, row: Dependency) -> dict[str, Any]:
        return {"op": "remove_dependency", "parameters": {"dependency_id": row.dependency_id}}

    def what_goes(self, rows: Iterable[Any]) -> list[str]:
        return [f"dependency {row.dependency_id} ({row.type})" for row in rows]


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    session_path = "task__constellation__session"
    numbers = ("id", "task_id")
    list_display = ("id", "task", "number", "device", "outcome", "exit_code", "started_at", "ended_at")
    list_select_related = ("task", "device")
    list_filter = ("outcome", SessionFilter)
    search_fields = ("task__task_id__startswith",)
