"""The arbiter that is a language model: `ORRERY_STUCK_ARBITER=model` (docs/stuck.md, "The arbiter").

The profile with the purpose `judging` is asked, in the thread of the arbiter. What it cost is an event of the agent's session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync

from agents.errors import AgentsError
from agents.llm.conversation import Message, Text
from agents.llm.exchange import Patience, ReplySchema
from agents.llm.profiles import choose_profiles, read_profiles
from agents.minds.asking import ask_model
from agents.minds.question import Question, SystemPrompt
from agents.models import Agent
from agents.streams.door import door
from agents.tools.calls import Call, Outcome

ANSWER_S = 50.0
"""Of a whole call: less than the arbiter may take."""
ANSWER_TOKENS = 2_000
SYSTEM = SystemPrompt("You judge the work of software agents. You answer with one JSON object and nothing else.", "judging/1")
RULING = ReplySchema(
    "ruling",
    "Whether the agent is stuck, and why.",
    {
        "type": "object",
        "properties": {"stuck": {"type": "boolean"}, "why": {"type": "string"}},
        "required": ["stuck", "why"],
        "additionalProperties": False,
    },
)


class JudgingFailed(AgentsError):
    """The model that judges gave no ruling; the message says which profile it was and what it did."""

    code = "judging_failed"


def rule_by_model(prompt: str, suspicion: Mapping[str, Any]) -> dict[str, Any]:
    """{"stuck", "why"} as the model says. Raises NoModelProfile, or JudgingFailed where it fails or answers something else."""
    profiles = choose_profiles(read_profiles(), "judging")
    agent = Agent.objects.get(pk=suspicion["agent_id"])
    question = Question(
        profiles, SYSTEM, (Message("user", (Text(prompt),)),), reply_schema=RULING, max_tokens=ANSWER_TOKENS,
        patience=Patience(ANSWER_S, ANSWER_S, ANSWER_S),
    )  # fmt: skip
    call = Call(agent.pk, agent.session_id, "ask_model", {"question": question}, {}, ANSWER_S, body=ask_model)
    outcome: Outcome = async_to_sync(ask_model)(call)
    found = outcome.result if isinstance(outcome.result, dict) else {}
    _record_cost(agent, outcome, found)
    if outcome.outcome != "completed":
        raise JudgingFailed(f"{profiles[0].name}: {outcome.error}")
    return _read_ruling(str(found["schema_text"]), profiles[0].name)


def _record_cost(agent: Agent, outcome: Outcome, found: Mapping[str, Any]) -> None:
    told: dict[str, Any] = {
        name: found.get(name) for name in ("profile", "model", "input_tokens", "output_tokens", "cost", "call_s")
    }
    with door(agent.session_id, "system") as opened:
        opened.turn.record("model_judged", agent_id=agent.pk, outcome=outcome.outcome, error_kind=outcome.error_kind, **told)


def _read_ruling(text: str, profile: str) -> dict[str, Any]:
    """The object in an answer, also where words or a fence stand around it."""
    try:
        ruling = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except ValueError as error:
        raise JudgingFailed(f"{profile} did not answer with JSON: {error}") from error
    if not isinstance(ruling.get("stuck"), bool):
        raise JudgingFailed(f'{profile} did not say "stuck": true or false')
    return {"stuck": ruling["stuck"], "why": str(ruling.get("why", ""))}
