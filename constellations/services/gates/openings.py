"""What an edit would let be done with less leave than now (docs/editing.md, "Gates"). Rows in, words out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agents.crews.script import call_of
from agents.decisions import DECISIONS
from agents.gates.unasked import Unasked
from constellations.plan.fitting import DEVICE_FIELDS
from constellations.plan.keys.calls import INSTRUCTION, STEPS
from constellations.plan.script import calls_of
from constellations.plan.values import Row
from constellations.reads.watching import (
    ASKED,
    HARMLESS,
    NOTHING,
    GateWatch,
    Key,
    Levels,
    in_words,
    is_gate,
    key_of,
    keys_of,
    levels_of,
    name_of,
)

NEEDS_SUCCESS = ("SUCCESS_ONLY", "CONDITIONAL")
"""Types of dependencies through which a gate keeps what is downstream from beginning."""


@dataclass(slots=True)
class Findings:
    """What an edit would take away: (task_id, in words). `loose` are the actions that nobody is asked about as it writes them,
    `kept` those whose gate it makes or takes away: they are to be remembered.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)
    loose: list[Key] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def add(self, task_id: str, message: str) -> None:
        self.problems.append((task_id, message))


def find_gate_changes(
    rows: Mapping[str, Mapping[str, Any]], edges: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, Any], after: Mapping[str, Any], remembered: Iterable[str], watched: GateWatch,
) -> Findings:  # fmt: skip
    """What a change set takes away. `rows` and `edges` are the graph as it is, `before` and `after` those of the changes."""
    found, loose = Findings(), dict[Key, list[str]]()
    for key, new in after["tasks"].items():
        old = before["tasks"][key]
        levels = {} if new is None else levels_of(new, watched)
        were = {} if old is None else levels_of(old, watched)
        if old is not None and new is not None:
            _compare(found, key, old, new, were, levels)
        if new is not None and (widening := _unasked_of(new).widening_of(_unasked_of(old or {}))):
            found.add(key, f"{widening} in {key}")
        lost = {each for each, level in were.items() if level >= ASKED > levels.get(each, 0)}
        own = levels if new is None or not watched.rules else levels_of(new, NOTHING)
        made = {each for each, level in own.items() if level >= ASKED > were.get(each, 0)}
        found.kept |= {name_of(each) for each in lost | made if each[0] not in HARMLESS}
        for each, level in levels.items():
            if level < ASKED and each[0] not in HARMLESS and level < were.get(each, ASKED):
                loose.setdefault(each, []).append(key)
    behind = Behind(rows, edges, after)
    behind.compare(found)
    if loose:
        found.loose += loose
        _look_for(found, loose, frozenset(remembered), rows, behind, watched)
    return found


def _compare(found: Findings, key: str, old: Row, new: Row, were: Levels, levels: Levels) -> None:
    """A task that was there and still is."""
    milder = [each for each, level in levels.items() if level < were.get(each, 0)]
    fresh = [each for each, level in levels.items() if each not in were and level < ASKED]
    gone = [each for each, level in were.items() if level >= ASKED and each not in levels]
    if old["confirm"] and not new["confirm"] and (milder or fresh or all(tool in HARMLESS for tool, _ in levels)):
        found.add(key, f"takes the gate of {key} away")
    elif milder:
        where = " by running elsewhere" if any(old[name] != new[name] for name in DEVICE_FIELDS) else ""
        found.add(key, f"lets {key} do {in_words(milder[0])} with less leave than now{where}")
    elif gone and fresh:
        found.add(key, f"lets {key} do {in_words(fresh[0])} unasked in the place of {in_words(gone[0])}")
    if not is_tightened(old["policies"], new["policies"]):
        found.add(key, f"weakens the policies of {key}")
    if old["on_lost"] == "ask" and new["on_lost"] == "retry":
        found.add(key, f"lets {key} be repeated unasked when it is lost")


def _unasked_of(row: Row) -> Unasked:
    return Unasked.of(row.get("unasked", {}))


def is_tightened(old: Sequence[Row], new: Sequence[Row]) -> bool:
    """Whether a task's new policies forbid, or ask about, whatever its old ones did: they may only have got stricter company.

    The first that fits counts. So all old ones have to be there in their order, and one before them only counts as strict where
    none that follows is stricter.
    """
    rest = list(old)
    for rule in new:
        while rest and rest[0] != rule and rest[0]["decision"] == "allow" and rule in rest:
            rest.pop(0)  # what allowed is gone
        if rest and rule == rest[0]:
            rest.pop(0)
        elif rest and max(map(_strictness, rest)) > _strictness(rule):
            return False
    return all(rule["decision"] == "allow" for rule in rest)


def _strictness(rule: Mapping[str, Any]) -> int:
    return DECISIONS.index(rule["decision"])


# What is done in another place


def _look_for(
    found: Findings, loose: Mapping[Key, list[str]], known: frozenset[str], rows: Mapping[str, Mapping[str, Any]],
    behind: Behind, watched: GateWatch,
) -> None:  # fmt: skip
    """Actions that nobody would be asked about where they are written now, and somebody is, or was, in another place."""
    tools = {tool for tool, _ in loose}
    anywhere = bool(watched.rules or behind.gates)
    for row in rows.values():
        if row["tool"] in (STEPS, INSTRUCTION):
            same = [key for key in keys_of(row) if key in loose]
        elif row["tool"] in tools and (anywhere or row["confirm"] or row["policies"]):
            key = key_of(row["tool"], row["arguments"])
            same = [key] if key in loose else []
        else:
            continue
        levels = levels_of(row, watched) if same else {}
        for key in same:
            others = [each for each in loose[key] if each != row["task_id"]]
            if levels[key] >= ASKED:
                _free(found, key, others, f"which a person is asked about in {row['task_id']}")
            elif gates := behind.now(row["task_id"]):
                outside = [each for each in others if gates & ~behind.later(each)]
                _free(found, key, outside, f"which {row['task_id']} does only behind the gate of {behind.name(gates)}")
    for key, tasks in loose.items() if known else ():
        if name_of(key) in known:
            _free(found, key, tasks, "which a person was asked about here before")


def _free(found: Findings, key: Key, tasks: Iterable[str], why: str) -> None:
    for task_id in tasks:
        found.add(task_id, f"lets {task_id} do {in_words(key)} unasked, {why}")


class Behind:
    """Tasks that cannot begin before somebody has opened the gate of another: they need its success, however far upstream.

    Of a gate that was opened, and whose task is COMPLETED, nothing is left to wait for. `gates` are the others, and those that
    the edit makes; a set of them is a number with a bit for each. As they are `now`, and `later`, after the edit.
    """

    def __init__(self, rows: Mapping[str, Mapping[str, Any]], edges: Mapping[str, Mapping[str, Any]], after: Mapping[str, Any]):
        self._rows, self._edges, self._after = rows, edges, after
        self._shut = {key for key, row in rows.items() if row["state"] != "COMPLETED" and is_gate(row)}
        self._made = {key for key, row in after["tasks"].items() if row is not None and is_gate(row)} - self._shut
        self.gates = {key: 1 << place for place, key in enumerate((*self._shut, *self._made))}

    def now(self, task_id: str) -> int:
        return self._sets[0].of(task_id) if self.gates else 0

    def later(self, task_id: str) -> int:
        return self._sets[1].of(task_id) if self.gates else 0

    def name(self, gates: int) -> str:
        """Of one of them."""
        return str(next(key for key, bit in self.gates.items() if gates & bit))

    def compare(self, found: Findings) -> None:
        """Tasks that would begin without a gate that they stand behind.

        What is further downstream keeps its gates as long as those keep theirs that a dependency is taken from. What such a
        task does is remembered when it goes, or comes behind a gate: a fork may begin from before that.
        """
        if not self.gates:
            return
        tasks = self._after["tasks"]
        for key, new in tasks.items():
            if new is None and (row := self._rows.get(key)) is not None and self.now(key):
                found.kept |= {name_of(each) for each in keys_of(row) if each[0] not in HARMLESS}
        for key in self._stricter():
            row = tasks.get(key) or self._rows[key]
            if self.later(key) & ~self.now(key):
                found.kept |= {name_of(each) for each in keys_of(row) if each[0] not in HARMLESS}
        for key in self._looser():
            row = self._rows[key]
            if row["state"] in ("RUNNING", "COMPLETED") or tasks.get(key, row) is None:
                continue
            if lost := self.now(key) & ~self.later(key):
                found.add(key, f"lets {key} begin without the gate of {self.name(lost)}")
                found.loose += keys_of(row)

    def _stricter(self) -> set[str]:
        """Tasks that were there, and that a dependency comes to which needs success, or whose upstream has a new gate."""
        changed, edges = self._after["dependencies"], self._edges
        found = {new["to"] for name, new in changed.items() if _needs(new) and not _needs(edges.get(name))}
        found |= {row["to"] for row in edges.values() if row["from"] in self._made and _needs(row)} if self._made else set()
        return found & self._rows.keys()

    def _looser(self) -> dict[str, None]:
        """Tasks that a dependency is taken from which needs success, or that wait for a task whose gate may go."""
        changed = self._after["dependencies"]
        loose = {
            old["to"]: None
            for name, new in changed.items()
            if (old := self._edges.get(name)) is not None and _needs(old) and not _needs(new)
        }
        gates = self.gates.keys() & self._after["tasks"].keys()
        return loose | {row["to"]: None for row in self._edges.values() if row["from"] in gates} if gates else loose

    @cached_property
    def _sets(self) -> tuple[GateSets, GateSets]:
        now: dict[str, list[str]] = {}
        for row in self._edges.values():
            if _needs(row):
                now.setdefault(row["to"], []).append(row["from"])
        later = dict(now)
        for name, new in self._after["dependencies"].items():
            old = self._edges.get(name)
            if old is not None and _needs(old):
                later[old["to"]] = [each for each in later[old["to"]] if each != old["from"]]
            if new is not None and _needs(new):
                later[new["to"]] = [*later.get(new["to"], ()), new["from"]]
        tasks = self._after["tasks"]
        still = {key for key in self._shut if (row := tasks.get(key, self._rows[key])) is not None and is_gate(row)}
        return GateSets(now, self._bits(self._shut)), GateSets(later, self._bits(still | self._made))

    def _bits(self, keys: set[str]) -> dict[str, int]:
        return {key: self.gates[key] for key in keys}


def _needs(row: Mapping[str, Any] | None) -> bool:
    return row is not None and row["type"] in NEEDS_SUCCESS


class GateSets:
    """For each task the gates that have to be opened before it begins, found when it is asked about.

    `upstream` are the tasks whose success each one needs.
    """

    def __init__(self, upstream: Mapping[str, Sequence[str]], gates: Mapping[str, int]):
        self._upstream, self._gates, self._known = upstream, gates, dict[str, int]()

    def of(self, task_id: str) -> int:
        todo = [task_id]
        while todo:
            key = todo[-1]
            above = self._upstream.get(key, ())
            missing = [each for each in above if each not in self._known]
            if missing:
                todo += missing
                continue
            todo.pop()
            found = 0
            for each in above:
                found |= self._known[each] | self._gates.get(each, 0)
            self._known[key] = found
        return self._known[task_id]


# What a fork or a restart inherits


def with_gates(row: Row, remembered: frozenset[str]) -> Row:
    """A task that asks about every action that is to be asked about; the row itself where it does so already."""
    own = levels_of(row, NOTHING) if remembered else {}
    loose = {key for key, level in own.items() if level < ASKED and name_of(key) in remembered}
    if not loose:
        return row
    if row["tool"] != STEPS:
        return {**row, "confirm": True}
    phases = deepcopy(row["phases"])
    for step in calls_of(phases):
        if step["do"] == "call":
            step["confirm"] |= key_of(*call_of(step)) in loose
    return {**row, "phases": phases}
