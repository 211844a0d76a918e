"""Which edits may be applied in either order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constellations.editor.commuting import find_clashes, of_applied, of_operations
from constellations.errors import EditRefused
from tests.constellations.editor.test_editor import (
    OPERATION,
    STATES,
    add,
    after,
    dependency_row,
    digits,
    edit,
    link,
    repeated,
    short,
    snapshot_of,
    task_row,
)

OPERATIONS = st.lists(OPERATION, min_size=1, max_size=3)


def clash(theirs, *ours):
    """Over what edits of the same version disagree, when `theirs` came first."""
    changes = edit(digits(), *theirs)
    return find_clashes(of_operations([short(each) for each in ours]), of_applied(changes.before, changes.after))


@pytest.mark.parametrize(
    ("theirs", "ours", "names"),
    [
        ([add("x")], [add("y")], []),
        ([link("fetch>deploy")], [link("fetch>evaluate")], []),
        ([("remove_task", {"task_id": "fetch"})], [("remove_task", {"task_id": "train"})], []),
        ([("update_task", {"task_id": "fetch", "timeout": 1})], [link("fetch>deploy")], []),
        ([add("x", after=["fetch"])], [("remove_task", {"task_id": "fetch"})], ["fetch"]),
        ([("remove_task", {"task_id": "fetch"})], [link("train>deploy", condition="results['fetch'] > 1")], ["fetch"]),
        ([add("x")], [("update_dependency", {"dependency_id": "fetch>train", "condition": "results.x > 1"})], ["x"]),
        ([link("fetch>deploy")], [("remove_dependency", {"from": "fetch", "to": "deploy"})], ["fetch>deploy"]),
        ([link("fetch>deploy")], [("add_task", {"task_id": "x", "copy": "deploy"})], ["fetch>deploy"]),
        ([link("fetch>deploy")], [("add_task", {"task_id": "x", "copy": "deploy", "after": "train"})], []),
        ([("update_task", {"task_id": "fetch", "timeout": 1})], [("add_task", {"task_id": "x", "copy": "fetch"})], ["fetch"]),
        ([link("fetch>deploy", dependency_id="d")], [add("deploy", after=["fetch"])], ["fetch>deploy"]),
    ],
)
def test_what_two_edits_disagree_over_is_named(theirs, ours, names):
    assert clash(theirs, *ours) == names


def test_replacing_everything_commutes_with_nothing():
    whole = "build_constellation", {"tasks": [{"task_id": "new", "tool": "noop"}]}
    assert clash([add("x", after=["fetch"])], whole) == ["fetch>x", "x"]
    assert clash([add("x")], (whole[0], {**whole[1], "clear": False})) == []


def test_what_cannot_be_read_reaches_nothing():
    assert clash([add("x")], "nonsense", {"add_task": {"task_id": "x"}}, link("fetch>deploy", condition="((")) == []


def tried(snapshot, operations):
    try:
        return edit(snapshot, *operations)
    except EditRefused:
        return None


@settings(max_examples=400, deadline=None)
@given(
    st.lists(STATES, min_size=7, max_size=7),
    st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] < ends[1])),
    OPERATIONS,
    OPERATIONS,
)
def test_edits_that_commute_give_the_same_graph_in_either_order(states, edges, theirs, ours):
    tasks = [task_row(f"t{number}", state) for number, state in enumerate(states)]
    base = snapshot_of(tasks, [dependency_row(f"t{one}>t{other}") for one, other in sorted(edges)])
    first, second = tried(base, theirs), tried(base, ours)
    if not first or second is None:
        return
    if find_clashes(of_operations([short(each) for each in ours]), of_applied(first.before, first.after)):
        return
    rebased = tried(after(base, first), ours)
    if rebased is None:
        return
    one = after(after(base, first), rebased)
    other = after(after(base, second), edit(after(base, second), *repeated(first)))
    assert rows_of(one) == rows_of(other)


def rows_of(snapshot):
    """Tasks and dependencies as they are in effect."""
    tasks = {key: {name: value for name, value in row.items() if name != "state"} for key, row in snapshot.tasks.items()}
    return tasks, {key: {**row, "id": 0} for key, row in snapshot.dependencies.items()}
