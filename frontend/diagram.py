"""A machine's table as a drawing: states on a diagonal, every edge a line with one bend. Pure.

A state has a row and a column of its own, so a line from row to column meets no other state, and its labels have the
cell before its bend for themselves: nothing can overlap, however dense the table. Lines that lead on are above the
diagonal and enter a state from above; lines that lead back are below it and enter from below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from agents.machines import ANY, Machine
from frontend.words import ANY_STATE, labelled_edges

STATE_CHAR = 7.5
LABEL_CHAR = 7.0
"""Widths of a character of the monospaced font at the sizes of machines.css; like all measures here in pixels."""
STATE_HEIGHT = 34
STATE_PADDING = 14
LABEL_LINE = 15
LABEL_GAP = 12
"""Between a label and the lines left and right of it."""
ROW_GAP = 12
BEND = 9
ARROW = 3
LOOP = 26
MARGIN = 16
START = 30
"""Length of the arrow into the initial state."""
BACKWARD_COST = 3
"""An edge that leads back makes an order of the states worse by as many columns."""
ROUNDS = 20
"""Of improving the order; it comes to rest after a few."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StateNode:
    """A state: its middle and its width. `kind` is initial, terminal, any or plain."""

    name: str
    kind: str
    x: int
    y: int
    width: int

    @property
    def left(self) -> int:
        return self.x - self.width // 2

    @property
    def right(self) -> int:
        return self.x + self.width // 2

    @property
    def top(self) -> int:
        return self.y - STATE_HEIGHT // 2

    @property
    def bottom(self) -> int:
        return self.y + STATE_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """Event and guard, and where the text ends (`anchor` end) or begins (start)."""

    event: str
    guard: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """All rows from one state to another: one path, one label a row."""

    source: str
    target: str
    path: str
    anchor: str
    labels: tuple[EdgeLabel, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    width: int
    height: int
    start: str
    nodes: tuple[StateNode, ...]
    edges: tuple[DiagramEdge, ...]

    @property
    def has_any(self) -> bool:
        return any(node.kind == "any" for node in self.nodes)


def draw_diagram(machine: Machine) -> Diagram:
    """The drawing of a machine; the same for the same table."""
    found = labelled_edges(machine)
    order = order_states(machine, found)
    kinds = {
        **dict.fromkeys(order, "plain"), machine.initial: "initial", **dict.fromkeys(machine.terminal, "terminal"),
        ANY_STATE: "any",
    }  # fmt: skip
    places = zip(order, _columns(order, found), _rows(order, found), strict=True)
    nodes = tuple(StateNode(state, kinds[state], x, y, _state_width(state)) for state, x, y in places)
    by_name = {node.name: node for node in nodes}
    drawn = tuple(_edge(by_name[source], by_name[target], labels) for (source, target), labels in found.items())
    loops = {node: found.get((node.name, node.name)) for node in nodes}
    rights = (node.x + (_loop_room(node.name, labels) if labels else node.width / 2) for node, labels in loops.items())
    first = nodes[0]
    return Diagram(
        width=round(max(rights) + MARGIN),
        height=nodes[-1].bottom + _below(nodes[-1].name, found) + MARGIN,
        start=f"M{first.left - START} {first.y}H{first.left - ARROW}",
        nodes=nodes,
        edges=drawn,
    )


def order_states(machine: Machine, pairs: Iterable[Pair]) -> list[str]:
    """The states along the diagonal: the initial one first, the terminal ones last, short and forward edges between.

    Each state in turn moves to where the edges are best served, until none wants to move: so the order is a good one,
    not always the best.
    """
    inner = [state for state in machine.states if state != machine.initial and state not in machine.terminal]
    last = [state for state in machine.states if state in machine.terminal]
    last = [ANY_STATE, *last] if any(row.source == ANY for row in machine.rows) else last
    pairs = [pair for pair in pairs if pair[0] != pair[1]]

    def cost(order: list[str]) -> int:
        place = {state: number for number, state in enumerate([machine.initial, *order, *last])}
        spans = (place[target] - place[source] for source, target in pairs)
        return sum(span if span > 0 else BACKWARD_COST - span for span in spans)

    for _ in range(ROUNDS):
        before = list(inner)
        for state in before:
            rest = [other for other in inner if other != state]
            orders = [[*rest[:place], state, *rest[place:]] for place in range(len(inner))]
            inner = min([inner, *orders], key=cost)
        if inner == before:
            break
    return [machine.initial, *inner, *last]


def _columns(order: list[str], found: dict[Pair, list[Pair]]) -> list[int]:
    """The middles of the columns: between two of them is room for every label that stands there."""
    xs = [MARGIN + START + _state_width(order[0]) // 2]
    place = {state: number for number, state in enumerate(order)}
    for left, right in pairwise(order):
        needed = [_state_width(left) / 2 + LABEL_GAP]
        for (source, target), labels in found.items():
            onward = place[source] < place[target]
            room = _labels_width(labels) + 2 * LABEL_GAP
            if source == target:
                needed.append(_loop_room(source, labels) if source == left else 0.0)
            elif onward and target == right:
                needed.append(room + (_state_width(left) / 2 if source == left else 0))
            elif not onward and target == left:
                needed.append(room + (_state_width(right) / 2 if source == right else 0))
        xs.append(xs[-1] + round(max(needed)))
    return xs


def _rows(order: list[str], found: dict[Pair, list[Pair]]) -> list[int]:
    """The middles of the rows: above each is room for the most labels that stand in one of its cells."""
    ys: list[int] = []
    bottom = MARGIN - ROW_GAP
    for state in order:
        stacks = [len(labels) for (source, target), labels in found.items() if source == state != target]
        above = max(STATE_HEIGHT // 2, max(stacks, default=0) * LABEL_LINE + 4)
        ys.append(bottom + ROW_GAP + above)
        bottom = ys[-1] + STATE_HEIGHT // 2 + _below(state, found)
    return ys


def _below(state: str, found: dict[Pair, list[Pair]]) -> int:
    """Height of a state's edge to itself."""
    labels = found.get((state, state), ())
    return 10 + LABEL_LINE * (len(labels) - 1) if labels else 0


def _loop_room(state: str, labels: list[Pair]) -> float:
    return _state_width(state) / 2 + _labels_width(labels) + LABEL_GAP


def _state_width(state: str) -> int:
    return 2 * round((len(state) * STATE_CHAR) / 2 + STATE_PADDING)


def _labels_width(labels: list[Pair]) -> float:
    return max(len(event) + (len(guard) + 3 if guard else 0) for event, guard in labels) * LABEL_CHAR


def _edge(source: StateNode, target: StateNode, labels: list[Pair]) -> DiagramEdge:
    if source is target:  # from its lower edge back to it
        end = source.right - 10
        path = f"M{end - LOOP} {source.bottom}v5q0 8 8 8h{LOOP - 16}q8 0 8 -8v-{5 - ARROW}"
        return DiagramEdge(source.name, source.name, path, "start", _stack(labels, end + 7, source.bottom + 13))
    onward = source.x < target.x
    if onward:
        path = f"M{source.right} {source.y}H{target.x - BEND}q{BEND} 0 {BEND} {BEND}V{target.top - ARROW}"
    else:
        path = f"M{source.left} {source.y}H{target.x + BEND}q-{BEND} 0 -{BEND} -{BEND}V{target.bottom + ARROW}"
    x = target.x - LABEL_GAP if onward else target.x + LABEL_GAP
    first = source.y - 5 - LABEL_LINE * (len(labels) - 1)
    return DiagramEdge(source.name, target.name, path, "end" if onward else "start", _stack(labels, x, first))


def _stack(labels: list[Pair], x: int, first: int) -> tuple[EdgeLabel, ...]:
    return tuple(EdgeLabel(event, guard, x, first + LABEL_LINE * number) for number, (event, guard) in enumerate(labels))
