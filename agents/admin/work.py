"""The admin's view of agents at work. All of it is read-only but policies, which admins change here, through the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.http import HttpRequest

from agents.access.permissions import groups_of
from agents.admin.filters import SessionFilter, StateFilter
from agents.admin.readonly import ReadOnlyAdmin, author_column
from agents.masks.values import mask_value
from agents.models import Approval, Evidence, Loop, PhaseRecord, Policy
from agents.services import policies


@admin.register(Loop)
class LoopAdmin(ReadOnlyAdmin):
    session_path = "agent__session"
    numbers = ("id", "agent_id")
    machines = ("tool_loop",)
    list_display = ("id", "agent", "state", "reason", "entered_at")
    list_select_related = ("agent",)
    list_filter = (StateFilter, SessionFilter)
    search_fields = ("reason__istartswith",)


@admin.register(Evidence)
class EvidenceAdmin(ReadOnlyAdmin):
    session_path = "loop__agent__session"
    numbers = ("id", "loop_id")
    list_display = ("id", "loop_id", "number", "phase", "kind", "tool", "success", "error_kind", "started_at", "ended_at")
    list_filter = ("kind", "success", SessionFilter)
    search_fields = ("tool__startswith", "target__startswith")


@admin.register(PhaseRecord)
class PhaseAdmin(ReadOnlyAdmin):
    session_path = "agent__session"
    numbers = ("id", "agent_id")
    list_display = ("id", "agent", "number", "total", "description", "outcome", "started_at")
    list_select_related = ("agent",)
    list_filter = (SessionFilter,)
    search_fields = ("description__istartswith",)


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    session_path = "session"
    author_field = "decided_by"
    numbers = ("id", "session_id", "agent_id", "subject_id")
    list_display = (
        "id",
        "kind",
        "title",
        "state",
        "session",
        "asked_at",
        "expires_at",
        author_column("decided_by"),
        "decided_at",
    )
    list_select_related = ("session",)
    list_filter = ("state", "kind", SessionFilter)
    search_fields = ("title__istartswith", "decided_by")


class PolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's takes no types while it runs
    """Says what is wrong with a policy as the services would."""

    pattern = forms.CharField(
        strip=False, required=False, widget=AdminTextInputWidget, help_text=Policy._meta.get_field("pattern").help_text
    )

    class Meta:
        model = Policy
        fields = tuple(policies.FIELDS)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.initial = mask_value(self.initial)  # as the page shows them: what comes back so was not changed

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned |= {
            name: getattr(self.instance, name) for name in cleaned if self.instance.pk and name not in self.changed_data
        }
        if self.instance.pk is None and policies.is_full():
            self.add_error(None, f"there are {policies.POLICIES} policies already; delete one first")
        if set(policies.FIELDS) <= set(cleaned):  # the others are wrong already
            for each in policies.problems_of(cleaned):
                self.add_error(each["key"], each["message"])
        return cleaned


@admin.register(Policy)
class PolicyAdmin(ReadOnlyAdmin):
    """Staff see them, admins keep them. What is saved here goes through the services, so that the stream has it."""

    open_to_staff = True
    form = PolicyForm
    list_display = ("id", "order", "tool", "pattern", "device", "label", "decision", "critical", "note")
    list_filter = ("decision",)
    search_fields = ("tool__startswith", "device__startswith", "note__istartswith")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request) and "admin" in groups_of(request.user)

    has_change_permission = has_delete_permission = has_add_permission

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return list(policies.FIELDS)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [] if self.has_change_permission(request) else self.get_fields(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        by, said = f"user:{request.user.pk}", form.cleaned_data
        if change:
            policies.policy_change(obj.pk, by=by, **{name: said[name] for name in form.changed_data})
        else:
            obj.pk = policies.policy_create(by=by, **said).pk

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        policies.policy_delete(obj.pk, by=f"user:{request.user.pk}")
