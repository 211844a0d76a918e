"""Machine 3, the device agent: works on one task on one device."""

from agents.machines.machine import ANY, Machine, Row, register_machine

PROCESSING_PHASES = ("DATA_COLLECTION", "LLM_INTERACTION", "ACTION_EXECUTION", "MEMORY_UPDATE")
"""The phases of one step, in order."""

DEVICE_AGENT = register_machine(
    Machine(
        name="device_agent",
        initial="CONTINUE",
        terminal=frozenset({"FINISH", "FAIL", "ERROR"}),
        rows=(
            Row("CONTINUE", "step", "CONTINUE", note="all four processing phases"),
            Row("CONTINUE", "wait", "PENDING", note="a call-back, a remote command, a user's answer; holds no worker"),
            Row("CONTINUE", "ask", "CONFIRM", note="a gated action"),
            Row("CONTINUE", "observe", "SCREENSHOT", note="observation only"),
            Row("CONTINUE", "delegate", "PENDING", note="reason `delegated`"),
            Row("CONTINUE", "finish", "FINISH"),
            Row("CONTINUE", "fail", "FAIL", note="the task cannot be done"),
            Row("PENDING", "received", "CONTINUE"),
            Row("PENDING", "failed", "CONTINUE", note="the agent decides"),
            Row("PENDING", "timeout", "FAIL", note="60 s by default, per wait"),
            Row("CONFIRM", "approved", "CONTINUE", note="the approved action, exactly it, is executed"),
            Row("CONFIRM", "rejected", "FAIL"),
            Row("CONFIRM", "expired", "FAIL"),
            Row("SCREENSHOT", "captured", "CONTINUE"),
            Row(ANY, "error", "ERROR", note="the agent itself broke"),
            Row(ANY, "cancel", "FAIL", note="reason `cancelled`"),
        ),
    )
)
