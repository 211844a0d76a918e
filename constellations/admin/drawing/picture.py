"""A constellation's graph as a drawing for the server to send: bounded, told by shape and word as well as by colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from django.db.models import Case, Count, IntegerField, Q, Value, When
from django.urls import reverse

from constellations.admin.drawing.layering import Place, place_layers
from constellations.admin.drawing.looks import LOOKS, shown_state
from constellations.admin.shown import dependencies_of, tasks_of
from constellations.analysis import build_digraph, task_layers
from constellations.editor.draft import SKIPPED
from constellations.models import Constellation

DRAWN = 80
"""Tasks of one drawing."""
LINES = 400
"""Dependencies of one drawing."""
LABEL = 19
"""Characters of a task's name in its box."""
WIDTH, HEIGHT = 184, 46
COLUMN, ROW = 248, 60
"""Distance of two boxes; like all measures here in pixels."""
MARGIN = 12
ARROW = 5


@dataclass(frozen=True, slots=True)
class TaskBox:
    """A task in the drawing; `x` and `y` are its upper left corner."""

    x: int
    y: int
    label: str
    title: str
    state: str
    word: str
    shape: str
    link: str


@dataclass(frozen=True, slots=True)
class DependencyLine:
    """A dependency in the drawing."""

    path: str
    title: str
    type: str


@dataclass(frozen=True, slots=True)
class Picture:
    """`boxes` are the tasks that are drawn; `counts` are of all: (state, word, shape, number)."""

    width: int
    height: int
    boxes: list[TaskBox]
    lines: list[DependencyLine]
    counts: list[tuple[str, str, str, int]]
    lines_left_out: bool

    @property
    def total(self) -> int:
        return sum(number for *_, number in self.counts)

    @property
    def left_out(self) -> int:
        return self.total - len(self.boxes)

    @property
    def has_failed(self) -> bool:
        return any(state == "FAILED" for state, *_ in self.counts)

    @property
    def editable(self) -> int:
        return sum(number for state, *_, number in self.counts if state in ("PENDING", "WAITING_DEPENDENCY", "SKIPPED"))


def draw_picture(constellation: Constellation) -> Picture:
    """The drawing of its tasks, in three queries whatever their number."""
    tasks = _tasks(constellation)
    found = dependencies_of(constellation).filter(upstream__in=list(tasks), downstream__in=list(tasks))
    columns = ("upstream_id", "downstream_id", "dependency_id", "type", "condition")
    edges = list(found.values_list(*columns)[: LINES + 1])
    ends = [edge[:2] for edge in edges[:LINES]]
    at, bends = place_layers(task_layers(build_digraph(tasks, ends)), ends)
    return Picture(
        width=max((column * COLUMN + WIDTH for column, _ in at.values()), default=0) + 2 * MARGIN,
        height=max((_y(row) for _, row in [*at.values(), *chain(*bends.values())]), default=0) + HEIGHT // 2 + MARGIN,
        boxes=[_box(task, at[key]) for key, task in tasks.items()],
        lines=[_line(edge, [at[edge[0]], *bends[edge[:2]], at[edge[1]]], tasks) for edge in edges[:LINES]],
        counts=_counts(constellation),
        lines_left_out=len(edges) > LINES,
    )


def _counts(constellation: Constellation) -> list[tuple[str, str, str, int]]:
    skipped = Count("pk", filter=Q(state="CANCELLED", reason__startswith=SKIPPED))
    rows = tasks_of(constellation).order_by().values_list("state").annotate(number=Count("pk"), without=skipped)
    counts = {state: number - without for state, number, without in rows}
    counts["SKIPPED"] = sum(without for *_, without in rows)
    return [(state, *LOOKS[state], counts[state]) for state in LOOKS if counts.get(state)]


def _tasks(constellation: Constellation) -> dict[int, dict[str, Any]]:
    """Those that are drawn, oldest first."""
    rank = Case(
        *(When(state=state, then=Value(place)) for place, state in enumerate(LOOKS)),
        default=Value(len(LOOKS)), output_field=IntegerField(),
    )  # fmt: skip
    rows = tasks_of(constellation).annotate(rank=rank).order_by("rank", "id")
    found = rows.values("id", "task_id", "name", "state", "reason")[:DRAWN]
    return {row["id"]: dict(row) for row in sorted(found, key=lambda row: row["id"])}


def _box(task: Mapping[str, Any], place: Place) -> TaskBox:
    state = shown_state(task)
    word, shape = LOOKS[state]
    label = task["task_id"] if len(task["task_id"]) <= LABEL else f"{task['task_id'][: LABEL - 1]}…"
    lines = [task["task_id"], task["name"] if task["name"] != task["task_id"] else "", word, task["reason"]]
    return TaskBox(
        _x(place[0]), _y(place[1]) - HEIGHT // 2, label, "\n".join(filter(None, lines)), state, word, shape,
        reverse("admin:constellations_task_change", args=(task["id"],)),
    )  # fmt: skip


def _x(column: int) -> int:
    return MARGIN + column * COLUMN


def _y(row: float) -> int:
    return MARGIN + round(row * ROW)


def _line(edge: tuple[Any, ...], way: Sequence[Place], tasks: Mapping[int, Mapping[str, Any]]) -> DependencyLine:
    """From box to box, straight through the layers that it passes, and bent between them."""
    upstream, downstream, name, kind, condition = edge
    path = f"M{_x(way[0][0]) + WIDTH} {_y(way[0][1])}"
    for (column, row), (to_column, to_row) in pairwise(way):
        x, y, to_x, to_y = _x(column) + WIDTH, _y(row), _x(to_column), _y(to_row)
        ends = (to_column, to_row) == way[-1]
        to_x -= ARROW if ends else 0
        bend = (COLUMN - WIDTH) // 2
        path += f"C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}" + ("" if ends else f"h{WIDTH}")
    between = f"{tasks[upstream]['task_id']}>{tasks[downstream]['task_id']}"
    return DependencyLine(path, "\n".join(filter(None, [between, name if name != between else "", kind, condition])), kind)
