"""A constellation's graph in memory, changed: which tasks are ready, which can never start, what an edit does to that.

Rows change through the turn that records the change. A task's end costs time in proportion to its own edges, never to the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agents.clock import from_iso
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import PIECE, Turn
from constellations.editor.draft import SKIPPED
from constellations.editor.editor import Changes
from constellations.errors import LimitReached
from constellations.graph import Sweep
from constellations.limits import ADDED
from constellations.live.row_types import ConstellationRow, LinkedDependency
from constellations.live.rows import Edge, GraphRows, Node
from constellations.machines import TASK

REASON_LENGTH = 500
"""Characters of a task's reason."""


class LiveGraph(GraphRows):
    """`on_ready` is called for each node that may start."""

    def __init__(self, constellation: ConstellationRow, on_ready: Callable[[Node], None]):
        super().__init__(constellation)
        self.on_ready = on_ready

    def copy(self) -> LiveGraph:
        """Another graph like this one."""
        twin = LiveGraph(self.constellation.copy(), self.on_ready)
        twin.copy_from(self)
        return twin

    # --- ends

    @property
    def planner_listens(self) -> bool:
        """Whether the planner wants to be told when tasks end; where it does not, nobody pays for telling it."""
        return bool(self.constellation["rules"]) or bool(self.constellation.get("model_profiles", {}).get("editing"))

    def end_fields(self, turn: Turn) -> Fields:
        """Fields of every task that ends, beside those that say how."""
        return {"ended_at": turn.at, "untold": True} if self.planner_listens else {"ended_at": turn.at}

    def take_news(self) -> list[Node]:
        """The nodes whose end is still to be told; they are told from now on, and whoever takes them records it."""
        taken = list(self.news.values())
        self.news.clear()
        for node in taken:
            node.row["untold"] = False
        return taken

    # --- readiness

    def ended(self, turn: Turn, node: Node) -> None:
        """`node` has just ended: what depended on it becomes ready, or never can."""
        self.open -= 1
        self.note_news(node)
        if node.row["result"] is not None:
            self.results[node.key] = node.row["result"]
        never = self._follow_end(turn, node)
        if never:
            self._skip(turn, never)

    def _follow_end(self, turn: Turn, node: Node) -> list[Edge]:
        """Evaluate what depended on `node`: what may start becomes ready, and the edges that never can hold are returned."""
        never = []
        for edge in node.outgoing:
            self.evaluate_edge(edge)
            if edge.holds:
                edge.down.unmet -= 1
                if not edge.down.unmet:
                    self._ready(turn, edge.down)
            elif edge.holds is False:
                never.append(edge)
        return never

    def _ready(self, turn: Turn, node: Node) -> None:
        if node.row["state"] == "WAITING_DEPENDENCY":
            turn.transition(TASK, "task", node.row, "ready", reason=node.row["reason"])
            self.on_ready(node)

    def _skip(self, turn: Turn, never: list[Edge]) -> None:
        """All tasks that can never start because of `never`, and because of each other, in one pass."""
        steps: list[tuple[Fields, Fields]] = []
        anew: list[str] = []
        while never:
            edge = never.pop()
            node = edge.down
            if node.skipped and _is_decided_otherwise(node):
                anew.append(node.key)
            if edge.holds is not False or node.row["state"] not in ("WAITING_DEPENDENCY", "PENDING"):
                continue  # what had decided it may itself have been revived in the same pass
            edge = _deciding_edge(node) or edge
            fields = self.end_fields(turn)
            if edge.condition_failed:
                fields["condition_failed"] = True
            steps.append(turn.step(TASK, node.row, "skip", reason=_why_skipped(edge), **fields))
            self.open -= 1
            self.note_news(node)
            never += self._follow_end(turn, node)
        turn.record_steps("tasks_skipped", "task", steps)
        if anew:
            self.evaluate(turn, anew)

    def evaluate(self, turn: Turn, keys: Iterable[str]) -> None:
        """Judge tasks anew after an edit: ready, blocked, skipped or revived, and what follows downstream."""
        todo = Sweep(self.graph, (key for key in keys if key in self.nodes))
        never: list[Edge] = []
        for key in todo:
            node = self.nodes[key]
            for edge in node.incoming:
                self.evaluate_edge(edge)
            self.count(node)
            no = _deciding_edge(node)
            if node.skipped and (no is None or _is_decided_otherwise(node)):
                self._revive(turn, node)
                for edge in node.outgoing:
                    todo.add(edge.down.key)
            if no is not None:
                never.append(no)
            elif node.unmet and node.row["state"] == "PENDING":
                turn.transition(TASK, "task", node.row, "blocked", reason=node.row["reason"])
            elif node.row["state"] == "PENDING":
                self.on_ready(node)  # its device or its priority may have changed, or somebody else made it ready
            elif not node.unmet:
                self._ready(turn, node)
        if never:
            self._skip(turn, never)

    def _revive(self, turn: Turn, node: Node) -> None:
        """An edit changed what had decided that `node` is skipped; what was skipped because of it is looked at too."""
        marks: Fields = {name: False for name in ("untold", "condition_failed") if node.row[name]}
        marks |= self.deadline_left(turn, node)
        turn.transition(TASK, "task", node.row, "revive", {"skipped": True}, ended_at=None, **marks)
        self.open += 1
        self.note_news(node)

    def deadline_left(self, turn: Turn, node: Node) -> Fields:
        """Fields of a task that begins again: a deadline that is over is taken away, because it would end the task at once."""
        deadline = node.row["deadline"]
        is_over = deadline is not None and from_iso(self.constellation["created_at"]) + deadline <= turn.ts
        return {"deadline": None} if is_over else {}

    def reopen(self, node: Node) -> bool:
        """`node`, which had ended, is about to begin again; whether it waits for something."""
        self.open += 1
        self.results.pop(node.key, None)
        self.news.pop(node.row["id"], None)
        for edge in node.incoming:
            self.evaluate_edge(edge)
        self.count(node)
        return bool(node.unmet)

    def settle_dirty(self, turn: Turn) -> None:
        """Judge what foreign edits touched: something may have ended since they were made."""
        if self.dirty:
            dirty, self.dirty = self.dirty, {}
            self._rank_anew(key for key in dirty if key in self.nodes)
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
                self.on_ready(node)

    def check_room(self, changes: Changes) -> None:
        """Raise LimitReached when edits would have added more tasks than an interaction may."""
        if self.constellation["added"] + len(changes.added_tasks) > ADDED:
            raise LimitReached(f"edits add at most {ADDED:,} tasks in one interaction, {self.constellation['added']:,} so far")

    def apply(self, turn: Turn, changes: Changes, edit: Fields) -> None:
        """A change set, with `edit` as its row: one `edited` event (in pieces), then what follows for the tasks touched."""
        removed = {
            "dependency": [edge.row["id"] for edge in self.unlink(changes.removed_dependencies)],
            "task": [self.drop_node(key).row["id"] for key in changes.removed_tasks],
        }
        tasks, dependencies = self._new_rows(turn, changes)
        counts: Fields = {"version": self.constellation["version"] + 1}
        if changes.gates is not None:
            counts["gates"] = changes.gates
        if tasks and not edit["undoes_id"]:  # what is brought back was counted when it was new
            counts["added"] = self.constellation["added"] + len(tasks)
        self.constellation.update(counts)  # type: ignore[typeddict-item]
        changed: dict[str, Fields] = {"constellation": {str(self.constellation["id"]): counts}, "task": {}, "dependency": {}}
        for key in dict.fromkeys([*changes.updated_tasks, *changes.touched]):
            node = self.nodes.get(key)
            if node is not None:
                # every task that was touched has a new version, so that no start overlooks the edit
                fields = {**changes.updated_tasks.get(key, {}), "version": node.row["version"] + 1}
                node.row.update(fields)  # type: ignore[typeddict-item]
                changed["task"][str(node.row["id"])] = fields
        for key, fields in changes.updated_dependencies.items():
            edge = self.edges[key]
            edge.row.update(fields)  # type: ignore[typeddict-item]
            changed["dependency"][str(edge.row["id"])] = dict(fields)
        turn.record(
            "edited", author=edit["author"], reason=edit["reason"], diff=edit["diff"],
            add={"edit": [edit]}, set={name: rows for name, rows in changed.items() if rows},
            delete={name: rows for name, rows in removed.items() if rows},
        )  # fmt: skip
        for name, rows in (("task", tasks), ("dependency", dependencies)):
            for at in range(0, len(rows), PIECE):
                turn.record("edited", edit_id=edit["edit_id"], add={name: rows[at : at + PIECE]})
        fresh = [row["task_id"] for row in tasks]
        self._rank_anew([*fresh, *changes.touched])
        for node in map(self.nodes.__getitem__, fresh):
            if node.row["state"] == "PENDING":
                self.on_ready(node)
        self.evaluate(turn, [*fresh, *changes.touched])

    def _new_rows(self, turn: Turn, changes: Changes) -> tuple[list[Fields], list[Fields]]:
        """Rows of added tasks and dependencies, linked in; a new task is PENDING or WAITING_DEPENDENCY from the start."""
        constellation, whole = self.constellation["id"], TABLES["task"].whole
        fresh = []
        for spec in changes.added_tasks:
            made = {"id": turn.take(), "constellation_id": constellation, "created_at": turn.at, "entered_at": turn.at}
            node = self.add_node(whole({**spec, **made}))
            self.graph.add_task(node.key)
            fresh.append(node)
        dependencies = []
        for spec in changes.added_dependencies:
            row: LinkedDependency = {  # type: ignore[typeddict-item]  # the graph adds its ends
                "id": turn.take(), "constellation_id": constellation, "dependency_id": spec["dependency_id"],
                "upstream_id": self.nodes[spec["from"]].row["id"], "downstream_id": self.nodes[spec["to"]].row["id"],
                "type": spec["type"], "condition": spec["condition"], "description": spec["description"],
            }  # fmt: skip
            edge = self.link(row)
            self.graph.add_edge(edge.up.key, edge.down.key)
            self.evaluate_edge(edge)
            dependencies.append(TABLES["dependency"].told(edge.row))
        for node in fresh:
            self.count(node)
            if not node.ended:  # as in a fork
                node.row["state"] = "WAITING_DEPENDENCY" if node.unmet else "PENDING"
        return [TABLES["task"].told(node.row) for node in fresh], dependencies

    def _rank_anew(self, keys: Iterable[str]) -> None:
        """Ranks of tasks that are new, or that wait for something new, told upstream as far as it makes a difference, once."""
        todo = Sweep(self.graph, keys, backwards=True)
        for key in todo:
            node = self.nodes[key]
            node.rank = node.rank or 1
            for edge in node.incoming:
                if edge.up.rank <= node.rank:
                    edge.up.rank = node.rank + 1
                    todo.add(edge.up.key)

    def waiting(self) -> Iterator[Node]:
        """Nodes that may start as far as their dependencies go."""
        return (node for node in self.nodes.values() if node.row["state"] == "PENDING")


def reason_that_fits(said: str) -> str:
    """What a task's row has of a reason that is kept whole elsewhere; where it is not all of it, that is to be seen."""
    return said if len(said) <= REASON_LENGTH else f"{said[: REASON_LENGTH - 4]} ..."


def _why_skipped(edge: Edge) -> str:
    return f"{SKIPPED}: {edge.row['dependency_id']} {edge.why}"[:REASON_LENGTH]


def _deciding_edge(node: Node) -> Edge | None:
    """Which dependency decides that a node never starts: one whose condition could not be evaluated before all others, so that
    it makes no difference which upstream task ended first.
    """
    never = [edge for edge in node.incoming if edge.holds is False]
    return next((edge for edge in never if edge.condition_failed), never[0] if never else None)


def _is_decided_otherwise(node: Node) -> bool:
    """Whether a condition that could not be evaluated is not what skips a skipped node any more, or only now is."""
    reasons = {_why_skipped(edge) for edge in node.incoming if edge.condition_failed}
    if bool(reasons) != node.row["condition_failed"]:
        return True
    return bool(reasons) and node.row["reason"] not in reasons
