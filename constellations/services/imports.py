"""A constellation in any dialect as what a session is asked for."""

from __future__ import annotations

import json
from typing import Any

from agents.api.problems import drop_unknown
from agents.engine.drives.work import Checked
from agents.models import Device
from agents.services import sessions
from agents.tools.catalogue import TOOLS
from constellations.errors import EditRefused, PlanRejected
from constellations.limits import IMPORTED_WORDS
from constellations.models import Edit
from constellations.plan import dialects
from constellations.plan.plan import copied_by
from constellations.plan.tasks import IN_WORDS, says_what_to_do
from constellations.plan.values import Finding, Path, key_text
from constellations.reads.devices import known_devices
from constellations.services.edits import REASON_LENGTH, EditRequest, carry_out_edit

WARNINGS = 100
"""That one answer lists."""


def plan_of(imported: dialects.ImportedPlan) -> dict[str, Any]:
    """The plan in our words."""
    return dialects.write_document(
        imported.tasks, imported.dependencies, imported.rules, name=imported.name, models=imported.models
    )


def read_document(document: Any, dialect: str = "") -> tuple[Checked, list[dict[str, Any]]]:
    """The interaction that carries out what a document says, checked; and what its author should know.

    Raises PlanRejected with every problem, and where in the document it is.
    """
    imported = dialects.read_constellation(document, dialect, known_recipes(), known_devices())
    return _checked(imported, plan_of(imported)), _warnings(imported)


def apply_edit(
    constellation_id: int, document: Any, dialect: str = "", *, author: str, reason: str = "", edit_id: str = "",
    based_on: int | None = None, request_id: str = "",
) -> tuple[Edit | None, bool]:  # fmt: skip
    """Apply the edit that a document is, as `edits.edit_apply` would; the answer's thought is its reason, if there is no other.

    Raises PlanRejected where it is none, and what `edits.edit_apply` raises, with the lines of what was written.
    """
    given = dialects.read_edit(document, dialect, known_recipes())
    reason = reason or given.thought[:REASON_LENGTH]
    wanted = EditRequest(lambda live: given.operations, author, reason, edit_id, based_on, in_words=True)
    try:
        return carry_out_edit(constellation_id, wanted, request_id)
    except EditRefused as error:
        error.problems = [  # with where each stands in the document
            each if each["operation"] is None
            else {**each, **given.problem(each["operation"] - 1, each["field"], each["message"])}
            for each in error.problems
        ]  # fmt: skip
        raise


def known_recipes() -> dict[str, dict[str, Any]]:
    """The recipes that actions may name, by device; where a tool is called so, the tool is meant."""
    rows = Device.objects.values_list("name", "recipes")
    return {name: {key: each for key, each in held.items() if key not in TOOLS} for name, held in rows}


def check_document(document: Any, dialect: str = "") -> dict[str, Any]:
    """What a document would become: {dialect, name, tasks, dependencies, plan, warnings}. Raises what an import would."""
    imported = dialects.read_constellation(document, dialect, known_recipes(), known_devices())
    plan = plan_of(imported)
    _checked(imported, plan)
    return {
        "dialect": imported.dialect, "name": imported.name, "tasks": len(imported.tasks),
        "dependencies": len(imported.dependencies), "plan": plan, "warnings": _warnings(imported),
    }  # fmt: skip


def _warnings(imported: dialects.ImportedPlan) -> list[dict[str, Any]]:
    """What does not keep a document from being imported, and somebody has to know: what will not start, or not be added."""
    idle = {row["task_id"] for row in imported.tasks if row["tool"] == IN_WORDS}
    message = "needs a model or a command: it is in words alone, and cannot start before an edit gives it one"
    found: list[Finding] = [
        (("tasks", number), f"{row['task_id']} {message}")
        for number, row in enumerate(imported.tasks)
        if row["task_id"] in idle
    ]
    for number, rule in enumerate(imported.rules if idle else ()):
        for place, source in copied_by(rule):
            if source in idle and not says_what_to_do(rule["edit"][place]["parameters"]):
                told = (
                    f"the rule {rule['name']} copies {source}, which is in words alone: its edit is refused as long as that is "
                )
                way: Path = ("replan", number, "edit", place, "add_task", "copy")
                found.append((way, f"{told}so; give {source} or the copy a command"))
    return [drop_unknown(imported.problem(key_text(path), message)) for path, message in found[:WARNINGS]]


def _checked(imported: dialects.ImportedPlan, plan: dict[str, Any]) -> Checked:
    """The interaction that a plan is, if it can be carried out."""
    payload: dict[str, Any] = {"plan": json.dumps(plan, ensure_ascii=False, separators=(",", ":"))}
    if any(row["tool"] == IN_WORDS for row in imported.tasks):
        payload[IMPORTED_WORDS] = True
    try:
        return sessions.check_payload(payload)
    except (EditRefused, PlanRejected) as error:
        problems = [imported.problem(each.get("field") or each.get("key", ""), each["message"]) for each in error.problems]
        raise PlanRejected(problems, f"{imported.dialect} document") from error
