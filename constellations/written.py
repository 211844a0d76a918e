"""Tasks of a constellation as they would be written: all that can be edited of them, in the words of a plan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agents.tables import Fields
from constellations.dialects import plan_words
from constellations.forms import TASK_DEFAULTS
from constellations.models import Constellation, Dependency, Task
from constellations.overview import BYTES, DEPENDENCIES, within
from constellations.task_progress import same_stream

LINE_COLUMNS = ("dependency_id", "upstream__task_id", "downstream__task_id", "type", "condition", "description")


def written(constellation: Constellation, task_ids: Collection[str]) -> Fields:
    """{"tasks", "dependencies": those into them, "truncated"}, as `build_constellation` takes them: what is not said has its
    default. Tasks come before dependencies; all of it has at most BYTES as JSON. Ids that no task has are left out.
    """
    tasks = same_stream(Task.objects.filter(constellation=constellation, task_id__in=task_ids), constellation.pk)
    lines = same_stream(Dependency.objects.filter(downstream__in=tasks.values("id")), constellation.pk)
    nodes = (plan_words.task(row) for row in tasks.order_by("id").values(*TASK_DEFAULTS))
    edges = (_line(row) for row in lines.order_by("id").values(*LINE_COLUMNS)[: DEPENDENCIES + 1])
    shown, left, cut = within(nodes, len(task_ids), BYTES)
    tied, _, cut_lines = within(edges, DEPENDENCIES, left)
    return {"tasks": shown, "dependencies": tied, "truncated": cut or cut_lines}


def _line(row: dict[str, Any]) -> Fields:
    ends = {"from": row["upstream__task_id"], "to": row["downstream__task_id"]}
    return plan_words.dependency(row | ends)
