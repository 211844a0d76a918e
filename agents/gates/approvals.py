"""Approvals from the agents' side: asked for, used once, expired, withdrawn. Deciding is in `agents.services.approvals`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.clock import from_iso, to_iso
from agents.gates.policies import action_digest
from agents.streams.row_types import ApprovalRow
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn

TITLE = 500
"""Characters."""
APPROVAL_S = 24 * 3600.0
"""An approval that nobody decides expires after a day, as a paused actor does."""
WAIT_S = 60.0
"""Any other wait, unless it says otherwise (docs/machines.md, "3. Device agent")."""


def open_approval(
    turn: Turn, session: int, subject: int, kind: str, title: str, seconds: float | None, *,
    agent: int | None = None, action: Mapping[str, Any] | None = None, observed: Any = None, options: Sequence[str] = (),
) -> ApprovalRow:  # fmt: skip
    """A row that waits for a decision, recorded. A question that is longer than a title is whole in the action."""
    if kind == "question" and len(title) > TITLE and action is None:
        action = {"tool": "ask", "arguments": {"question": title}}
    row: ApprovalRow = TABLES["approval"].whole(
        {
            "id": turn.take(), "session_id": session, "agent_id": agent, "kind": kind, "subject_id": subject,
            "title": title if len(title) <= TITLE else f"{title[: TITLE - 1]}…", "action": dict(action or {}),
            "digest": action_digest(action) if action else "", "observed": observed, "options": list(options),
            "asked_at": turn.at, "expires_at": None if seconds is None else to_iso(turn.ts + seconds),
        }
    )  # fmt: skip
    turn.record("approval_asked", add={"approval": [TABLES["approval"].told(row)]})
    return row


def has_expired(approval: ApprovalRow, now: float) -> bool:
    at = approval["expires_at"]
    return approval["state"] == "waiting" and at is not None and from_iso(at) <= now


def use_approval(turn: Turn, approval: ApprovalRow) -> None:
    """The agent acts on it: it is good for nothing more."""
    _set(turn, "approval_used", approval, used_at=turn.at)


def expire_approval(turn: Turn, approval: ApprovalRow) -> None:
    _set(turn, "approval_expired", approval, state="expired", decided_at=turn.at)


def withdraw_approval(turn: Turn, approval: ApprovalRow, reason: str) -> None:
    """Whoever asked has ended."""
    _set(turn, "approval_withdrawn", approval, state="withdrawn", decided_at=turn.at, reason=reason[:TITLE])


def _set(turn: Turn, event: str, approval: ApprovalRow, **fields: Any) -> None:
    about: Fields = {"approval_id": approval["id"], "kind": approval["kind"], "title": approval["title"]}
    turn.record(event, set={"approval": {str(approval["id"]): fields}}, **about)
    approval.update(fields)  # type: ignore[typeddict-item]


def is_intact(approval: ApprovalRow) -> bool:
    """Whether what was approved is what would be done."""
    return approval["digest"] == action_digest(approval["action"])
