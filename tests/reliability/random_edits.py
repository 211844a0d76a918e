"""Random change sets for a graph that was read: all seven operations, good ones and bad ones. Chosen by a seeded chance."""

from __future__ import annotations

from random import Random

from agents.streams.tables import Fields
from constellations.editor.draft import may_change, normal_dependency, normal_task
from constellations.live.live import LiveGraph

TYPES = ("SUCCESS_ONLY", "UNCONDITIONAL", "COMPLETION_ONLY")
SHARED_NAMES = 4
"""Names of tasks that all editors use, so that they meet."""
SHARED_EDITS = 6
"""Ids of edits that all editors use: each is one edit, whoever was first."""
SECONDS = ("0", "0.01", "0.05")
BROKEN: tuple[Fields, ...] = (
    {"op": "add_tusk", "parameters": {"task_id": "x"}},
    {"op": "add_task", "parameters": {"task_id": "x", "device": "nowhere", "tool": "noop"}},
    {"op": "add_task", "parameters": {"task_id": "x", "command": []}},
    {"op": "update_task", "parameters": {"task_id": "nobody", "timeout": 1}},
    {"op": "add_dependency", "parameters": {"from": "hold", "to": "hold"}},
    {"op": "update_dependency", "parameters": {"from": "nobody", "to": "hold", "type": "UNCONDITIONAL"}},
    {"op": "remove_task", "parameters": {"task_id": "hold"}},
)
"""Each is refused: by its form, by what there is not, or because `hold` runs."""


class Chance:
    """One editor's choices. `name` begins the names of its tasks; `steady`: small ones, mostly done."""

    def __init__(self, random: Random, name: str, devices: list[str], steady: bool = False):
        self.random, self.name, self.devices, self.steady = random, name, devices, steady
        self._count = 0

    def change_set(self, live: LiveGraph) -> list[Fields]:
        return [self.operation(live) for _ in range(1 if self.steady else self.random.randint(1, 4))]

    def operation(self, live: LiveGraph) -> Fields:
        name = self.random.choice(STEADY if self.steady else tuple(WRITERS))
        return {"op": name, "parameters": WRITERS[name](self, live)}

    def broken(self, live: LiveGraph) -> list[Fields]:
        """A good operation and one that is refused, in either order: neither is carried out."""
        both = [self.operation(live), self.random.choice(BROKEN)]
        return both if self.random.random() < 0.5 else both[::-1]

    def shared(self, live: LiveGraph) -> tuple[str, list[Fields]]:
        """The id of an edit that every editor may make, and what it is, which is the same for all of them."""
        number = self.random.randrange(SHARED_EDITS)
        task = {"task_id": f"shared{number}", "tool": "noop", "device": self.devices[0]}
        return f"shared-{live.constellation['id']}-{number}", [{"op": "add_task", "parameters": task}]

    def a_change(self, task_id: str) -> Fields:
        """A task's description, different each time."""
        self._count += 1
        return {"op": "update_task", "parameters": {"task_id": task_id, "description": f"{self.name} said {self._count}"}}

    # --- what operations are about

    def task(self, live: LiveGraph) -> str:
        """Mostly one that may change."""
        open_ones = self.open_tasks(live)
        return self.random.choice(open_ones if open_ones and self.random.random() < 0.8 else sorted(live.nodes))

    def open_tasks(self, live: LiveGraph) -> list[str]:
        return sorted(key for key, node in live.nodes.items() if may_change(node.row))

    def new_task(self, live: LiveGraph) -> Fields:
        self._count += 1
        shared = self.random.random() < 0.15
        task_id = f"s{self.random.randrange(SHARED_NAMES)}" if shared else f"{self.name}t{self._count}"
        work = {"command": ["sleep", self.random.choice(SECONDS)]} if self.random.random() < 0.4 else {"tool": "noop"}
        after = [self.task(live)] if self.random.random() < 0.7 else []
        return {"task_id": task_id, "device": self.random.choice(self.devices), "after": after, **work}

    def ends(self, live: LiveGraph) -> Fields:
        """Of a dependency, mostly one that is there and into a task that may change."""
        edges = sorted(key for key, edge in live.edges.items() if may_change(edge.down.row)) or sorted(live.edges)
        if not edges or self.random.random() < 0.1:
            return {"from": self.task(live), "to": self.task(live)}
        edge = live.edges[self.random.choice(edges)]
        return {"from": edge.up.key, "to": edge.down.key}


def _add_task(chance: Chance, live: LiveGraph) -> Fields:
    return chance.new_task(live)


def _remove_task(chance: Chance, live: LiveGraph) -> Fields:
    return {"task_id": chance.task(live)}


def _update_task(chance: Chance, live: LiveGraph) -> Fields:
    choices = ({"priority": "CRITICAL"}, {"priority": "LOW"}, {"timeout": 30}, {"tips": ["soon"]}, {"command": ["true"]})
    if chance.random.random() < 0.5:
        return chance.a_change(chance.task(live))["parameters"]
    return {"task_id": chance.task(live), **chance.random.choice(choices)}


def _add_dependency(chance: Chance, live: LiveGraph) -> Fields:
    fields = {"from": chance.random.choice(sorted(live.nodes)), "to": chance.task(live)}
    if chance.random.random() < 0.2:
        return {**fields, "type": "CONDITIONAL", "condition": "n > 1"}
    return {**fields, "type": chance.random.choice(TYPES)}


def _remove_dependency(chance: Chance, live: LiveGraph) -> Fields:
    return chance.ends(live)


def _update_dependency(chance: Chance, live: LiveGraph) -> Fields:
    return {**chance.ends(live), "type": chance.random.choice(TYPES), "description": f"by {chance.name}"}


def _build_constellation(chance: Chance, live: LiveGraph) -> Fields:
    """Two tasks more, or everything as it is but for one that goes and one that comes."""
    if chance.random.random() < 0.6:
        return {"clear": False, "tasks": [chance.new_task(live) for _ in range(2)]}
    open_ones = chance.open_tasks(live)
    gone = chance.random.choice(open_ones) if open_ones else ""
    tasks = [normal_task(node.row) for key, node in live.nodes.items() if key != gone]
    lines = [normal_dependency(edge.row) for edge in live.edges.values() if gone not in (edge.up.key, edge.down.key)]
    return {"tasks": [*tasks, {**chance.new_task(live), "after": []}], "dependencies": lines}


WRITERS = {
    "add_task": _add_task,
    "remove_task": _remove_task,
    "update_task": _update_task,
    "add_dependency": _add_dependency,
    "remove_dependency": _remove_dependency,
    "update_dependency": _update_dependency,
    "build_constellation": _build_constellation,
}
STEADY = (*["update_task"] * 6, *["add_task"] * 3, "add_dependency", "remove_dependency", "remove_task")
"""Mostly done, and the graph grows slowly."""
