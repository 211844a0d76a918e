"""What the pages of editable rows share: the forms, the one edit that a save makes, and what the operator is told."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from agents.access.permissions import why_refused
from agents.admin.readonly import ReadOnlyAdmin
from constellations.admin.forms.sheets import Sheet
from constellations.models import Constellation, Edit
from constellations.plan.plain_text import sentences
from constellations.services.standing import edits_between

Context = dict[str, Any]
"""What a template of the admin is given."""

NAMED = 5
"""Edits of others that a message names."""


def author_of(request: HttpRequest) -> str:
    """The author of what is recorded."""
    return f"user:{request.user.pk}"


def user_may(request: HttpRequest, need: str) -> bool:
    """Whether the user may do what needs `need` (agents.access.permissions); which rows is another question."""
    return request.user.is_active and request.user.is_staff and not why_refused(request.user, None, need)


def tell_edit(request: HttpRequest, made: tuple[Edit | None, bool] | None) -> None:
    """Say what became of an edit that was not refused."""
    edit, changed = made or (None, False)
    if edit is None:
        messages.info(request, "Nothing was to be changed, so nothing was saved.")
    elif not changed:
        messages.info(request, f"That was saved already, as version {edit.version}.")
    else:
        done = ". ".join([sentences.changes_sentence(edit.diff), *sentences.left_behind(edit.diff)])
        on_top = ""
        if edit.rebased_from:
            before = edits_between(edit.constellation_id, edit.based_on, edit.version - 1)
            named = "; ".join(sentences.describe_edits(before[:NAMED], edit.version - 1 - edit.based_on))
            on_top = f" Others had edited since version {edit.based_on}; your changes were applied on top of {named}."
        messages.success(request, f"Saved as version {edit.version}: {done}.{on_top}")


class EditingAdmin(ReadOnlyAdmin):
    """Rows that an operator edits on their own page, by forms that become one edit; everybody else reads them."""

    full: ClassVar[bool] = True
    """Whether the page offers every field of a task."""
    change_form_template = "admin/constellations/sheet.html"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return user_may(request, "edit") and (obj is None or self.is_editable(obj))

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return user_may(request, "operate")

    @abstractmethod
    def is_editable(self, row: Any) -> bool:
        """Whether a row may still change."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Read once a request."""
        known = request.__dict__.setdefault("_rows_of_pages", {})
        if object_id not in known:
            known[object_id] = super().get_object(request, object_id, from_field)
        return known[object_id]

    @abstractmethod
    def constellation_of(self, row: Any) -> Constellation:
        """Whose page, or part of whose graph, a row is."""

    @abstractmethod
    def sheet_of(self, row: Any) -> Sheet:
        """The forms of a row's page as it is now."""

    def beside(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What the page of a row shows besides."""
        return {}

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Context | None = None
    ) -> HttpResponse:
        # Not in a transaction, as Django would: the edit reads its graph before it waits for a lock.
        row = self.get_object(request, unquote(object_id)) if object_id else None
        if row is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        sheet = None
        if request.method == "POST":
            if not self.has_view_permission(request, row) or not user_may(request, "edit"):
                raise PermissionDenied
            sheet = Sheet.posted(self.constellation_of(row), request.POST, full=self.full)
            if answer := self._carry_out(request, sheet, row):
                return answer
        elif self.has_change_permission(request, row):
            sheet = self.sheet_of(row)
        shown = {**(extra_context or {}), "sheet": sheet, **self.beside(request, row)}
        seen = copy.copy(request)
        seen.method = "GET"  # what was sent has been taken up above
        return super().changeform_view(seen, object_id, form_url, shown)

    def _carry_out(self, request: HttpRequest, sheet: Sheet, row: Any) -> HttpResponse | None:
        """The answer to a save; None where the page is shown again."""
        if "_preview" in request.POST:
            sheet.look_ahead()
            return None
        made = sheet.save(author_of(request))
        if sheet.has_errors:
            return None
        tell_edit(request, made)
        if type(row).objects.filter(pk=row.pk).exists():
            return HttpResponseRedirect(request.get_full_path())
        return HttpResponseRedirect(reverse("admin:constellations_constellation_change", args=(self.constellation_of(row).pk,)))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Context | None = None) -> HttpResponse:
        """The history is that of the edits."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return super().history_view(request, object_id, extra_context)
        edits = reverse("admin:constellations_edit_changelist")
        return HttpResponseRedirect(f"{edits}?constellation={self.constellation_of(row).pk}")
