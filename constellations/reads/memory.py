"""What a session has done before, as much of it as the next interaction is told; every part of it is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.machines import DEVICE_AGENT
from agents.models import Agent, InboxItem
from constellations.models import Constellation, Task
from constellations.prompts.quoting import shorten, text_of

INTERACTIONS = 10
"""Earlier interactions that are remembered."""
REQUEST = 2_000
"""Characters of what was asked."""
SUMMARY = 1_000
"""Characters of how it ended."""
TASKS = 30
"""Tasks of one interaction: those that ended last."""
RESULT = 500
"""Characters of one task's result."""
BLACKBOARDS = 10
"""Agents of one interaction whose blackboards are told..."""
BLACKBOARD = 500
"""...and characters of each."""


def read_memory(session_id: int, before: int) -> list[dict[str, Any]]:
    """The session's interactions before the one with the id `before`, oldest first.

    Each is {"request", "outcome", "summary", "answer"?, "tasks": [{"task_id", "name", "state", "result"?}], "blackboards"?:
    {agent's name: text}}; `answer` is what its model said when it finished. A plan's request is its name. What has ended stays
    as it is, so this needs no one moment.
    """
    found = InboxItem.objects.filter(session_id=session_id, kind="interaction", id__lt=before).order_by("-id")
    return [_remember(item) for item in reversed(found[:INTERACTIONS])]


def _remember(item: InboxItem) -> dict[str, Any]:
    constellation = Constellation.objects.filter(interaction_id=item.pk).order_by("-id").first()
    words = item.payload.get("request")
    name = constellation.name if constellation is not None else ""
    result = item.result if isinstance(item.result, dict) else {}
    told: dict[str, Any] = {
        "request": shorten(words, REQUEST) if isinstance(words, str) else f"(a plan) {name}",
        "outcome": item.outcome or item.state,
        "summary": shorten(text_of(result.get("summary") or ""), SUMMARY),
        "tasks": [] if constellation is None else _tasks_of(constellation.pk),
    }
    if (answer := result.get("answer")) not in (None, "") and answer != result.get("summary"):
        told["answer"] = shorten(text_of(answer), SUMMARY)
    boards = Agent.objects.filter(interaction_id=item.pk, machine=DEVICE_AGENT.name).exclude(blackboard={})
    if found := _blackboards(boards.order_by("-id")[:BLACKBOARDS]):
        told["blackboards"] = found
    return told


def _tasks_of(constellation: int) -> list[dict[str, Any]]:
    rows = Task.objects.filter(constellation_id=constellation).order_by("-ended_at", "id")
    shown = rows.values("task_id", "name", "state", "result")[:TASKS]
    return [
        {key: row[key] for key in ("task_id", "name", "state")}
        | ({} if row["result"] is None else {"result": shorten(text_of(row["result"]), RESULT)})
        for row in shown
    ]


def _blackboards(agents: Iterable[Agent]) -> dict[str, str]:
    return {f"{agent.name} ({agent.pk})": shorten(text_of(agent.blackboard), BLACKBOARD) for agent in agents}
