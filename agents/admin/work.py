"""The admin's view of agents at work. All of it is read-only but policies, which admins change here, through the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.timezone import localtime

from agents.access.permissions import groups_of, why_refused
from agents.admin.filters import OutcomeFilter, SessionFilter, StateFilter
from agents.admin.readonly import ReadOnlyAdmin, author_column
from agents.errors import AgentsError
from agents.machines import DEVICE_AGENT
from agents.masks.values import mask_value
from agents.models import Approval, Evidence, Loop, ModelCall, ModelDelta, PhaseRecord, Policy, Prompt
from agents.reads.verdicts import describe_rule, latest_verdict, set_since
from agents.services import labels, policies


class LoopForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's takes no types while it runs
    """What a person says of a recorded run; the label itself is written by the service."""

    was = forms.ChoiceField(
        label="The agent was", choices=(("", "-"), ("stuck", "stuck"), ("free", "not stuck")), required=False
    )
    since = forms.IntegerField(
        label="since row", min_value=1, required=False, help_text="Of one that was stuck: the number of a row of its evidence."
    )
    because = forms.CharField(max_length=labels.REASON_LENGTH, required=False)

    class Meta:
        model = Loop
        fields = ()

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if label := self.instance.label:
            said = {"was": "stuck" if label["stuck"] else "free", "since": label["since"], "because": label["reason"]}
            self.initial |= mask_value(said)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and self.changed_data:
            try:
                if not cleaned["was"]:
                    raise labels.LabelRejected("say whether the agent was stuck")
                labels.check_label(self.instance.pk, **self.said)
            except AgentsError as error:
                self.add_error(None, str(error))
        return cleaned

    @property
    def said(self) -> dict[str, Any]:
        """The label, as the service takes it."""
        cleaned = self.cleaned_data
        return {"stuck": cleaned["was"] == "stuck", "since": cleaned["since"], "reason": cleaned["because"]}


@admin.register(Loop)
class LoopAdmin(ReadOnlyAdmin):
    """Staff see them; who may operate says whether an agent was stuck, which goes through the service."""

    form = LoopForm
    session_path = "agent__session"
    numbers = ("id", "agent_id")
    machines = ("tool_loop",)
    list_display = ("id", "agent", "state", "reason", "labelled", "entered_at")
    list_select_related = ("agent",)
    list_filter = (StateFilter, SessionFilter)
    search_fields = ("reason__istartswith",)

    @admin.display(description="a person says")
    def labelled(self, row: Loop) -> str:
        if row.label is None:
            return "-"
        return f"stuck since row {row.label['since']}" if row.label["stuck"] else "not stuck"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request) and not why_refused(request.user, None, "operate")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        said = list(LoopForm.base_fields) if self.has_change_permission(request) else []
        return [*super().get_fields(request, obj), *said]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return super().get_fields(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if form.changed_data:
            labels.loop_label(obj.pk, **form.said, by=f"user:{request.user.pk}")


@admin.register(Evidence)
class EvidenceAdmin(ReadOnlyAdmin):
    session_path = "loop__agent__session"
    numbers = ("id", "loop_id")
    list_display = (
        "id", "agent", "number", "phase", "kind", "tool", "success", "error_kind", "stuck", "started_at", "ended_at",
    )  # fmt: skip
    list_select_related = ("loop__agent",)
    list_filter = ("kind", "success", SessionFilter)
    search_fields = ("tool__startswith", "target__startswith")

    @admin.display(description="agent", ordering="loop")
    def agent(self, row: Evidence) -> str:
        place = reverse("admin:agents_agent_change", args=[row.loop.agent_id])
        return format_html('<a href="{}">{}</a>', place, row.loop.agent.name)

    @admin.display(description="verdict in words")
    def stuck(self, row: Evidence) -> str:
        return describe_rule(row.verdict["rule"]) if row.verdict else "-"

    @admin.display(description="verdict in words")
    def told(self, row: Evidence) -> str:
        """The sentence, since when, what followed, what can be done, and the rows, which lead to their pages."""
        set_since([row])
        found = latest_verdict([row], lives=not DEVICE_AGENT.is_terminal(row.loop.agent.state))
        if found is None:
            return "-"
        named = Evidence.objects.filter(loop=row.loop_id, number__in=found["rows"]).order_by("number")
        links = [(reverse("admin:agents_evidence_change", args=[key]), n) for key, n in named.values_list("pk", "number")]
        return format_html(
            "<strong>{}</strong> since row {} ({})<br>{}<br>{}<br>Rows: {}{}",
            found["about"], found["since"]["row"], localize(localtime(found["since"]["at"])), found["sentence"],
            found["followed"], format_html_join(", ", '<a href="{}">{}</a>', links),
            format_html_join("", "<br>- {}", [(way["text"],) for way in found["ways"]]),
        )  # fmt: skip

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), "told"]

    get_readonly_fields = get_fields


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "agent_id", "session_id")
    list_display = (
        "id", "agent", "number", "purpose", "profile", "status", "outcome", "error_kind", "input_tokens", "output_tokens",
        "cost", "call_s", "started_at",
    )  # fmt: skip
    list_select_related = ("agent",)
    list_filter = ("purpose", ("outcome", OutcomeFilter), SessionFilter)
    search_fields = ("profile__startswith", "error_kind__startswith")

    @admin.display(description="system prompt")
    def prompt(self, row: ModelCall) -> str:
        text = Prompt.objects.filter(pk=row.prompt_digest).values_list("text", flat=True).first()
        return "-" if text is None else format_html("<pre>{}</pre>", text)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), "prompt"]

    get_readonly_fields = get_fields


@admin.register(ModelDelta)
class ModelDeltaAdmin(ReadOnlyAdmin):
    numbers = ("call_id",)
    list_display = ("id", "call_id", "offset", "kind")


@admin.register(Prompt)
class PromptAdmin(ReadOnlyAdmin):
    """System prompts as they were sent. They belong to no session, so admins alone see their list."""

    numbers = ("digest",)
    ordering = ("-created_at",)
    list_display = ("digest", "version", "created_at")
    search_fields = ("digest__startswith", "version__startswith")


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


class PolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # the same
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
    ordering = ("order", "id")
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
