"""Edits of thousands of tasks: their cost grows with their size and not faster, and they are taken back as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import constellations
from agents.clock import now_iso
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from constellations.editor import draft as drafts
from constellations.editor import editor
from constellations.editor.inverse import inverse_operations
from constellations.errors import EditRefused, LimitReached, UndoRefused
from constellations.live import live
from constellations.live.live import LiveGraph
from constellations.models import Constellation
from constellations.services.edits import EditRequest, edit_apply, edit_row
from constellations.services.undo import edit_undo
from tests.constellations.planting import graph_of, noop, plant

AUTHOR = "user:1"
ROOT = str(Path(constellations.__file__).parent)
SIZE = 120
"""Tasks; the same with twice as many costs twice as much."""
CONDITIONAL = {"type": "CONDITIONAL", "condition": "n > 1"}


def build(tasks: list[dict], dependencies: list[dict] = ()) -> list[dict]:
    parameters = {"clear": False, "tasks": tasks, "dependencies": list(dependencies)}
    return [{"op": "build_constellation", "parameters": parameters}]


def chain(size: int) -> list[dict]:
    return build([noop(f"t{n}", after=[f"t{n - 1}" if n else "begin"]) for n in range(size)])


def backwards(size: int) -> list[dict]:
    """A chain whose tasks are named before what they wait for."""
    return build([noop(f"t{n}", after=[f"t{n + 1}"]) for n in range(size - 1)] + [noop(f"t{size - 1}", after=["begin"])])


def star(size: int) -> list[dict]:
    return build([noop(f"t{n}", after=["begin"]) for n in range(size)])


def funnel(size: int) -> list[dict]:
    return build([noop(f"t{n}") for n in range(size)], [{"from": f"t{n}", "to": "end"} for n in range(size)])


def hub(size: int) -> list[dict]:
    """What waits for it comes first, so that each of the others has to be put before all of that."""
    downs = [{"from": "hub", "to": f"t{n}"} for n in range(size)]
    return build([noop("hub"), *(noop(f"t{n}") for n in range(2 * size))], [
        *downs, *({"from": f"t{n}", "to": "hub"} for n in range(size, 2 * size)),
    ])  # fmt: skip


def never(size: int) -> list[dict]:
    """All of them wait for a condition that is false, and one task for all of them."""
    tied = [{"from": "done", "to": f"t{n}", **CONDITIONAL} for n in range(size)]
    return build([noop(f"t{n}") for n in range(size)], [*tied, *({"from": f"t{n}", "to": "end"} for n in range(size))])


class Editors:
    """A graph as an editor has it, and as the runner that drives it: both follow the same events. Nothing is stored."""

    def __init__(self) -> None:
        row = TABLES["constellation"].whole({"id": 1, "state": "EXECUTING", "version": 1, "created_at": now_iso()})
        self.numbers = count(2)
        self.editor = LiveGraph(row, lambda node: None)
        tasks = [noop("begin"), noop("end", after=["begin"]), noop("done")]
        self.editor.build(self.turn(), editor.apply_operations(self.editor.snapshot(), build(tasks), {}))
        done = self.editor.nodes["done"]
        done.row.update(state="COMPLETED", result={"n": 1})
        self.editor.results["done"] = done.row["result"]
        self.runner = self.editor.copy()

    def turn(self) -> Turn:
        return Turn(now_iso(), AUTHOR, self.numbers.__next__)

    def edit(self, operations: list[dict], limited: bool = True) -> Fields:
        turn, wanted = self.turn(), EditRequest(lambda graph: operations, AUTHOR, "", "")
        changes = editor.apply_operations(self.editor.snapshot(), operations, {}, limited=limited)
        row = edit_row(self.editor, wanted, operations, changes, {"id": turn.take(), "at": turn.at})
        self.editor.apply(turn, changes, row)
        for event in turn.events:
            self.runner.apply_foreign(deepcopy(event.data))
        self.runner.settle_dirty(self.turn())
        return row

    def take_back(self, row: Fields) -> Fields:
        return self.edit(inverse_operations(row["before"], row["after"], self.editor.snapshot()), limited=False)


def lines_run(do: Callable[[], Any]) -> int:
    """Lines of ours that `do` executes, each as often as it does."""
    found = 0

    def called(frame: Any, event: str, argument: Any) -> Any:
        return watch if frame.f_code.co_filename.startswith(ROOT) else None

    def watch(frame: Any, event: str, argument: Any) -> Any:
        nonlocal found
        found += 1
        return watch

    before = sys.gettrace()
    sys.settrace(called)
    try:
        do()
    finally:
        sys.settrace(before)
    return found


def made_and_taken_back(shape: Callable[[int], list[dict]], size: int) -> Callable[[], None]:
    there = Editors()

    def do() -> None:
        there.take_back(there.take_back(there.edit(shape(size))))

    return do


@pytest.mark.attack
@pytest.mark.parametrize("shape", [chain, backwards, star, funnel, hub, never])
def test_an_edit_its_undo_and_its_redo_cost_their_size_and_not_its_square(shape):
    """Most of it is done under the session's lock, on SQLite under the only one there is."""
    small, large = (lines_run(made_and_taken_back(shape, size)) for size in (SIZE, 2 * SIZE))
    assert large < 2.3 * small


def test_what_an_edit_brings_back_to_life_is_looked_at_once():
    costs = []
    for size in (SIZE, 2 * SIZE):
        there = Editors()
        there.edit(never(size))
        assert there.editor.nodes["end"].skipped
        ends = [{"from": "done", "to": f"t{n}"} for n in range(size)]
        now = [{"op": "update_dependency", "parameters": {**each, "condition": "n == 1"}} for each in ends]
        costs.append(lines_run(lambda there=there, now=now: there.edit(now)))
        for graph in (there.editor, there.runner):
            assert [graph.nodes[key].row["state"] for key in ("t0", "end")] == ["PENDING", "WAITING_DEPENDENCY"]
    assert costs[1] < 2.3 * costs[0]


@pytest.mark.parametrize("shape", [chain, backwards, star, funnel, hub])
def test_tasks_that_an_edit_adds_rank_by_the_way_before_them_also_where_a_runner_takes_it_up(shape):
    there = Editors()
    there.edit(shape(9))
    there.edit([{"op": "add_dependency", "parameters": {"from": "t8", "to": "end"}}])
    for graph in (there.editor, there.runner):
        assert {key: node.rank for key, node in graph.nodes.items()} == graph.graph.remaining_path()


def test_a_list_that_names_a_task_twice_is_refused_however_long_it_is():
    tasks = [noop(f"t{n}") for n in range(2_000)]
    with pytest.raises(EditRefused, match="the task t1999 is there twice"):
        editor.apply_operations(Editors().editor.snapshot(), build([*tasks, tasks[-1]]), {})


# Taken back as a whole


@pytest.fixture
def found(operator) -> Constellation:
    device_create("laptop", by="system")
    return plant(sessions.session_create(operator, "mine", by="system"), noop("begin"), noop("end", after=["begin"]))


@pytest.fixture
def few(monkeypatch):
    """Limits that a small edit reaches, and its undo passes: one operation adds what as many as two a task take away."""
    monkeypatch.setattr(editor, "MAX_OPERATIONS", 6)
    monkeypatch.setattr(drafts, "MAX_TASKS", 5)
    monkeypatch.setattr(live, "ADDED", 9)


@pytest.mark.django_db
def test_an_edit_is_undone_and_redone_however_many_operations_that_takes(found, few):
    before = graph_of(found)
    edit_apply(found.pk, chain(5), author=AUTHOR, edit_id="e1")
    after = graph_of(found)
    undone, _ = edit_undo(found.pk, "e1", AUTHOR, undo_id="u1")
    assert (len(undone.operations), graph_of(found)) == (10, before)
    edit_undo(found.pk, "u1", AUTHOR, undo_id="u2")
    assert graph_of(found) == after
    edit_undo(found.pk, "u2", AUTHOR)
    assert graph_of(found) == before


@pytest.mark.django_db
def test_everything_that_an_edit_cleared_comes_back(found, few):
    for size in range(2):
        edit_apply(found.pk, build([noop(f"{size}.{n}", after=["begin"]) for n in range(4)]), author=AUTHOR)
    before = graph_of(found)
    instead = {"op": "build_constellation", "parameters": {"tasks": [noop("other")]}}
    edit_apply(found.pk, [instead], author=AUTHOR, edit_id="e1")
    edit_undo(found.pk, "e1", AUTHOR)
    assert graph_of(found) == before


def test_a_refused_undo_names_what_was_changed_since_in_a_sentence_that_can_be_read():
    there = Editors()
    made = there.edit(star(30))
    there.edit([{"op": "update_task", "parameters": {"task_id": f"t{n}", "timeout": 1}} for n in range(30)])
    with pytest.raises(UndoRefused, match=r"the task t19 was changed again since; and 10 more$") as refused:
        there.take_back(made)
    assert len(refused.value.problems) == 30


@pytest.mark.django_db
def test_what_an_undo_brings_back_does_not_count_as_added(found, few):
    edit_apply(found.pk, star(5), author=AUTHOR, edit_id="e1")
    edit_undo(found.pk, "e1", AUTHOR, undo_id="u1")
    edit_undo(found.pk, "u1", AUTHOR)
    found.refresh_from_db()
    assert found.added == 5
    more = [noop(f"more{n}") for n in range(5)]
    with pytest.raises(LimitReached, match="5 so far"):
        edit_apply(found.pk, build(more), author=AUTHOR)
    edit_apply(found.pk, build(more[:4]), author=AUTHOR)
