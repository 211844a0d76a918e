"""Where the app agents of an attempt may work besides its own device: chosen as the devices of tasks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from agents.crews.script import Step
from agents.errors import AgentsError
from agents.streams.row_types import LiveDevice
from constellations.assignment.candidates import SessionFacts
from constellations.assignment.strategies import choose_device, find_strategy
from constellations.assignment.wishes import NOT_ALLOWED, NOT_OFFERED, Wish, why_not
from constellations.live.row_types import TaskRow
from constellations.plan.fitting import CODING_AGENTS
from constellations.plan.keys.calls import INSTRUCTION, delegated_wish
from constellations.runs.attempts.slots import SessionSlots
from constellations.runs.context import Context

REACHABLE = ("connected", "connecting")
"""States of devices that take an app agent now or soon: it waits for its slot as a task does, while a browser starts."""
LISTED = 20
"""Devices that an agent with a model is told of."""
REASONS = {NOT_ALLOWED: "this session may not use it"}


class NoDeviceForAgent(AgentsError):
    """No device is there for an app agent."""

    code = "no_device_for_agent"


class TaskFleet:
    """Of one task. Who may use a device, what is offered and what the task avoids hold for its app agents, too."""

    def __init__(self, context: Context, task: TaskRow):
        self._context, self._task = context, task

    def find_device(self, key: int) -> LiveDevice:
        return self._context.devices[key]

    def choose_device(self, step: Step) -> LiveDevice:
        """Of those that fit, take work and have room the one that the strategy chooses; of full ones, where none has room.

        Raises NoDeviceForAgent, which says why.
        """
        context, wish = self._context, self._wish_of(step)
        refused = {row["name"]: why for row in context.devices.values() if (why := self._why_not(row, wish, step))}
        fitting = [row for row in context.devices.values() if row["name"] not in refused]
        if not fitting:
            raise NoDeviceForAgent(self._say_none(step, refused))
        slots = SessionSlots(context, {}, {}, {})
        candidates = [slots.candidate(row["id"]) for row in fitting]
        free = [each for each in candidates if each.taken < each.slots] or candidates
        strategy = find_strategy(context.constellation.get("assignment") or settings.ASSIGNMENT)
        running = sum(start.attempt["holds_slot"] for start in context.attempts.values())
        facts = SessionFacts(context.stream, context.session["owner_id"], running, slots.limit)
        return context.devices[choose_device(strategy, free, self._task, facts).id]

    def list_devices(self) -> Sequence[Mapping[str, Any]]:
        """By their names: those that may be named by this session and take work."""
        found = [row for row in self._context.devices.values() if self._is_listed(row)]
        keys = ("name", "platform", "type", "capabilities")
        told = [{key: row[key] for key in keys if row[key]} for row in sorted(found, key=lambda row: row["name"])]  # type: ignore[literal-required]
        return told[:LISTED]

    def _is_listed(self, row: LiveDevice) -> bool:
        wish = self._wish_of({"device": row["name"]})
        return not self._why_not(row, wish, {})

    def _wish_of(self, step: Mapping[str, Any]) -> Wish:
        task = self._task
        wanted, tools = delegated_wish(step)
        avoided = tuple(task["not_device"])
        return Wish(
            wanted["wanted_device"], wanted["device_type"], tuple(wanted["capabilities"]), avoided, tools,
            task["tool"] == INSTRUCTION or bool(step.get("instruction")),
        )  # fmt: skip

    def _why_not(self, row: LiveDevice, wish: Wish, step: Mapping[str, Any]) -> str:
        if step.get("platform") and row["platform"] != step["platform"]:
            return "another platform"
        if step.get("instruction") and self._task["tool"] != INSTRUCTION and row["kind"] != CODING_AGENTS:
            return "it is no coding agent"  # elsewhere words need a model, which a task in steps has not
        if row["name"] in wish.not_device:
            return "the task avoids it"
        if step.get("platform") and wish.in_words and wish.names_nothing:  # whoever has the platform will do
            if not row["is_offered"]:
                return NOT_OFFERED
            wish = wish._replace(wanted_device=row["name"])
        if why := why_not(row, wish, row["users"], self._context.session["owner_id"]):
            return REASONS.get(why, why)
        return "" if row["state"] in REACHABLE else f"it is {row['state']}"

    def _say_none(self, step: Step, refused: Mapping[str, str]) -> str:
        """One that is named is said by itself, without telling of devices that the session may not use."""
        if name := step.get("device"):
            return f"there is no device {name} for {step['name']}: {refused.get(name, 'no device is called so')}"
        asked = [f"{key} {step[key]}" for key in ("platform", "device_type") if step.get(key)]
        asked += [f"capabilities {', '.join(step['capabilities'])}"] if step.get("capabilities") else []
        return f"no device takes {step['name']} now with {', '.join(asked)}"
