"""A call that lasts, as those of tool servers may: its agent is PENDING meanwhile, and people are asked what the call asks.

What a call tells before its end comes in `member.updates`: `waits`, that it takes its time, and `question`, with a `number`, a
`message` and the `schema` of an answer. The answer goes back to the call as `answer`, with the number of the question, an
`action` (accept, decline or cancel) and the `content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.crews.members.member import Member
from agents.gates import approvals
from agents.streams.turn import Turn

WAITS, QUESTION, ANSWER = "waits", "question", "answer"
"""Kinds of what such a call tells, and is told."""
CALL = "call"
"""What a position waits for while a call lasts."""
FORM = "elicitation"
"""Kind of the approval that a call's question is."""


def begin_to_last(member: Member, turn: Turn) -> bool:
    """Whether the call under way has told something that its agent waits for from now on."""
    if not any(kind in (WAITS, QUESTION) for kind, _ in member.updates):
        return False
    member.wait(turn, CALL, None, f"waits for {member.row['tool'] if member.row else 'its call'}")
    take_questions(member, turn)
    return True


def follow_lasting_call(member: Member, turn: Turn, now: float) -> None:
    """PENDING: until the call has ended; its questions are asked, one after the other, and answered."""
    if member.outcome is not None:
        _withdraw(member, turn, "its call has ended")
        member.updates.clear()
        member.become(turn, "received", replace(member.position, waits="", until=None))
        return
    if member.approval is not None:
        _follow_question(member, turn, member.approval, now)
    if member.approval is None:
        take_questions(member, turn)


def take_questions(member: Member, turn: Turn) -> None:
    """Ask the first question that has come, where none is open."""
    while member.updates and member.approval is None:
        kind, told = member.updates.pop(0)
        if kind == QUESTION and member.row is not None:
            asked = {"question": told["message"], "schema": told["schema"], "number": told["number"]}
            title = f"{member.row['tool']} asks: {told['message']}"
            action = {"tool": member.row["tool"], "arguments": asked}
            member.ask(turn, FORM, title, approvals.APPROVAL_S, action=action)


def _follow_question(member: Member, turn: Turn, approval: Any, now: float) -> None:
    number = approval["action"]["arguments"]["number"]
    if approval["state"] == "waiting":
        if approvals.has_expired(approval, now):
            approvals.expire_approval(turn, approval)
            _answer(member, number, "cancel")
        return
    approvals.use_approval(turn, approval)
    if approval["state"] == "approved" and approvals.is_intact(approval):
        _answer(member, number, "accept", approval["answer"])
        row = member.note(turn, kind="user", success=True, arguments={"said": approval["answer"]})
        turn.record("window_began", agent_id=member.agent["id"], add={"evidence": [row]})
    else:
        _answer(member, number, "decline")


def _answer(member: Member, number: int, action: str, content: Mapping[str, Any] | None = None) -> None:
    member.approval = None
    if member.row is not None:
        member.told.append((member.row["id"], ANSWER, {"number": number, "action": action, "content": content}))


def _withdraw(member: Member, turn: Turn, why: str) -> None:
    approval, member.approval = member.approval, None
    if approval is not None and approval["state"] == "waiting":
        approvals.withdraw_approval(turn, approval, why)
