"""Rows that an operator removes, one by one or many of a list: one edit for each constellation, after a confirmation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from agents.errors import AgentsError
from constellations.admin.editing import Context, EditingAdmin, author_of, tell_edit, user_may
from constellations.admin.lifecycle.confirming import NAMED, Question, confirmation_page, is_confirmed, reason_of, request_mark
from constellations.editor.editor import MAX_OPERATIONS
from constellations.models import Constellation
from constellations.plan.values import Row
from constellations.services.edits import edit_apply


@admin.action(description="Remove the selected %(verbose_name_plural)s", permissions=["delete"])
def remove(modeladmin: RemovingAdmin, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    if not is_confirmed(request):
        return confirmation_page(modeladmin, request, modeladmin.question(rows, request.get_full_path()))
    modeladmin.remove(request, rows)
    return None


class RemovingAdmin(EditingAdmin):
    """Editable rows that may also go."""

    actions: Any = (remove,)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    @abstractmethod
    def operation_of(self, row: Any) -> Row:
        """The operation that removes a row."""

    @abstractmethod
    def what_goes(self, rows: QuerySet[Any]) -> Iterable[str]:
        """What a removal takes away, in words."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Django's own action deletes rows; ours makes an edit."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Context | None = None) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return super().delete_view(request, object_id, extra_context)
        if not user_may(request, "edit"):
            raise PermissionDenied
        rows, page = self.get_queryset(request).filter(pk=row.pk), reverse(f"{self.address}_change", args=(row.pk,))
        if request.method != "POST" or not is_confirmed(request):
            return confirmation_page(self, request, self.question(rows, page))
        gone = self.remove(request, rows)
        constellation = self.constellation_of(row)
        after = reverse("admin:constellations_constellation_change", args=(constellation.pk,))
        return HttpResponseRedirect(after if gone else page)

    @property
    def address(self) -> str:
        return f"admin:{self.opts.app_label}_{self.opts.model_name}"

    def question(self, rows: QuerySet[Any], back: str) -> Question:
        total = rows.count()
        what = self.opts.verbose_name if total == 1 else f"{total:,} {self.opts.verbose_name_plural}"
        text = "It is one edit: recorded, and undone as one. What has started is not removed; then nothing is."
        return Question(f"Remove {what}?", text, list(self.what_goes(rows[:NAMED])), total, back, danger=True)

    def remove(self, request: HttpRequest, rows: QuerySet[Any]) -> bool:
        """Remove rows and say so; whether all of them went."""
        chosen = list(rows[: MAX_OPERATIONS + 1])
        if len(chosen) > MAX_OPERATIONS:
            messages.error(request, f"At most {MAX_OPERATIONS:,} at a time; nothing was removed.")
            return False
        operations: dict[Constellation, list[Row]] = {}
        for row in chosen:
            operations.setdefault(self.constellation_of(row), []).append(self.operation_of(row))
        once, all_went = request_mark(request), True
        edit_id = f"admin-{once}" if once.isalnum() else ""
        said: Row = {"author": author_of(request), "reason": reason_of(request), "edit_id": edit_id}
        for constellation, removals in operations.items():
            try:
                tell_edit(request, edit_apply(constellation.pk, removals, **said))
            except AgentsError as error:
                messages.error(request, f"{constellation}: nothing was removed. {error}")
                all_went = False
        return all_went
