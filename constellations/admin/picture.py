"""The graph on a constellation's page: its rows, bounded, for the dashboard's own drawing, and counts of its tasks.

The page's script (static/constellations/picture.js) hands the rows to the module that draws graphs in the dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, Value, When
from django.urls import reverse

from agents.masks.values import mask_text
from constellations.admin.shown import dependencies_of, tasks_of
from constellations.editor.draft import SKIPPED, is_skipped
from constellations.models import Constellation

DRAWN = 150
"""Tasks of one drawing."""
LINES = 600
"""Dependencies of one drawing."""
WORDS = {
    "RUNNING": "running", "FAILED": "failed", "PENDING": "pending", "WAITING_DEPENDENCY": "waiting", "COMPLETED": "completed",
    "SKIPPED": "skipped", "CANCELLED": "cancelled",
}  # fmt: skip
"""The word of each state: first what is at work, what went wrong, what comes next."""
TASK_COLUMNS = (
    "id", "task_id", "name", "state", "reason", "error", "attempt", "attempts_before", "max_attempts",
    "device_id", "wanted_device", "device_type", "capabilities", "started_at", "ended_at",
)  # fmt: skip
LINE_COLUMNS = ("id", "upstream_id", "downstream_id", "dependency_id", "type", "condition")
ERROR = 200
"""Characters of an error that are told."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`rows`: {"task": [...], "dependency": [...]} as the fold has them but for what is empty, of the tasks that
    are drawn; `counts` are of all.
    """

    constellation: int
    rows: dict[str, list[dict[str, Any]]]
    counts: dict[str, int]
    lines_left_out: bool

    @property
    def drawn(self) -> int:
        return len(self.rows["task"])

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def left_out(self) -> int:
        return self.total - self.drawn

    @property
    def has_failed(self) -> bool:
        return bool(self.counts.get("FAILED"))

    @property
    def editable(self) -> int:
        return sum(self.counts.get(state, 0) for state in ("PENDING", "WAITING_DEPENDENCY", "SKIPPED"))

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script begins with."""
        task = reverse("admin:constellations_task_change", args=(0,))
        return {"constellation": self.constellation, "rows": self.rows, "counts": self.counts, "task": task}


def picture_of(constellation: Constellation) -> Picture:
    """In three queries, whatever the number of its tasks."""
    tasks = _drawn_tasks(constellation)
    ids = [task["id"] for task in tasks]
    found = dependencies_of(constellation).filter(upstream__in=ids, downstream__in=ids)
    lines = [_sparse(dict(row)) for row in found.values(*LINE_COLUMNS)[: LINES + 1]]
    rows = {"task": tasks, "dependency": lines[:LINES]}
    return Picture(constellation.pk, rows, _count_states(constellation), lines_left_out=len(lines) > LINES)


def shown_state(task: Mapping[str, Any]) -> str:
    """Its state, or SKIPPED for one that was cancelled because it could never start."""
    return "SKIPPED" if is_skipped(task) else task["state"]


def _count_states(constellation: Constellation) -> dict[str, int]:
    skipped = Count("pk", filter=Q(state="CANCELLED", reason__startswith=SKIPPED))
    rows = tasks_of(constellation).order_by().values_list("state").annotate(number=Count("pk"), without=skipped)
    counts = {state: number - without for state, number, without in rows}
    counts["SKIPPED"] = sum(without for *_, without in rows)
    return {state: counts[state] for state in WORDS if counts.get(state)}


def _drawn_tasks(constellation: Constellation) -> list[dict[str, Any]]:
    """Oldest first; where there are too many, those that run, then those that failed, then the next in line."""
    rank = Case(
        *(When(state=state, then=Value(place)) for place, state in enumerate(WORDS)),
        default=Value(len(WORDS)), output_field=IntegerField(),
    )  # fmt: skip
    rows = tasks_of(constellation).annotate(rank=rank, device_name=F("device__name")).order_by("rank", "id")
    found = [dict(row) for row in rows.values(*TASK_COLUMNS, "device_name")[:DRAWN]]
    for row in found:
        row["error"] = mask_text(row["error"][:ERROR])
    return sorted((_sparse(row) for row in found), key=lambda row: row["id"])


def _sparse(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: the script fills that in."""
    return {name: value for name, value in row.items() if value not in (None, "", [], 0)}
