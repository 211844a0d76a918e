"""A constellation in any dialect as what a session is asked for."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from agents import services
from constellations import dialects
from constellations.errors import EditRefused, PlanRejected
from constellations.forms import IN_WORDS
from constellations.planner import IMPORTED_WORDS, known_devices
from constellations.steps import unknown_devices
from constellations.values import key_text

WARNINGS = 100
"""That one answer lists."""


def plan_of(imported: dialects.Imported) -> dict[str, Any]:
    """The plan in our words."""
    return dialects.write(imported.tasks, imported.dependencies, imported.rules, name=imported.name)


def payload_of(document: Any, dialect: str = "") -> dict[str, Any]:
    """The payload of the interaction that carries out what a document says; it has been checked.

    Raises PlanRejected with every problem, and where in the document it is.
    """
    imported = dialects.read(document, dialect)
    return _checked(imported, plan_of(imported))


def check(document: Any, dialect: str = "") -> dict[str, Any]:
    """What a document would become: {dialect, name, tasks, dependencies, plan, warnings}. Raises what an import would."""
    imported = dialects.read(document, dialect)
    plan = plan_of(imported)
    _checked(imported, plan)
    return {
        "dialect": imported.dialect, "name": imported.name, "tasks": len(imported.tasks),
        "dependencies": len(imported.dependencies), "plan": plan, "warnings": _warnings(imported),
    }  # fmt: skip


def _warnings(imported: dialects.Imported) -> list[dict[str, Any]]:
    """What does not keep a document from being imported, and somebody has to know: tasks that will not start."""
    idle = ((number, row["task_id"]) for number, row in enumerate(imported.tasks) if row["tool"] == IN_WORDS)
    message = "needs a model or a command: it is in words alone, and cannot start before an edit gives it one"
    return [imported.problem(f"tasks[{number}]", f"{task_id} {message}") for number, task_id in islice(idle, WARNINGS)]


def _checked(imported: dialects.Imported, plan: dict[str, Any]) -> dict[str, Any]:
    """The payload that a plan is, if the devices there are can carry it out."""
    if unknown := unknown_devices(imported.tasks, known_devices()):
        problems = [imported.problem(key_text(path), message) for path, message in unknown]
        raise PlanRejected(problems, f"{imported.dialect} document")
    payload: dict[str, Any] = {"plan": json.dumps(plan, ensure_ascii=False, separators=(",", ":"))}
    if any(row["tool"] == IN_WORDS for row in imported.tasks):
        payload[IMPORTED_WORDS] = True
    try:
        services.check_payload(payload)
    except EditRefused as error:
        problems = [imported.problem(each["field"], each["message"]) for each in error.problems]
        raise PlanRejected(problems, f"{imported.dialect} document") from error
    return payload
