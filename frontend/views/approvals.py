"""The inbox of what waits for a person: its shell, the latest decisions, and how many wait."""

import time
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.permissions import why_refused
from agents.models import Approval, Session
from agents.reads.authors import names_of
from constellations.models import Task

DECIDED_SHOWN = 50
PLACES_SHOWN = 100
COUNTED = 99
"""Beyond it the navigation says "99+"."""
KINDS = {
    "task": "Before a task begins",
    "tool": "Permission for one call",
    "lost": "After a lost attempt",
    "question": "Question",
    "edit": "Proposed edit",
}
"""What a person may be asked, in words. A call-back is awaited from outside, never from a person."""


def for_people(user) -> QuerySet[Approval]:
    """What `user` may see of what people were asked."""
    return Approval.objects.filter(session__in=Session.objects.visible_to(user), kind__in=KINDS)


@require_GET
@login_required
def approvals_page(request: HttpRequest) -> HttpResponse:
    """The inbox. What waits comes over REST; the decisions are on the page, which its script takes anew after each."""
    context = {"decided": latest_decisions(request.user), "config": decision_config(request.user)}
    return render(request, "frontend/approvals.html", context)


@require_GET
@login_required
@never_cache
def count_waiting(request: HttpRequest) -> JsonResponse:
    """How many wait, for the navigation: {"waiting": n, "more": whether there are more than n}."""
    found = for_people(request.user).filter(state="waiting").order_by()[: COUNTED + 1].count()
    return JsonResponse({"waiting": min(found, COUNTED), "more": found > COUNTED})


@require_GET
@login_required
@never_cache
def waiting_places(request: HttpRequest) -> JsonResponse:
    """Where the latest that wait come from: {approval id: {"session", "task", "device"}}, names or empty; three queries."""
    rows = for_people(request.user).filter(state="waiting").select_related("session", "agent__device").order_by("-id")
    shown = list(rows[:PLACES_SHOWN])
    tasks = _tasks(row.subject_id for row in shown)
    places = {}
    for row in shown:
        device = row.agent.device if row.agent else None
        task, name = tasks.get(row.subject_id, ""), device.name if device else ""
        places[row.pk] = {"session": str(row.session), "task": task, "device": name}
    return JsonResponse(places)


def decision_config(user) -> dict[str, Any]:
    """What the cards of a page need; `now` is in milliseconds, `refusal` why the reader may not decide, or empty."""
    return {"now": time.time() * 1000, "me": f"user:{user.pk}", "refusal": why_refused(user, None, "approve")}


def latest_decisions(user) -> list[dict[str, Any]]:
    """The latest decisions, newest first, with the names of who made them; three queries."""
    rows = for_people(user).exclude(state="waiting").select_related("session").order_by("-decided_at", "-id")
    shown = list(rows[:DECIDED_SHOWN])
    names, tasks = names_of(row.decided_by for row in shown), _tasks(row.subject_id for row in shown)
    return [
        {
            "row": row,
            "kind": KINDS[row.kind],
            "word": "answered" if row.kind == "question" and row.state == "approved" else row.state,
            "by": names[row.decided_by],
            "task": tasks.get(row.subject_id, ""),
        }
        for row in shown
    ]


def _tasks(ids: Iterable[int]) -> dict[int, str]:
    rows = Task.objects.filter(pk__in=set(ids)).values_list("pk", "name", "task_id")
    return {key: name or task_id for key, name, task_id in rows}
