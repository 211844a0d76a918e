"""The state machines of those who act. Task and constellation machines live in `constellations.machines`."""

from agents.machines.actor import ACTOR
from agents.machines.device_agent import DEVICE_AGENT
from agents.machines.machine import (
    ANY,
    MACHINES,
    Machine,
    MachineError,
    Row,
    TransitionNotAllowed,
    register,
    step,
)
from agents.machines.tool_loop import TOOL_LOOP

__all__ = [
    "ACTOR", "ANY", "DEVICE_AGENT", "MACHINES", "TOOL_LOOP",
    "Machine", "MachineError", "Row", "TransitionNotAllowed", "register", "step",
]  # fmt: skip
