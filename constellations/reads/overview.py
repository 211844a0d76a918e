"""A constellation as another program reads it: a page of its tasks, and the dependencies into them, bounded in rows and bytes.

Nothing is left out without a word: see `constellations.reads.addresses`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from agents.masks.search import visibly_fitting
from agents.streams.tables import Fields
from constellations.models import Constellation, Dependency, Task
from constellations.plan.tasks import PRIORITIES
from constellations.reads.addresses import (
    describe_cut,
    json_text,
    leave_out,
    of_constellation,
    of_task,
    shorten_text,
    with_cuts,
)
from constellations.reads.progress import same_stream

TASKS = 500
DEPENDENCIES = 2_000
"""Rows that an overview shows."""
BYTES = 100_000
"""Of all its rows, as JSON."""
VALUE_BYTES = 2_000
"""Of one task's arguments, or result, as JSON; a longer one is left out."""
TEXT = 500
"""Characters of a reason or an error."""

TASK_COLUMNS = (
    "id", "task_id", "name", "state", "reason", "priority", "wanted_device", "device__name", "tool", "arguments", "attempt",
    "result", "error", "replaces",
)  # fmt: skip
LINE_COLUMNS = ("dependency_id", "upstream__task_id", "downstream__task_id", "type", "condition")


@dataclass(frozen=True)
class Part:
    """Of which tasks an overview is: `only` those ids, those in a state, those whose id or name has the text `name`, those
    after the task whose row is `after`, at most `limit`."""

    only: Collection[str] = ()
    state: str = ""
    name: str = ""
    after: int = 0
    limit: int | None = None


def read_overview(constellation: Constellation, part: Part | None = None) -> Fields:
    """A page of the constellation's tasks, by the order in which they were made, each with the dependencies into it.

    {"id", "session", "name", "state", "reason", "version", "counts": {state: n} of all its tasks, "matching": how many tasks
    fit the `part`, "tasks", "dependencies", "next": what to give as `after` for the next page, "truncated", "cut"}. To be
    read inside `consistent_read`, as the row is.
    """
    part = part or Part()
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk)
    counts = dict(tasks.order_by().values_list("state").annotate(Count("pk")))
    fitting = tasks
    if part.only:
        fitting = fitting.filter(task_id__in=part.only)
    if part.state:
        fitting = fitting.filter(state=part.state)
    if part.name:
        word = part.name.lower()
        fitting = fitting.filter(Q(task_id__icontains=part.name) | Q(name__icontains=part.name))
        # a secret in a name is hidden, so nobody may find out by searching what stands there
        fitting = visibly_fitting(fitting, ("task_id", "name"), lambda shown: any(word in text.lower() for text in shown))
    matching = fitting.count() if part.only or part.state or part.name else sum(counts.values())
    limit = TASKS if part.limit is None else min(part.limit, TASKS)
    found = list(fitting.filter(id__gt=part.after).order_by("id").values(*TASK_COLUMNS)[: limit + 1])
    page = _page(constellation, found[:limit], len(found) > limit)
    row: Fields = {
        "id": constellation.pk, "session": constellation.session_id, "name": constellation.name,
        "state": constellation.state, "reason": constellation.reason, "version": constellation.version, "counts": counts,
        "matching": matching, **page,
    }  # fmt: skip
    cuts = shorten_text(row, "reason", TEXT, of_constellation(constellation.pk, "reason"))
    if page["next"] is not None or part.after:
        rest = f"get_constellation with after: {page['next']}" if page["next"] else "the pages before this one"
        cuts.append(describe_cut("tasks", len(page["tasks"]), matching, "items", rest))
    return with_cuts(row, cuts, row.pop("cut"))


def _page(constellation: Constellation, rows: Sequence[Fields], more: bool) -> Fields:
    """As many of these tasks as fit, each with all dependencies into it; of the first alone as many as fit."""
    lines: dict[str, list[Fields]] = {}  # dependencies by the task_id that waits
    into = Dependency.objects.filter(constellation=constellation, downstream__in=[row["id"] for row in rows])
    for line in same_stream(into, constellation.pk).order_by("id").values(*LINE_COLUMNS):
        lines.setdefault(line["downstream__task_id"], []).append({
            "dependency_id": line["dependency_id"], "from": line["upstream__task_id"], "to": line["downstream__task_id"],
            "type": line["type"], "condition": line["condition"],
        })  # fmt: skip
    tasks: list[Fields] = []
    dependencies: list[Fields] = []
    cuts: list[Fields] = []
    size = BYTES
    for row in rows:
        task, own = _task(constellation.pk, row), lines.get(row["task_id"], [])
        shown, left, fewer = take_within(own, DEPENDENCIES - len(dependencies), size - size_of(task))
        if tasks and (fewer or left < 0):
            more = True
            break
        if fewer:
            rest = of_task(constellation.pk, row["task_id"], "dependencies")
            cuts.append(describe_cut("dependencies", len(shown), len(own), "items", rest))
        tasks.append(task)
        dependencies += shown
        size = left
    following = rows[len(tasks) - 1]["id"] if more else None
    return {"tasks": tasks, "dependencies": dependencies, "next": following, "cut": cuts}


def _task(constellation: int, row: Fields) -> Fields:
    task = {
        "task_id": row["task_id"], "name": row["name"], "state": row["state"], "reason": row["reason"],
        "priority": PRIORITIES[row["priority"]], "device": row["wanted_device"], "runs_on": row["device__name"],
        "tool": row["tool"], "arguments": row["arguments"], "attempt": row["attempt"], "result": row["result"],
        "error": row["error"], "replaces": row["replaces"],
    }  # fmt: skip
    name = row["task_id"]
    return with_cuts(
        task,
        leave_out(task, "arguments", VALUE_BYTES, of_task(constellation, name, "arguments")),
        leave_out(task, "result", VALUE_BYTES, of_task(constellation, name, "result")),
        shorten_text(task, "error", TEXT, of_task(constellation, name, "error")),
    )


def take_within(rows: Iterable[Fields], limit: int, size: int) -> tuple[list[Fields], int, bool]:
    """The first of `rows`, at most `limit` and `size` bytes as JSON; the bytes that are left; whether any are missing."""
    shown: list[Fields] = []
    for row in rows:
        taken = size_of(row)
        if len(shown) == limit or taken > size:
            return shown, size, True
        shown.append(row)
        size -= taken
    return shown, size, False


def size_of(value: Any) -> int:
    """Bytes as JSON."""
    return len(json_text(value).encode())
