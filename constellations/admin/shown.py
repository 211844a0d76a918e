"""The rows that a page shows, and showed: what an operator changed is told by comparing with what they saw."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from constellations.editor.draft import SKIPPED
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation, Dependency, Edit, Task
from constellations.plan.keys.fields import LINE_COLUMNS
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.plan.values import Row
from constellations.reads.progress import same_stream
from constellations.services.edits import REBASED_OVER

EDITABLE = Q(state__in=("PENDING", "WAITING_DEPENDENCY")) | Q(state="CANCELLED", reason__startswith=SKIPPED)
"""Tasks that may change: `constellations.editor.draft.may_change` as a query."""
INTO_EDITABLE = Q(downstream__state__in=("PENDING", "WAITING_DEPENDENCY")) | Q(
    downstream__state="CANCELLED", downstream__reason__startswith=SKIPPED
)
"""Dependencies that may change."""

AGAIN = EDITABLE | Q(state__in=("FAILED", "CANCELLED"))
"""Tasks that may change where the graph goes on, because they may begin again."""

TASK_COLUMNS = (*TASK_DEFAULTS, "id", "state", "reason")


@dataclass(frozen=True)
class ShownRows:
    """Rows in normal form by their names, as `constellation` has them at `version`; tasks with id, state and reason."""

    constellation: Constellation
    version: int
    tasks: dict[str, Row]
    dependencies: dict[str, Row]


def is_open(constellation: Constellation) -> bool:
    """Whether an edit of it is possible at all."""
    return constellation.state != "CANCELLED" and constellation.state not in CLOSED


def tasks_of(constellation: Constellation) -> QuerySet[Task]:
    """Oldest first."""
    return same_stream(Task.objects.filter(constellation=constellation), constellation.pk).order_by("id")


def dependencies_of(constellation: Constellation) -> QuerySet[Dependency]:
    """Oldest first."""
    return same_stream(Dependency.objects.filter(constellation=constellation), constellation.pk).order_by("id")


def task_rows(tasks: QuerySet[Task]) -> dict[str, Row]:
    return {row["task_id"]: row for row in tasks.values(*TASK_COLUMNS)}


def dependency_rows(dependencies: QuerySet[Dependency]) -> dict[str, Row]:
    found = dependencies.values_list(*LINE_COLUMNS.values())
    return {row[0]: dict(zip(LINE_COLUMNS, row, strict=True)) for row in found}


def rows_shown_at(
    constellation: Constellation, version: int, tasks: Collection[str], dependencies: Collection[str]
) -> ShownRows:
    """Tasks and dependencies of these names as a page showed them at `version`; those that were not there are left out.

    The edits since are taken back in memory; of a version further back than the editor rebases over, the rows are today's.
    """
    there = task_rows(tasks_of(constellation).filter(task_id__in=tasks))
    lines = dependency_rows(dependencies_of(constellation).filter(dependency_id__in=dependencies))
    since = Edit.objects.filter(constellation=constellation, version__gt=version).order_by("-version")
    for before in since.values_list("before", flat=True)[:REBASED_OVER] if version < constellation.version else ():
        _take_back(there, before["tasks"], tasks)
        _take_back(lines, before["dependencies"], dependencies)
    return ShownRows(constellation, version, there, lines)


def _take_back(rows: dict[str, Row], before: dict[str, Any], names: Collection[str]) -> None:
    for name, old in before.items():
        if old is None:
            rows.pop(name, None)
        elif name in names:
            rows[name] = {**rows.get(name, {"id": None, "state": "", "reason": ""}), **old}
