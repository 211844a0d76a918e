"""A constellation as another program reads it: a page of its tasks, and the dependencies into them, bounded in rows and bytes.

Nothing is left out without a word: see `constellations.reads.excerpts.addresses`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q

from agents.masks.search import filter_visible
from agents.streams.tables import Fields
from constellations.models import Constellation, Dependency, Task
from constellations.plan.keys.fields import DEPENDENCY, LINE_COLUMNS, TASK
from constellations.plan.keys.kinds import Lists
from constellations.reads.excerpts.addresses import (
    describe_cut,
    json_text,
    leave_out,
    of_constellation,
    of_task,
    shorten_text,
    with_cuts,
)
from constellations.reads.excerpts.narrowing import FILTERS, having
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

KEYS = tuple(each for each in TASK if Lists.MCP in each.lists)
"""Of a task that it shows, beside how far that has come."""
TASK_COLUMNS = ("id", "state", "reason", "device__name", "attempt", "result", "error", *(each.name for each in KEYS))
LINES = {each.key: LINE_COLUMNS[each.key] for each in DEPENDENCY if Lists.MCP in each.lists}
"""What it shows of a dependency, and where a query finds that."""


@dataclass(frozen=True)
class OverviewPart:
    """Of which tasks an overview is: `only` those ids, those in a state, those whose id or name has the text `name`, those
    `with_names` in lists (narrowing.FILTERS), those after the task whose row is `after`, at most `limit`."""

    only: Collection[str] = ()
    state: str = ""
    name: str = ""
    with_names: Mapping[str, str] = field(default_factory=dict)
    after: int = 0
    limit: int | None = None


def read_overview(constellation: Constellation, part: OverviewPart | None = None) -> Fields:
    """A page of the constellation's tasks, by the order in which they were made, each with the dependencies into it.

    {"id", "session", "name", "state", "reason", "version", "counts": {state: n} of all its tasks, "matching": how many tasks
    fit the `part`, "tasks", "dependencies", "next": what to give as `after` for the next page, "truncated", "cut"}. To be
    read inside `consistent_read`, as the row is.
    """
    part = part or OverviewPart()
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk)
    counts = dict(tasks.order_by().values_list("state").annotate(Count("pk")))
    fitting = tasks
    if part.only:
        fitting = fitting.filter(task_id__in=part.only)
    if part.state:
        fitting = fitting.filter(state=part.state)
    for key, label in part.with_names.items():
        fitting = having(fitting, FILTERS[key], label)
    if part.name:
        word = part.name.lower()
        fitting = fitting.filter(Q(task_id__icontains=part.name) | Q(name__icontains=part.name))
        # a secret in a name is hidden, so nobody may find out by searching what stands there
        fitting = filter_visible(fitting, ("task_id", "name"), lambda shown: any(word in text.lower() for text in shown))
    is_narrow = part.only or part.state or part.name or part.with_names
    matching = fitting.count() if is_narrow else sum(counts.values())
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
    for found in same_stream(into, constellation.pk).order_by("id").values(*LINES.values()):
        line = {key: found[column] for key, column in LINES.items()}
        lines.setdefault(line["to"], []).append(line)
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
    task = {each.key: each.word_of(row[each.name]) for each in KEYS}
    task |= {key: row[key] for key in ("state", "reason", "attempt", "result", "error")} | {"runs_on": row["device__name"]}
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
