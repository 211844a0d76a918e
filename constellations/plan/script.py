"""What a task's agents will do, as policies judge it before it begins. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.crews.script import JUDGED, plain_script
from agents.gates.policies import Rule
from constellations.plan.keys.calls import INSTRUCTION, STEPS
from constellations.plan.values import Row


def script_of(task: Mapping[str, Any]) -> list[Row]:
    """A task's steps; of a plain task its one call. What a task in words will call is not known; its words stand for it."""
    if task["tool"] == INSTRUCTION:
        return plain_script(INSTRUCTION, {"name": task["name"], "description": task["description"]}, None)
    return task["phases"] if task["tool"] == STEPS else plain_script(task["tool"], task["arguments"], task["timeout"])


def calls_of(phases: list[Row]) -> list[Row]:
    """All that policies judge of a script, also its detours and what agents do that it delegates to."""
    found: list[Row] = []
    todo = [step for phase in phases for step in phase["steps"]]
    while todo:
        step = todo.pop()
        todo += [*step.get("recover", ()), *step.get("steps", ())]
        if step["do"] in JUDGED:
            found.append(step)
    return found


def rule_of(row: Row) -> Rule:
    """A policy of a plan as it is judged by."""
    return Rule(tool=row["tool"], pattern=row["pattern"], decision=row["decision"])
