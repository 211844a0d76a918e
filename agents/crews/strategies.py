"""The four processing phases of a device agent's step, as pipes of small strategies registered by platform.

A strategy moves the tool loop on from the states it knows and leaves all others alone, so a pipe can be entered anew at any
time: after a crash, a pause, an approval. It returns False where the agent has to wait.
"""

from __future__ import annotations

from collections.abc import Callable

from agents.crews.answer import answer, note_resources, prompt
from agents.crews.check import check_progress, remember
from agents.crews.member import Member
from agents.crews.permit import perform, permit
from agents.crews.recover import recover
from agents.machines.device_agent import PROCESSING_PHASES
from agents.streams.turn import Turn

Strategy = Callable[[Member, Turn, float], bool]
Pipe = dict[str, tuple[Strategy, ...]]
PIPES: dict[str, Pipe] = {}


def register(platform: str, pipe: Pipe) -> None:
    """The pipe of a platform; raises ValueError for one that leaves a processing phase out."""
    if tuple(pipe) != PROCESSING_PHASES:
        raise ValueError(f"the pipe of {platform} must have the phases {', '.join(PROCESSING_PHASES)}, in this order")
    PIPES[platform] = pipe


SHELL: Pipe = {
    "DATA_COLLECTION": (note_resources,),
    "LLM_INTERACTION": (prompt, answer),
    "ACTION_EXECUTION": (note_resources, permit, perform),
    "MEMORY_UPDATE": (remember, check_progress, recover),
}
register("shell", SHELL)
