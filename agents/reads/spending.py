"""What language models were used for and what it cost, over days, users, sessions and profiles. Every read is bounded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Avg, Count, Q, Sum
from django.utils import timezone

from agents.access.permissions import groups_of
from agents.minds.budgets.places import MICROS
from agents.models import ModelCall, Session, Spending

DAYS = 30
PLACES_SHOWN = 20
"""Sessions and users of the table, the dearest first."""
CALLS_READ = 20_000
"""The latest calls, of which the table of profiles is made."""


def spending_overview(user: Any) -> dict[str, Any]:
    """{"days", "sessions", "users", "profiles", "calls_read"}.

    Admins see the whole installation; anybody else their own days, sessions and calls.
    """
    everything = "admin" in groups_of(user)
    visible = Session.objects.visible_to(user)
    return {
        "days": _days("installation" if everything else "user", 0 if everything else user.pk),
        "sessions": _of_sessions(visible),
        "users": _of_users() if everything else [],
        "profiles": _of_profiles(None if everything else visible),
        "calls_read": CALLS_READ,
    }


def _days(scope: str, key: int) -> list[dict[str, Any]]:
    """The last DAYS days, oldest first, those without a call too."""
    today = timezone.now().date()
    wanted = [f"{today - timedelta(days=back):%Y-%m-%d}" for back in range(DAYS - 1, -1, -1)]
    found = {row.period: row for row in Spending.objects.filter(scope=scope, key=key, period__in=wanted)}
    return [{"day": day, **_figures(found.get(day))} for day in wanted]


def _of_sessions(visible: Any) -> list[dict[str, Any]]:
    rows = Spending.objects.filter(scope="session", period="", key__in=visible.values("pk"))
    shown = list(rows.order_by("-micros", "-output_tokens")[:PLACES_SHOWN])
    titles = {row.pk: str(row) for row in Session.objects.filter(pk__in=[row.key for row in shown])}
    return [{"session": row.key, "title": titles[row.key], **_figures(row)} for row in shown if row.key in titles]


def _of_users() -> list[dict[str, Any]]:
    shown = list(Spending.objects.filter(scope="user", period="").order_by("-micros", "-output_tokens")[:PLACES_SHOWN])
    names = dict(get_user_model().objects.filter(pk__in=[row.key for row in shown]).values_list("pk", "username"))
    return [{"user": names.get(row.key, str(row.key)), **_figures(row)} for row in shown]


def _of_profiles(visible: Any) -> list[dict[str, Any]]:
    """By profile and purpose of the latest calls: how many, how many failed, tokens, cost, and seconds on average."""
    calls = ModelCall.objects.all() if visible is None else ModelCall.objects.filter(session__in=visible)
    latest = calls.order_by("-id").values("pk")[:CALLS_READ]
    found = ModelCall.objects.filter(pk__in=latest).order_by().values("profile", "purpose").annotate(
        calls=Count("pk"), failed=Count("pk", filter=~Q(error_kind="")), tokens_in=Sum("input_tokens"),
        tokens_out=Sum("output_tokens"), cost=Sum("cost"), seconds=Avg("call_s"),
    )  # fmt: skip
    return sorted(map(dict, found), key=lambda row: (-(row["cost"] or 0), -row["calls"]))


def _figures(row: Spending | None) -> dict[str, Any]:
    if row is None:
        return {"calls": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0}
    return {
        "calls": row.calls, "tokens_in": row.input_tokens, "tokens_out": row.output_tokens, "cost": row.micros / MICROS,
    }  # fmt: skip
