"""Tasks that are told of while a model still writes the plan, so that whoever looks on sees it grow (docs/plans.md)."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.minds.asking import ASKED_AGAIN, ask_model
from agents.streams.tables import Fields
from agents.tools.calls import Call, Outcome
from constellations.plan.streaming import TaskReader

DRAFTED = "task_drafted"
"""The event, which changes no row. Its `tasks` each have a task_id, a name and a device, as far as they are written."""
TASKS = 100
"""Of one answer that are told of."""
PAUSE_S = 0.2
"""Between two events of one call."""
SHOWN = 200
"""Characters of a task's id, name or device."""


async def ask_and_draft(call: Call) -> Outcome:
    """The body of a call that asks for a plan: as `ask_model`, and the tasks are told of as they come."""
    drafts, printed = _Drafts(call), call.on_output

    def take(text: str) -> None:
        printed(text)
        drafts.feed(text)

    call.on_output = take
    try:
        return await ask_model(call)
    finally:
        drafts.tell()


class _Drafts:
    """What one answer has drafted so far."""

    def __init__(self, call: Call):
        self._call = call
        self._reader = TaskReader()
        self._known: set[str] = set()
        self._untold: list[Fields] = []
        self._told_at = 0.0

    def feed(self, text: str) -> None:
        if text == ASKED_AGAIN:  # what had come of the answer counts for nothing; tasks of the same ids are told of once
            self._reader = TaskReader()
            return
        for task in self._reader.feed(text):
            shown = {"task_id": _text(task, "task_id"), "name": _text(task, "name"), "device": _text(task, "device")}
            if shown["task_id"] and shown["task_id"] not in self._known and len(self._known) < TASKS:
                self._known.add(shown["task_id"])
                self._untold.append(shown)
        if self._untold and asyncio.get_running_loop().time() - self._told_at >= PAUSE_S:
            self.tell()

    def tell(self) -> None:
        if self._untold:
            self._told_at = asyncio.get_running_loop().time()
            self._call.note(DRAFTED, call_id=self._call.key, tasks=self._untold)
            self._untold = []


def _text(task: dict[str, Any], key: str) -> str:
    found = task.get(key)
    return found[:SHOWN] if isinstance(found, str) else ""
