"""Start, pause, resume, cancel, restart, retry of constellations, and cancel, skip, retry of tasks, as actions of the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from agents.errors import AgentsError
from constellations.admin.editing import author_of
from constellations.admin.lifecycle.confirming import NAMED, Question, confirmation_page, is_confirmed, reason_of, request_mark
from constellations.admin.shown import is_open
from constellations.editor.draft import is_skipped
from constellations.machines import CONSTELLATION
from constellations.models import Constellation, Task
from constellations.services.lifecycle import (
    RetryResult,
    constellation_cancel,
    constellation_pause,
    constellation_restart,
    constellation_resume,
    constellation_retry,
    constellation_start,
)
from constellations.services.task_commands import WAITING, CancelResult, task_cancel, task_skip

AT_ONCE = 100
"""Constellations of one action."""
TASKS_AT_ONCE = 1_000
"""Tasks of one action."""
TASKS_NAMED = 5
"""Tasks that a message names."""

Command = Callable[[HttpRequest, Constellation], str]
"""Asks for something of one constellation; says what became of it."""


@admin.action(description="Start", permissions=["operate"])
def start(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    def command(request: HttpRequest, row: Constellation) -> str:
        _, changed = constellation_start(row.pk, by=author_of(request), reason=reason_of(request))
        return "started: it has been reviewed" if changed else "was started already"

    return ask_constellations(request, rows, command)


@admin.action(description="Pause", permissions=["operate"])
def pause(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    def command(request: HttpRequest, row: Constellation) -> str:
        _, changed = constellation_pause(row.pk, by=author_of(request), reason=reason_of(request))
        return "paused: nothing starts in it, what runs goes on to its end" if changed else "was paused already"

    return ask_constellations(request, rows, command)


@admin.action(description="Resume", permissions=["operate"])
def resume(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    def command(request: HttpRequest, row: Constellation) -> str:
        _, changed = constellation_resume(row.pk, by=author_of(request), reason=reason_of(request))
        return "resumed" if changed else "was not paused"

    return ask_constellations(request, rows, command)


@admin.action(description="Retry what failed", permissions=["operate"])
def retry_failed(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    def command(request: HttpRequest, row: Constellation) -> str:
        return _told(constellation_retry(row.pk, None, **_said(request, row)))

    return ask_constellations(request, rows, command)


@admin.action(description="Retry, with what is downstream", permissions=["operate"])
def retry_tasks(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    """Of each constellation all of the tasks chosen, or none."""
    chosen = list(rows.select_related("constellation").order_by("id")[: TASKS_AT_ONCE + 1])
    if len(chosen) > TASKS_AT_ONCE:
        messages.error(request, f"At most {TASKS_AT_ONCE:,} tasks at a time; nothing was done.")
        return None
    wanted: dict[Constellation, list[str]] = {}
    for task in chosen:
        wanted.setdefault(task.constellation, []).append(task.task_id)

    def command(request: HttpRequest, row: Constellation) -> str:
        return _told(constellation_retry(row.pk, wanted[row], **_said(request, row)))

    for constellation in wanted:
        _ask(request, constellation, command)
    return HttpResponseRedirect(_page(chosen[0])) if "back" in request.POST and len(chosen) == 1 else None


@admin.action(description="Cancel task ...", permissions=["operate"])
def cancel_tasks(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    text = "What runs is interrupted, what waits never starts; what depends on them follows, everything else goes on."
    return _end_tasks(modeladmin, request, rows, "Cancel", text, task_cancel)


@admin.action(description="Skip task ...", permissions=["operate"])
def skip_tasks(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    text = "They never start; what depends on them follows. What runs already is left alone."
    return _end_tasks(modeladmin, request, rows, "Skip", text, task_skip)


def _end_tasks(
    modeladmin: ModelAdmin[Any],
    request: HttpRequest,
    rows: QuerySet[Any],
    word: str,
    text: str,
    end: Callable[..., CancelResult],
) -> HttpResponse | None:
    """Each task by itself, after a page that asks for the reason: one that has ended meanwhile keeps no other."""
    if not (is_confirmed(request) and reason_of(request)):
        return confirmation_page(modeladmin, request, _question(word, f"{text} It needs a reason.", rows, request, "tasks"))
    chosen = list(rows.order_by("id")[: AT_ONCE + 1])
    if len(chosen) > AT_ONCE:
        messages.error(request, f"At most {AT_ONCE} tasks at a time; nothing was done.")
        return None
    for task in chosen:
        said = {"by": author_of(request), "reason": reason_of(request), "client_id": client_id_of(request, task)}
        try:
            found = end(task.constellation_id, task.task_id, **said)
        except AgentsError as error:
            messages.error(request, f"{task}: {error}")
            continue
        waits = "is being cancelled by its runner" if found.task.state == "RUNNING" else "cancelled"
        messages.success(request, f"{task}: {waits if found.changed else 'has been asked for that, or was skipped, already'}.")
    return HttpResponseRedirect(_page(chosen[0])) if "back" in request.POST and len(chosen) == 1 else None


def _told(found: RetryResult) -> str:
    if not found.changed:
        return "has been asked for that already" if found.interaction else "nothing in it has failed"
    names = ", ".join(found.tasks[:TASKS_NAMED])
    more = f" and {len(found.tasks) - TASKS_NAMED:,} more" if len(found.tasks) > TASKS_NAMED else ""
    return f"tried again: {names}{more}{'; it is reopened for that' if found.interaction else ''}"


def _said(request: HttpRequest, row: Constellation) -> dict[str, Any]:
    """Who asks, why, and under which id: the same page sent twice asks once."""
    return {"by": author_of(request), "reason": reason_of(request), "client_id": client_id_of(request, row)}


@admin.action(description="Cancel ...", permissions=["operate"])
def cancel(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    if not is_confirmed(request):
        text = "What runs is interrupted, what waits never starts, and nothing in it changes any more."
        return confirmation_page(modeladmin, request, _question("Cancel", text, rows, request))

    def command(request: HttpRequest, row: Constellation) -> str:
        _, new = constellation_cancel(row.pk, **_said(request, row))
        return "is being cancelled" if new else "has been asked for that, or has ended"

    return ask_constellations(request, rows, command)


@admin.action(description="Restart ...", permissions=["operate"])
def restart(modeladmin: ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    if not is_confirmed(request):
        text = "What is open is cancelled, and the same request is planned and carried out anew."
        return confirmation_page(modeladmin, request, _question("Restart", text, rows, request))

    def command(request: HttpRequest, row: Constellation) -> str:
        _, new = constellation_restart(row.pk, **_said(request, row))
        return "is being restarted" if new else "has been asked for that already"

    return ask_constellations(request, rows, command)


ACTIONS = (start, pause, resume, retry_failed, restart, cancel)


def offered_actions(row: Constellation) -> list[Any]:
    """The actions that come to something in the state that the constellation is in."""
    taken = CONSTELLATION.choices(row.state)
    if is_open(row):
        return [action for action in ACTIONS if action not in (start, pause, resume) or action.__name__ in taken]
    return [retry_failed] if "reopen" in taken else []


def offered_task_actions(task: Task) -> list[Any]:
    """The same for a task."""
    row = {"state": task.state, "reason": task.reason}
    may = task.state in ("FAILED", "CANCELLED") and not is_skipped(row) and task.constellation.state != "CANCELLED"
    if may:
        return [retry_tasks]
    if not is_open(task.constellation):
        return []
    return [skip_tasks] if task.state in WAITING else [cancel_tasks] if task.state == "RUNNING" else []


def action_buttons(actions: Iterable[Any]) -> list[tuple[str, str]]:
    """Their names and words, for a page that offers them."""
    return [(action.__name__, action.short_description) for action in actions]


def ask_constellations(request: HttpRequest, rows: QuerySet[Any], command: Command) -> HttpResponse | None:
    """Ask each constellation, and say what became of it; then back to where the operator came from."""
    chosen = list(rows[: AT_ONCE + 1])
    if len(chosen) > AT_ONCE:
        messages.error(request, f"At most {AT_ONCE} constellations at a time; nothing was done.")
        return None
    for row in chosen:
        _ask(request, row, command)
    return HttpResponseRedirect(_page(chosen[0])) if "back" in request.POST and len(chosen) == 1 else None


def _ask(request: HttpRequest, row: Constellation, command: Command) -> None:
    try:
        messages.success(request, f"{row}: {command(request, row)}.")
    except AgentsError as error:
        messages.error(request, f"{row}: {error}")


def _question(word: str, text: str, rows: QuerySet[Any], request: HttpRequest, kind: str = "constellations") -> Question:
    named, total = list(rows[:NAMED]), rows.count()
    title = f"{word} {named[0] if total == 1 else f'{total:,} {kind}'}?"
    back = _page(named[0]) if "back" in request.POST and total == 1 else request.get_full_path()
    return Question(title, text, [f"{row} ({row.state})" for row in named], total, back, danger=True)


def _page(row: Any) -> str:
    return reverse(f"admin:constellations_{row._meta.model_name}_change", args=(row.pk,))


def client_id_of(request: HttpRequest, row: Constellation) -> str:
    """The same page sent twice asks once."""
    once = request_mark(request)
    return f"admin-{once}-{row.pk}" if once.isalnum() else ""
