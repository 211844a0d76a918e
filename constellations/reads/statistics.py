"""The shape of a constellation and where its time went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Sum
from django.utils import timezone

from agents.machines import MACHINES
from agents.models import Transition
from constellations import analysis
from constellations.machines import CONSTELLATION, TASK
from constellations.machines.constellation import CLOSED
from constellations.models import Attempt, Constellation, Dependency, Task
from constellations.reads.progress import same_stream

ROWS = 200_000
"""Tasks, and dependencies, of a graph whose shape is computed."""
PATH = 1_000
"""Tasks of a path that are named, from its first."""


@dataclass(frozen=True)
class Figures:
    """What statistics are made of: {task's key: task_id}, (upstream, downstream) keys, tasks by state, seconds.

    `work` has the seconds of all attempts of a task, by its key.
    """

    version: int
    nodes: dict[int, str]
    lines: list[tuple[int, int]]
    counts: dict[str, int]
    work: dict[int, float]
    wall_s: float
    waiting_s: float


def figures_of(constellation: Constellation) -> Figures:
    """Read them inside `consistent_read`; the row too."""
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk)
    edges = same_stream(Dependency.objects.filter(constellation=constellation), constellation.pk)
    nodes = dict(tasks.order_by("id").values_list("pk", "task_id")[: ROWS + 1])
    lines = list(edges.values_list("upstream_id", "downstream_id")[: ROWS + 1])
    counts = dict(tasks.order_by().values_list("state").annotate(Count("pk")))
    times = _wall(constellation), _waiting(constellation)
    return Figures(constellation.version, nodes, lines, counts, _work(constellation), *times)


def statistics_of(figures: Figures) -> dict[str, Any]:
    """See constellations.api.edit_serializers.ConstellationStatistics; times are in seconds."""
    nodes, lines, counts = figures.nodes, figures.lines, figures.counts
    truncated = len(nodes) > ROWS or len(lines) > ROWS
    graph = analysis.build_digraph(() if truncated else nodes, () if truncated else lines)
    layers = analysis.task_layers(graph)
    order = [key for layer in layers for key in layer]
    longest = analysis.longest_path(graph, order)
    slowest, slowest_s = analysis.heaviest_path(graph, figures.work, order)
    return {
        "version": figures.version,
        "total": sum(counts.values()),
        "by_state": {state: counts.get(state, 0) for state in MACHINES[TASK.name].states},
        "dependencies": len(lines),
        "critical_path": [nodes[key] for key in longest[:PATH]],
        "critical_path_length": len(longest),
        "slowest_path": [nodes[key] for key in slowest[:PATH]],
        "slowest_path_s": round(slowest_s, 6),
        "layers": len(layers),
        "max_width": max(map(len, layers), default=0),
        "parallelism_ratio": round(len(graph) / len(longest), 3) if longest else 0.0,
        "truncated": truncated,
        "wall_s": figures.wall_s,
        "work_s": round(sum(figures.work.values()), 6),
        "waiting_s": figures.waiting_s,
    }


def _seconds(span: timedelta | None) -> float:
    return 0.0 if span is None else round(max(0.0, span.total_seconds()), 6)


def _wall(constellation: Constellation) -> float:
    """Seconds from its creation to its end, or until now, without those in which it was closed and then reopened."""
    span = (constellation.ended_at or timezone.now()) - constellation.created_at
    history = Transition.objects.filter(machine=CONSTELLATION.name, from_state__in=CLOSED, subject_id=constellation.pk)
    closed = history.order_by().aggregate(s=Sum("spent"))["s"] or 0.0
    return _seconds(span - timedelta(seconds=closed))


def _work(constellation: Constellation) -> dict[int, float]:
    """Seconds of all attempts of each task that has begun, by its key; of those that run until now."""
    attempts = same_stream(Attempt.objects.filter(task__constellation=constellation), constellation.pk).order_by()
    now, found = timezone.now(), dict[int, float]()
    for task, begin, end in attempts.values_list("task_id", "started_at", "ended_at"):
        found[task] = found.get(task, 0.0) + _seconds((end or now) - begin)
    return found


def _waiting(constellation: Constellation) -> float:
    """Seconds that tasks were ready and did not run, until now where they still wait."""
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk).order_by()
    history = Transition.objects.filter(machine=TASK.name, from_state="PENDING", subject_id__in=tasks.values("pk"))
    spent: float = history.order_by().aggregate(s=Sum("spent"))["s"] or 0.0
    now = timezone.now()
    waiting = tasks.filter(state="PENDING").values_list("entered_at", flat=True)
    return round(spent + sum(max(0.0, (now - at).total_seconds()) for at in waiting), 6)
