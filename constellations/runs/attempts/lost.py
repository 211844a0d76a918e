"""Tasks whose attempt was lost under `on_lost: ask`: they wait for a person's word (docs/machines.md, "5. Task")."""

from __future__ import annotations

from agents.clock import from_iso
from agents.gates import approvals
from agents.streams.row_types import ApprovalRow
from agents.streams.tables import Fields, fold_rows
from agents.streams.turn import Turn
from constellations.live.row_types import AttemptRow, TaskRow
from constellations.live.rows import Node
from constellations.machines import TASK
from constellations.runs.context import Context

ASKS = "lost: waits for a person's word"
"""Reason of such a task, which is PENDING, or WAITING_DEPENDENCY after an edit."""
REFUSED = {"rejected": "another attempt was not allowed", "expired": "nobody said in time whether it may be tried again"}
"""What the error of a task says, by what became of its approval."""
KILLED_AT_MOST = 4
"""Attempts of one task in a row whose command was ended from outside while its runner lived: it may well do that to itself."""
UNDECIDED = "session_id = %s AND kind = 'lost' AND used_at IS NULL AND state IN ('waiting', 'approved', 'rejected')"


class LostTasks:
    """The approvals that such tasks wait for, by their ids."""

    def __init__(self, context: Context):
        self._context = context
        self._approvals: dict[int, ApprovalRow] = {}

    def load(self) -> None:
        self._approvals = {row["id"]: row for row in fold_rows("approval", UNDECIDED, self._context.stream)}

    def ask(self, turn: Turn, node: Node) -> None:
        """Nobody knows how the attempt ended: may there be another?"""
        row = node.row
        title = f"{row['name'] or row['task_id']}: its runner was lost. May it be tried again?"
        action = {"tool": row["tool"], "arguments": row["arguments"]}
        approval = approvals.open_approval(
            turn, self._context.stream, row["id"], "lost", title, approvals.APPROVAL_S, action=action
        )
        self._approvals[approval["id"]] = approval

    def apply_foreign(self, data: Fields) -> None:
        for key, fields in data.get("set", {}).get("approval", {}).items():
            if int(key) in self._approvals:
                self._approvals[int(key)].update(fields)

    def wake_at(self) -> float | None:
        """When the first of them expires, in seconds since 1970."""
        ends = [row["expires_at"] for row in self._approvals.values() if row["state"] == "waiting"]
        return min((from_iso(at) for at in ends if at is not None), default=None)

    def decide(self, turn: Turn) -> list[Node]:
        """What follows from the decisions that have come, or not in time; what nobody waits for any more is withdrawn.

        Returns the tasks that may be tried again and are ready; others that may still wait for what they depend on.
        """
        released: list[Node] = []
        for key, approval in list(self._approvals.items()):
            node = self._context.graph.ids.get(approval["subject_id"])
            asks = node is not None and node.row["state"] in ("PENDING", "WAITING_DEPENDENCY") and node.row["reason"] == ASKS
            if asks and approvals.has_expired(approval, turn.ts):
                approvals.expire_approval(turn, approval)
            if asks and approval["state"] == "waiting":
                continue
            del self._approvals[key]
            if node is None or not asks:
                approvals.withdraw_approval(turn, approval, "the task does not wait any more")
            elif self._follow(turn, node, approval) and node.row["state"] == "PENDING":
                released.append(node)
        return released

    def withdraw(self, turn: Turn) -> None:
        """The work has ended."""
        for approval in self._approvals.values():
            approvals.withdraw_approval(turn, approval, "the task does not wait any more")
        self._approvals.clear()

    def _follow(self, turn: Turn, node: Node, approval: ApprovalRow) -> bool:
        """Whether a task may be tried again; any other has FAILED, because nobody knows how it ended."""
        if approval["state"] != "expired":
            approvals.use_approval(turn, approval)
        by = approval["decided_by"]
        if approval["state"] == "approved":
            turn.record("task_released", by=by, task_id=node.key, set={"task": {str(node.row["id"]): {"reason": ""}}})
            node.row["reason"] = ""
            return True
        graph = self._context.graph
        error = f"{node.row['error']}; {REFUSED[approval['state']]}"
        turn.transition(TASK, "task", node.row, approval["state"], reason="lost", by=by, error=error, **graph.end_fields(turn))
        graph.ended(turn, node)
        return False


def killed_too_often(row: TaskRow) -> bool:
    """Whether a command that was just ended from outside is not tried again: the attempts before it ended so, too.

    Those that were lost with their runner have no exit code; they are as many as runners die.
    """
    first = max(row["attempts_before"], row["attempt"] - KILLED_AT_MOST)
    before: list[AttemptRow] = fold_rows(
        "attempt", "task_id = %s AND number > %s AND number < %s", row["id"], first, row["attempt"]
    )
    killed = [attempt for attempt in before if attempt["outcome"] == "lost" and attempt["exit_code"] is not None]
    return len(killed) == KILLED_AT_MOST - 1
