"""Pages of the state machines: the tables that everything follows, and how many rows are in each state now."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents.machines import Machine, Row
from agents.models import Actor, Agent, Loop, Session
from constellations.models import Constellation, Task
from frontend import words
from frontend.diagram import Diagram, StateNode, draw_diagram

BADGE_LIMIT = 9_999
"""Beyond it a state's badge counts in thousands; the table beside has the number."""

BADGE_INSIDE = 12
"""Pixels of a badge that lie within its state's frame."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """What the page says about a state; `node` is its place in the diagram."""

    node: StateNode
    count: int
    round_end: bool
    subtask_end: bool

    @property
    def badge(self) -> str:
        return str(self.count) if self.count <= BADGE_LIMIT else f"{self.count // 1000}k"

    @property
    def badge_width(self) -> int:
        return 7 * len(self.badge) + 12

    @property
    def badge_left(self) -> int:
        """It hangs at the lower left corner and grows outwards, where no edge enters the state."""
        return self.node.left + BADGE_INSIDE - self.badge_width


@require_GET
@login_required
def machines_page(request: HttpRequest) -> HttpResponse:
    """The seven machines, a line each."""
    found = [
        {"machine": machine, "title": words.machine_title(machine), "line": words.machine_line(machine)}
        for machine in words.MACHINES
    ]
    return render(request, "frontend/machines.html", {"machines": found})


@require_GET
@login_required
def machine_page(request: HttpRequest, name: str) -> HttpResponse:
    """One machine: its diagram, its states with the rows in them that the user may see, its table."""
    found = machine_named(name)
    context = {
        "machine": found,
        "title": words.machine_title(found),
        "line": words.machine_line(found),
        "others": [(other.name, words.machine_title(other)) for other in words.MACHINES],
        "diagram": diagram_of(name),
        "states": state_rows(found, count_states(name, Session.objects.visible_to(request.user))),
        "rows": [table_row(row) for row in found.rows],
    }
    return render(request, "frontend/machine.html", context)


@require_GET
@login_required
def machine_diagram(request: HttpRequest, name: str) -> JsonResponse:
    """The drawing of one machine as numbers, in pixels: {width, height, start, nodes, edges} as in `Diagram`."""
    return JsonResponse(asdict(diagram_of(machine_named(name).name)))


def machine_named(name: str) -> Machine:
    """The machine of that name; 404 where there is none."""
    found = next((machine for machine in words.MACHINES if machine.name == name), None)
    if found is None:
        raise Http404(f"there is no machine called {name}")
    return found


def table_row(row: Row) -> dict[str, Any]:
    """A row as the page's table shows it."""
    return {"row": row, "source": words.source_name(row), "guard": words.guard_words(row.guard), "note": note_parts(row.note)}


def note_parts(note: str) -> list[tuple[bool, str]]:
    """A note in pieces, each with whether it is code: what stands between backquotes."""
    return [(place % 2 == 1, part) for place, part in enumerate(note.split("`")) if part]


@cache
def diagram_of(name: str) -> Diagram:
    """Drawn once in a process: tables do not change while it runs."""
    return draw_diagram(next(machine for machine in words.MACHINES if machine.name == name))


def state_rows(machine: Machine, counted: dict[str, int]) -> list[StateRow]:
    """The states in the order of the diagram; `Any state` is none."""
    return [
        StateRow(node, counted.get(node.name, 0), node.name in machine.round_end, node.name in machine.subtask_end)
        for node in diagram_of(machine.name).nodes
        if node.kind != "any"
    ]


def count_states(name: str, visible: QuerySet[Session]) -> dict[str, int]:
    """Rows by state, among those of the sessions in `visible`; one query."""
    rows: QuerySet
    if name == "actor":
        rows = Actor.objects.filter(session__in=visible)
    elif name == "task":
        rows = Task.objects.filter(constellation__session__in=visible)
    elif name == "constellation":
        rows = Constellation.objects.filter(session__in=visible)
    elif name == "tool_loop":
        rows = Loop.objects.filter(agent__session__in=visible)
    else:
        rows = Agent.objects.filter(machine=name, session__in=visible)
    return dict(rows.order_by().values_list("state").annotate(Count("id")))
