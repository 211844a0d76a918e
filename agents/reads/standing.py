"""How a session stands for who looks at it: one word for what is true of it now. Pure.

The order is that of what a person has to know first: nobody holds it, it waits for a person, it is paused, it runs, how its
last request ended. Everything that shows a session says this: REST, the lists of pages and admin, MCP, and the live view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypedDict

from agents.machines import ACTOR

OVERDUE_S: Final = 5.0
"""Seconds for which a session may wish for a runner, and have none, before that is said."""
SILENT_S: Final = 10.0
"""Seconds after which a runner that has said nothing is believed to hold nothing, as in agents.engine.leases."""
PAUSED: Final = "paused"
REVIEW: Final = "review"
"""Why nothing of a session's graph starts, as the app that knows graphs says it."""


class Standing(TypedDict):
    """`tone` is a colour of the pages; `waiting` counts what the asker may decide, `waiting_others` what only others may."""

    name: str
    word: str
    tone: str
    waiting: int
    waiting_others: int
    reason: str


class HeldLease(TypedDict):
    """Who holds a session: the runner's name, and the seconds since it was last heard from."""

    runner: str
    age_s: float


@dataclass(frozen=True, slots=True)
class WaitingApproval:
    """An approval that waits, and who proposed it: that author does not decide it."""

    id: int
    author: str = ""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a standing follows from, whoever looks. `asked_*` are of its latest interaction, empty where there was none.

    `overdue_s`: seconds since somebody should have looked at it, where no runner holds it. `held` is PAUSED, REVIEW or empty.
    `waiting` are the approvals that wait for a person.
    """

    head: int = 0
    actor_state: str = ""
    actor_reason: str = ""
    pausing: bool = False
    asked_state: str = ""
    asked_outcome: str = ""
    lease: HeldLease | None = None
    overdue_s: float = 0.0
    held: str = ""
    waiting: tuple[WaitingApproval, ...] = ()


OUTCOMES: Final = {
    "completed": ("Completed", "done"),
    "partially_failed": ("Partly failed", "held"),
    "failed": ("Failed", "failed"),
    "cancelled": ("Cancelled", "cancelled"),
}
"""Word and tone by how an interaction ended."""


def decide_standing(facts: SessionFacts, may_decide: int) -> Standing:
    """The standing for somebody who may decide so many of what waits."""
    others = len(facts.waiting) - may_decide
    name, word, tone, reason = _first_that_holds(facts, may_decide, others)
    return {"name": name, "word": word, "tone": tone, "waiting": may_decide, "waiting_others": others, "reason": reason}


def _first_that_holds(facts: SessionFacts, may_decide: int, others: int) -> tuple[str, str, str, str]:
    """(name, word, tone, reason)"""
    if silence := _why_unheld(facts):
        return "stale", "No runner", "failed", silence
    if may_decide:
        return "waiting", f"Waiting for you ({may_decide})", "held", "It goes on when you have decided what waits."
    if others:
        return "waiting_others", f"Waiting for others ({others})", "held", "What waits is for somebody else to decide."
    if facts.held == REVIEW:
        return "review", "Waiting to be started", "held", "What was planned runs once somebody starts it."
    if facts.actor_state == "paused" or facts.held == PAUSED:
        return "paused", "Paused", "held", facts.actor_reason if facts.actor_state == "paused" else "Its graph is paused."
    if facts.pausing:
        return "paused", "Pausing", "held", "It pauses when what runs has ended."
    if facts.actor_state == "running":
        return "running", "Running", "running", ""
    if facts.asked_state in ("queued", "running"):
        return "queued", "Queued", "pending", "A runner takes it up."
    return _outcome(facts)


def _why_unheld(facts: SessionFacts) -> str:
    """Why nobody is at work although there is work; empty where all is well."""
    if facts.lease is None:
        return "No runner holds this session." if facts.overdue_s > OVERDUE_S else ""
    at_work = facts.actor_state == "running" or facts.asked_state in ("queued", "running")
    if at_work and facts.lease["age_s"] > SILENT_S:
        return f"Its runner ({facts.lease['runner']}) has not been heard from."
    return ""


def _outcome(facts: SessionFacts) -> tuple[str, str, str, str]:
    """How the last request ended. That its actor ends later, by inactivity, changes nothing about that."""
    if facts.actor_state == "error":
        return "failed", "Failed", "failed", facts.actor_reason
    if facts.asked_state:
        outcome = facts.asked_outcome if facts.asked_outcome in OUTCOMES else "failed"
        return outcome, *OUTCOMES[outcome], ""
    if facts.actor_state == "cancelled":
        return "cancelled", *OUTCOMES["cancelled"], facts.actor_reason
    ended = ACTOR.is_terminal(facts.actor_state) if facts.actor_state else False
    return "idle", "Ended" if ended else "Idle", "waiting", "Nothing was asked yet."
