"""Editing: the ends of tasks become a change set, or the decision that nothing is to be changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.errors import AgentsError
from agents.llm.conversation import Message
from agents.llm.exchange import ReplySchema
from agents.minds.question import SystemPrompt
from constellations.plan.schemas import TOOLS, unknown_editor_tool_text
from constellations.plan.values import SHOWN, value_kind
from constellations.prompts import reply_schemas
from constellations.prompts.answers import ACTIONS, Answer, AnswerUnusable, problem, read_common, read_object
from constellations.prompts.files import render_system_prompt
from constellations.prompts.modes import shared
from constellations.prompts.prompter import register_prompter
from constellations.prompts.scene import Scene

KEYS = ("observation", "thought", "status", "actions", "result")


class EditingPrompter:
    """Its answers have actions, perhaps none."""

    mode = "editing"
    reply_schema = ReplySchema("edit", "What is to be changed in the constellation, if anything.", reply_schemas.EDITING)

    def render_system(self, scene: Scene) -> SystemPrompt:
        return render_system_prompt(self.mode, scene)

    def render_user(self, scene: Scene) -> Message:
        return shared.render_user(scene)

    def render_correction(self, error: AgentsError, scene: Scene | None) -> Message:
        return shared.render_correction(error, scene)

    def read_answer(self, text: str) -> Answer:
        found = read_object(text)
        problems: list[dict[str, Any]] = []
        answer = read_common(found, KEYS, problems)
        actions = _read_actions(found.get("actions"), problems)
        if problems:
            raise AnswerUnusable(problems)
        return replace(answer, actions=actions)


def _read_actions(said: Any, problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if said is None:
        return []
    if not isinstance(said, list):
        problems.append(problem("actions", f"must be a list of (tool, parameters), not {value_kind(said)}"))
        return []
    if len(said) > ACTIONS:
        problems.append(problem("actions", f"there are {len(said):,}; one answer has at most {ACTIONS:,}"))
        return []
    return [action for number, each in enumerate(said) if (action := _read_action(number, each, problems)) is not None]


def _read_action(number: int, said: Any, problems: list[dict[str, Any]]) -> dict[str, Any] | None:
    """A command for the dispatcher; None where it is none, with what is wrong in `problems`."""
    place, operation = f"actions[{number}]", number + 1
    if not isinstance(said, dict):
        problems.append(problem(place, f"must be an object (tool, parameters), not {value_kind(said)}", operation))
        return None
    tool, parameters = said.get("tool"), said.get("parameters")
    if not isinstance(tool, str) or tool not in TOOLS:
        told = unknown_editor_tool_text(tool[:SHOWN]) if isinstance(tool, str) else f"which tool? It is {value_kind(tool)}"
        problems.append(problem(f"{place}.tool", told, operation))
        return None
    if parameters is not None and not isinstance(parameters, dict):
        problems.append(problem(f"{place}.parameters", f"must be an object, not {value_kind(parameters)}", operation))
        return None
    if strange := sorted(said.keys() - {"tool", "parameters"}):
        problems.append(problem(f"{place}.{strange[0][:SHOWN]}", "there is no such key beside tool and parameters", operation))
        return None
    return {"tool": tool, "parameters": parameters or {}}


register_prompter(EditingPrompter())
