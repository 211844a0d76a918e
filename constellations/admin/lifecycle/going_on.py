"""Mend, reopen and fork: the pages that ask what is to be done, and the way to what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.errors import AgentsError
from agents.ids import CAPACITY
from agents.models import InboxItem, Session
from agents.streams import fold
from constellations.admin.editing import author_of, user_may
from constellations.admin.forms.fields import LinesField, ProseField
from constellations.admin.forms.sheets import Sheet
from constellations.admin.forms.widgets import PlainRenderer, field_html
from constellations.admin.lifecycle.commanding import client_id_of
from constellations.admin.shown import (
    AGAIN,
    ShownRows,
    dependencies_of,
    dependency_rows,
    is_open,
    task_rows,
    tasks_of,
)
from constellations.errors import EditRefused, NotRetried
from constellations.machines import CONSTELLATION
from constellations.models import Constellation
from constellations.plan.operations import MAX_TASKS
from constellations.services.edits import REASON_LENGTH
from constellations.services.lifecycle import (
    TITLE_LENGTH,
    constellation_fork,
    constellation_reopen,
    constellation_retry,
    failed_of,
)

FAILED_NAMED = 50
"""Tasks that have failed, with which the page of a reopening begins."""
CHANGED = 50
"""Tasks that the page offers to change, the oldest, and dependencies into them."""
NO_EDIT = "Changes are an edit, which you may not make."


class ReopenForm(forms.Form):
    """What is wanted of a graph that goes on. `row` is the constellation."""

    default_renderer = PlainRenderer

    retry = LinesField(
        required=False, label="Tasks that begin again", help_text="task_ids, one a line; what is downstream of them too."
    )
    reason = ProseField(required=False, label="Why", max_length=REASON_LENGTH)
    once = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, row: Constellation, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.row = row
        self.prepare()

    def prepare(self) -> None:
        """Begins with what has failed."""
        self.initial["retry"] = "\n".join(failed_of(self.row)[:FAILED_NAMED])

    @property
    def fields_html(self) -> SafeString:
        hidden = "".join(field.as_widget() for field in self.hidden_fields())
        return mark_safe(hidden + "".join(field_html(field, explained=True) for field in self.visible_fields()))

    def clean_retry(self) -> list[str]:
        given: list[str] = self.cleaned_data["retry"]
        if len(given) > MAX_TASKS:
            raise forms.ValidationError(f"At most {MAX_TASKS:,}, not {len(given):,}.")
        return given

    def said(self) -> dict[str, Any]:
        """What the service is asked, by its own names."""
        return {name: value for name, value in self.cleaned_data.items() if name != "once"}

    def take(self, error: AgentsError) -> None:
        """Shows a refusal at the field that it is about."""
        self.add_error("retry" if isinstance(error, NotRetried) else None, str(error))


class ForkForm(ReopenForm):
    """Also when, and how the new session is called."""

    seq = forms.IntegerField(required=False, min_value=1, max_value=CAPACITY, label="As it was after event")
    title = forms.CharField(required=False, max_length=TITLE_LENGTH, label="Title", help_text="Of the new session.")
    field_order = ("seq", "retry", "title", "reason")

    def prepare(self) -> None:
        head = fold.stream_head(self.row.session_id)
        self.fields["seq"].help_text = f"Its seq in the session's stream. Empty: as it is now, after {head}."
        self.fields["title"].widget.attrs["placeholder"] = f"Fork of {self.row}"


@dataclass(frozen=True)
class GoingOn:
    """One way in which a constellation goes on: the page that asks for it, and who carries it out."""

    name: str
    text: str
    form: type[ReopenForm]
    carry_out: Callable[[HttpRequest, Constellation, dict[str, Any]], tuple[InboxItem | None, bool]]
    """(The interaction that will do it, None where it is done at once; whether it is new.)"""
    told: str


def _reopen(request: HttpRequest, row: Constellation, said: dict[str, Any]) -> tuple[InboxItem, bool]:
    return constellation_reopen(row.pk, by=author_of(request), **said)


def _mend(request: HttpRequest, row: Constellation, said: dict[str, Any]) -> tuple[InboxItem | None, bool]:
    done = constellation_retry(row.pk, said.pop("retry"), by=author_of(request), **said)
    return done.interaction, done.changed


def _fork(request: HttpRequest, row: Constellation, said: dict[str, Any]) -> tuple[InboxItem, bool]:
    _, item, created = constellation_fork(row.pk, request.user, by=author_of(request), **said)
    return item, created


WAYS = {
    way.name: way
    for way in (
        GoingOn(
            "mend", "While the rest goes on, tasks that have failed are changed and begin again, all of it or nothing.",
            ReopenForm, _mend, "is mended",
        ),
        GoingOn(
            "reopen", "It has ended. It goes on as an interaction of its own, with the tasks that begin again and the changes.",
            ReopenForm, _reopen, "is being reopened",
        ),
        GoingOn(
            "fork", "A session of yours goes on from the graph as it was at a moment. What had COMPLETED or FAILED then stays "
            "so, with its results; everything else begins again. This one is left as it is.",
            ForkForm, _fork, "is being forked",
        ),
    )
}  # fmt: skip


def ways_of(row: Constellation, *, has_failed: bool = False) -> list[GoingOn]:
    """Those that come to something in the state that the constellation is in; `has_failed` says that one of its tasks has."""
    reopens, built = "reopen" in CONSTELLATION.choices(row.state), row.state not in ("CREATED", "READY")
    mends = is_open(row) and built and has_failed
    return [WAYS[name] for name, offered in (("mend", mends), ("reopen", reopens), ("fork", built)) if offered]


def sheet_of(row: Constellation) -> Sheet:
    """Forms of what may change as the graph goes on: what FAILED, was cancelled or has not begun, and what that waits for."""
    tasks = task_rows(tasks_of(row).filter(AGAIN)[:CHANGED])
    into = dependencies_of(row).filter(downstream__in=[task["id"] for task in tasks.values()])
    return Sheet(ShownRows(row, row.version, tasks, dependency_rows(into[:CHANGED])))


def submit_form(request: HttpRequest, form: ReopenForm, sheet: Sheet | None, way: GoingOn) -> HttpResponse | None:
    """Ask the service: the answer, or None where the page is shown again with what is wrong."""
    if not all([form.is_valid(), sheet is None or sheet.is_valid()]):
        return None
    changes = sheet.operations() if sheet else []
    if changes and not user_may(request, "edit"):
        form.add_error(None, NO_EDIT)
        return None
    said = {**form.said(), "operations": [operation for operation, _ in changes]}
    try:
        item, created = way.carry_out(request, form.row, {**said, "client_id": client_id_of(request, form.row)})
    except AgentsError as error:
        if sheet and isinstance(error, EditRefused):
            sheet.take(error, [row for _, row in changes])
        else:
            form.take(error)
        return None
    told = way.told if created else f"{way.told} already"
    page = HttpResponseRedirect(reverse("admin:constellations_constellation_change", args=(form.row.pk,)))
    if item is None:
        messages.success(request, f"{form.row} {told}.")
        return page
    link = format_html('<a href="{}">what comes of it</a>', reverse("admin:constellations_begun", args=(item.pk,)))
    live = format_html('<a href="{}">the session, live</a>', reverse("frontend:session", args=(item.session_id,)))
    messages.success(request, format_html("{}: {}. See {}, or {}.", str(form.row), told, link, live))
    return page


def redirect_to_begun(request: HttpRequest, interaction: int) -> HttpResponse:
    """Leads to the constellation of an interaction, or to the interaction as long as it has none."""
    item = InboxItem.objects.filter(pk=interaction, session__in=Session.objects.visible_to(request.user)).first()
    if item is None:
        raise Http404
    made = Constellation.objects.filter(interaction=item).order_by("id").last()
    if made is not None:
        return HttpResponseRedirect(reverse("admin:constellations_constellation_change", args=(made.pk,)))
    messages.info(
        request, "No constellation has come of it." if item.ended_at else "It has not begun yet: a runner takes it up."
    )
    return HttpResponseRedirect(reverse("admin:agents_inboxitem_change", args=(item.pk,)))
