"""What the admin's pages of all rows share: they are read-only, searchable, and bounded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.text import smart_split

from agents.access.permissions import groups_of
from agents.api.pagination import LARGEST
from agents.masks.search import filter_visible
from agents.models import (
    Session,
)
from agents.reads.authors import names_of

PER_PAGE = 50
COUNTED = 5_000
"""Rows that a list counts, and shows, at most: search finds the others."""
JSON_LENGTH = 100_000
"""Characters of a JSON value on a page."""


class MoreThan(int):
    """A number of rows that was not counted to its end; templates write it as "more than 5,000"."""

    def __str__(self) -> str:
        return f"more than {int(self):,}"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # Django's takes no types while it runs
    """Counts no further than COUNTED: a count of millions of events takes seconds."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        found = int(rows.order_by()[: COUNTED + 1].count())
        return found if found <= COUNTED else MoreThan(COUNTED)


class NamingChangeList(ChangeList):
    """A page of rows, with the names of who wrote them."""

    model_admin: ReadOnlyAdmin

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.model_admin.add_names(self.result_list)


def author_column(field: str) -> Callable[[models.Model], str]:
    """A column of the admin that says who the author in `field` is; what is recorded of a person is beside the name."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def show(row: Any) -> str:
        author = getattr(row, field)
        name = row.author_names[author]
        return name if name == author else format_html('<span title="{}">{}</span>', author, name)

    show.__name__ = field
    return show


def time_column(field: models.DateTimeField[Any, Any]) -> Callable[[models.Model], str | None]:
    """A column of the admin that shows a time to the millisecond: what happens in a stream happens within one minute."""

    @admin.display(description=field.verbose_name, ordering=field.name, empty_value="-")
    def show(row: models.Model) -> str | None:
        at = getattr(row, field.name)
        return None if at is None else shown_time(at)

    show.__name__ = field.name
    return show


def shown_time(at: datetime) -> str:
    """`2026-11-22 10:45:01.250`, in the server's zone."""
    return timezone.localtime(at).isoformat(sep=" ", timespec="milliseconds")[:23]


def session_column(field: str) -> Callable[[models.Model], str]:
    """A column of the admin that leads from a row's session to the session's page, by its name."""

    @admin.display(description="session", ordering=field)
    def show(row: Any) -> str:
        number = getattr(row, field)
        name = row.session_names.get(number)
        place = reverse("admin:agents_session_change", args=(number,))
        return format_html('<a href="{}" title="{}">{}</a>', place, number, name) if name else str(number)

    show.__name__ = field
    return show


def json_column(field: models.JSONField) -> Callable[[models.Model], str]:
    """A column of the admin that shows `field` as indented JSON."""

    @admin.display(description=field.verbose_name)
    def show(row: models.Model) -> str:
        text = json.dumps(getattr(row, field.name), indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text if len(text) <= JSON_LENGTH else f"{text[:JSON_LENGTH]} ...")

    return show


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # the same
    """Seen by staff: rows of the sessions that are theirs to see; of what belongs to no session, all to admins only.

    `session_path` leads from a row to its session's id; `numbers` are the columns that a search for a number looks at,
    `search_fields` (from the start of the text only, so that an index can serve) those for any other text.
    """

    session_path: ClassVar[str] = ""
    open_to_staff: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("id",)
    machines: ClassVar[tuple[str, ...]] = ()
    author_field: ClassVar[str] = ""
    """The column that says who wrote a row; it is shown by `author_column`."""
    session_field: ClassVar[str] = ""
    """The column with the number of a row's session, where it is no key of sessions; it is shown by `session_column`."""
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    search_fields: ClassVar[tuple[str, ...]] = ("id",)
    search_help_text = "A number: an id. Text: the beginning of a name."
    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = list_max_show_all = PER_PAGE
    actions: Any = None

    class Media:
        css: ClassVar[dict[str, tuple[str, ...]]] = {"all": ("frontend/admin_lists.css",)}

    def __init__(self, model: type[models.Model], site: admin.AdminSite):
        super().__init__(model, site)
        fields = [field for field in model._meta.concrete_fields if field.name not in (self.exclude or ())]
        self._shown = [self._column(field) for field in fields]

    def _column(self, field: models.Field[Any, Any]) -> Any:
        if field.name == self.author_field:
            return author_column(field.name)
        if isinstance(field, models.DateTimeField):
            return time_column(field)
        return json_column(field) if isinstance(field, models.JSONField) else field.name

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """With times to the millisecond."""
        times = {field.name: field for field in self.model._meta.concrete_fields if isinstance(field, models.DateTimeField)}
        return [time_column(times[each]) if each in times else each for each in super().get_list_display(request)]

    def add_names(self, rows: Iterable[Any]) -> None:
        """Let each row know who the authors, and which the sessions, of all of them are."""
        if self.author_field:
            names = names_of(getattr(row, self.author_field) for row in rows)
            for row in rows:
                row.author_names = names
        if self.session_field:
            wanted = {getattr(row, self.session_field) for row in rows}
            titles = {found.pk: str(found) for found in Session.objects.filter(pk__in=wanted).only("pk", "title")}
            for row in rows:
                row.session_names = titles

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return NamingChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        self.add_names([] if found is None else [found])
        return found

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_active and request.user.is_staff

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """By what the list offers. Django takes any column, so that hidden and masked values could be guessed bit by bit."""
        column = lookup.removesuffix("__exact").removesuffix("__isnull")
        return column in self.list_filter or any(lookup == getattr(each, "parameter_name", "") for each in self.list_filter)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if self.open_to_staff or "admin" in groups_of(request.user):
            return rows
        if not self.session_path:
            return rows.none()
        visible = Session.objects.visible_to(request.user).values("pk")
        return rows.filter(**{f"{self.session_path}__in": visible})

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        text = search_term.replace("\x00", "").strip()
        if not (text.isascii() and text.isdigit()):
            found, may_repeat = super().get_search_results(request, queryset, text)
            return (self._seen(found, text) if text else found), may_repeat
        number = min(int(text[:20]), LARGEST)
        wanted = models.Q()
        for column in self.numbers:
            wanted |= models.Q(**{column: number})
        return queryset.filter(wanted), False

    def _seen(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Without rows that fit a search only by what is hidden in them."""
        places = [name.removesuffix("__startswith").removesuffix("__istartswith") for name in self.search_fields]
        words = [word.strip("\"'").lower() for word in smart_split(text)]
        return filter_visible(
            rows, places, lambda shown: all(any(word in place.lower() for place in shown) for word in words)
        )  # fmt: skip

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self._shown

    get_readonly_fields = get_fields
