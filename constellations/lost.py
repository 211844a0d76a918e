"""Tasks whose attempt was lost under `on_lost: ask`: they wait for a person's word (machines, section Task)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.acting import asking
from agents.tables import Fields
from agents.turns import Turn
from constellations.graph_rows import Node
from constellations.machines import TASK

if TYPE_CHECKING:
    from constellations.work import ConstellationWork

ASKS = "lost: waits for a person's word"
"""Reason of such a task, which is PENDING."""
UNDECIDED = "session_id = %s AND kind = 'lost' AND used_at IS NULL AND state IN ('waiting', 'approved', 'rejected')"


class LostTasks:
    """By the ids of the approvals that were asked for."""

    def __init__(self, work: ConstellationWork):
        self._work = work
        self._approvals: dict[int, Fields] = {}

    def load(self) -> None:
        self._approvals = {row["id"]: row for row in self._work.drive.find("approval", UNDECIDED, self._work.drive.stream)}

    def ask(self, turn: Turn, node: Node) -> None:
        """Nobody knows how the attempt ended: may there be another?"""
        row = node.row
        title = f"{row['name'] or row['task_id']}: its runner was lost. May it be tried again?"
        action = {"tool": row["tool"], "arguments": row["arguments"]}
        approval = asking.new(turn, self._work.drive.stream, row["id"], "lost", title, None, action=action)
        self._approvals[approval["id"]] = approval

    def absorb(self, data: Fields) -> None:
        for key, fields in data.get("set", {}).get("approval", {}).items():
            if int(key) in self._approvals:
                self._approvals[int(key)].update(fields)

    def decide(self, turn: Turn) -> None:
        """What follows from the decisions that have come; what nobody waits for any more is withdrawn."""
        for key, approval in list(self._approvals.items()):
            live = self._work.live
            node = None if live is None else live.ids.get(approval["subject_id"])
            asks = node is not None and node.row["state"] == "PENDING" and node.row["reason"] == ASKS
            if node is not None and asks and approval["state"] == "waiting":
                continue
            del self._approvals[key]
            if node is None or not asks:
                asking.withdraw(turn, approval, "the task does not wait any more")
            else:
                self._follow(turn, node, approval)

    def withdraw(self, turn: Turn) -> None:
        """The work has ended."""
        for approval in self._approvals.values():
            asking.withdraw(turn, approval, "the task does not wait any more")
        self._approvals.clear()

    def _follow(self, turn: Turn, node: Node, approval: Fields) -> None:
        asking.use(turn, approval)
        by = approval["decided_by"]
        if approval["state"] == "approved":
            turn.record("task_released", by=by, task_id=node.key, set={"task": {str(node.row["id"]): {"reason": ""}}})
            node.row["reason"] = ""
            self._work.dispatch.ready(node)
        else:
            turn.transition(TASK, "task", node.row, "cancel", reason="cancelled: rejected", by=by, ended_at=turn.at)
            assert self._work.live is not None
            self._work.live.ended(turn, node)
