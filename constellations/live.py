"""A constellation's graph in memory: which tasks are ready, which can never start, what an edit does to that.

Rows are held as records have them and changed through the turn that records the change. A task's end costs time in
proportion to its own edges, never to the graph (constellations, section Execution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agents.tables import TABLES, Fields
from agents.turns import PIECE, Turn
from constellations import conditions
from constellations.editing import Changes, Snapshot
from constellations.errors import ConditionUnknown
from constellations.graph import Graph
from constellations.machines import TASK
from constellations.machines.task import ENDED

REASON_LENGTH = 500
SKIPPED = "skipped"


class Edge:
    """A dependency between two nodes. `verdict`: None while unknown, else whether it holds; `why` when it never can."""

    __slots__ = ("down", "row", "up", "verdict", "why")

    def __init__(self, row: Fields, up: Node, down: Node):
        self.row, self.up, self.down = row, up, down
        self.verdict: bool | None = None
        self.why = ""


class Node:
    """A task with its edges; `unmet` counts incoming edges that do not hold (yet)."""

    __slots__ = ("incoming", "key", "outgoing", "rank", "row", "unmet")

    def __init__(self, row: Fields):
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
        return self.row["state"] == "CANCELLED" and self.row["reason"].startswith(SKIPPED)


class LiveGraph:
    """Nodes and edges by their names. `on_ready` is called for each node that may start."""

    def __init__(self, constellation: Fields, on_ready: Callable[[Node], None]):
        self.constellation = constellation
        self.nodes: dict[str, Node] = {}
        self.edges: dict[str, Edge] = {}
        self.ids: dict[int, Node] = {}
        self.results: dict[str, Any] = {}
        self.news: list[Node] = []
        self.graph = Graph()
        self.open = 0
        self._dirty: dict[str, None] = {}
        self._on_ready = on_ready

    def load(self, tasks: Iterable[Fields], dependencies: Iterable[Fields]) -> None:
        """Fill the graph from rows; judges every edge, changes no row."""
        for row in tasks:
            self._add_node(row)
        for row in dependencies:
            self._link(row)
        self.graph = Graph.build(self.nodes, [(e.up.key, e.down.key) for e in self.edges.values()])
        for edge in self.edges.values():
            self._judge(edge)
        for node in self.nodes.values():
            self._count(node)
        self.rank()

    def rank(self) -> None:
        """Order of ready tasks among themselves: who has the longest way to an end goes first."""
        for key, length in self.graph.remaining_path().items():
            self.nodes[str(key)].rank = length

    def snapshot(self) -> Snapshot:
        """What the editor looks at: this graph itself, by reference."""
        return Snapshot(
            version=self.constellation["version"],
            state=self.constellation["state"],
            tasks={key: node.row for key, node in self.nodes.items()},
            dependencies={key: edge.row for key, edge in self.edges.items()},
            graph=self.graph,
        )

    # --- structure

    def _add_node(self, row: Fields) -> Node:
        node = Node(row)
        self.nodes[node.key] = self.ids[row["id"]] = node
        if not node.ended:
            self.open += 1
        elif row["result"] is not None:
            self.results[node.key] = row["result"]
        return node

    def _link(self, row: Fields) -> Edge:
        up, down = self.ids[row["upstream_id"]], self.ids[row["downstream_id"]]
        row["from"], row["to"] = up.key, down.key
        edge = self.edges[row["dependency_id"]] = Edge(row, up, down)
        up.outgoing.append(edge)
        down.incoming.append(edge)
        return edge

    def _unlink(self, dependency_id: str) -> Edge:
        edge = self.edges.pop(dependency_id)
        edge.up.outgoing.remove(edge)
        edge.down.incoming.remove(edge)
        self.graph.remove_edge(edge.up.key, edge.down.key)
        return edge

    def _drop_node(self, key: str) -> Node:
        node = self.nodes.pop(key)
        del self.ids[node.row["id"]]
        self.graph.remove_task(key)
        if not node.ended:
            self.open -= 1
        self.news = [other for other in self.news if other is not node]
        return node

    # --- readiness

    def _judge(self, edge: Edge) -> None:
        edge.verdict, edge.why = verdict(edge, self.results)

    def _count(self, node: Node) -> None:
        node.unmet = sum(edge.verdict is not True for edge in node.incoming)

    def ended(self, turn: Turn, node: Node) -> None:
        """`node` has just ended: what depended on it becomes ready, or never can."""
        self.open -= 1
        self.news.append(node)
        if node.row["result"] is not None:
            self.results[node.key] = node.row["result"]
        never = []
        for edge in node.outgoing:
            self._judge(edge)
            if edge.verdict:
                edge.down.unmet -= 1
                if not edge.down.unmet:
                    self._ready(turn, edge.down)
            elif edge.verdict is False:
                never.append(edge)
        if never:
            self._skip(turn, never)

    def _ready(self, turn: Turn, node: Node) -> None:
        if node.row["state"] == "WAITING_DEPENDENCY":
            turn.transition(TASK, "task", node.row, "ready", reason=node.row["reason"])
            self._on_ready(node)

    def _skip(self, turn: Turn, never: list[Edge]) -> None:
        """All tasks that can never start because of `never`, and because of each other, in one pass."""
        steps: list[tuple[Fields, Fields]] = []
        while never:
            edge = never.pop()
            node = edge.down
            if edge.verdict is not False or node.row["state"] not in ("WAITING_DEPENDENCY", "PENDING"):
                continue  # what had decided it may itself have been revived in the same pass
            reason = f"{SKIPPED}: {edge.row['dependency_id']} {edge.why}"[:REASON_LENGTH]
            steps.append(turn.step(TASK, node.row, "skip", reason=reason, ended_at=turn.at))
            self.open -= 1
            self.news.append(node)
            never += self._after_skip(turn, node)
        turn.record_steps("tasks_skipped", "task", steps)

    def _after_skip(self, turn: Turn, node: Node) -> list[Edge]:
        for edge in node.outgoing:
            self._judge(edge)
            if edge.verdict:
                edge.down.unmet -= 1
                if not edge.down.unmet:
                    self._ready(turn, edge.down)
        return [edge for edge in node.outgoing if edge.verdict is False]

    def evaluate(self, turn: Turn, keys: Iterable[str]) -> None:
        """Judge tasks anew after an edit: ready, blocked, skipped or revived, and what follows downstream."""
        waiting = [key for key in keys if key in self.nodes]
        never: list[Edge] = []
        for key in waiting:
            node = self.nodes[key]
            for edge in node.incoming:
                self._judge(edge)
            self._count(node)
            no = next((edge for edge in node.incoming if edge.verdict is False), None)
            if node.skipped and no is None:
                waiting.extend(self._revive(turn, node))
            if no is not None:
                never.append(no)
            elif node.unmet and node.row["state"] == "PENDING":
                turn.transition(TASK, "task", node.row, "blocked", reason=node.row["reason"])
            elif node.row["state"] == "PENDING":
                self._on_ready(node)  # its device or its priority may have changed, or somebody else made it ready
            elif not node.unmet:
                self._ready(turn, node)
        if never:
            self._skip(turn, never)

    def _revive(self, turn: Turn, node: Node) -> list[str]:
        """An edit changed what had decided that `node` is skipped; what was skipped because of it is looked at too."""
        turn.transition(TASK, "task", node.row, "revive", {"skipped": True}, ended_at=None)
        self.open += 1
        self.news = [other for other in self.news if other is not node]
        return [edge.down.key for edge in node.outgoing]

    def settle_dirty(self, turn: Turn) -> None:
        """Judge what foreign edits touched: something may have ended since they were made."""
        if self._dirty:
            dirty, self._dirty = self._dirty, {}
            self.evaluate(turn, dirty)

    # --- change sets

    def build(self, turn: Turn, changes: Changes) -> None:
        """The first filling of an empty constellation: rows in pieces, states by the dependencies."""
        tasks, dependencies = self._new_rows(turn, changes)
        for name, rows in (("task", tasks), ("dependency", dependencies)):
            for at in range(0, len(rows), PIECE):
                turn.record("constellation_built", add={name: rows[at : at + PIECE]})
        self.rank()
        for node in self.nodes.values():
            if node.row["state"] == "PENDING":
                self._on_ready(node)

    def apply(self, turn: Turn, changes: Changes, edit: Fields) -> None:
        """A change set, with `edit` as its row: one `edited` event (in pieces), then what follows for the tasks touched."""
        removed = {
            "dependency": [self._unlink(key).row["id"] for key in changes.removed_dependencies],
            "task": [self._drop_node(key).row["id"] for key in changes.removed_tasks],
        }
        tasks, dependencies = self._new_rows(turn, changes)
        self.constellation["version"] += 1
        version = {"version": self.constellation["version"]}
        changed: dict[str, Fields] = {"constellation": {str(self.constellation["id"]): version}}
        changed["task"] = self._change_tasks(changes)
        changed["dependency"] = self._change_dependencies(changes)
        turn.record(
            "edited", author=edit["author"], reason=edit["reason"], diff=edit["diff"],
            add={"edit": [edit]}, set={name: rows for name, rows in changed.items() if rows},
            delete={name: rows for name, rows in removed.items() if rows},
        )  # fmt: skip
        for name, rows in (("task", tasks), ("dependency", dependencies)):
            for at in range(0, len(rows), PIECE):
                turn.record("edited", edit_id=edit["edit_id"], add={name: rows[at : at + PIECE]})
        for node in [self.ids[row["id"]] for row in tasks]:
            self._rank_one(node)
            if node.row["state"] == "PENDING":
                self._on_ready(node)
        self.evaluate(turn, [*(row["task_id"] for row in tasks), *changes.touched])

    def _new_rows(self, turn: Turn, changes: Changes) -> tuple[list[Fields], list[Fields]]:
        """Rows of added tasks and dependencies, linked in; a new task is PENDING or WAITING_DEPENDENCY from the start."""
        fresh = [self._add_node(self._task_row(turn, spec)) for spec in changes.added_tasks]
        for node in fresh:
            self.graph.add_task(node.key)
        dependencies = []
        for spec in changes.added_dependencies:
            edge = self._link(self._dependency_row(turn, spec))
            self.graph.add_edge(edge.up.key, edge.down.key)
            self._judge(edge)
            dependencies.append(TABLES["dependency"].told(edge.row))
        for node in fresh:
            self._count(node)
            node.row["state"] = "WAITING_DEPENDENCY" if node.unmet else "PENDING"
        return [TABLES["task"].told(node.row) for node in fresh], dependencies

    def _task_row(self, turn: Turn, spec: Fields) -> Fields:
        fields = {"id": turn.take(), "constellation_id": self.constellation["id"], "created_at": turn.at, "entered_at": turn.at}
        return TABLES["task"].whole({**spec, **fields})

    def _dependency_row(self, turn: Turn, spec: Fields) -> Fields:
        return {
            "id": turn.take(), "constellation_id": self.constellation["id"], "dependency_id": spec["dependency_id"],
            "upstream_id": self.nodes[spec["from"]].row["id"], "downstream_id": self.nodes[spec["to"]].row["id"],
            "type": spec["type"], "condition": spec["condition"], "description": spec["description"],
        }  # fmt: skip

    def _change_tasks(self, changes: Changes) -> dict[str, Fields]:
        """Fields of changed tasks; `version` of every task that was touched, so that no start overlooks the edit."""
        rows: dict[str, Fields] = {}
        for key in dict.fromkeys([*changes.updated_tasks, *changes.touched]):
            node = self.nodes.get(key)
            if node is not None:
                fields = {**changes.updated_tasks.get(key, {}), "version": node.row["version"] + 1}
                node.row.update(fields)
                rows[str(node.row["id"])] = fields
        return rows

    def _change_dependencies(self, changes: Changes) -> dict[str, Fields]:
        rows = {}
        for key, fields in changes.updated_dependencies.items():
            edge = self.edges[key]
            edge.row.update(fields)
            rows[str(edge.row["id"])] = dict(fields)
        return rows

    def _rank_one(self, node: Node) -> None:
        """A new task's rank from its downstream, told upstream as far as it makes a difference."""
        todo = [node]
        while todo:
            at = todo.pop()
            rank = 1 + max((edge.down.rank for edge in at.outgoing), default=0)
            if rank > at.rank:
                at.rank = rank
                todo.extend(edge.up for edge in at.incoming)

    # --- foreign changes

    def absorb(self, data: Fields) -> list[str]:
        """Take up an edit that another process recorded; what it touched is judged again in the next turn.

        Returns the tasks that it added, or whose deadline it set.
        """
        gone = set(data.get("del", {}).get("dependency", ()))
        for edge in [edge for edge in self.edges.values() if edge.row["id"] in gone] if gone else ():
            self._dirty[self._unlink(edge.row["dependency_id"]).down.key] = None
        for key in data.get("del", {}).get("task", ()):
            if key in self.ids:
                self._drop_node(self.ids[key].key)
        timed: list[str] = []
        for row in self._own(data, "task"):
            self.graph.add_task(self._add_node(row).key)
            self._dirty[row["task_id"]] = None
            timed.append(row["task_id"])
        for row in self._own(data, "dependency"):
            edge = self._link(row)
            self.graph.add_edge(edge.up.key, edge.down.key)
            self._dirty[edge.down.key] = None
        changes = data.get("set", {})
        self._absorb_fields(changes)
        changed = (self.ids.get(int(key)) for key, fields in changes.get("task", {}).items() if "deadline" in fields)
        return timed + [node.key for node in changed if node is not None]

    def take_up(self, events: Iterable[Fields]) -> None:
        """Bring a graph that was read, and that nobody drives, to a newer state: what happened, and what followed from it."""
        for data in events:
            self.absorb(data)
        moved = [self.nodes[key] for key in self._dirty if key in self.nodes]
        self.results |= {node.key: node.row["result"] for node in moved if node.ended and node.row["result"] is not None}
        near = {id(edge): edge for node in moved for edge in (*node.incoming, *node.outgoing)}
        for edge in near.values():
            self._judge(edge)
        for node in {id(node): node for node in (*moved, *(edge.down for edge in near.values()))}.values():
            self._count(node)
        self._dirty.clear()
        self.news.clear()

    def _own(self, data: Fields, table: str) -> Iterator[Fields]:
        """Rows that an event adds to this constellation; a session has others."""
        rows = data.get("add", {}).get(table, ())
        return (TABLES[table].whole(row) for row in rows if row["constellation_id"] == self.constellation["id"])

    def _absorb_fields(self, changes: Fields) -> None:
        if fields := changes.get("constellation", {}).get(str(self.constellation["id"])):
            self.constellation.update(fields)
        for key, fields in changes.get("task", {}).items():
            node = self.ids.get(int(key))
            if node is None:
                continue
            was = node.ended
            node.row.update(fields)
            self.open += was - node.ended
            if node.ended != was:
                self.news = [other for other in self.news if other is not node] + [node] * node.ended
            self._dirty[node.key] = None
        wanted = {int(key): fields for key, fields in changes.get("dependency", {}).items()}
        for edge in self.edges.values() if wanted else ():
            if edge.row["id"] in wanted:
                edge.row.update(wanted[edge.row["id"]])
                self._dirty[edge.down.key] = None

    def waiting(self) -> Iterator[Node]:
        """Nodes that may start as far as their dependencies go."""
        return (node for node in self.nodes.values() if node.row["state"] == "PENDING")


def verdict(edge: Edge, results: dict[str, Any]) -> tuple[bool | None, str]:
    """Whether a dependency holds: None while its upstream has not ended, and why it never can (constellations, Data)."""
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
        holds = conditions.evaluate(edge.row["condition"], edge.up.row["result"], results)
    except ConditionUnknown as error:
        return False, f"condition unknown: {error}"
    return holds, "" if holds else f"condition is false: {edge.row['condition']}"
