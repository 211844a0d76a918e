"""A constellation's rows as a graph in memory, and how it follows what others record.

Rows are held as records have them. Whether a dependency of each type holds is said here (`edge_holds`). What follows from it is
decided in `constellations.live.live`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from agents.streams.tables import TABLES, Fields
from constellations import conditions
from constellations.editor.draft import Snapshot, is_skipped
from constellations.errors import ConditionUnknown
from constellations.graph import Graph
from constellations.live.removed import was_there
from constellations.live.row_types import ConstellationRow, LinkedDependency, TaskRow
from constellations.machines.task import ENDED

UNKNOWN = "condition unknown"
"""What the reason of a dependency begins with whose condition could not be evaluated."""


class Edge:
    """A dependency between two nodes. `edge_holds`: None while unknown, else whether it holds; `why` when it never can."""

    __slots__ = ("down", "holds", "row", "up", "why")

    def __init__(self, row: LinkedDependency, up: Node, down: Node):
        self.row, self.up, self.down = row, up, down
        self.holds: bool | None = None
        self.why = ""

    @property
    def condition_failed(self) -> bool:
        """Whether it never holds because a condition could not be evaluated: its own, or one that skipped its upstream."""
        return self.holds is False and (self.why.startswith(UNKNOWN) or self.up.row["condition_failed"])


class Node:
    """A task with its edges; `unmet` counts incoming edges that do not hold (yet)."""

    __slots__ = ("incoming", "key", "outgoing", "rank", "row", "unmet")

    def __init__(self, row: TaskRow):
        self.row, self.key = row, row["task_id"]
        self.incoming: list[Edge] = []
        self.outgoing: list[Edge] = []
        self.unmet = 0
        self.rank = 0

    @property
    def ended(self) -> bool:
        return self.row["state"] in ENDED

    @property
    def skipped(self) -> bool:
        return is_skipped(self.row)


R = TypeVar("R", bound=Mapping[str, Any])
R_co = TypeVar("R_co", bound=Mapping[str, Any], covariant=True)


class HasRow(Protocol[R_co]):
    """A node or an edge."""

    @property
    def row(self) -> R_co: ...


class RowsOf(Mapping[str, R]):
    """The rows of nodes or edges, by their names: a look at them costs nothing, however many there are."""

    __slots__ = ("_of",)

    def __init__(self, of: Mapping[str, HasRow[R]]):
        self._of = of

    def __getitem__(self, key: str) -> R:
        return self._of[key].row

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


class GraphRows:
    """Nodes and edges by their names.

    `open` counts tasks that have not ended, `results` are those of the others, `news` are the nodes whose end is still to be
    told to the planner (their rows say so), by the ids of their rows and in the order in which they ended, `dirty` those that
    were touched by others and must be evaluated again.
    """

    def __init__(self, constellation: ConstellationRow):
        self.constellation = constellation
        self.nodes: dict[str, Node] = {}
        self.edges: dict[str, Edge] = {}
        self.ids: dict[int, Node] = {}
        self.results: dict[str, Any] = {}
        self.news: dict[int, Node] = {}
        self.graph = Graph()
        self.open = 0
        self.dirty: dict[str, None] = {}

    def load(self, tasks: Iterable[TaskRow], dependencies: Iterable[LinkedDependency]) -> None:
        """Fill the graph from rows; evaluates every edge, changes no row."""
        for row in tasks:
            self.add_node(row)
        ended = sorted(self.news.values(), key=lambda node: (node.row["ended_at"] or "", node.row["id"]))
        self.news = {node.row["id"]: node for node in ended}
        for line in dependencies:
            self.link(line)
        self.graph = Graph.build(self.nodes, [(e.up.key, e.down.key) for e in self.edges.values()])
        for edge in self.edges.values():
            self.evaluate_edge(edge)
        for node in self.nodes.values():
            self.count(node)
        self.rank()

    def rank(self) -> None:
        """Order of ready tasks among themselves: who has the longest way to an end goes first."""
        for key, length in self.graph.remaining_path().items():
            self.nodes[str(key)].rank = length

    def copy_from(self, other: GraphRows) -> None:
        """Become as `other` is, with rows of one's own; `other` stays as it is."""
        for key, node in other.nodes.items():
            mine = self.nodes[key] = self.ids[node.row["id"]] = Node(node.row.copy())
            mine.unmet, mine.rank = node.unmet, node.rank
        for key, edge in other.edges.items():
            self.edges[key] = line = Edge(edge.row.copy(), self.nodes[edge.up.key], self.nodes[edge.down.key])
            line.holds, line.why = edge.holds, edge.why
            line.up.outgoing.append(line)
            line.down.incoming.append(line)
        self.results, self.graph, self.open = dict(other.results), other.graph.copy(), other.open
        self.news, self.dirty = {key: self.ids[key] for key in other.news}, dict(other.dirty)

    def release(self) -> None:
        """Nobody needs it any more. Nodes and edges hold each other: left to the collector they would cost it a long look."""
        for node in self.nodes.values():
            node.incoming.clear()
            node.outgoing.clear()

    def snapshot(self) -> Snapshot:
        """What the editor looks at: this graph itself, by reference."""
        return Snapshot(
            version=self.constellation["version"],
            state=self.constellation["state"],
            tasks=RowsOf(self.nodes),
            dependencies=RowsOf(self.edges),
            graph=self.graph,
            was_there=partial(was_there, self.constellation["id"]),
        )

    # --- structure

    def add_node(self, row: TaskRow) -> Node:
        node = Node(row)
        self.nodes[node.key] = self.ids[row["id"]] = node
        if not node.ended:
            self.open += 1
        elif row["result"] is not None:
            self.results[node.key] = row["result"]
        self.note_news(node)
        return node

    def note_news(self, node: Node) -> None:
        """Take up what the row of `node` says about its end: that it is still to be told, or no more."""
        if not node.row["untold"]:
            self.news.pop(node.row["id"], None)
        elif node.row["id"] not in self.news:
            self.news[node.row["id"]] = node

    def link(self, row: LinkedDependency) -> Edge:
        up, down = self.ids[row["upstream_id"]], self.ids[row["downstream_id"]]
        row["from"], row["to"] = up.key, down.key
        edge = self.edges[row["dependency_id"]] = Edge(row, up, down)
        up.outgoing.append(edge)
        down.incoming.append(edge)
        return edge

    def unlink(self, dependency_ids: Iterable[str]) -> list[Edge]:
        """Take dependencies away. A task's edges are gone through once, however many of them go."""
        gone = [self.edges.pop(key) for key in dependency_ids]
        for edge in gone:
            self.graph.remove_edge(edge.up.key, edge.down.key)
        left_out = set(gone)
        for edges in {id(edges): edges for edge in gone for edges in (edge.up.outgoing, edge.down.incoming)}.values():
            edges[:] = [edge for edge in edges if edge not in left_out]
        return gone

    def drop_node(self, key: str) -> Node:
        node = self.nodes.pop(key)
        del self.ids[node.row["id"]]
        self.graph.remove_task(key)
        if not node.ended:
            self.open -= 1
        self.news.pop(node.row["id"], None)
        return node

    def evaluate_edge(self, edge: Edge) -> None:
        edge.holds, edge.why = edge_holds(edge, self.results)

    def count(self, node: Node) -> None:
        node.unmet = sum(edge.holds is not True for edge in node.incoming)

    # --- foreign changes

    def apply_foreign(self, data: Fields) -> list[str]:
        """Apply an edit that another process recorded; what it touched is evaluated again in the next turn.

        Returns the tasks that it added, or whose deadline it set.
        """
        gone = set(data.get("del", {}).get("dependency", ()))
        for edge in self.unlink([key for key, edge in self.edges.items() if edge.row["id"] in gone]) if gone else ():
            self.dirty[edge.down.key] = None
        for key in data.get("del", {}).get("task", ()):
            if key in self.ids:
                self.drop_node(self.ids[key].key)
        timed: list[str] = []
        for row in self._own(data, "task"):
            self.graph.add_task(self.add_node(row).key)
            self.dirty[row["task_id"]] = None
            timed.append(row["task_id"])
        for row in self._own(data, "dependency"):
            edge = self.link(row)
            self.graph.add_edge(edge.up.key, edge.down.key)
            self.dirty[edge.down.key] = None
        changes = data.get("set", {})
        if fields := changes.get("constellation", {}).get(str(self.constellation["id"])):
            self.constellation.update(fields)
        for key, fields in changes.get("task", {}).items():
            node = self.ids.get(int(key))
            if node is None:
                continue
            was = node.ended
            node.row.update(fields)
            self.open += was - node.ended
            self.note_news(node)
            if node.ended != was:
                self.dirty.update((edge.down.key, None) for edge in node.outgoing)
            self.dirty[node.key] = None
            if "deadline" in fields:
                timed.append(node.key)
        if wanted := {int(key): fields for key, fields in changes.get("dependency", {}).items()}:
            for edge in self.edges.values():
                if edge.row["id"] in wanted:
                    edge.row.update(wanted[edge.row["id"]])
                    self.dirty[edge.down.key] = None
        return timed

    def catch_up(self, events: Iterable[Fields]) -> None:
        """Bring a graph that was read, and that nobody drives, to a newer state: what happened, and what followed from it.

        Of an edge only what it waits for decides, so those out of a task that is as open as before need no second look.
        """
        for data in events:
            self.apply_foreign(data)
        moved = [self.nodes[key] for key in self.dirty if key in self.nodes]
        self.results |= {node.key: node.row["result"] for node in moved if node.ended and node.row["result"] is not None}
        into = [edge for node in moved for edge in node.incoming]
        out_of = [edge for node in moved for edge in node.outgoing if node.ended or edge.holds is not None]
        for edge in dict.fromkeys(into + out_of):
            self.evaluate_edge(edge)
        for node in dict.fromkeys([*moved, *(edge.down for edge in out_of)]):
            self.count(node)
        self.dirty.clear()

    def _own(self, data: Fields, table: str) -> Iterator[Any]:
        """Rows of a table that an event adds to this constellation; a session has others."""
        rows = data.get("add", {}).get(table, ())
        return (TABLES[table].whole(row) for row in rows if row["constellation_id"] == self.constellation["id"])


def edge_holds(edge: Edge, results: dict[str, Any]) -> tuple[bool | None, str]:
    """Whether a dependency holds: None while its upstream has not ended, and why it never can."""
    state, kind = edge.up.row["state"], edge.row["type"]
    if state not in ENDED:
        return None, ""
    if kind in ("UNCONDITIONAL", "COMPLETION_ONLY"):
        return True, ""
    if state != "COMPLETED":
        return False, f"needs {edge.up.key} completed, and it is {state}"
    if kind == "SUCCESS_ONLY":
        return True, ""
    try:
        holds = conditions.evaluate_condition(edge.row["condition"], edge.up.row["result"], results)
    except ConditionUnknown as error:
        return False, f"{UNKNOWN}: {error}"
    return holds, "" if holds else f"condition is false: {edge.row['condition']}"
