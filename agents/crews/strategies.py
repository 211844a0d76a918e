"""The four processing phases of a device agent's step, as pipes of small strategies registered by platform.

A strategy moves the tool loop on from the states it knows and leaves all others alone, so a pipe can be entered anew at any
time: after a crash, a pause, an approval. It returns False where the agent has to wait.
"""

from __future__ import annotations

from collections.abc import Callable

from agents.crews.answer import answer_prompt, note_resources, prompt_agent
from agents.crews.check import check_progress, remember_end
from agents.crews.errand import CODING_AGENTS
from agents.crews.follow import follow_errand, permit_errand
from agents.crews.look import take_look, wait_for_look
from agents.crews.members.member import Member
from agents.crews.permit import permit_call, wait_for_call
from agents.crews.recover import recover_agent
from agents.crews.think import ask_mind, do_as_wanted, prompt_mind
from agents.devices.profiles.platforms import PLATFORMS
from agents.machines.device_agent import PROCESSING_PHASES
from agents.streams.turn import Turn

Strategy = Callable[[Member, Turn, float], bool]
Pipe = dict[str, tuple[Strategy, ...]]
PIPES: dict[str, Pipe] = {}
MINDS: dict[str, Pipe] = {}
"""Of agents with a model."""
VIEWS: dict[str, tuple[Strategy, ...]] = {}
"""DATA_COLLECTION where an agent only looks: in SCREENSHOT, and so that whoever is asked in CONFIRM sees what it is about. What
it looks with is in `platforms`.
"""


def register_pipe(platform: str, pipe: Pipe, pipes: dict[str, Pipe] = PIPES) -> None:
    """The pipe of a platform; raises ValueError for one that leaves a processing phase out."""
    if tuple(pipe) != PROCESSING_PHASES:
        raise ValueError(f"the pipe of {platform} must have the phases {', '.join(PROCESSING_PHASES)}, in this order")
    pipes[platform] = pipe


def register_view(platform: str, strategies: tuple[Strategy, ...]) -> None:
    """What follows from an observation on a platform."""
    VIEWS[platform] = strategies


SHELL: Pipe = {
    "DATA_COLLECTION": (note_resources,),
    "LLM_INTERACTION": (prompt_agent, answer_prompt),
    "ACTION_EXECUTION": (note_resources, permit_call, wait_for_call),
    "MEMORY_UPDATE": (remember_end, check_progress, recover_agent),
}
for name in PLATFORMS:  # they differ in what they look with (`platforms`), until one registers a pipe of its own
    register_pipe(name, SHELL)
    register_pipe(name, {**SHELL, "LLM_INTERACTION": (prompt_mind, ask_mind, do_as_wanted)}, MINDS)
    register_view(name, (wait_for_look, take_look))
ERRANDS: Pipe = {
    "DATA_COLLECTION": (note_resources,),
    "LLM_INTERACTION": (prompt_agent, answer_prompt),
    "ACTION_EXECUTION": (note_resources, permit_errand, follow_errand),
    "MEMORY_UPDATE": (check_progress, recover_agent),
}
register_pipe(CODING_AGENTS, ERRANDS)
