"""The four processing phases of a device agent's step, as pipes of small strategies registered by platform.

A strategy moves the tool loop on from the states it knows and leaves all others alone, so a pipe can be entered anew at any
time: after a crash, a pause, an approval. It returns False where the agent has to wait.
"""

from __future__ import annotations

from collections.abc import Callable

from agents.crews.answer import answer_prompt, note_resources, prompt_agent
from agents.crews.check import check_progress, remember_end
from agents.crews.members.member import Member
from agents.crews.permit import permit_call, wait_for_call
from agents.crews.recover import recover_agent
from agents.crews.think import ask_mind, do_as_wanted, prompt_mind
from agents.machines.device_agent import PROCESSING_PHASES
from agents.streams.turn import Turn

Strategy = Callable[[Member, Turn, float], bool]
Pipe = dict[str, tuple[Strategy, ...]]
PIPES: dict[str, Pipe] = {}
MINDS: dict[str, Pipe] = {}
"""Of agents with a model."""


def register_pipe(platform: str, pipe: Pipe, pipes: dict[str, Pipe] = PIPES) -> None:
    """The pipe of a platform; raises ValueError for one that leaves a processing phase out."""
    if tuple(pipe) != PROCESSING_PHASES:
        raise ValueError(f"the pipe of {platform} must have the phases {', '.join(PROCESSING_PHASES)}, in this order")
    pipes[platform] = pipe


SHELL: Pipe = {
    "DATA_COLLECTION": (note_resources,),
    "LLM_INTERACTION": (prompt_agent, answer_prompt),
    "ACTION_EXECUTION": (note_resources, permit_call, wait_for_call),
    "MEMORY_UPDATE": (remember_end, check_progress, recover_agent),
}
register_pipe("shell", SHELL)
register_pipe("shell", {**SHELL, "LLM_INTERACTION": (prompt_mind, ask_mind, do_as_wanted)}, MINDS)
