"""Machine 5, the task: one node of a constellation.

CANCELLED stands for two things, told apart by the fact `skipped`: a task that could never start (skipped, may be revived
by an edit) and one that was cancelled (leaves only by `retry`).
"""

from agents.machines import Machine, Row, register_machine

OPEN = ("WAITING_DEPENDENCY", "PENDING", "RUNNING")
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
CANCELLED_BY = "cancelled by"
"""What the reason of a task begins with that somebody has cancelled, or skipped, on purpose,"""
WITH_THE_RUN = "cancelled: "
"""and that of one which was open when its whole run ended."""

TASK = register_machine(
    Machine(
        name="task",
        initial="WAITING_DEPENDENCY",
        terminal=frozenset({"COMPLETED"}),
        facts={
            "attempts_left": (True, False),
            "on_lost": ("retry", "fail", "ask"),
            "skipped": (True, False),
            "unmet": (True, False),
        },
        rows=(
            Row("WAITING_DEPENDENCY", "ready", "PENDING", note="an upstream end, or an edit"),
            Row("PENDING", "blocked", "WAITING_DEPENDENCY", note="an edit"),
            Row("PENDING", "start", "RUNNING", note="slot, attempt + 1, version, fence: one commit"),
            Row("RUNNING", "succeed", "COMPLETED", effects=("free_slot",)),
            Row("RUNNING", "fail", "PENDING", guard={"attempts_left": True}, effects=("free_slot",), note="with a wake-up"),
            Row("RUNNING", "fail", "FAILED", guard={"attempts_left": False}, effects=("free_slot",)),
            Row("RUNNING", "lost", "PENDING", guard={"on_lost": "retry"}, effects=("free_slot",)),
            Row("RUNNING", "lost", "FAILED", guard={"on_lost": "fail"}, effects=("free_slot",)),
            Row("RUNNING", "lost", "PENDING", guard={"on_lost": "ask"}, effects=("free_slot",), note="behind an approval"),
            Row("PENDING", "deadline", "FAILED", note="reason `deadline`; rules for failures fire"),
            Row("WAITING_DEPENDENCY", "deadline", "FAILED"),
            Row("RUNNING", "deadline", "FAILED", effects=("kill", "free_slot")),
            *(
                Row(state, event, "FAILED", note="a lost attempt is not repeated; reason `lost`")
                for event in ("rejected", "expired")
                for state in ("PENDING", "WAITING_DEPENDENCY")
            ),
            Row("PENDING", "skip", "CANCELLED", note="reason `skipped` and the dependency that decided it"),
            Row("WAITING_DEPENDENCY", "skip", "CANCELLED"),
            Row("PENDING", "cancel", "CANCELLED", note="reason `cancelled`"),
            Row("WAITING_DEPENDENCY", "cancel", "CANCELLED"),
            Row("RUNNING", "cancel", "CANCELLED", effects=("kill", "free_slot")),
            Row("CANCELLED", "revive", "WAITING_DEPENDENCY", guard={"skipped": True}, note="by an edit"),
            *(
                Row(state, "retry", target, guard={"unmet": unmet}, note="by a person or the planner; attempts begin again")
                for state in ("FAILED", "CANCELLED")
                for unmet, target in ((False, "PENDING"), (True, "WAITING_DEPENDENCY"))
            ),
        ),
    )
)
