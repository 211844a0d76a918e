"""Machine 1, the actor: one incarnation of a session."""

from agents.machines.machine import ANY, Machine, Row, register_machine

ACTOR = register_machine(
    Machine(
        name="actor",
        initial="created",
        terminal=frozenset({"completed", "error", "cancelled"}),
        facts={"success": (True, False)},
        rows=(
            Row("created", "Spawned", "idle", note="`created` is internal: the row exists, nobody owns it yet"),
            Row("idle", "ProcessInteraction", "running"),
            Row("idle", "Pause", "paused"),
            Row("idle", "InactivityTimeout", "completed", note="reason `inactivity`"),
            Row("running", "InteractionComplete", "idle", guard={"success": True}),
            Row("running", "InteractionComplete", "error", guard={"success": False}, note="a fault of the agent itself"),
            Row("running", "Pause", "paused", note="cooperative: the tool call in flight ends first"),
            Row("paused", "ProcessInteraction", "idle", note="only one sent after the pause; it is dispatched again at once"),
            Row("paused", "Resume", "idle", note="with work left over it goes on to running"),
            Row("paused", "InactivityTimeout", "completed", note="its own limit, 24 h"),
            Row(ANY, "Fault", "error", note="unrecoverable faults of the actor itself only"),
            Row(ANY, "Cancel", "cancelled", note="needs a reason; in a terminal state a no-op"),
        ),
    )
)
