"""The page of a constellation: its picture, what may be done with it, and the part of it that may still change."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse

from agents.admin.filters import SessionFilter, StateFilter
from constellations.admin.editing import EditingAdmin, user_may
from constellations.admin.forms.sheets import Sheet
from constellations.admin.lifecycle import commanding, going_on
from constellations.admin.picture import picture_of
from constellations.admin.shown import (
    AGAIN,
    EDITABLE,
    INTO_EDITABLE,
    ShownRows,
    dependencies_of,
    dependency_rows,
    is_open,
    task_rows,
    tasks_of,
)
from constellations.admin.tasks import ConstellationFilter
from constellations.models import Constellation

TASKS = 50
"""Editable tasks on the page, the oldest; the list has all."""
DEPENDENCIES = 100
"""Dependencies into those."""


class ForkFilter(ConstellationFilter):
    """The forks of the constellation that an address names."""

    title, parameter_name, column = "forked from", "forked_from", "forked_from"


@admin.register(Constellation)
class ConstellationAdmin(EditingAdmin):
    full = False
    change_form_template = "admin/constellations/constellation.html"
    session_path = "session"
    numbers = ("id", "session_id", "interaction_id")
    machines = ("constellation",)
    list_display = ("id", "name", "session", "state", "version", "created_at", "ended_at")
    list_select_related = ("session",)
    list_filter = (StateFilter, SessionFilter, ForkFilter)
    search_fields = ("name__istartswith",)
    actions = commanding.ACTIONS

    def get_urls(self) -> list[Any]:
        """With the pages that ask before a constellation goes on."""

        def view_of(way: going_on.GoingOn) -> Callable[..., HttpResponse]:
            return self.admin_site.admin_view(lambda request, object_id: self.go_on(request, unquote(object_id), way))

        asks = [
            path(f"<path:object_id>/{way.name}/", view_of(way), name=f"constellations_constellation_{way.name}")
            for way in going_on.WAYS.values()
        ]
        begun = path(
            "begun/<int:interaction>/", self.admin_site.admin_view(going_on.redirect_to_begun), name="constellations_begun"
        )
        return [*asks, begun, *super().get_urls()]

    def go_on(self, request: HttpRequest, object_id: str, way: going_on.GoingOn) -> HttpResponse:
        """The page that asks for `way`, and its answer."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not self.has_operate_permission(request):
            raise PermissionDenied
        sent = request.POST if request.method == "POST" else None
        form = way.form(row, sent, initial={"once": secrets.token_hex(12), "seq": request.GET.get("seq")})
        may_edit, sheet = user_may(request, "edit"), None
        if sent is not None and (may_edit or "version" in sent):
            sheet = Sheet.posted(row, sent)
        elif sent is None and may_edit:
            sheet = going_on.sheet_of(row)
        if sent is not None and (answer := going_on.submit_form(request, form, sheet, way)):
            return answer
        changeable = tasks_of(row).filter(AGAIN)
        context = {
            **self.admin_site.each_context(request), "opts": self.opts, "title": f"{way.name.capitalize()} {row}",
            "constellation": row, "way": way, "form": form, "sheet": sheet, "editable_tasks": changeable.count(),
            "tasks_shown": going_on.CHANGED, "dependencies_shown": going_on.CHANGED,
            "editable_dependencies": dependencies_of(row).filter(downstream__in=changeable).count(),
        }  # fmt: skip
        return TemplateResponse(request, "admin/constellations/go_on.html", context)

    def get_actions(self, request: HttpRequest) -> Any:
        """Nothing is ever deleted here."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def get_queryset(self, request: HttpRequest) -> QuerySet[Constellation]:
        """With what its page names, but for the plan: that may be large."""
        rows: QuerySet[Constellation] = super().get_queryset(request)
        of_page = request.resolver_match is not None and "object_id" in request.resolver_match.kwargs
        if not of_page:
            return rows
        forks = rows.filter(forked_from=OuterRef("pk")).order_by("-id").values("pk")
        named = rows.select_related("session", "interaction", "agent", "forked_from").defer("interaction__payload")
        return named.annotate(latest_fork=Subquery(forks[:1]))

    def is_editable(self, row: Constellation) -> bool:
        return is_open(row)

    def constellation_of(self, row: Constellation) -> Constellation:
        return row

    def sheet_of(self, row: Constellation) -> Sheet:
        tasks = task_rows(tasks_of(row).filter(EDITABLE)[:TASKS])
        into = dependencies_of(row).filter(downstream__in=[task["id"] for task in tasks.values()])
        return Sheet(ShownRows(row, row.version, tasks, dependency_rows(into[:DEPENDENCIES])))

    def beside(self, request: HttpRequest, row: Constellation) -> dict[str, Any]:
        operates = self.has_operate_permission(request)
        commands = commanding.offered_actions(row) if operates else ()
        picture = picture_of(row)
        return {
            "picture": picture,
            "constellation": row,
            "successor": Constellation.objects.filter(replaces=row).first() if row.state == "CANCELLED" else None,
            "commands": commanding.action_buttons(commands),
            "once": secrets.token_hex(12),
            "ways": going_on.ways_of(row, has_failed=picture.has_failed) if operates else (),
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
    found += [("Forks", f"{reverse('admin:constellations_constellation_changelist')}?forked_from={row.pk}")]
    of_session = (("Agents", "agent"), ("Approvals", "approval"), ("Transitions", "transition"), ("Events", "event"))
    found += [(word, f"{reverse(f'admin:agents_{name}_changelist')}?session={row.session_id}") for word, name in of_session]
    return found
