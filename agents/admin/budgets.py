"""The admin's pages of budgets, which admins keep through the services, and of the books, which nobody changes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from agents.access.permissions import groups_of
from agents.admin.readonly import ReadOnlyAdmin
from agents.models import Budget, Reservation, Spending
from agents.services import budgets


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]  # it takes no argument when the program runs
    """Says what is wrong with a budget as the services would."""

    class Meta:
        model = Budget
        fields = tuple(budgets.FIELDS)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.instance.pk is None and budgets.is_full():
            self.add_error(None, f"there are {budgets.BUDGETS:,} budgets already; delete one first")
        for each in budgets.problems_of(cleaned) if set(budgets.FIELDS) <= set(cleaned) else ():
            self.add_error(each["key"], each["message"])
        return cleaned


@admin.register(Budget)
class BudgetAdmin(ReadOnlyAdmin):
    """Admins alone see the list: some are of one user's sessions. What is saved goes through the services."""

    form = BudgetForm
    list_display = ("id", "scope", "subject", "tokens", "money", "per", "then", "owned")
    list_filter = ("scope", "per", "then")
    numbers = ("id", "subject")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request) and "admin" in groups_of(request.user)

    has_change_permission = has_delete_permission = has_add_permission

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return list(budgets.FIELDS)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [] if self.has_change_permission(request) else self.get_fields(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        by, said = f"user:{request.user.pk}", form.cleaned_data
        if change:
            budgets.budget_change(obj.pk, by=by, **{field: said[field] for field in form.changed_data})
        else:
            obj.pk = budgets.budget_create(by=by, **{field: said[field] for field in budgets.FIELDS}).pk

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        budgets.budget_delete(obj.pk, by=f"user:{request.user.pk}")


@admin.register(Spending)
class SpendingAdmin(ReadOnlyAdmin):
    """What was used, by place. It belongs to no one session, so admins alone see it."""

    list_display = (
        "id", "scope", "key", "period", "calls", "input_tokens", "cached_tokens", "output_tokens", "micros", "unpriced_tokens",
        "open_tokens", "unknown_tokens",
    )  # fmt: skip
    list_filter = ("scope",)
    numbers = ("id", "key")
    search_fields = ("period__startswith",)


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyAdmin):
    """What tries have reserved, of the last day."""

    list_display = ("id", "call", "profile", "session", "task", "runner", "tokens", "micros", "state", "at", "until")
    list_filter = ("state",)
    numbers = ("id", "call", "session", "task")
    search_fields = ("profile__startswith",)
