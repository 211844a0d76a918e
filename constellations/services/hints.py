"""A person's word to an agent with a model. One that works reads it next; where it has ended, its task begins again with it."""

from __future__ import annotations

from dataclasses import dataclass

from agents.errors import AgentsError
from agents.machines import MACHINES
from agents.models import Agent, InboxItem, ModelCall
from agents.services import sessions
from constellations.models import Attempt
from constellations.services import lifecycle
from constellations.services.lifecycle import RetryResult

HINT_CHARACTERS = 10_000
TIPS = 20
"""Of a task: the latest are kept beside a hint."""
GO_ON = "go_on"
"""Kind of the request: it brings a loop that is none, or a hint."""


class HintNotPossible(AgentsError):
    """The agent has no model that could read it, or nothing that could begin again."""

    code = "hint_not_possible"
    status = 409


@dataclass(frozen=True)
class HintResult:
    """`command` takes the hint to an agent at work; `retry` is what begins again with it where the agent had ended."""

    command: InboxItem | None = None
    retry: RetryResult | None = None
    changed: bool = True


def is_at_work(agent: Agent) -> bool:
    return not MACHINES[agent.machine].is_terminal(agent.state)


def agent_hint(agent: Agent, text: str, *, by: str, client_id: str = "", request_id: str = "") -> HintResult:
    """Give `agent` a hint. One that works reads it before its model is asked again, as the beginning of a new window.

    Where the agent has ended, its task begins again with the hint among its tips. Raises HintNotPossible where the agent has
    no model, NotRetried where its task has not failed, and what `sessions.request_submit` and `constellation_retry` raise.
    """
    if agent.machine != "device_agent" or not ModelCall.objects.filter(agent=agent).exists():
        raise HintNotPossible(f"agent {agent.pk} has asked no model, so there is nobody to read a hint; change its task")
    if is_at_work(agent):
        payload = {"agent": agent.pk, "text": text}
        item, created = sessions.request_submit(agent.session_id, GO_ON, client_id, payload, by=by, request_id=request_id)
        return HintResult(command=item, changed=created)
    workers = [agent.pk, *([agent.parent_id] if agent.parent_id else [])]  # an app agent works on its host's attempt
    attempt = Attempt.objects.filter(agent__in=workers).select_related("task").order_by("-id").first()
    if attempt is None:
        raise HintNotPossible(f"agent {agent.pk} has ended, and no attempt of a task is its own")
    task = attempt.task
    tips = [*[tip for tip in task.tips if tip != text][-TIPS:], text]  # type: ignore[attr-defined]  # made of a plan's key
    change = {"op": "update_task", "parameters": {"task_id": task.task_id, "tips": tips}}
    found = lifecycle.constellation_retry(
        task.constellation_id, [task.task_id], operations=[change], by=by, reason="a hint", client_id=client_id,
        request_id=request_id,
    )  # fmt: skip
    return HintResult(retry=found, changed=found.changed)
