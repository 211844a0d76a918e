"""A constellation as another program reads it: its tasks and dependencies by their ids, bounded in rows and bytes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count

from agents.tables import Fields
from constellations.forms import PRIORITIES
from constellations.models import Constellation, Dependency, Task
from constellations.task_progress import same_stream

TASKS = 500
DEPENDENCIES = 2_000
"""Rows that an overview shows."""
BYTES = 100_000
"""Of all its rows, as JSON; tasks come before dependencies."""
VALUE_BYTES = 2_000
"""Of one task's arguments, or result, as JSON; a longer one is left out."""
TEXT = 500
"""Characters of a reason or an error."""

TASK_COLUMNS = (
    "task_id", "name", "state", "reason", "priority", "wanted_device", "device__name", "tool", "arguments", "attempt", "result",
    "error",
)  # fmt: skip
LINE_COLUMNS = ("dependency_id", "upstream__task_id", "downstream__task_id", "type", "condition")


def overview(constellation: Constellation, only: Collection[str] = ()) -> Fields:
    """{"id", "session", "name", "state", "reason", "version", "counts": {state: n}, "tasks", "dependencies", "truncated"}.

    To be read inside `consistent_read`, as the row is. A task's `arguments` and `result` are None where they are longer than
    VALUE_BYTES; `truncated` says that rows are missing. `only`: just the tasks with these ids, and the dependencies into them.
    """
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk)
    lines = same_stream(Dependency.objects.filter(constellation=constellation), constellation.pk)
    chosen = tasks.filter(task_id__in=only) if only else tasks
    lines = lines.filter(downstream__in=chosen.values("id")) if only else lines
    counts = dict(tasks.order_by().values_list("state").annotate(Count("pk")))
    nodes = (_task(row) for row in chosen.order_by("id").values(*TASK_COLUMNS)[: TASKS + 1])
    edges = (_line(row) for row in lines.order_by("id").values(*LINE_COLUMNS)[: DEPENDENCIES + 1])
    shown_tasks, left, cut_tasks = within(nodes, TASKS, BYTES)
    shown_lines, _, cut_lines = within(edges, DEPENDENCIES, left)
    return {
        "id": constellation.pk, "session": constellation.session_id, "name": constellation.name,
        "state": constellation.state, "reason": constellation.reason[:TEXT], "version": constellation.version,
        "counts": counts, "tasks": shown_tasks, "dependencies": shown_lines, "truncated": cut_tasks or cut_lines,
    }  # fmt: skip


def within(rows: Iterable[Fields], limit: int, size: int) -> tuple[list[Fields], int, bool]:
    """The first of `rows`, at most `limit` and `size` bytes as JSON; the bytes that are left; whether any are missing."""
    shown: list[Fields] = []
    for row in rows:
        taken = size_of(row)
        if len(shown) == limit or taken > size:
            return shown, size, True
        shown.append(row)
        size -= taken
    return shown, size, False


def small(value: Any) -> Any:
    """A JSON value, or None where it is longer than VALUE_BYTES."""
    return value if size_of(value) <= VALUE_BYTES else None


def size_of(value: Any) -> int:
    """Bytes as JSON, of any numbers: PostgreSQL gives 1e+25 back as a whole number, which is beyond orjson."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _task(row: Fields) -> Fields:
    return {
        "task_id": row["task_id"], "name": row["name"], "state": row["state"], "reason": row["reason"],
        "priority": PRIORITIES[row["priority"]], "wanted_device": row["wanted_device"], "device": row["device__name"],
        "tool": row["tool"], "arguments": small(row["arguments"]), "attempt": row["attempt"], "result": small(row["result"]),
        "error": row["error"][:TEXT],
    }  # fmt: skip


def _line(row: Fields) -> Fields:
    return {
        "dependency_id": row["dependency_id"], "from": row["upstream__task_id"], "to": row["downstream__task_id"],
        "type": row["type"], "condition": row["condition"],
    }  # fmt: skip
