"""What people have chosen about models for a constellation, in its plan and in the request. Pure."""

from __future__ import annotations

from agents.llm.choices import REVIEW
from agents.streams.tables import Fields
from constellations.plan.plan import Plan


def chosen_models(plan: Plan, payload: Fields) -> dict[str, str]:
    """Names of model profiles by purpose: those of the request, else those of the plan."""
    return {**plan.models, **payload.get("models", {})}


def waits_for_review(plan: Plan, payload: Fields) -> bool:
    """Whether the constellation stays READY until a person starts it, as its plan or its request says."""
    return REVIEW in (plan.start, payload.get("start"))
