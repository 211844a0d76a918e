"""What plans were read into: that it is there, and how long it is. What it says is in the request, and in the tasks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest

from agents.admin.readonly import ReadOnlyAdmin
from constellations.models import NormalForm


@admin.register(NormalForm)
class NormalFormAdmin(ReadOnlyAdmin):
    session_path = "interaction__session"
    exclude = ("form", "seal")
    numbers = ("interaction_id",)
    search_fields = ("interaction__client_id__startswith",)
    list_display = ("pk", "characters")
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).defer("form").annotate(length=Length("form"))
        return rows

    def characters(self, row: Any) -> int:
        length: int = row.length
        return length
