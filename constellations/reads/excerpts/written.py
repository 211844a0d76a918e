"""Tasks of a constellation as they would be written: all that can be edited of them, in the words of a plan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from agents.streams.tables import Fields
from constellations.models import Constellation, Dependency, Task
from constellations.plan.dialects import plan_words
from constellations.plan.keys.fields import LINE_COLUMNS
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.reads.excerpts.addresses import describe_cut, of_task, with_cuts
from constellations.reads.excerpts.overview import BYTES, DEPENDENCIES, take_within
from constellations.reads.progress import same_stream


def read_written_tasks(constellation: Constellation, task_ids: Collection[str]) -> Fields:
    """{"tasks", "dependencies": those into them, "truncated", "cut"}, as `build_constellation` takes them: what is not said has
    its default. Tasks come before dependencies; all of it has at most BYTES as JSON. Ids that no task has are left out.
    """
    tasks, lines = _rows(constellation, task_ids)
    nodes = [plan_words.write_task(row) for row in tasks.order_by("id").values(*TASK_DEFAULTS)]
    edges = (_line(row) for row in lines.order_by("id").values(*LINE_COLUMNS.values())[: DEPENDENCIES + 1])
    shown, left, fewer = take_within(nodes, len(task_ids), BYTES)
    tied, _, cut_lines = take_within(edges, DEPENDENCIES, left)
    cuts: list[Fields] = []
    if fewer:
        rest = of_task(constellation.pk, nodes[len(shown)]["task_id"], "written")
        cuts.append(
            describe_cut("tasks", len(shown), len(nodes), "items", f"name fewer tasks, or read {rest}, and so of each other")
        )
    if cut_lines:
        rest = "name fewer tasks, or read `dependencies` beside `read_written_tasks` of each task"
        cuts.append(describe_cut("dependencies", len(tied), lines.count(), "items", rest))
    return with_cuts({"tasks": shown, "dependencies": tied}, cuts)


def read_written_task(constellation: Constellation, task_id: str) -> Fields:
    """{"task", "dependencies"}: all of one task that can be edited, however much that is."""
    tasks, lines = _rows(constellation, [task_id])
    nodes = [plan_words.write_task(row) for row in tasks.values(*TASK_DEFAULTS)]
    edges = [_line(row) for row in lines.order_by("id").values(*LINE_COLUMNS.values())]
    return {"task": nodes[0] if nodes else None, "dependencies": edges}


def _rows(constellation: Constellation, task_ids: Collection[str]) -> tuple[QuerySet[Task], QuerySet[Dependency]]:
    tasks = same_stream(Task.objects.filter(constellation=constellation, task_id__in=task_ids), constellation.pk)
    return tasks, same_stream(Dependency.objects.filter(downstream__in=tasks.values("id")), constellation.pk)


def _line(row: dict[str, Any]) -> Fields:
    return plan_words.write_dependency({key: row[column] for key, column in LINE_COLUMNS.items()})
