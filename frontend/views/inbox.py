"""The inbox: its shell, and how much waits for who looks. What is in it comes over REST."""

import time
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.permissions import why_refused
from constellations.reads.across import inbox


@require_GET
@login_required
def inbox_page(request: HttpRequest) -> HttpResponse:
    """What waits, or with `?tab=decided` what was decided."""
    config = {**decision_config(request.user), "may_operate": not why_refused(request.user, None, "operate")}
    context = {"config": config, "is_decided": request.GET.get("tab") == "decided"}
    return render(request, "frontend/inbox.html", context)


@require_GET
@login_required
@never_cache
def count_waiting(request: HttpRequest) -> JsonResponse:
    """How much waits for who looks, for the navigation: {"waiting": n, "more": whether there is more than n}."""
    return JsonResponse(inbox.count_waiting(request.user))


def decision_config(user: Any) -> dict[str, Any]:
    """What the cards of a page need; `now` is in milliseconds, `refusal` why the reader may not decide, or empty."""
    return {"now": time.time() * 1000, "me": f"user:{user.pk}", "refusal": why_refused(user, None, "approve")}
