"""Machine 4, the tool loop: prompt, answer, tool, progress."""

from agents.machines.machine import ANY, Machine, Row, register_machine

WORKING = (
    "ProcessingPrompt", "StreamingResponse", "ExecutingTool", "AwaitingPermission",
    "ProgressCheck", "ErrorRecovery", "PhaseTransition",
)  # fmt: skip
"""States in which the loop works and may run short of resources."""


def _rows(sources: str, **targets: str) -> tuple[Row, ...]:
    return tuple(Row(source, event, target) for source in sources.split() for event, target in targets.items())


TOOL_LOOP = register_machine(
    Machine(
        name="tool_loop",
        initial="Idle",
        terminal=frozenset({"Halted"}),
        facts={"left": WORKING},
        rows=(
            *_rows("Idle", prompt="ProcessingPrompt"),
            *_rows("Idle ProgressCheck PhaseTransition", start_phase="PhaseTransition"),
            *_rows("ProcessingPrompt", responding="StreamingResponse", reprompt="ProcessingPrompt"),
            *_rows("ProcessingPrompt StreamingResponse ExecutingTool", fault="ErrorRecovery"),
            *_rows(
                "StreamingResponse",
                tool_allowed="ExecutingTool", tool_asks="AwaitingPermission", tool_denied="ProgressCheck",
                said="ProgressCheck", done="Idle",
            ),
            *_rows("AwaitingPermission", approved="ExecutingTool", denied="StreamingResponse", expired="Idle"),
            *_rows("ExecutingTool", returned="ProgressCheck", streamed="StreamingResponse"),
            *_rows(
                "ProgressCheck",
                progress="StreamingResponse", next_call="ExecutingTool", phase_done="PhaseTransition",
                done="Idle", stuck="ErrorRecovery",
            ),
            *_rows(
                "ErrorRecovery",
                steer="StreamingResponse", retry="ExecutingTool", check="ProgressCheck", give_up="Idle",
            ),
            *_rows("PhaseTransition", phase_started="ProcessingPrompt", check="ProgressCheck", all_done="Idle"),
            *(Row(state, "resources_low", "ResourcePaused", note="remembers where from") for state in WORKING),
            *(Row("ResourcePaused", "resources_ok", state, guard={"left": state}) for state in WORKING),
            Row("ResourcePaused", "give_up", "Idle"),
            Row(ANY, "halt", "Halted", note="stuck again, or cancelled"),
        ),
    )
)  # fmt: skip
