"""What people have chosen about models for a constellation: in plan, request, session and installation."""

from __future__ import annotations

from django.conf import settings

from agents.llm.choices import REVIEW
from agents.streams.row_types import SessionRow
from agents.streams.tables import Fields
from constellations.plan.plan import Plan


def chosen_models(plan: Plan, payload: Fields) -> dict[str, str]:
    """Names of model profiles by purpose: those of the request, else those of the plan."""
    return {**plan.models, **payload.get("models", {})}


def waits_for_review(plan: Plan, payload: Fields) -> bool:
    """Whether the constellation stays READY until a person starts it, as its plan or its request says."""
    return REVIEW in (plan.start, payload.get("start"))


def start_of_model_plan(session: SessionRow, payload: Fields) -> str:
    """`start` of a plan that a model has made: here the session and the installation have a say, too."""
    return REVIEW if REVIEW in (payload.get("start"), session.get("start"), settings.START) else ""
