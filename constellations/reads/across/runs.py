"""Runs of one plan side by side: what the same plan came to each time, task by task.

Runs are of one plan where its normal form is the same, by its digest; the plan's name is in it. A fork and a restart belong to
the plan of what they came from.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from agents import ids
from agents.minds.budgets.places import MICROS
from agents.models import Session, Spending
from agents.models.sessions import SessionQuerySet
from agents.progress.digests import canonical_json
from constellations.models import Constellation, NormalForm, Task

CONSTELLATIONS_LOOKED_AT = 1_000
"""The latest that may be seen."""
PLANS_SHOWN = 100
RUNS_SHOWN = 20
"""Of one plan, the latest."""
TASKS_SHOWN = 500
"""Of one run."""
DIGEST = 16
"""Hexadecimal digits of a digest."""

Row = dict[str, Any]


def list_plans(user: Any) -> list[Row]:
    """Plans among the latest runs: {"plan", "name", "runs", "states": {state: count}, "latest": {id, session, at}}."""
    runs = _latest_runs(Session.objects.visible_to(user))
    plans = _plans_of(runs)
    grouped: dict[str, list[Constellation]] = {}
    for run in runs:
        grouped.setdefault(plans[run.pk], []).append(run)
    return [
        {
            "plan": plan, "name": str(found[0]), "runs": len(found), "states": dict(Counter(run.state for run in found)),
            "latest": {"id": found[0].pk, "session": found[0].session_id, "at": found[0].created_at},
        }
        for plan, found in list(grouped.items())[:PLANS_SHOWN]
    ]  # fmt: skip


def compare_runs(user: Any, plan: str) -> Row | None:
    """{"plan", "name", "runs": columns, "tasks": rows of the grid}, or None where there is no such plan among the latest runs.

    A row is {"task_id", "name", "cells": one for each run, or None where that has no such task}. Costs of what nobody was asked
    for are 0.
    """
    runs = _latest_runs(Session.objects.visible_to(user))
    plans = _plans_of(runs)
    found = [run for run in runs if plans[run.pk] == plan][:RUNS_SHOWN]
    if not found:
        return None
    tasks = {run.pk: _tasks_of(run) for run in found}
    costs = _costs_of(found)
    columns = [_column(run, tasks[run.pk], costs) for run in found]
    rows: dict[str, Row] = {}
    for place, run in enumerate(found):
        for task in tasks[run.pk]:
            row = rows.setdefault(task.task_id, {"task_id": task.task_id, "name": task.name, "cells": [None] * len(found)})
            row["cells"][place] = _cell(task, costs)
    return {"plan": plan, "name": str(found[0]), "runs": columns, "tasks": list(rows.values())}


def _latest_runs(visible: SessionQuerySet) -> list[Constellation]:
    rows = Constellation.objects.filter(session__in=visible).select_related("session").defer("rules", "gates", "fired")
    return list(rows.order_by("-id")[:CONSTELLATIONS_LOOKED_AT])


def _plans_of(runs: Sequence[Constellation]) -> dict[int, str]:
    """The key of each run's plan. One without a plan of its own, and without one that it came from, is alone with its own."""
    forms = NormalForm.objects.filter(interaction__in={run.interaction_id for run in runs}).values_list("pk", "form")
    digests = {interaction: _digest_of(form) for interaction, form in forms}
    known = {run.pk: run for run in runs}
    return {run.pk: _plan_of(run, known, digests) for run in runs}


def _plan_of(run: Constellation, known: dict[int, Constellation], digests: dict[int, str]) -> str:
    at, seen = run, {run.pk}
    while True:
        before = at.forked_from_id or at.replaces_id
        if before is None or before not in known or before in seen:
            break
        at = known[before]
        seen.add(at.pk)
    return digests.get(at.interaction_id) or f"{at.pk}"


def _digest_of(form: str) -> str:
    """The form has the plan's name in it."""
    return hashlib.sha256(form.encode()).hexdigest()[:DIGEST]


def _tasks_of(run: Constellation) -> list[Task]:
    low, high = ids.row_range(run.session_id)
    rows = Task.objects.filter(constellation=run, pk__gte=low, pk__lt=high)
    columns = ("constellation_id", "task_id", "name", "state", "reason", "attempt", "result", "error", "started_at", "ended_at")
    return list(rows.order_by("id").only(*columns)[:TASKS_SHOWN])


def _costs_of(runs: Iterable[Constellation]) -> dict[int, float]:
    """Of tasks, by their keys; one query."""
    wanted = Q(pk__in=[])
    for session in {run.session_id for run in runs}:
        low, high = ids.row_range(session)
        wanted |= Q(key__gte=low, key__lt=high)
    rows = Spending.objects.filter(wanted, scope="task", period="").values_list("key", "micros")
    return {key: micros / MICROS for key, micros in rows}


def _column(run: Constellation, tasks: Sequence[Task], costs: dict[int, float]) -> Row:
    return {
        "id": run.pk, "session": {"id": run.session_id, "title": str(run.session)}, "state": run.state, "reason": run.reason,
        "version": run.version, "forked_from": run.forked_from_id, "replaces": run.replaces_id, "created_at": run.created_at,
        "duration_s": _seconds(run.created_at, run.ended_at), "cost": sum(costs.get(task.pk, 0.0) for task in tasks),
    }  # fmt: skip


def _cell(task: Task, costs: dict[int, float]) -> Row:
    told = canonical_json([task.result, task.error])
    return {
        "id": task.pk, "state": task.state, "reason": task.reason, "attempts": task.attempt,
        "duration_s": _seconds(task.started_at, task.ended_at), "cost": costs.get(task.pk, 0.0),
        "result": hashlib.sha256(told.encode()).hexdigest()[:DIGEST],
    }  # fmt: skip


def _seconds(started_at: Any, ended_at: Any) -> float | None:
    return None if started_at is None or ended_at is None else (ended_at - started_at).total_seconds()
