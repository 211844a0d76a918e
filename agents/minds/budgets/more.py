"""When a budget is used up and says "ask": the approval that names the amount, and what approving it adds.

Approving raises all budgets of the place by the amount (`Spending.raised_*`); a day's are raised for that day. It is done in
the commit of the decision (agents.services.budgets), so an agent that sees it approved just asks its model again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.gates.approvals import APPROVAL_S, open_approval
from agents.minds.budgets.places import Place, say_amount, say_place
from agents.streams.row_types import ApprovalRow
from agents.streams.turn import Turn

KIND = "budget"
ASKED = "raise_budget"
"""The word in the place of a tool in the approval's action."""
PART_MORE = 2
"""A part of the budget, one in so many, that is asked for at least: else the next call would ask again."""


def asks(facts: Mapping[str, Any] | None) -> bool:
    """Whether a call that failed so, by the `budget` of its result, is to be asked about; else it is a hard stop."""
    return facts is not None and facts["then"] == "ask"


def open_budget_approval(
    turn: Turn, session: int, subject: int, facts: Mapping[str, Any], *, agent: int | None = None,
    seconds: float | None = APPROVAL_S,
) -> ApprovalRow:  # fmt: skip
    """Ask people for more, recorded. `facts` are the `budget` of the failed outcome's result, `subject` is a task's row."""
    return open_approval(
        turn, session, subject, KIND, describe_request(facts), seconds, agent=agent, action=request_of(facts)
    )  # fmt: skip


def amount_of(facts: Mapping[str, Any]) -> int:
    """What is asked for: what the call lacks, and at least a part of the budget."""
    return max(int(facts["needed"]) - int(facts["left"]), int(facts["bound"]) // PART_MORE)


def describe_request(facts: Mapping[str, Any]) -> str:
    """In words, with the amount."""
    unit = facts["unit"]
    more, bound, needed, left = (
        say_amount(unit, amount) for amount in (amount_of(facts), facts["bound"], facts["needed"], facts["left"])
    )
    return f"Let {say_place(facts)} use {more} more than its {bound}? The next call may need {needed}, and {left} are left."


def request_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The approval's action."""
    asked = {name: facts[name] for name in ("budget", "scope", "key", "period", "unit")}
    return {"tool": ASKED, "arguments": {**asked, "amount": amount_of(facts)}}


def raise_of(action: Mapping[str, Any]) -> tuple[Place, str, int]:
    """What an approval's action raises: (the place, "tokens" or "micros", by how much)."""
    asked = action["arguments"]
    return Place(asked["scope"], asked["key"], asked["period"]), asked["unit"], asked["amount"]
