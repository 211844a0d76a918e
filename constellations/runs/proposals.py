"""Edits that wait for a person, as the runner of their constellation keeps them: they expire, and end with the work."""

from __future__ import annotations

from typing import cast

from agents.clock import from_iso
from agents.gates.approvals import expire_approval, withdraw_approval
from agents.streams.row_types import ApprovalRow
from agents.streams.tables import Fields, fold_rows
from agents.streams.turn import Turn
from constellations.runs.context import Context
from constellations.services.proposals import KIND

UNDECIDED = "session_id = %s AND kind = 'edit' AND subject_id = %s AND state = 'waiting'"


class Proposals:
    """The proposals that wait for one constellation at work, by their ids, in the memory of its runner."""

    def __init__(self, context: Context):
        self._context = context
        self._waiting: dict[int, ApprovalRow] = {}

    def load(self) -> None:
        found: list[ApprovalRow] = fold_rows("approval", UNDECIDED, self._context.stream, self._context.constellation["id"])
        self._waiting = {row["id"]: row for row in found}

    def apply_foreign(self, data: Fields) -> None:
        """Take up what was proposed and decided meanwhile."""
        for row in data.get("add", {}).get("approval", ()):
            if row["kind"] == KIND and row["subject_id"] == self._context.constellation.get("id"):
                self._waiting[row["id"]] = cast(ApprovalRow, dict(row))
        for key, fields in data.get("set", {}).get("approval", {}).items():
            if fields.get("state", "waiting") != "waiting":
                self._waiting.pop(int(key), None)

    def wake_at(self) -> float | None:
        """When the first of them expires, in seconds since 1970."""
        return min((_expiry(row) for row in self._waiting.values()), default=None)

    def expire(self, turn: Turn) -> None:
        """Those whose time is over."""
        for row in [row for row in self._waiting.values() if _expiry(row) <= turn.ts]:
            expire_approval(turn, row)
            del self._waiting[row["id"]]

    def withdraw(self, turn: Turn) -> None:
        """The work has ended: nothing in it is edited any more."""
        for row in self._waiting.values():
            withdraw_approval(turn, row, "the constellation has ended")
        self._waiting.clear()


def _expiry(proposal: ApprovalRow) -> float:
    """In seconds since 1970: no proposal waits for ever."""
    return from_iso(proposal["expires_at"])  # type: ignore[arg-type]
