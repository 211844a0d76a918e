"""A plan in normal form without what goes without saying, as it is written down, and whole again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constellations.plan.plan import Plan
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, TASK_DEFAULTS
from constellations.plan.values import Row


def condense_plan(plan: Plan) -> dict[str, Any]:
    """JSON that `expand_plan` makes the same plan of: of tasks and dependencies only what differs from the defaults."""
    return {
        "name": plan.name,
        "tasks": _without(TASK_DEFAULTS, plan.tasks),
        "dependencies": _without(DEPENDENCY_DEFAULTS, plan.dependencies),
        "rules": plan.rules,
        "models": plan.models,
        "start": plan.start,
        "max_concurrent": plan.max_concurrent,
        "assignment": plan.assignment,
    }


def _without(defaults: Row, rows: Iterable[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if value != defaults[key]} for row in rows]


def expand_plan(condensed: dict[str, Any]) -> Plan:
    """The plan that was condensed. Its rows share the defaults' lists and objects: values are replaced, never changed."""
    tasks = [{**TASK_DEFAULTS, **row} for row in condensed["tasks"]]
    dependencies = [{**DEPENDENCY_DEFAULTS, **row} for row in condensed["dependencies"]]
    said = {key: condensed[key] for key in ("name", "rules", "models", "start", "max_concurrent", "assignment")}
    return Plan(tasks=tasks, dependencies=dependencies, **said)
