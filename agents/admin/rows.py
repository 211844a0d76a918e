"""A read-only, searchable view of every row: changes go through services, which record them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import models
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.text import smart_split

from agents.access.permissions import groups_of
from agents.admin.filters import MachineFilter, SessionFilter, StateFilter, TransitionSessionFilter, is_of_session
from agents.api.pagination import LARGEST
from agents.masks.search import visibly_fitting
from agents.masks.values import shown_limits
from agents.models import (
    Actor,
    Agent,
    Device,
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
from agents.reads.authors import names_of
from agents.reads.confinement import confinement_shown
from agents.reads.printed import printed_piece

PER_PAGE = 50
COUNTED = 5_000
"""Rows that a list counts, and shows, at most: search finds the others."""
JSON_LENGTH = 100_000
"""Characters of a JSON value on a page."""


class BoundedPaginator(Paginator):
    """Counts no further than COUNTED: a count of millions of events takes seconds."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return rows.order_by()[:COUNTED].count()


class NamingChangeList(ChangeList):
    """A page of rows, with the names of who wrote them."""

    model_admin: ReadOnlyAdmin

    def get_results(self, request) -> None:
        super().get_results(request)
        self.model_admin.add_names(self.result_list)


def named(field: str) -> Callable[[models.Model], str]:
    """A column of the admin that says who the author in `field` is; what is recorded of a person is beside the name."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def show(row: Any) -> str:
        author = getattr(row, field)
        name = row.author_names[author]
        return name if name == author else format_html('<span title="{}">{}</span>', author, name)

    show.__name__ = field
    return show


def pretty(field: models.JSONField) -> Callable[[models.Model], str]:
    """A column of the admin that shows `field` as indented JSON."""

    @admin.display(description=field.verbose_name)
    def show(row: models.Model) -> str:
        text = json.dumps(getattr(row, field.name), indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text if len(text) <= JSON_LENGTH else f"{text[:JSON_LENGTH]} ...")

    return show


class ReadOnlyAdmin(admin.ModelAdmin):
    """Seen by staff: rows of the sessions that are theirs to see; of what belongs to no session, all to admins only.

    `session_path` leads from a row to its session's id; `numbers` are the columns that a search for a number looks at,
    `search_fields` (from the start of the text only, so that an index can serve) those for any other text.
    """

    session_path: ClassVar[str] = ""
    open_to_staff: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("id",)
    machines: ClassVar[tuple[str, ...]] = ()
    author_field: ClassVar[str] = ""
    """The column that says who wrote a row; it is shown by `named`."""
    search_fields: ClassVar[tuple[str, ...]] = ("id",)
    search_help_text = "A number: an id. Text: the beginning of a name."
    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = list_max_show_all = PER_PAGE
    actions: Any = None

    def __init__(self, model: type[models.Model], site: admin.AdminSite):
        super().__init__(model, site)
        fields = [field for field in model._meta.concrete_fields if field.name not in (self.exclude or ())]
        self._shown = [self._column(field) for field in fields]

    def _column(self, field: models.Field) -> Any:
        if field.name == self.author_field:
            return named(field.name)
        return pretty(field) if isinstance(field, models.JSONField) else field.name

    def add_names(self, rows: Iterable[Any]) -> None:
        """Let each row know who the authors of all of them are."""
        if self.author_field:
            names = names_of(getattr(row, self.author_field) for row in rows)
            for row in rows:
                row.author_names = names

    def get_changelist(self, request, **kwargs) -> type[ChangeList]:
        return NamingChangeList

    def get_object(self, request, object_id, from_field=None):
        found = super().get_object(request, object_id, from_field)
        self.add_names([] if found is None else [found])
        return found

    def has_add_permission(self, request, obj=None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def has_view_permission(self, request, obj=None) -> bool:
        return request.user.is_active and request.user.is_staff

    def has_module_permission(self, request) -> bool:
        return self.has_view_permission(request)

    def lookup_allowed(self, lookup, value, request) -> bool:
        """By what the list offers. Django takes any column, so that hidden and masked values could be guessed bit by bit."""
        column = lookup.removesuffix("__exact").removesuffix("__isnull")
        return column in self.list_filter or any(lookup == getattr(each, "parameter_name", "") for each in self.list_filter)

    def get_queryset(self, request) -> QuerySet:
        rows = super().get_queryset(request)
        if self.open_to_staff or "admin" in groups_of(request.user):
            return rows
        if not self.session_path:
            return rows.none()
        visible = Session.objects.visible_to(request.user).values("pk")
        return rows.filter(**{f"{self.session_path}__in": visible})

    def get_search_results(self, request, queryset, search_term):
        text = search_term.replace("\x00", "").strip()
        if not (text.isascii() and text.isdigit()):
            found, may_repeat = super().get_search_results(request, queryset, text)
            return (self._seen(found, text) if text else found), may_repeat
        number = min(int(text[:20]), LARGEST)
        wanted = models.Q()
        for column in self.numbers:
            wanted |= models.Q(**{column: number})
        return queryset.filter(wanted), False

    def _seen(self, rows: QuerySet, text: str) -> QuerySet:
        """Without rows that fit a search only by what is hidden in them."""
        places = [name.removesuffix("__startswith").removesuffix("__istartswith") for name in self.search_fields]
        words = [word.strip("\"'").lower() for word in smart_split(text)]
        return visibly_fitting(
            rows, places, lambda shown: all(any(word in place.lower() for place in shown) for word in words)
        )  # fmt: skip

    def get_fields(self, request, obj=None) -> list[Any]:
        return self._shown

    get_readonly_fields = get_fields


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    session_path = "id"
    numbers = ("id", "owner_id")
    list_display = ("id", "title", "owner", "created_at")
    list_select_related = ("owner",)
    search_fields = ("title__istartswith", "owner__username")

    @admin.display(description="rows of it")
    def places(self, row: Session) -> str:
        """The lists that can be narrowed down to a session."""
        known = sorted(self.admin_site._registry.items(), key=lambda each: str(each[0]._meta.verbose_name_plural))
        found = [model._meta for model, shown in known if any(map(is_of_session, shown.list_filter))]
        links = [(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), row.pk, meta) for meta in found]
        return format_html_join(
            ", ", '<a href="{}?session={}">{}</a>', [(*at, meta.verbose_name_plural) for *at, meta in links]
        )

    def get_fields(self, request, obj=None) -> list[Any]:
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
    list_display = ("id", "session", "kind", "client_id", "state", "outcome", named("by"), "created_at")
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


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    open_to_staff = True
    list_display = ("id", "name", "kind", "platform", "type", "labels", "state", "used", "max_concurrent")
    list_filter = ("state",)
    search_fields = ("name__istartswith", "type__istartswith")

    def get_object(self, request, object_id, from_field=None):
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.limits = shown_limits(found.limits, to_admin="admin" in groups_of(request.user))
        return found

    def __init__(self, model: type[models.Model], site: admin.AdminSite):
        super().__init__(model, site)
        self._shown.append("confinement")

    @admin.display(description="its commands")
    def confinement(self, row: Device) -> str:
        return confinement_shown()


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

    def get_object(self, request, object_id, from_field=None):
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
    list_display = ("stream_id", "runner", "wake_at")
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
    ordering = ("-id",)
    list_select_related = ("stream",)
    list_filter: ClassVar[tuple[Any, ...]] = (SessionFilter,)


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("id", "stream_id", "seq", "type", named("by"), "at")
    search_fields = ("type__startswith",)


@admin.register(Transition)
class TransitionAdmin(RecordAdmin):
    numbers = ("id", "stream_id", "subject_id")
    list_display = (
        "id", "stream_id", "seq", "machine", "subject_id", "from_state", "to_state", "event", named("by"), "at",
    )  # fmt: skip
    list_filter = (MachineFilter, TransitionSessionFilter)
    search_fields = ("machine",)


@admin.register(Token)
class TokenAdmin(ReadOnlyAdmin):
    """Without the digest, which is its key: so no links. Staff see their own."""

    exclude = ("digest", "parent")
    list_display_links = None
    numbers = ("user_id",)
    list_display = ("token_key", "name", "user", "scopes", "made_with", "expiry", "last_used")
    list_select_related = ("user", "parent")
    search_fields = ("name__istartswith", "token_key__startswith", "user__username")

    def get_queryset(self, request) -> QuerySet:
        return Token.objects.all() if "admin" in groups_of(request.user) else Token.objects.filter(user=request.user)

    def made_with(self, row: Token) -> str:
        return "" if row.parent is None else row.parent.token_key


from agents.admin import queue, work  # noqa: E402, F401  register themselves, and build on the classes above
