"""Prompters by weaving mode: what each of them does, and where to get one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Protocol

from agents.errors import AgentsError
from agents.llm.conversation import Message
from agents.llm.exchange import ReplySchema
from agents.minds.question import SystemPrompt
from constellations.prompts.answers import Answer
from constellations.prompts.scene import Scene

MODES = Path(__file__).parent / "modes"
"""Every module in it is imported once, and registers its prompter."""


class UnknownMode(AgentsError):
    """There is no prompter for such a weaving mode."""

    code = "unknown_weaving_mode"


class Prompter(Protocol):
    """Renders what a model is asked in one weaving mode, and reads what it answers."""

    mode: str
    reply_schema: ReplySchema

    def render_system(self, scene: Scene) -> SystemPrompt:
        """What stays the same from call to call: who the model is, the rules, the tools, the form of answers, examples."""

    def render_user(self, scene: Scene) -> Message:
        """What is so now: devices, the constellation, events, memory, the request."""

    def read_answer(self, text: str) -> Answer:
        """Raises AnswerUnusable with every problem that was found."""

    def render_correction(self, error: AgentsError, scene: Scene | None) -> Message:
        """What is said of an answer that could not be used; with a scene the newest graph is shown again."""


_prompters: dict[str, Prompter] = {}


def register_prompter(prompter: Prompter) -> None:
    """Let `prompter_for` give it out; raises ValueError for a mode that has one."""
    if prompter.mode in _prompters:
        raise ValueError(f"the weaving mode {prompter.mode} has a prompter already")
    _prompters[prompter.mode] = prompter


def prompter_for(mode: str) -> Prompter:
    """Raises UnknownMode, which names the modes that there are."""
    modes = supported_modes()
    if mode not in modes:
        raise UnknownMode(f"there is no weaving mode {mode[:80]!r}; there are {', '.join(modes)}")
    return _prompters[mode]


def supported_modes() -> tuple[str, ...]:
    """The weaving modes that have a prompter, by name."""
    _import_modes()
    return tuple(sorted(_prompters))


@cache
def _import_modes() -> None:
    for module in pkgutil.iter_modules([str(MODES)]):
        importlib.import_module(f"{__package__}.modes.{module.name}")
