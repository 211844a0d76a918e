"""Creation: words become a constellation, or a direct answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.errors import AgentsError
from agents.llm.conversation import Message
from agents.llm.exchange import ReplySchema
from agents.minds.question import SystemPrompt
from constellations.plan.values import value_kind
from constellations.prompts import reply_schemas
from constellations.prompts.answers import Answer, AnswerUnusable, problem, read_common, read_object
from constellations.prompts.files import render_system_prompt
from constellations.prompts.modes import shared
from constellations.prompts.prompter import register_prompter
from constellations.prompts.scene import Scene

KEYS = ("observation", "thought", "status", "constellation", "result")
PLAN_KEYS = ("name", "tasks", "dependencies")
"""What of a plan a model says; which models work in it, when it starts and what its rules do is for people."""
EXPLAINING = ("build_constellation", "add_task", "add_dependency")
"""The editor's tools that explain the keys of tasks and dependencies; the others change what is there."""


class CreationPrompter:
    """Its answers have a plan, or none with FINISH (a direct answer) and FAIL."""

    mode = "creation"
    reply_schema = ReplySchema(
        "constellation", "The constellation for the request, or a direct answer.", reply_schemas.CREATION
    )

    def render_system(self, scene: Scene) -> SystemPrompt:
        return render_system_prompt(self.mode, replace(scene, tools=[tool for tool in scene.tools if tool.name in EXPLAINING]))

    def render_user(self, scene: Scene) -> Message:
        return shared.render_user(scene)

    def render_correction(self, error: AgentsError, scene: Scene | None) -> Message:
        return shared.render_correction(error, scene)

    def read_answer(self, text: str) -> Answer:
        found = read_object(text)
        problems: list[dict[str, Any]] = []
        answer = read_common(found, KEYS, problems)
        plan = _read_plan(found.get("constellation"), problems)
        if answer.status == "START":
            problems.append(problem("status", "START begins again with a constellation that is there; this one is to be made"))
        if answer.status == "CONTINUE" and plan is None and not problems:
            problems.append(
                problem(
                    "constellation", "with CONTINUE it needs at least one task; answer without one with FINISH and a result"
                )
            )
        if answer.status == "FINISH" and plan is not None:
            problems.append(problem("status", "FINISH is for an answer without tasks; these have still to run: CONTINUE"))
        if problems:
            raise AnswerUnusable(problems)
        return replace(answer, plan=None if answer.status == "FAIL" else plan)


def _read_plan(said: Any, problems: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The constellation as a plan's object, without keys that say nothing; None where it has no tasks."""
    if said is None:
        return None
    if not isinstance(said, dict):
        problems.append(problem("constellation", f"must be an object with tasks and dependencies, not {value_kind(said)}"))
        return None
    problems += [
        problem(f"constellation.{str(key)[:80]}", f"a constellation has {', '.join(PLAN_KEYS)} here, and nothing else")
        for key in said
        if key not in PLAN_KEYS
    ]
    plan = {key: value for key, value in said.items() if value not in (None, "", [])}
    for key in ("tasks", "dependencies"):
        if key in plan and not isinstance(plan[key], list):
            problems.append(problem(f"constellation.{key}", f"must be a list, not {value_kind(plan[key])}"))
    return plan if plan.get("tasks") else None


register_prompter(CreationPrompter())
