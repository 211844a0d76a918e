"""What language models were asked and what it cost. Every read goes by a key or a bounded list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from agents import ids
from agents.minds.budgets.places import MICROS
from agents.models import Agent, Budget, ModelCall, Spending

NOTHING: dict[str, Any] = {
    "tokens_in": 0, "tokens_out": 0, "cached": 0, "cost": 0.0, "unpriced_tokens": 0, "unknown_calls": 0, "unknown_tokens": 0,
    "open_tokens": 0,
}  # fmt: skip
"""What nothing has cost. `cost` is of what has prices, `unpriced_tokens` are of what has none."""


def cost_of_place(scope: str, key: int, period: str = "") -> dict[str, Any]:
    """Of a session with all that was started from it, a user, a task, or the installation (key 0); as NOTHING.

    `period` is empty for ever, or a day as 2026-11-22 (not of tasks).
    """
    row = Spending.objects.filter(scope=scope, key=key, period=period).first()
    return dict(NOTHING) if row is None else _cost_of(row)


def _cost_of(row: Spending) -> dict[str, Any]:
    return {
        "tokens_in": row.input_tokens, "tokens_out": row.output_tokens, "cached": row.cached_tokens,
        "cost": row.micros / MICROS, "unpriced_tokens": row.unpriced_tokens, "unknown_calls": row.unknown_calls,
        "unknown_tokens": row.unknown_tokens, "open_tokens": row.open_tokens,
    }  # fmt: skip


def cost_of_agent(agent: Agent) -> dict[str, Any]:
    """Of the agent's own calls, by their rows: of tries that failed before an answer nothing is in it."""
    told, ended, unpriced = Q(input_tokens__isnull=False), Q(ended_at__isnull=False), Q(cost__isnull=True)
    found = calls_of(agent.session_id).filter(agent=agent.pk).aggregate(
        tokens_in=Sum("input_tokens"), tokens_out=Sum("output_tokens"), cached=Sum("cached_tokens"), priced=Sum("cost"),
        unpriced_in=Sum("input_tokens", filter=unpriced), unpriced_out=Sum("output_tokens", filter=unpriced),
        unknown_calls=Count("id", filter=ended & ~told), unknown_tokens=Sum("reserved_tokens", filter=ended & ~told),
        open_tokens=Sum("reserved_tokens", filter=~ended),
    )  # fmt: skip
    whole = {name: value or 0 for name, value in found.items()}
    whole["unpriced_tokens"] = whole.pop("unpriced_in") + whole.pop("unpriced_out")
    whole["cost"] = float(whole.pop("priced"))
    return whole


def calls_of(session: int) -> QuerySet[ModelCall]:
    """All calls of a session, by the range of its keys."""
    low, high = ids.row_range(session)
    return ModelCall.objects.filter(id__gte=low, id__lt=high)


def with_used(rows: Sequence[Budget]) -> Sequence[Budget]:
    """The budgets, each with `used`: {tokens, money, raised_tokens, raised_money} that count for it until now.

    What is unknown and open is in it. One for each user, session or task has no such sum: None.
    """
    day = f"{timezone.now():%Y-%m-%d}"
    places = {
        row.pk: (row.scope, row.subject or 0, day if row.per == "day" else "")
        for row in rows
        if row.scope == "installation" or row.subject is not None
    }
    wanted = Q(pk__in=[])
    for scope, key, period in set(places.values()):
        wanted |= Q(scope=scope, key=key, period=period)
    found = {(row.scope, row.key, row.period): row for row in Spending.objects.filter(wanted)} if places else {}
    for row in rows:
        row.used = _used(found.get(places[row.pk])) if row.pk in places else None  # type: ignore[attr-defined]
    return rows


def _used(row: Spending | None) -> dict[str, Any]:
    if row is None:
        return {"tokens": 0, "money": 0.0, "raised_tokens": 0, "raised_money": 0.0}
    return {
        "tokens": row.input_tokens + row.output_tokens + row.open_tokens + row.unknown_tokens,
        "money": (row.micros + row.open_micros + row.unknown_micros) / MICROS,
        "raised_tokens": row.raised_tokens, "raised_money": row.raised_micros / MICROS,
    }  # fmt: skip
