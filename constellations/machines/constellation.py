"""Machine 6, the constellation: a graph of tasks as a whole."""

from agents.machines import ANY, Machine, Row, register_machine

CLOSED = ("COMPLETED", "PARTIALLY_FAILED", "FAILED")
VERDICTS = ("all_done", "some_failed", "none_completed")
"""How a close ends, in the order of CLOSED; `constellations.live.verdict` says which it is."""
GIVEN_UP = "given_up"
"""The verdict where a replan rule ends the run badly, or a limit of replanning is reached, whatever has become of its tasks."""

CONSTELLATION = register_machine(
    Machine(
        name="constellation",
        initial="CREATED",
        terminal=frozenset({"CANCELLED"}),
        facts={"verdict": (*VERDICTS, GIVEN_UP)},
        rows=(
            Row("CREATED", "validated", "READY"),
            Row("READY", "start", "EXECUTING"),
            Row("READY", "pause", "PAUSED", note="nothing starts; what runs ends"),
            Row("EXECUTING", "pause", "PAUSED"),
            Row("PAUSED", "resume", "EXECUTING"),
            *(
                Row("EXECUTING", "close", state, guard={"verdict": verdict})
                for verdict, state in zip(VERDICTS, CLOSED, strict=True)
            ),
            Row(
                "EXECUTING", "close", "FAILED", guard={"verdict": GIVEN_UP}, note="a replan rule or a limit ends the run badly"
            ),
            *(Row(state, "reopen", "EXECUTING", note="a retry, or an edit that adds work") for state in CLOSED),
            Row(ANY, "cancel", "CANCELLED"),
        ),
    )
)
