"""The history of edits: what each did, and taking it back."""

from __future__ import annotations

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from agents.admin.filters import SessionFilter
from agents.admin.readonly import ReadOnlyAdmin, author_column
from agents.errors import AgentsError
from constellations.admin.editing import Context, author_of, user_may
from constellations.admin.lifecycle.confirming import reason_of
from constellations.admin.shown import is_open
from constellations.admin.tasks import ConstellationFilter
from constellations.models import Edit
from constellations.plan.plain_text import sentences
from constellations.services.undo import edit_undo

CHANGES = 200
"""Changes of one edit that its page lists; its `diff` has all."""


@admin.register(Edit)
class EditAdmin(ReadOnlyAdmin):
    change_form_template = "admin/constellations/edit.html"
    session_path = "constellation__session"
    author_field = "author"
    numbers = ("id", "constellation_id")
    list_display = ("id", "constellation", "version", "changes", author_column("author"), "reason", "at")
    list_select_related = ("constellation",)
    list_filter = (ConstellationFilter, SessionFilter)
    search_fields = ("edit_id__startswith", "author__startswith")
    ordering = ("-constellation_id", "-version")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Edit]:
        return super().get_queryset(request).select_related("constellation")

    @admin.display(description="changes")
    def changes(self, row: Edit) -> str:
        return sentences.changes_sentence(row.diff)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Context | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id)) if object_id else None
        if row is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        if request.method == "POST":
            if not user_may(request, "edit"):
                raise PermissionDenied
            return self._undo(request, row)
        shown = {
            "changes": sentences.describe_changes(row.diff[:CHANGES]),
            "more": max(0, len(row.diff) - CHANGES),
            "may_undo": user_may(request, "edit") and is_open(row.constellation),
            "subtitle": f"version {row.version} of {row.constellation}",
            "who": row.author_names[row.author],
            "undone_by": row.undone_by.order_by("version").last(),
        }
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **shown})

    def _undo(self, request: HttpRequest, row: Edit) -> HttpResponse:
        author, reason = author_of(request), reason_of(request)
        try:
            made, changed = edit_undo(row.constellation_id, str(row.edit_id), author, reason=reason)
        except AgentsError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(request.get_full_path())
        if changed and made is not None:
            messages.success(request, f"Taken back, as version {made.version}: {sentences.changes_sentence(made.diff)}.")
        else:
            messages.info(request, "What this edit did is taken back already.")
        return HttpResponseRedirect(request.get_full_path())
