"""Machine 7, the device: whether it can be reached, and whether it takes work. Idle and busy are computed from its slots."""

from agents.machines.machine import Machine, Row, register_machine

DEVICE = register_machine(
    Machine(
        name="device",
        initial="disconnected",
        terminal=frozenset({"retired"}),
        rows=(
            Row("disconnected", "dial", "connecting", note="a remote client dials in; any other is started by its host"),
            Row("connecting", "accepted", "connected", note="handshake: version, token, facts, tools"),
            Row("connecting", "refused", "disconnected", note="the reason says what was wrong"),
            Row("connecting", "timeout", "disconnected"),
            Row("connecting", "disconnect", "disconnected", note="a person takes it offline"),
            Row("connected", "lost", "disconnected", note="3 heartbeats missing, or its host is gone: tasks follow on_lost"),
            Row("draining", "lost", "disconnected", note="the same"),
            Row("connected", "disconnect", "disconnected", note="a person takes it offline: tasks follow on_lost"),
            Row("draining", "disconnect", "disconnected", note="the same"),
            Row("connected", "drain", "draining", note="nothing new; what runs ends"),
            Row("draining", "undrain", "connected"),
            Row("connected", "fault", "failed", note="protocol violation, failed self-check, tools changed against their pin"),
            Row("draining", "fault", "failed", note="the same"),
            Row("connecting", "fault", "failed", note="the same, at the handshake"),
            Row("failed", "reset", "disconnected", note="by a person"),
            Row("disconnected", "retire", "retired", note="when nothing refers to it as running"),
            Row("failed", "retire", "retired", note="the same"),
        ),
    )
)
