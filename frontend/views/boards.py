"""Pages of tables: runners and queues, models and their cost, policies, agents that were stuck. A script keeps them fresh."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from agents.access.permissions import groups_of, why_refused
from agents.ids import CAPACITY
from agents.models import Budget, ModelProfile, Policy
from agents.reads.costs import with_used
from agents.reads.runners import runners_overview
from agents.reads.spending import spending_overview
from agents.reads.stuck import SAID, stuck_loops
from agents.services.policies import POLICIES

ROWS_SHOWN = 200
"""Profiles and budgets of their tables."""
RULE_LENGTH = 40


def _must_read(request: HttpRequest) -> None:
    """Raises PermissionDenied for who may not see what is everybody's."""
    if refused := why_refused(request.user, None, "read"):
        raise PermissionDenied(refused)


@require_GET
@login_required
def runners_page(request: HttpRequest) -> HttpResponse:
    """Runners with their leases, sessions that nobody holds, and the queues of django-q2."""
    _must_read(request)
    return render(request, "frontend/runners.html", runners_overview(request.user))


@require_GET
@login_required
def models_page(request: HttpRequest) -> HttpResponse:
    """Profiles without their keys, budgets with what of them is used, and what was spent, on what."""
    _must_read(request)
    spent = spending_overview(request.user)
    context = {
        "at": timezone.now(),
        "profiles": ModelProfile.objects.order_by("name").defer("key")[:ROWS_SHOWN],
        "budgets": with_used(list(Budget.objects.order_by("id")[:ROWS_SHOWN])),
        "spent": spent,
        "whole": {name: sum(day[name] for day in spent["days"]) for name in ("calls", "tokens_in", "tokens_out", "cost")},
        "is_admin": "admin" in groups_of(request.user),
    }
    return render(request, "frontend/models.html", context)


@require_GET
@login_required
def policies_page(request: HttpRequest) -> HttpResponse:
    """What tools may do on this installation, in the order in which it counts."""
    _must_read(request)
    context = {"at": timezone.now(), "policies": Policy.objects.order_by("order", "id")[:POLICIES]}
    return render(request, "frontend/policies.html", context)


@require_GET
@login_required
def stuck_page(request: HttpRequest) -> HttpResponse:
    """Agents that are or were taken for stuck. `?rule=`, `?said=` and `?before=ID` narrow it down."""
    rule, said = request.GET.get("rule", "")[:RULE_LENGTH], request.GET.get("said", "")
    before = request.GET.get("before", "")
    older = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = stuck_loops(
        request.user,
        rule=rule.replace("\x00", ""),
        said=said if said in SAID else "",
        before=None if older is None else min(older, CAPACITY << 24),
    )
    context: dict[str, Any] = {
        "at": timezone.now(), **found, "rule": rule, "said": said,
        "may_label": not why_refused(request.user, None, "operate"),
    }  # fmt: skip
    return render(request, "frontend/stuck.html", context)
