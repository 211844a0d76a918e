"""Budgets for calls of language models. Admins keep them, in the system stream; a session's owner may add one of its own.

Of all budgets that apply to a call each must have room for it, so what an owner adds can only be stricter.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from django.contrib.auth import get_user_model

from agents.access.ancestry import token_key_of
from agents.access.permissions import why_refused
from agents.errors import AgentsError
from agents.minds.budgets.ledger import raise_place
from agents.minds.budgets.more import raise_of
from agents.models import Approval, Budget, Session, Token
from agents.models.budgets import PERIODS, SCOPES, WAYS
from agents.services.approvals import Effect, register_effect
from agents.streams.door import Door, door, system_stream

BUDGETS = 1_000
"""An installation has at most so many that admins keep."""
LARGEST_TOKENS = 1_000_000_000_000_000
LARGEST_MONEY = 1_000_000_000.0
FIELDS: dict[str, Any] = {
    "scope": None, "subject": None, "tokens": None, "money": None, "per": "total", "then": "stop",
}  # fmt: skip
"""What a budget says, and what it says by default; its scope must be given, and tokens or money."""
NAMING = ("user", "session")
"""Scopes of which a budget may name one."""
ADMINS_ONLY = ("installation", "user")
"""Scopes whose budgets nobody but an admin raises; those of sessions and tasks are raised by who decides there."""


class NoSuchBudget(AgentsError):
    """There is no budget {id}."""

    code = "no_such_budget"
    status = 404


class BudgetRejected(AgentsError):
    """The budget cannot be as it is described; `problems` name the fields."""

    code = "budget_rejected"


class TooManyBudgets(AgentsError):
    """The installation has as many budgets as it may have."""

    code = "too_many_budgets"
    status = 409


class NotYourBudget(AgentsError):
    """Who asks may not change or raise this budget."""

    code = "not_your_budget"
    status = 403


def budget_create(*, by: str, request_id: str = "", **fields: Any) -> Budget:
    """A new budget from the keys of FIELDS. Raises BudgetRejected, TooManyBudgets."""
    said = {**FIELDS, **fields}
    with door(system_stream(), by, request_id) as opened:
        check_budget(said)
        if is_full():
            raise TooManyBudgets(f"there are {BUDGETS:,} budgets already; delete one first")
        row = _add(opened, said)
    return Budget.objects.get(pk=row)


def budget_change(budget_id: int, *, by: str, request_id: str = "", **fields: Any) -> Budget:
    """Change what is given; what is so already is not recorded. Raises NoSuchBudget, BudgetRejected."""
    with door(system_stream(), by, request_id) as opened:
        before = _said(budget_id)
        check_budget({**before, **fields})
        _change(opened, budget_id, before, fields)
    return Budget.objects.get(pk=budget_id)


def budget_delete(budget_id: int, *, by: str, request_id: str = "") -> None:
    """What was counted stays counted. Raises NoSuchBudget."""
    with door(system_stream(), by, request_id) as opened:
        opened.turn.record("budget_deleted", delete={"budget": [budget_id]}, **_said(budget_id))


def session_budget_set(session: int, *, by: str, request_id: str = "", **fields: Any) -> Budget:
    """The one budget that its owner sets for a session, in the place of an earlier one: tokens, money and `then`.

    Raises BudgetRejected, and NotYourBudget for a token: what works in the session does not set how much it may use.
    """
    _refuse_tokens(by)
    said = {**FIELDS, "scope": "session", "subject": session, **fields}
    with door(system_stream(), by, request_id) as opened:
        check_budget(said)
        known = owned_budget(session)
        if known is None:
            row = _add(opened, said, owned=True)
        else:
            row = known.pk
            _change(opened, row, _said(row), said)
    return Budget.objects.get(pk=row)


def session_budget_clear(session: int, *, by: str, request_id: str = "") -> None:
    """Without effect where there is none. Raises NotYourBudget for a token."""
    _refuse_tokens(by)
    with door(system_stream(), by, request_id) as opened:
        if (known := owned_budget(session)) is not None:
            opened.turn.record("budget_deleted", delete={"budget": [known.pk]}, **_said(known.pk))


def owned_budget(session: int) -> Budget | None:
    """What the owner of the session has set for it."""
    return Budget.objects.filter(scope="session", subject=session, owned=True).first()


def is_full() -> bool:
    """Whether there are as many as admins may keep."""
    return Budget.objects.filter(owned=False).count() >= BUDGETS


def _add(opened: Door, said: dict[str, Any], **more: Any) -> int:
    row = {"id": opened.take(), "created_at": opened.turn.at, **said, **more}
    opened.turn.record("budget_created", add={"budget": [row]})
    return int(row["id"])


def _change(opened: Door, budget: int, before: dict[str, Any], fields: dict[str, Any]) -> None:
    changes = {field: value for field, value in fields.items() if value != before[field]}
    if changes:
        opened.turn.record("budget_changed", set={"budget": {str(budget): changes}})


def _said(budget_id: int) -> dict[str, Any]:
    found = Budget.objects.filter(pk=budget_id).values(*FIELDS).first()
    if found is None:
        raise NoSuchBudget(f"there is no budget {budget_id}")
    return found


def _refuse_tokens(by: str) -> None:
    if token_key_of(by):
        raise NotYourBudget("a session's own budget is set by its owner at a login, and by no token")


# What makes sense


def check_budget(said: dict[str, Any]) -> None:
    """Raise BudgetRejected with the place of everything that is wrong."""
    problems = problems_of(said)
    if problems:
        raise BudgetRejected("; ".join(f"{each['key']}: {each['message']}" for each in problems), problems)


def problems_of(said: dict[str, Any]) -> list[dict[str, str]]:
    """What is wrong with a budget that says `said`, a place each: {"key", "message"}."""
    found = [(field, "there is no such field") for field in said if field not in FIELDS]
    for field, words in (("scope", SCOPES), ("per", PERIODS), ("then", WAYS)):
        if said[field] not in words:
            found.append((field, f"must be one of {', '.join(words)}"))
    found.append(("subject", _subject_flaw(said["scope"], said["subject"])))
    found.append(("tokens", _amount_flaw(said["tokens"], int, LARGEST_TOKENS)))
    found.append(("money", _amount_flaw(said["money"], int | float, LARGEST_MONEY)))
    if said["tokens"] is None and said["money"] is None:
        found.append(("tokens", "give tokens or money, or both"))
    if said["scope"] in ("task", "call") and said["per"] == "day":
        found.append(("per", f"a {said['scope']} has one budget for all its time"))
    if said["scope"] == "call" and said["then"] == "ask":
        found.append(("then", "a call that is larger than its budget is stopped; there is nothing to add to"))
    return [{"key": place, "message": flaw} for place, flaw in found if flaw]


def _subject_flaw(scope: Any, subject: Any) -> str:
    if subject is None:
        return ""
    if scope not in NAMING:
        return f"a budget of one {' or '.join(NAMING)} names it; leave this empty"
    model = Session if scope == "session" else get_user_model()
    if isinstance(subject, bool) or not isinstance(subject, int) or not model.objects.filter(pk=subject).exists():
        return f"there is no {scope} {subject!r}"
    return ""


def _amount_flaw(value: Any, kinds: Any, most: float) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or not 0 <= value <= most:
        return f"must be a {'whole ' if kinds is int else ''}number from 0 to {most:,.0f}, or empty"
    return ""


# More, by a person's word


def _prepare_raise(approval: Approval) -> Effect:
    place, unit, amount = raise_of(approval.action)

    def effect(opened: Door) -> None:
        if place.scope in ADMINS_ONLY and not _is_admin(opened.turn.by):
            raise NotYourBudget(f"the budget of {place.scope} is raised by an admin only")
        raise_place(place, unit, amount)

    return effect


def _is_admin(by: str) -> bool:
    token = Token.objects.filter(token_key=token_key_of(by)).select_related("user").first() if token_key_of(by) else None
    kind, _, key = by.partition(":")
    user = token.user if token is not None else get_user_model().objects.filter(pk=key).first() if kind == "user" else None
    return user is not None and not why_refused(user, token, "govern")


register_effect("budget", _prepare_raise)
