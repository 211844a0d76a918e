"""The tables of the actor, the device agent, the tool loop and the device, and the one function that reads them.

May import: nothing.
Begin at: agents.machines.machine (rows and `step`), agents.machines.actor (the simplest table), agents.machines.tool_loop
    (the largest).
Called by: the engine, crews and models; constellations.machines has the other three tables.
"""

from agents.machines.actor import ACTOR
from agents.machines.device import DEVICE
from agents.machines.device_agent import DEVICE_AGENT
from agents.machines.machine import ANY, MACHINES, Machine, MachineError, Row, TransitionNotAllowed, register_machine, step
from agents.machines.tool_loop import TOOL_LOOP

__all__ = [
    "ACTOR", "ANY", "DEVICE", "DEVICE_AGENT", "MACHINES", "TOOL_LOOP",
    "Machine", "MachineError", "Row", "TransitionNotAllowed", "register_machine", "step",
]  # fmt: skip
