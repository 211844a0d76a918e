"""Machine 2, the constellation agent: plans and replans."""

from agents.machines import ANY, Machine, Row, register_machine

CONSTELLATION_AGENT = register_machine(
    Machine(
        name="constellation_agent",
        initial="START",
        terminal=frozenset({"FINISH", "FAIL"}),
        rows=(
            Row("START", "created", "CONTINUE", note="constellation built and valid, orchestration begun"),
            Row("START", "creation_failed", "FAIL", note="planner error, cycle, nothing created"),
            Row("CONTINUE", "edited", "CONTINUE", note="one editing session over all events that wait"),
            Row("CONTINUE", "finished", "FINISH", note="all done and the planner has no more edits"),
            Row("CONTINUE", "failed", "FAIL", note="critical error, or a limit that it names"),
            Row("CONTINUE", "restart", "START", note="the open constellation is CANCELLED, reason `restarted`"),
            Row(ANY, "cancel", "FAIL", note="reason `cancelled`"),
        ),
    )
)
