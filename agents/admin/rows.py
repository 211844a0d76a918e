"""The pages of every row of `agents` but those of agents at work, which are in `work`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from agents.access.permissions import groups_of
from agents.admin.filters import (
    EventTypeFilter,
    MachineFilter,
    SessionFilter,
    StateFilter,
    TransitionSessionFilter,
    is_of_session,
)
from agents.admin.readonly import NamingChangeList, ReadOnlyAdmin, author_column, session_column
from agents.models import (
    Actor,
    Agent,
    Event,
    InboxItem,
    Lease,
    Output,
    Runner,
    Session,
    SlotRequest,
    Stream,
    Token,
    Transition,
)
from agents.reads.printed import printed_piece
from agents.reads.standings import read_standings, viewer_of


class SessionChangeList(NamingChangeList):
    """A page of sessions, each with how it stands for who looks."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = read_standings([row.pk for row in self.result_list], viewer_of(request.user, None))
        for row in self.result_list:
            row.stands = found[row.pk]


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    session_path = "id"
    numbers = ("id", "owner_id")
    list_display = ("id", "title", "standing", "owner", "created_at")
    list_select_related = ("owner",)
    search_fields = ("title__istartswith", "owner__username")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[SessionChangeList]:
        return SessionChangeList

    @admin.display(description="standing")
    def standing(self, row: Any) -> str:
        """The word that every page has for it; why, on hover."""
        return format_html('<span title="{}">{}</span>', row.stands["reason"], row.stands["word"])

    @admin.display(description="rows of it")
    def places(self, row: Session) -> str:
        """The lists that can be narrowed down to a session."""
        known = sorted(self.admin_site._registry.items(), key=lambda each: str(each[0]._meta.verbose_name_plural))
        found = [model._meta for model, shown in known if any(map(is_of_session, shown.list_filter))]
        links = [(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), row.pk, meta) for meta in found]
        return format_html_join(
            ", ", '<a href="{}?session={}">{}</a>', [(*at, meta.verbose_name_plural) for *at, meta in links]
        )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), "places"]

    get_readonly_fields = get_fields


@admin.register(Actor)
class ActorAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "session_id")
    machines = ("actor",)
    list_display = ("id", "session", "epoch", "state", "reason", "entered_at")
    list_select_related = ("session",)
    list_filter = (StateFilter, SessionFilter)
    search_fields = ("reason__istartswith",)


@admin.register(InboxItem)
class InboxItemAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "session_id")
    author_field = "by"
    list_display = ("id", "session", "kind", "client_id", "state", "outcome", author_column("by"), "created_at")
    list_select_related = ("session",)
    list_filter = ("kind", "state", SessionFilter)
    search_fields = ("client_id__startswith", "by")


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "interaction_id")
    machines = ("constellation_agent", "device_agent")
    list_display = ("id", "name", "machine", "state", "device", "session", "entered_at")
    list_select_related = ("session", "device")
    list_filter = (StateFilter, SessionFilter)
    search_fields = ("name__startswith",)


@admin.register(SlotRequest)
class SlotRequestAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("session_id", "device_id")
    list_display = ("id", "device", "session", "priority", "wanted", "held", "granted", "since")
    list_select_related = ("device", "session")
    search_fields = ("device__name__startswith",)


@admin.register(Output)
class OutputAdmin(ReadOnlyAdmin):
    numbers = ("attempt_id",)
    list_display = ("id", "attempt_id", "offset")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:  # a secret may be in two rows
            found.text = printed_piece(found.attempt_id, found.offset, found.offset + len(found.text))
        return found


@admin.register(Runner)
class RunnerAdmin(ReadOnlyAdmin):
    numbers = ("id", "pid")
    list_display = ("id", "host", "pid", "state", "stop_wanted", "started_at", "renewed_at")
    list_filter = ("state",)
    search_fields = ("host__startswith",)


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    session_path = "stream_id"
    numbers = ("stream_id", "runner_id")
    session_field = "stream_id"
    list_display = ("stream_id", session_column("stream_id"), "runner", "wake_at")
    list_select_related = ("runner",)
    search_fields = ("runner__host__startswith",)


@admin.register(Stream)
class StreamAdmin(ReadOnlyAdmin):
    session_path = "id"
    list_display = ("id", "kind", "head", "rows", "token")
    list_filter = ("kind",)
    search_fields = ("kind",)


class RecordAdmin(ReadOnlyAdmin):
    """Records of streams, the latest first."""

    session_path = "stream_id"
    author_field = "by"
    numbers: ClassVar[tuple[str, ...]] = ("id", "stream_id")
    session_field = "stream_id"
    list_filter: ClassVar[tuple[Any, ...]] = (SessionFilter,)


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("id", session_column("stream_id"), "seq", "type", author_column("by"), "at")
    list_filter = (EventTypeFilter, SessionFilter)
    search_fields = ("type__startswith",)


@admin.register(Transition)
class TransitionAdmin(RecordAdmin):
    numbers = ("id", "stream_id", "subject_id")
    list_display = (
        "seq", session_column("stream_id"), "machine", "subject_id", "from_state", "to_state", "event", author_column("by"),
        "at",
    )  # fmt: skip
    list_filter = (MachineFilter, TransitionSessionFilter)
    search_fields = ("machine",)


@admin.register(Token)
class TokenAdmin(ReadOnlyAdmin):
    """Without the digest, which is its key: so no links. Staff see their own."""

    exclude = ("digest", "parent")
    list_display_links = None
    ordering = ("-created",)
    numbers = ("user_id",)
    list_display = ("token_key", "name", "user", "scopes", "made_with", "expiry", "last_used")
    list_select_related = ("user", "parent")
    search_fields = ("name__istartswith", "token_key__startswith", "user__username")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        tokens: QuerySet[Token] = Token.objects.all()
        return tokens if "admin" in groups_of(request.user) else tokens.filter(user=request.user)

    def made_with(self, row: Token) -> str:
        return "" if row.parent is None else row.parent.token_key
