"""How far a task is, read from the records of the agents at work on it. Every read is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.utils import timezone

from agents import ids
from agents.models import Approval, PhaseRecord
from agents.reads.agents import agents_below
from constellations.models import Attempt, Task

FILES = 200
"""Names of changed files that are shown."""
PHASES = 1_000
"""Records of phases, those of app agents included, that are looked at."""
APPROVALS = 100
"""The first that wait."""

Rows = TypeVar("Rows", bound=Model)


def same_stream(queryset: QuerySet[Rows], row: int) -> QuerySet[Rows]:
    """Rows of the stream that `row` belongs to: a range of primary keys, which the foreign keys have no index for."""
    low, high = ids.row_range(row >> ids.BITS)
    return queryset.filter(id__gte=low, id__lt=high)


def waiting_approvals(task: Task) -> list[Approval]:
    """What the task waits for from outside, the oldest first."""
    waiting = Approval.objects.filter(state="waiting", subject_id=task.pk)
    return list(same_stream(waiting, task.pk).order_by("id")[:APPROVALS])


def progress_of(task: Task, attempt: Attempt | None) -> dict[str, Any]:
    """The numbers of `attempt`, its latest: phases of its host agent, files and tests of all its agents."""
    records: list[PhaseRecord] = []  # of the attempt's host agent and of those it delegated to, in the order they began
    if attempt is not None and task.phases:
        agents = [attempt.agent_id, *agents_below(attempt.agent_id)]
        records = list(PhaseRecord.objects.filter(agent__in=agents).order_by("id")[:PHASES])
    host = [record for record in records if attempt is not None and record.agent_id == attempt.agent_id]
    files = sorted({name for record in records for name in record.files_changed})
    return {
        "phases_done": sum(record.ended_at is not None for record in host),
        "phases_total": host[-1].total if host else len(task.phases),
        "elapsed_s": None if attempt is None else elapsed_seconds(attempt),
        "files_changed": files[:FILES],
        "files_changed_total": len(files),
        "tests": count_tests(record.tests for record in records),
    }


def elapsed_seconds(attempt: Attempt) -> float:
    """Seconds from its start to its end, or until now."""
    return max(0.0, ((attempt.ended_at or timezone.now()) - attempt.started_at).total_seconds())


def count_tests(results: Iterable[list[dict[str, Any]]]) -> dict[str, int]:
    """Of each test the latest result counts: {passed, failed}."""
    latest = {result["name"]: bool(result["passed"]) for found in results for result in found}
    passed = sum(latest.values())
    return {"passed": passed, "failed": len(latest) - passed}
