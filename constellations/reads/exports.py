"""A constellation's rows as a document in any dialect."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import QuerySet

from agents.errors import AgentsError
from constellations.models import Constellation, Dependency, Task
from constellations.plan import dialects
from constellations.plan.dialects.writing import TOLD
from constellations.plan.documents import MAX_JSON_BYTES
from constellations.plan.keys.fields import CHANGEABLE
from constellations.plan.operations import MAX_DEPENDENCIES, MAX_TASKS
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.reads.progress import same_stream

EXPORT_BYTES = MAX_JSON_BYTES
"""Size of a document in UTF-8, results included: what is exported can be imported."""
FROM_THE_BEGINNING = {"replaces": ""}
"""What a document does not say of a task: an imported constellation begins anew, so nothing in it has been made good."""
CHUNK = 200
"""Rows that are read at a time."""


class ExportTooLarge(AgentsError):
    """The constellation's document is larger than one may be."""

    code = "export_too_large"
    status = 409


def export_document(constellation: Constellation, dialect: str = dialects.ORRERY, with_states: bool = False) -> str:
    """JSON text; raises ExportTooLarge. `with_states`: with how far the constellation and its tasks have come.

    Call it inside `consistent_read`, and read the row there: otherwise it may be half of an edit.
    """
    tasks = [{**row, **FROM_THE_BEGINNING} for row in _tasks(constellation).values("id", *TASK_DEFAULTS)[: MAX_TASKS + 1]]
    task_ids = {row.pop("id"): row["task_id"] for row in tasks}
    lines = same_stream(Dependency.objects.filter(constellation=constellation), constellation.pk).order_by("id")
    own = ("dependency_id", *CHANGEABLE)
    edges = [
        {"from": task_ids[row["upstream_id"]], "to": task_ids[row["downstream_id"]], **{key: row[key] for key in own}}
        for row in lines.values(*own, "upstream_id", "downstream_id")[: MAX_DEPENDENCIES + 1]
        if row["upstream_id"] in task_ids and row["downstream_id"] in task_ids  # of too many tasks not all were read
    ]
    if len(tasks) > MAX_TASKS or len(edges) > MAX_DEPENDENCIES:
        limits = f"{MAX_TASKS:,} tasks and {MAX_DEPENDENCIES:,} dependencies"
        raise ExportTooLarge(f"a document has at most {limits}, as a plan has: more could not be imported")
    states = _states(constellation, dialect) if with_states else None
    document = dialects.write_document(
        tasks, edges, constellation.rules, dialect, constellation.name, states, constellation.model_profiles,
        constellation.max_concurrent, constellation.assignment,
    )  # fmt: skip
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    _check_size(len(text.encode()), dialect, with_states)
    return text


def _tasks(constellation: Constellation) -> QuerySet[Task]:
    return same_stream(Task.objects.filter(constellation=constellation), constellation.pk).order_by("id")


def _states(constellation: Constellation, dialect: str) -> dialects.ToldStates:
    told: dict[str, dict[str, Any]] = {}
    size = 0
    for row in _tasks(constellation).values("task_id", *TOLD).iterator(chunk_size=CHUNK):
        times = {key: row[key] and row[key].isoformat() for key in ("started_at", "ended_at")}
        told[row["task_id"]] = {key: row[key] for key in TOLD} | times
        size += len(json.dumps(row["result"])) + len(row["error"])
        _check_size(size, dialect, True)
    return dialects.ToldStates(constellation.state, told)


def _check_size(size: int, dialect: str, with_states: bool) -> None:
    if size > EXPORT_BYTES:
        shorter = "" if dialect == dialects.ORRERY else f"; {dialects.ORRERY} is a shorter dialect"
        hint = "; export it without states" if with_states else shorter
        raise ExportTooLarge(f"the document has more than {EXPORT_BYTES:,} bytes, and no more is imported{hint}")
