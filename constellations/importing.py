"""A constellation in any dialect as what a session is asked for."""

from __future__ import annotations

import json
from typing import Any

from agents import services
from constellations import dialects
from constellations.errors import EditRefused, PlanRejected
from constellations.planner import known_devices
from constellations.steps import unknown_devices
from constellations.values import key_text


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
    """What a document would become, {dialect, name, tasks, dependencies, plan}; raises what its import would raise."""
    imported = dialects.read(document, dialect)
    plan = plan_of(imported)
    _checked(imported, plan)
    return {
        "dialect": imported.dialect, "name": imported.name, "tasks": len(imported.tasks),
        "dependencies": len(imported.dependencies), "plan": plan,
    }  # fmt: skip


def _checked(imported: dialects.Imported, plan: dict[str, Any]) -> dict[str, Any]:
    """The payload that a plan is, if the devices there are can carry it out."""
    if unknown := unknown_devices(imported.tasks, known_devices()):
        problems = [imported.problem(key_text(path), message) for path, message in unknown]
        raise PlanRejected(problems, f"{imported.dialect} document")
    payload = {"plan": json.dumps(plan, ensure_ascii=False, separators=(",", ":"))}
    try:
        services.check_payload(payload)
    except EditRefused as error:
        problems = [imported.problem(each["field"], each["message"]) for each in error.problems]
        raise PlanRejected(problems, f"{imported.dialect} document") from error
    return payload
