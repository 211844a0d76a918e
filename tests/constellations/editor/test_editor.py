"""The editor on snapshots: what changes, what is refused and in which words."""

import copy
import json
import re
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.editor.draft import may_change, never_was_there
from constellations.editor.editor import MAX_OPERATIONS, MAX_PROBLEMS, Changes, Snapshot, apply_operations
from constellations.errors import EditRefused
from constellations.graph import Graph
from constellations.plan import plan as plans
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, TASK_DEFAULTS

DEVICES = {
    "laptop": {"type": "pc", "capabilities": ["fetch"], "state": "connected"},
    "gpu_server": {"type": "gpu", "capabilities": ["train", "fetch"], "state": "disconnected"},
}

FETCHED = {"from": "fetch", "to": "train", "condition": "x > 1"}
IDLE = "is nothing, and a task needs something to do: give it another command, a tool or steps"


def task_row(task_id: str, state: str = "WAITING_DEPENDENCY", **fields) -> dict:
    reason = fields.pop("reason", "skipped: a>b" if state == "SKIPPED" else "")
    state = "CANCELLED" if state == "SKIPPED" else state
    return {
        **copy.deepcopy(TASK_DEFAULTS),
        "task_id": task_id,
        "name": task_id,
        "tool": "noop",
        "state": state,
        "reason": reason,
        **fields,
    }


def dependency_row(ends: str, **fields) -> dict:
    upstream, downstream = ends.split(">")
    return {**DEPENDENCY_DEFAULTS, "dependency_id": ends, "from": upstream, "to": downstream, "id": 7, **fields}


def snapshot_of(tasks: list[dict], dependencies: list[dict], state: str = "EXECUTING") -> Snapshot:
    by_id = {row["task_id"]: row for row in tasks}
    edges = {row["dependency_id"]: row for row in dependencies}
    graph = Graph.build(by_id, [(row["from"], row["to"]) for row in dependencies])
    return Snapshot(3, state, by_id, edges, graph, was_there=always)


def always(which) -> bool:
    """Everything that is not there was there at some time."""
    return True


def digits(**states: str) -> Snapshot:
    """fetch > train > evaluate > deploy; a state by a task's name."""
    names = ["fetch", "train", "evaluate", "deploy"]
    tasks = [task_row(name, states.get(name, "WAITING_DEPENDENCY")) for name in names]
    edges = [dependency_row(f"{up}>{down}") for up, down in pairwise(names)]
    edges[-1] |= {"type": "CONDITIONAL", "condition": "accuracy > 0.95"}
    return snapshot_of(tasks, edges)


def ended() -> Snapshot:
    return digits(fetch="COMPLETED", train="RUNNING", evaluate="WAITING_DEPENDENCY", deploy="SKIPPED")


def edit(snapshot: Snapshot, *written, devices=None) -> Changes:
    """The changes; whatever happens the snapshot is as it was."""
    before = copy.deepcopy((snapshot.tasks, snapshot.dependencies)), snapshot.graph.copy()
    try:
        changes = apply_operations(
            snapshot, [short(operation) for operation in written], DEVICES if devices is None else devices
        )
    finally:
        assert ((snapshot.tasks, snapshot.dependencies), snapshot.graph) == before
    json.dumps([changes.before, changes.after, changes.diff, changes.added_tasks, changes.updated_dependencies])
    return changes


def short(operation):
    return {"op": operation[0], "parameters": operation[1]} if isinstance(operation, tuple) else operation


def refusal(snapshot: Snapshot, *written, devices=None) -> EditRefused:
    with pytest.raises(EditRefused) as refused:
        edit(snapshot, *written, devices=devices)
    return refused.value


def add(task_id: str, **fields) -> tuple[str, dict]:
    return "add_task", {"task_id": task_id, **({"tool": "noop"} if "command" not in fields else {}), **fields}


def link(ends: str, **fields) -> tuple[str, dict]:
    upstream, downstream = ends.split(">")
    return "add_dependency", {"from": upstream, "to": downstream, **fields}


# What changes


def test_an_added_task_is_in_normal_form():
    changes = edit(ended(), add("again", command="python train.py", device="gpu_server", priority="HIGH"))
    (row,) = changes.added_tasks
    assert row == {
        **TASK_DEFAULTS,
        "task_id": "again",
        "name": "again",
        "wanted_device": "gpu_server",
        "tool": "command",
        "arguments": {"argv": ["python", "train.py"]},
        "priority": 2,
    }
    assert changes.touched == []
    assert changes.before == {"tasks": {"again": None}, "dependencies": {}}
    assert changes.after == {"tasks": {"again": row}, "dependencies": {}}
    assert changes.diff == [{"change": "added", "task": "again"}]


def test_a_copy_is_like_its_task_whatever_became_of_that_and_waits_for_the_same():
    snapshot = digits(fetch="COMPLETED", train="FAILED")
    snapshot.tasks["train"].update(wanted_device="gpu_server", deadline=60, timeout=5, tips=["slow"], name="Train it")
    again = {"task_id": "again", "copy": "train", "not_device": "gpu_server", "timeout": None}
    changes = edit(snapshot, ("add_task", again))
    (row,) = changes.added_tasks
    assert row == {
        **TASK_DEFAULTS, "task_id": "again", "name": "Train it", "tool": "noop", "tips": ["slow"], "not_device": ["gpu_server"],
    }  # fmt: skip
    assert [line["dependency_id"] for line in changes.added_dependencies] == ["fetch>again"]
    (condition,) = edit(digits(), ("add_task", {"task_id": "x", "copy": "deploy"})).added_dependencies
    assert (condition["from"], condition["type"], condition["condition"]) == ("evaluate", "CONDITIONAL", "accuracy > 0.95")


def test_a_copy_may_wait_for_something_else_and_do_something_else():
    written = {"task_id": "x", "copy": "train", "after": ["evaluate"], "command": "ls", "name": "Look"}
    changes = edit(digits(), ("add_task", written), ("add_task", {"task_id": "y", "copy": "x", "after": []}))
    assert [row["arguments"] for row in changes.added_tasks] == [{"argv": ["ls"]}] * 2
    assert [row["name"] for row in changes.added_tasks] == ["Look", "Look"]
    assert [line["dependency_id"] for line in changes.added_dependencies] == ["evaluate>x"]


def test_the_same_copy_twice_is_one():
    copied = ("add_task", {"task_id": "x", "copy": "train"})
    assert edit(digits(), copied, copied) == edit(digits(), copied)
    assert not edit(digits(), ("add_task", {"task_id": "train", "copy": "train"}))


def test_a_task_that_must_not_run_where_it_was_to_run_may_run_anywhere_else():
    snapshot = snapshot_of([task_row("a", wanted_device="laptop")], [])
    changes = edit(snapshot, ("update_task", {"task_id": "a", "not_device": ["laptop"]}))
    assert changes.updated_tasks == {"a": {"wanted_device": "", "not_device": ["laptop"]}}
    excluded = snapshot_of([task_row("a", not_device=["laptop"])], [])
    refused = refusal(excluded, ("update_task", {"task_id": "a", "device": "laptop"}))
    assert str(refused).endswith("device: a is to run on laptop, and not_device says that it must not")


def test_the_examples_replan_rule_does_what_it_says():
    """Add a retraining, its evaluation and a deployment on the same condition; the skipped deployment goes."""
    snapshot = digits(fetch="COMPLETED", train="COMPLETED", evaluate="COMPLETED", deploy="SKIPPED")
    changes = edit(
        snapshot,
        {"add_task": {"task_id": "retrain", "tool": "noop"}},
        {"add_dependency": {"from": "evaluate", "to": "retrain"}},
        {"add_task": {"task_id": "evaluate_2", "tool": "noop", "after": ["retrain"]}},
        {"add_task": {"task_id": "deploy_2", "tool": "noop"}},
        {"add_dependency": {"from": "evaluate_2", "to": "deploy_2", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}},
        {"remove_task": {"task_id": "deploy"}},
    )
    assert [row["task_id"] for row in changes.added_tasks] == ["retrain", "evaluate_2", "deploy_2"]
    assert [row["dependency_id"] for row in changes.added_dependencies] == [
        "evaluate>retrain",
        "retrain>evaluate_2",
        "evaluate_2>deploy_2",
    ]
    assert changes.removed_tasks == ["deploy"]
    assert changes.removed_dependencies == ["evaluate>deploy"]
    assert changes.touched == []
    assert changes.before["tasks"]["deploy"] == {key: snapshot.tasks["deploy"][key] for key in TASK_DEFAULTS}
    assert changes.after["tasks"]["deploy"] is None
    assert [(line["change"], line.get("task") or line["dependency"]) for line in changes.diff] == [
        ("added", "retrain"),
        ("added", "evaluate_2"),
        ("added", "deploy_2"),
        ("removed", "deploy"),
        ("added", "evaluate>retrain"),
        ("added", "retrain>evaluate_2"),
        ("added", "evaluate_2>deploy_2"),
        ("removed", "evaluate>deploy"),
    ]


def test_removing_a_task_removes_its_dependencies_and_touches_what_waited_for_it():
    changes = edit(digits(), ("remove_task", {"task_id": "train"}))
    assert changes.removed_tasks == ["train"]
    assert changes.removed_dependencies == ["fetch>train", "train>evaluate"]
    assert changes.touched == ["evaluate"]


def test_an_update_names_the_new_fields_only():
    changes = edit(digits(), ("update_task", {"task_id": "train", "timeout": 30, "device": "laptop", "name": "train"}))
    assert changes.updated_tasks == {"train": {"wanted_device": "laptop", "timeout": 30}}
    assert changes.touched == ["train"]
    assert changes.diff == [
        {"change": "updated", "task": "train", "fields": {"wanted_device": ["", "laptop"], "timeout": [None, 30]}}
    ]


def test_an_update_with_nothing_as_value_sets_the_default():
    snapshot = snapshot_of([task_row("a", name="A", timeout=3.0, tips=["x"], wanted_device="laptop")], [])
    changes = edit(snapshot, ("update_task", {"task_id": "a", "timeout": None, "tips": None, "name": None, "device": None}))
    assert changes.updated_tasks == {"a": {"name": "a", "tips": [], "wanted_device": "", "timeout": None}}


def test_another_tool_does_not_inherit_the_old_ones_arguments():
    snapshot = snapshot_of([task_row("a", tool="command", arguments={"argv": ["ls"]})], [])
    changes = edit(snapshot, ("update_task", {"task_id": "a", "tool": "noop"}))
    assert changes.updated_tasks == {"a": {"tool": "noop", "arguments": {}}}
    changes = edit(snapshot, ("update_task", {"task_id": "a", "command": ["pwd"]}))
    assert changes.updated_tasks == {"a": {"arguments": {"argv": ["pwd"]}}}


def test_a_dependency_is_added_changed_and_removed():
    changes = edit(digits(), link("fetch>deploy", dependency_id="x"))
    assert changes.added_dependencies == [{**DEPENDENCY_DEFAULTS, "dependency_id": "x", "from": "fetch", "to": "deploy"}]
    assert changes.touched == ["deploy"]
    changes = edit(digits(), ("update_dependency", {"dependency_id": "evaluate>deploy", "condition": "accuracy > 0.5"}))
    assert changes.updated_dependencies == {"evaluate>deploy": {"condition": "accuracy > 0.5"}}
    assert changes.touched == ["deploy"]
    assert changes.diff == [
        {
            "change": "updated",
            "dependency": "evaluate>deploy",
            "from": "evaluate",
            "to": "deploy",
            "fields": {"condition": ["accuracy > 0.95", "accuracy > 0.5"]},
        }
    ]
    changes = edit(digits(), ("remove_dependency", {"from": "train", "to": "evaluate"}))
    assert changes.removed_dependencies == ["train>evaluate"]
    assert changes.touched == ["evaluate"]


def test_type_and_condition_of_a_dependency_follow_each_other():
    changes = edit(digits(), ("update_dependency", {"from": "evaluate", "to": "deploy", "type": "SUCCESS_ONLY"}))
    assert changes.updated_dependencies == {"evaluate>deploy": {"type": "SUCCESS_ONLY", "condition": ""}}
    changes = edit(digits(), ("update_dependency", {"dependency_id": "fetch>train", "condition": "rows > 0"}))
    assert changes.updated_dependencies == {"fetch>train": {"type": "CONDITIONAL", "condition": "rows > 0"}}


def test_touched_tasks_come_each_after_what_it_waits_for():
    changes = edit(
        digits(),
        ("update_task", {"task_id": "deploy", "timeout": 1}),
        ("update_task", {"task_id": "fetch", "timeout": 1}),
        ("update_task", {"task_id": "evaluate", "timeout": 1}),
    )
    assert changes.touched == ["fetch", "evaluate", "deploy"]


def test_a_skipped_task_may_change_and_is_judged_again():
    changes = edit(ended(), ("update_dependency", {"dependency_id": "evaluate>deploy", "condition": "accuracy > 0.9"}))
    assert changes.touched == ["deploy"]
    assert edit(ended(), ("update_task", {"task_id": "deploy", "timeout": 1})).touched == ["deploy"]


def test_a_new_task_may_wait_for_one_that_has_ended_or_runs():
    changes = edit(ended(), add("report", after=["fetch", "train"]))
    assert [row["from"] for row in changes.added_dependencies] == ["fetch", "train"]


def test_a_task_is_put_between_two_others():
    changes = edit(
        digits(),
        add("check"),
        ("remove_dependency", {"dependency_id": "train>evaluate"}),
        link("train>check"),
        link("check>evaluate"),
    )
    assert changes.removed_dependencies == ["train>evaluate"]
    assert changes.touched == ["evaluate"]


def test_a_task_removed_and_added_in_one_edit_is_an_update():
    changes = edit(digits(), ("remove_task", {"task_id": "deploy"}), add("deploy", timeout=9))
    assert (changes.removed_tasks, changes.added_tasks) == ([], [])
    assert changes.updated_tasks == {"deploy": {"timeout": 9}}
    assert changes.removed_dependencies == ["evaluate>deploy"]
    assert changes.touched == ["deploy"]


def test_an_edge_may_be_turned_round_in_one_edit():
    changes = edit(digits(), ("remove_dependency", {"dependency_id": "fetch>train"}), link("train>fetch"))
    assert changes.removed_dependencies == ["fetch>train"]
    assert [row["dependency_id"] for row in changes.added_dependencies] == ["train>fetch"]
    assert changes.touched == ["train", "fetch"]


# Idempotent operations


@pytest.mark.parametrize(
    "operation",
    [
        add("fetch"),
        add("train", after=["fetch"]),
        link("fetch>train"),
        link("evaluate>deploy", condition="accuracy > 0.95"),
        ("remove_task", {"task_id": "gone"}),
        ("remove_dependency", {"dependency_id": "gone"}),
        ("remove_dependency", {"from": "fetch", "to": "deploy"}),
        ("remove_dependency", {"from": "gone", "to": "gone_too"}),
        ("update_task", {"task_id": "fetch", "tool": "noop", "priority": "MEDIUM", "device": None}),
        ("update_dependency", {"dependency_id": "fetch>train", "type": "SUCCESS_ONLY"}),
        ("update_dependency", {"from": "fetch", "to": "train"}),
    ],
)
def test_what_is_so_already_is_no_change_even_where_nothing_may_change(operation):
    snapshot = digits(fetch="COMPLETED", train="RUNNING", evaluate="COMPLETED", deploy="FAILED")
    assert not edit(snapshot, operation)


NO_SUCH_TIE = "there is no dependency fetch>trian; did you mean fetch>train?"


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (("remove_task", {"task_id": "trian"}), "task_id: there is no task trian; did you mean train?"),
        (
            ("remove_dependency", {"dependency_id": "fetch>trian"}),
            "there is no dependency fetch>trian; did you mean fetch>train?",
        ),
        (
            ("remove_dependency", {"from": "fetch", "to": "trian"}),
            "there is no dependency fetch>trian; did you mean fetch>train?",
        ),
    ],
)
def test_removing_what_never_was_is_refused_with_the_nearest_name(operation, says):
    with pytest.raises(EditRefused, match=re.escape(says)):
        edit(replace(digits(), was_there=never_was_there), operation)


def test_what_one_edit_removes_twice_or_adds_and_removes_twice_was_there():
    snapshot = replace(digits(), was_there=never_was_there)
    remove = ("remove_task", {"task_id": "deploy"})
    assert edit(snapshot, remove, remove).removed_tasks == ["deploy"]
    untie = ("remove_dependency", {"from": "train", "to": "evaluate"})
    assert edit(snapshot, untie, untie).removed_dependencies == ["train>evaluate"]
    gone = ("remove_task", {"task_id": "x"})
    assert not edit(snapshot, add("x", after=["train"]), gone, gone, ("remove_dependency", {"from": "train", "to": "x"}))


def test_an_edit_and_its_opposite_come_to_nothing():
    assert not edit(digits(), add("x", after=["train"]), ("remove_task", {"task_id": "x"}))
    assert not edit(
        digits(),
        ("update_task", {"task_id": "train", "timeout": 5}),
        ("update_task", {"task_id": "train", "timeout": None}),
        ("remove_dependency", {"dependency_id": "fetch>train"}),
        link("fetch>train"),
    )


def test_the_same_edge_under_a_name_of_its_own_is_there_already():
    snapshot = snapshot_of([task_row("a"), task_row("b")], [dependency_row("a>b", dependency_id="gate")])
    assert not edit(snapshot, link("a>b"))
    assert edit(snapshot, ("remove_dependency", {"from": "a", "to": "b"})).removed_dependencies == ["gate"]
    assert edit(snapshot, ("remove_task", {"task_id": "a"})).removed_dependencies == ["gate"]


# Refusals, in the words a person reads


@pytest.mark.parametrize(
    ("operation", "field", "message", "status"),
    [
        (("update_task", {"task_id": "train", "timeout": 5}), "task_id", "train already runs", 409),
        (("update_task", {"task_id": "fetch", "timeout": 5}), "task_id", "fetch has ended (COMPLETED)", 409),
        (("remove_task", {"task_id": "train"}), "task_id", "train already runs", 409),
        (("remove_task", {"task_id": "fetch"}), "task_id", "fetch has ended (COMPLETED)", 409),
        (link("deploy>train"), "to", "train already runs", 409),
        (("remove_dependency", {"dependency_id": "fetch>train"}), "to", "train already runs", 409),
        (("update_dependency", {"dependency_id": "fetch>train", "type": "UNCONDITIONAL"}), "to", "train already runs", 409),
        (("update_task", {"task_id": "trian", "timeout": 5}), "task_id", "there is no task trian; did you mean train?", 400),
        (("update_task", {"timeout": 5}), "", "which task? task_id is missing", 400),
        (
            ("update_task", {"task_id": "deploy", "state": "COMPLETED"}),
            "state",
            "a task's state is not edited; it follows from what happens",
            400,
        ),
        (
            ("update_task", {"task_id": "deploy", "after": ["x"]}),
            "after",
            "after is for new tasks; add_dependency makes one that is there wait for another",
            400,
        ),
        (
            ("update_task", {"task_id": "deploy", "tool": "command"}),
            "command",
            "a command needs its argument list; give it as command",
            400,
        ),
        (
            ("update_task", {"task_id": "deploy", "timeot": 5}),
            "timeot",
            "there is no key timeot here; did you mean timeout?",
            400,
        ),
        (
            ("update_task", {"task_id": "deploy", "device": "gpu"}),
            "device",
            "there is no device gpu; there are gpu_server, laptop",
            400,
        ),
        (("remove_task", {}), "", "which task? task_id is missing", 400),
        (add("fetch", timeout=5, tips=["x"]), "task_id", "there is a task fetch already, and it differs in tips, timeout", 400),
        (add("x", device="gpu"), "device", "there is no device gpu; there are gpu_server, laptop", 400),
        (add("x", device_type="tpu"), "device_type", "no device has the type tpu; the types there are: gpu, pc", 400),
        (
            add("x", capabilities=["train", "fly"]),
            "capabilities",
            "no device has the capability fly; the capabilities there are: fetch, train",
            400,
        ),
        (
            add("x", device_type="pc", capabilities=["train"]),
            "device_type",
            "no device has the type pc and the capabilities train; there are gpu_server, laptop",
            400,
        ),
        (
            add("x", capabilities=["fly", "swim"]),
            "capabilities",
            "no device has the capabilities fly, swim; the capabilities there are: fetch, train",
            400,
        ),
        (
            add("x", condition="fetch.ok"),
            "condition",
            "there is no key condition here; a condition belongs to a dependency: {from: ..., to: ..., condition: ...} in "
            "`dependencies`, or add_dependency",
            400,
        ),
        (
            add("x", cwd="src"),
            "cwd",
            "there is no key cwd here; put it into the command, a text with `shell: true` beside it: `cd src && make`",
            400,
        ),
        (
            add("x", env={"X": "1"}),
            "env",
            "there is no key env here; put it into the command, a text with `shell: true` beside it: `X=1 make`",
            400,
        ),
        (
            ("add_task", {"task_id": "x", "arguments": {"path": "a"}}),
            "arguments",
            "name the tool that takes these arguments, beside them as `tool`",
            400,
        ),
        (add("x", not_device="pi"), "not_device", "there is no device pi; there are gpu_server, laptop", 400),
        (
            add("x", not_device=["laptop", "gpu_server"]),
            "not_device",
            "not_device leaves no device: it names laptop, gpu_server; there are gpu_server, laptop",
            400,
        ),
        (
            add("x", device_type="pc", not_device="laptop"),
            "device_type",
            "leaving out laptop (not_device), no device has the type pc; there are gpu_server, laptop",
            400,
        ),
        (
            add("x", device="laptop", not_device="laptop"),
            "not_device",
            "the task is to run on laptop, and here it must not",
            400,
        ),
        (("add_task", {"task_id": "x", "copy": "trian"}), "copy", "there is no task trian; did you mean train?", 400),
        (("add_task", {"copy": "train"}), "", "which task? task_id is missing", 400),
        (("add_task", {"task_id": "x", "copy": "train", "tol": 1}), "tol", "there is no key tol here; did you mean tool?", 400),
        (
            ("add_task", {"task_id": "evaluate", "copy": "train", "timeout": 5}),
            "task_id",
            "there is a task evaluate already, and it differs in timeout",
            400,
        ),
        (
            add("x", device="laptop", device_type="tpu"),
            "device_type",
            "no device has the type tpu; the types there are: gpu, pc",
            400,
        ),
        (add("x", after=["nobody"]), "after[0]", "there is no task nobody; there are deploy, evaluate, fetch, train, x", 400),
        (add("x", after=["x"]), "after[0]", "x would wait for itself", 400),
        (
            add("deploy", after=["evaluate"]),
            "after[0]",
            "there is a dependency evaluate>deploy already, and it differs in type, condition",
            400,
        ),
        (
            ("add_task", {"task_id": "x"}),
            "",
            "a task needs a command, a tool or steps; one in words alone needs a language model",
            400,
        ),
        (add("x y"), "task_id", "'x y' is not an id: letters, digits and _ - . : / make one", 400),
        (add("x", name="a\0b"), "name", "text may not hold the character NUL", 400),
        (link("fetch>nobody"), "to", "there is no task nobody; there are deploy, evaluate, fetch, train", 400),
        (link("nobody>deploy"), "from", "there is no task nobody; there are deploy, evaluate, fetch, train", 400),
        (link("deploy>deploy"), "from", "deploy would wait for itself", 400),
        (link("deploy>evaluate"), "", "the tasks would wait for each other: deploy > evaluate > deploy", 400),
        (
            link("evaluate>deploy", type="UNCONDITIONAL"),
            "dependency_id",
            "there is a dependency evaluate>deploy already, and it differs in type, condition",
            400,
        ),
        (
            link("fetch>deploy", dependency_id="evaluate>deploy"),
            "dependency_id",
            "there is a dependency evaluate>deploy already, and it differs in from, type, condition",
            400,
        ),
        (
            link("evaluate>deploy", dependency_id="other", condition="accuracy > 0.95"),
            "dependency_id",
            "there is a dependency evaluate>deploy already, and it differs in dependency_id",
            400,
        ),
        (link("fetch>deploy", condition="x >"), "condition", "column 4: the condition is not understood: invalid syntax", 400),
        (link("fetch>deploy", condition="results.trian.x"), "condition", "there is no task trian; did you mean train?", 400),
        (("add_dependency", {"from": "fetch"}), "", "a dependency needs `to`", 400),
        (("remove_dependency", {}), "", "which dependency? give its dependency_id, or from and to", 400),
        (("update_dependency", {"dependency_id": ""}), "", "which dependency? give its dependency_id, or from and to", 400),
        (("remove_dependency", {"from": "fetch"}), "", "which dependency? give its dependency_id, or from and to", 400),
        (
            ("remove_dependency", {"dependency_id": "evaluate>deploy", "condition": "x"}),
            "condition",
            "condition says nothing about a removal: a dependency is named by its dependency_id, or from and to",
            400,
        ),
        (
            ("update_dependency", {"dependency_id": "evaluate>deploi", "description": "x"}),
            "dependency_id",
            "there is no dependency evaluate>deploi; did you mean evaluate>deploy?",
            400,
        ),
        (
            ("update_dependency", {"from": "fetch", "to": "deploy", "description": "x"}),
            "dependency_id",
            "there is no dependency fetch>deploy",
            400,
        ),
        (
            ("update_dependency", {"dependency_id": "evaluate>deploy", "from": "fetch"}),
            "from",
            "evaluate>deploy leads from evaluate to deploy; its ends stay: remove it and add another",
            400,
        ),
        (
            ("update_dependency", {"dependency_id": "evaluate>deploy", "condition": ""}),
            "",
            "a CONDITIONAL dependency needs a condition",
            400,
        ),
        (
            ("update_dependency", {"dependency_id": "evaluate>deploy", "condition": "lenn(x)"}),
            "condition",
            "column 1: there is no function lenn; did you mean len?",
            400,
        ),
        (
            ("update_dependency", {"dependency_id": "evaluate>deploy", "type": "SUCCESS_ONLY", "condition": "x"}),
            "condition",
            "only a CONDITIONAL dependency has a condition; this one is SUCCESS_ONLY",
            400,
        ),
        (("build_constellation", {"tasks": []}), "tasks", "a constellation needs at least one task", 400),
        (
            ("build_constellation", {"tasks": [{"task_id": "x", "tol": "noop"}]}),
            "tasks[0].tol",
            "there is no key tol here; did you mean tool?",
            400,
        ),
        (("build_constellation", {"tasks": [{"task_id": "x", "tool": "noop"}] * 2}), "tasks", "the task x is there twice", 400),
        (
            ("build_constellation", {"clear": False, "tasks": [{"task_id": "train", "tool": "noop", "timeout": 9}]}),
            "tasks[0].timeout",
            "train already runs, and what is listed differs from it in timeout: list it as it is, or leave it out",
            409,
        ),
        (
            ("build_constellation", {"tasks": [{"task_id": "fetch", "command": "ls", "device": "laptop"}]}),
            "tasks[0].device",
            "fetch has ended (COMPLETED), and what is listed differs from it in device, command: "
            "list it as it is, or leave it out",
            409,
        ),
        (
            ("build_constellation", {"tasks": [{"task_id": "x", "tool": "noop"}], "dependencies": [FETCHED]}),
            "dependencies[0].type",
            "train already runs, and what is listed differs from the dependency fetch>train in type, condition: "
            "list it as it is, or leave it out",
            409,
        ),
        (
            (
                "build_constellation",
                {"tasks": [{"task_id": "x", "tool": "noop"}], "dependencies": [{"from": "x", "to": "train"}]},
            ),
            "dependencies[0].from",
            "train already runs, and it did not wait for x: leave that out",
            409,
        ),
        (
            ("build_constellation", {"clear": False, "tasks": [{"task_id": "x", "tool": "noop", "after": ["y"]}]}),
            "tasks[0].after[0].from",
            "there is no task y; there are deploy, evaluate, fetch, train, x",
            400,
        ),
        (
            ("build_constellation", {"clear": False, "tasks": [{"task_id": "x", "tool": "noop", "device": "y"}]}),
            "tasks[0].device",
            "there is no device y; there are gpu_server, laptop",
            400,
        ),
        (
            (
                "build_constellation",
                {
                    "clear": False,
                    "tasks": [{"task_id": "x", "tool": "noop", "after": ["train"]}],
                    "dependencies": [{"from": "train", "to": "x"}],
                },
            ),
            "dependencies[0]",
            "x waits for train already",
            400,
        ),
        (
            ("build_constellation", {"clear": "no", "tasks": [{"task_id": "x", "tool": "noop"}]}),
            "clear",
            "must be true or false, not the text 'no'; write false, without quotes",
            400,
        ),
        (("add_tasks", {}), "", "there is no operation add_tasks; did you mean add_task?", 400),
        (
            {"op": "remove_task", "parameters": {"task_id": "x"}, "why": "x"},
            "why",
            "there is no key why beside op and parameters: put it into parameters",
            400,
        ),
        (
            {"op": ["x"]},
            "",
            "an operation has a name, not a list; there are add_dependency, add_task, build_constellation, "
            "remove_dependency, remove_task, update_dependency, update_task",
            400,
        ),
        (
            {"op": None},
            "",
            "an operation has a name, not nothing; there are add_dependency, add_task, build_constellation, "
            "remove_dependency, remove_task, update_dependency, update_task",
            400,
        ),
        (
            {"op": "add_task", "tool": "remove_task", "parameters": {"task_id": "deploy"}},
            "tool",
            "there is no key tool beside op and parameters: put it into parameters",
            400,
        ),
        (
            {"tool": "remove_task", "arguments": {}},
            "arguments",
            "there is no key arguments beside tool and parameters: call it parameters",
            400,
        ),
        (
            {"function": "remove_task", "parameters": {}},
            "parameters",
            "there is no key parameters beside function and arguments: call it arguments",
            400,
        ),
        (("update_task", {"task_id": "deploy", "command": None}), "command", IDLE, 400),
        (("update_task", {"task_id": "deploy", "tool": None, "steps": None}), "tool", IDLE, 400),
        (("build_constellation", {"clear": False}), "tasks", "a constellation needs at least one task", 400),
        ({"op": "remove_task", "parameters": [1]}, "", "must be an object (key: value), not a list", 400),
        ("remove it", "", "an operation is an object (name: parameters), not the text 'remove it'", 400),
    ],
)
def test_a_refusal_names_the_operation_the_field_and_the_reason(operation, field, message, status):
    refused = refusal(ended(), operation)
    (problem,) = refused.problems
    assert (problem["operation"], problem["field"], problem["message"]) == (1, field, message)
    assert refused.status == status
    name = f" ({problem['op']})" if problem["op"] else ""
    assert str(refused) == f"operation 1{name}{', ' + field if field else ''}: {message}"


def test_without_devices_a_task_that_asks_for_none_is_added():
    assert edit(ended(), add("x"), devices={}).added_tasks


def test_all_refusals_are_reported_at_once_but_none_twice():
    refused = refusal(
        ended(),
        add("x", timeot=1),
        add("y", after=["x"]),
        ("update_task", {"task_id": "x", "timeout": 3}),
        ("remove_task", {"task_id": "train"}),
        add("z"),
    )
    assert [(problem["operation"], problem["op"]) for problem in refused.problems] == [(1, "add_task"), (4, "remove_task")]
    assert refused.status == 409
    assert str(refused) == (
        "operation 1 (add_task), timeot: there is no key timeot here; did you mean timeout?; "
        "operation 4 (remove_task), task_id: train already runs"
    )


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"])
def test_a_task_that_has_started_or_was_cancelled_is_read_only(state):
    snapshot = snapshot_of([task_row("a", state, reason="cancelled"), task_row("b")], [])
    assert not may_change(snapshot.tasks["a"])
    way_out = "; retry it in the same request as these operations, or add a task that replaces it"
    said = "a already runs" if state == "RUNNING" else f"a has ended ({state}){way_out * (state in ('FAILED', 'CANCELLED'))}"
    assert refusal(snapshot, ("update_task", {"task_id": "a", "timeout": 1})).problems[0]["message"] == said


@pytest.mark.parametrize("state", ["PENDING", "WAITING_DEPENDENCY", "SKIPPED"])
def test_a_task_that_has_not_started_may_change(state):
    snapshot = snapshot_of([task_row("a", state)], [])
    assert edit(snapshot, ("update_task", {"task_id": "a", "timeout": 1})).touched == ["a"]


def test_nothing_changes_in_a_cancelled_constellation():
    assert refusal(snapshot_of([task_row("a")], [], state="CANCELLED"), add("b")).status == 409


def test_the_last_task_stays():
    assert refusal(snapshot_of([task_row("a")], []), ("remove_task", {"task_id": "a"})).status == 400
    assert edit(snapshot_of([task_row("a")], []), ("remove_task", {"task_id": "a"}), add("b")).removed_tasks == ["a"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], "an edit needs at least one operation"),
        ({}, "operations are a list, not an object"),
        ([{}] * (MAX_OPERATIONS + 1), "the edit has 10,001 operations; 10,000 are allowed"),
    ],
)
def test_an_edit_is_a_bounded_list_of_operations(written, message):
    with pytest.raises(EditRefused) as refused:
        apply_operations(digits(), written, DEVICES)
    assert str(refused.value) == message


def test_no_more_problems_are_looked_for_than_anyone_reads():
    refused = refusal(digits(), *[("update_task", {"task_id": f"x{number}"}) for number in range(1000)])
    assert len(refused.problems) == MAX_PROBLEMS


# Tasks in steps

STEPS_TASK = {
    "task_id": "again",
    "phases": [
        {
            "description": "Look",
            "steps": [{"observe": True, "save": "seen"}, {"ask": "Go on?", "options": ["yes"], "save": "go"}],
        },
        {
            "description": "Work",
            "expected_duration": 30,
            "steps": [
                {"command": "make test", "kind": "test", "recover": [{"command": "make clean"}], "expect": {"exit_code": 0}},
                {"delegate": {"name": "writer", "steps": [{"wait": {"for": "ci"}}, {"wait": 5}, {"say": "done"}]}},
            ],
        },
    ],
    "policies": [{"tool": "command", "decision": "ask"}],
    "progress": {"stuck_threshold": 5},
    "confirm": True,
}


def in_steps() -> Snapshot:
    """One task in steps, as an edit has added it."""
    (row,) = edit(ended(), ("add_task", STEPS_TASK)).added_tasks
    return snapshot_of([{**row, "state": "PENDING", "reason": ""}], [])


def test_a_task_in_steps_is_the_same_when_it_is_read_again():
    (row,) = edit(ended(), ("add_task", STEPS_TASK)).added_tasks
    assert (row["tool"], row["arguments"], len(row["phases"])) == ("steps", {}, 2)
    assert edit(ended(), ("add_task", json.loads(json.dumps(row)))).added_tasks == [row]
    assert not edit(in_steps(), ("add_task", STEPS_TASK))
    assert not edit(in_steps(), ("update_task", row))


def test_an_empty_constellation_is_built_from_a_plan_with_steps():
    plan = plans.parse_plan(json.dumps({"tasks": [STEPS_TASK, {"task_id": "b", "steps": [{"say": "x"}], "after": ["again"]}]}))
    parameters = {"tasks": plan.tasks, "dependencies": plan.dependencies}
    changes = edit(snapshot_of([], [], state="CREATED"), ("build_constellation", parameters))
    assert changes.added_tasks == plan.tasks


def test_another_task_in_steps_of_the_same_name_is_refused():
    other = {**STEPS_TASK, "policies": [], "progress": {}, "confirm": False}
    (problem,) = refusal(in_steps(), ("add_task", other)).problems
    assert problem["message"] == "there is a task again already, and it differs in confirm, policies, progress"


def test_an_update_puts_steps_in_the_place_of_a_command_and_back():
    snapshot = snapshot_of([task_row("a", tool="command", arguments={"argv": ["ls"]})], [])
    changes = edit(snapshot, ("update_task", {"task_id": "a", "steps": [{"say": "hi"}]}))
    phases = [{"description": "", "expected_duration": None, "steps": [{"do": "say", "text": "hi", "if": ""}]}]
    assert changes.updated_tasks == {"a": {"tool": "steps", "arguments": {}, "phases": phases}}
    there = after(snapshot, changes)
    assert edit(there, ("update_task", {"task_id": "a", "command": "ls"})).updated_tasks == {
        "a": {"tool": "command", "arguments": {"argv": ["ls"]}, "phases": []}
    }
    assert edit(there, ("update_task", {"task_id": "a", "tool": "noop"})).updated_tasks == {"a": {"tool": "noop", "phases": []}}
    assert after(there, edit(there, *inverse(changes))).tasks == snapshot.tasks


def test_an_update_without_a_value_takes_policies_and_settings_away():
    changes = edit(in_steps(), ("update_task", {"task_id": "again", "policies": None, "progress": None, "confirm": None}))
    assert changes.updated_tasks == {"again": {"confirm": False, "policies": [], "progress": {}}}


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"steps": None}, "steps", IDLE),
        ({"phases": []}, "steps", "a task in steps needs steps; or give it a command or a tool"),
        ({"steps": []}, "steps", "is empty"),
        ({"tool": "steps"}, "tool", "the tool steps is for a task in steps, and this one has none"),
        ({"arguments": {"x": 1}}, "arguments", "a task in steps has no arguments of its own; each of its steps has"),
        (
            {"steps": [{"say": "x"}], "command": "ls"},
            "command",
            "a task has steps or a command or tool, not both: command beside steps",
        ),
        ({"steps": [{"command": "ls", "expct": {}}]}, "steps[0].expct", "there is no key expct here; did you mean expect?"),
    ],
)
def test_an_update_leaves_no_task_half_in_steps(fields, field, message):
    (problem,) = refusal(in_steps(), ("update_task", {"task_id": "again", **fields})).problems
    assert (problem["field"], problem["message"]) == (field, message)


def test_a_task_takes_another_thing_to_do_in_the_place_of_its_own():
    changes = edit(in_steps(), ("update_task", {"task_id": "again", "steps": None, "command": ["ls"]}))
    assert changes.updated_tasks["again"]["tool"] == "command"


@pytest.mark.parametrize(("name", "parameters"), [("op", "parameters"), ("tool", "parameters"), ("function", "arguments")])
def test_an_operation_is_written_as_agents_write_what_they_do(name, parameters):
    written = {name: "update_task", parameters: {"task_id": "deploy", "timeout": 3}}
    assert edit(digits(), written).updated_tasks == {"deploy": {"timeout": 3}}


# build_constellation


def test_dependencies_alone_are_added_to_what_is_there():
    parameters = {"clear": False, "dependencies": [{"from": "fetch", "to": "deploy"}]}
    assert [row["dependency_id"] for row in edit(digits(), ("build_constellation", parameters)).added_dependencies] == [
        "fetch>deploy"
    ]


def test_an_empty_constellation_is_built_from_a_plan():
    plan = plans.parse_plan("tasks: [{task_id: a, command: ls}, {task_id: b, tool: noop, after: a}]")
    parameters = {"tasks": plan.tasks, "dependencies": plan.dependencies}
    changes = edit(snapshot_of([], [], state="CREATED"), ("build_constellation", parameters))
    assert changes.added_tasks == plan.tasks
    assert changes.added_dependencies == plan.dependencies


def test_building_replaces_the_editable_part():
    snapshot = digits(fetch="COMPLETED", train="PENDING")
    tasks = [
        {"task_id": "fetch", "tool": "noop"},
        {"task_id": "train", "tool": "noop", "timeout": 5},
        {"task_id": "report", "tool": "noop", "after": "train"},
    ]
    changes = edit(snapshot, ("build_constellation", {"tasks": tasks, "dependencies": [{"from": "fetch", "to": "train"}]}))
    assert [row["task_id"] for row in changes.added_tasks] == ["report"]
    assert changes.removed_tasks == ["evaluate", "deploy"]
    assert changes.updated_tasks == {"train": {"timeout": 5}}
    assert changes.removed_dependencies == ["train>evaluate", "evaluate>deploy"]
    assert [row["dependency_id"] for row in changes.added_dependencies] == ["train>report"]
    assert changes.touched == ["train"]


def test_building_keeps_the_dependencies_into_what_has_started():
    snapshot = digits(fetch="COMPLETED", train="RUNNING")
    changes = edit(
        snapshot,
        ("build_constellation", {"tasks": [{"task_id": "fetch", "tool": "noop"}, {"task_id": "train", "tool": "noop"}]}),
    )
    assert changes.removed_tasks == ["evaluate", "deploy"]
    assert changes.removed_dependencies == ["train>evaluate", "evaluate>deploy"]


def test_building_keeps_what_has_started_though_it_is_not_listed():
    changes = edit(ended(), ("build_constellation", {"tasks": [{"task_id": "report", "tool": "noop", "after": "train"}]}))
    assert [row["task_id"] for row in changes.added_tasks] == ["report"]
    assert changes.removed_tasks == ["evaluate", "deploy"]
    assert changes.removed_dependencies == ["train>evaluate", "evaluate>deploy"]


def test_building_keeps_what_has_been_tried_and_what_led_to_something_that_has_started():
    """`b` was skipped and `c`, which waited only for its end, ran; `d` waits for its second attempt."""
    tasks = [
        task_row("a", "FAILED"), task_row("b", "SKIPPED"), task_row("c", "COMPLETED"), task_row("d", "PENDING", attempt=1),
        task_row("e"),
    ]  # fmt: skip
    edges = [dependency_row("a>b"), dependency_row("b>c", type="COMPLETION_ONLY"), dependency_row("c>d"), dependency_row("d>e")]
    changes = edit(snapshot_of(tasks, edges), ("build_constellation", {"tasks": [{"task_id": "x", "tool": "noop"}]}))
    assert changes.removed_tasks == ["e"]
    assert changes.removed_dependencies == ["d>e"]


def test_building_without_clearing_merges():
    tasks = [{"task_id": "train", "tool": "noop", "timeout": 5}, {"task_id": "report", "tool": "noop", "after": "train"}]
    dependencies = [{"from": "evaluate", "to": "deploy", "condition": "accuracy > 0.5"}]
    changes = edit(digits(), ("build_constellation", {"tasks": tasks, "dependencies": dependencies, "clear": False}))
    assert (changes.removed_tasks, changes.removed_dependencies) == ([], [])
    assert changes.updated_tasks == {"train": {"timeout": 5}}
    assert changes.updated_dependencies == {"evaluate>deploy": {"condition": "accuracy > 0.5"}}


def test_building_may_turn_the_order_round():
    tasks = [{"task_id": name, "tool": "noop"} for name in ("deploy", "evaluate", "train", "fetch")]
    dependencies = [{"from": "deploy", "to": "evaluate"}, {"from": "evaluate", "to": "train"}, {"from": "train", "to": "fetch"}]
    changes = edit(digits(), ("build_constellation", {"tasks": tasks, "dependencies": dependencies}))
    assert changes.touched == ["deploy", "evaluate", "train", "fetch"]
    assert len(changes.removed_dependencies) == len(changes.added_dependencies) == 3


def test_building_a_cycle_is_refused_with_its_path():
    tasks = [{"task_id": name, "tool": "noop"} for name in "ab"]
    dependencies = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    refused = refusal(digits(), ("build_constellation", {"tasks": tasks, "dependencies": dependencies}))
    assert str(refused) == "operation 1 (build_constellation), dependencies[1]: the tasks would wait for each other: b > a > b"


def test_building_may_give_a_dependency_an_id_of_its_own():
    changes = edit(
        snapshot_of([task_row("a"), task_row("b")], [dependency_row("a>b")]),
        (
            "build_constellation",
            {
                "clear": False,
                "tasks": [{"task_id": "a", "tool": "noop"}],
                "dependencies": [{"from": "a", "to": "b", "dependency_id": "gate"}],
            },
        ),
    )
    assert changes.removed_dependencies == ["a>b"]
    assert [row["dependency_id"] for row in changes.added_dependencies] == ["gate"]


def test_a_snapshot_may_be_read_only_views():
    plain = digits()
    snapshot = Snapshot(1, "EXECUTING", MappingProxyType(plain.tasks), MappingProxyType(plain.dependencies), plain.graph)
    assert apply_operations(snapshot, [{"remove_task": {"task_id": "deploy"}}], DEVICES).removed_tasks == ["deploy"]


# Any sequence of edits


def assert_said(problems: list[dict]) -> None:
    assert problems
    assert all(problem["message"] for problem in problems)


NAMES = st.sampled_from([f"t{number}" for number in range(7)])
STATES = st.sampled_from(["PENDING", "WAITING_DEPENDENCY", "SKIPPED", "RUNNING", "COMPLETED", "FAILED"])
TASK = st.fixed_dictionaries(
    {"task_id": NAMES, "tool": st.just("noop")}, optional={"timeout": st.integers(1, 3), "after": st.lists(NAMES, max_size=2)}
)
ENDS = st.fixed_dictionaries(
    {"from": NAMES, "to": NAMES},
    optional={"type": st.sampled_from(["UNCONDITIONAL", "SUCCESS_ONLY"]), "condition": st.just("x > 1")},
)
OPERATION = st.one_of(
    st.tuples(st.just("add_task"), TASK),
    st.tuples(st.just("remove_task"), st.fixed_dictionaries({"task_id": NAMES})),
    st.tuples(st.just("update_task"), st.fixed_dictionaries({"task_id": NAMES, "timeout": st.integers(1, 3)})),
    st.tuples(st.just("add_dependency"), ENDS),
    st.tuples(st.just("update_dependency"), ENDS),
    st.tuples(st.just("remove_dependency"), st.fixed_dictionaries({"from": NAMES, "to": NAMES})),
    st.tuples(
        st.just("build_constellation"),
        st.fixed_dictionaries({"tasks": st.lists(TASK, min_size=1, max_size=4), "clear": st.booleans()}),
    ),
)
EDITS = st.lists(st.lists(OPERATION, min_size=1, max_size=4), max_size=8)


def after(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """What whoever applies the changes has then."""
    tasks, dependencies = dict(snapshot.tasks), dict(snapshot.dependencies)
    for name in changes.removed_dependencies:
        del dependencies[name]
    for task_id in changes.removed_tasks:
        del tasks[task_id]
    for row in changes.added_tasks:
        assert row["task_id"] not in tasks
        tasks[row["task_id"]] = {**row, "state": "PENDING", "reason": ""}
    for row in changes.added_dependencies:
        assert row["dependency_id"] not in dependencies
        dependencies[row["dependency_id"]] = row
    for task_id, fields in changes.updated_tasks.items():
        tasks[task_id] = tasks[task_id] | fields
    for name, fields in changes.updated_dependencies.items():
        dependencies[name] = dependencies[name] | fields
    return Snapshot(
        snapshot.version + 1,
        snapshot.state,
        tasks,
        dependencies,
        Graph.build(tasks, [(row["from"], row["to"]) for row in dependencies.values()]),
        was_there=always,
    )


def inverse(changes: Changes) -> list[dict]:
    """The opposite edit, from `before` and `after` alone."""
    operations = [{"remove_dependency": {"dependency_id": name}} for name in changes.after["dependencies"]]
    operations += [{"remove_task": {"task_id": task_id}} for task_id, row in changes.before["tasks"].items() if row is None]
    for task_id, row in changes.before["tasks"].items():
        if row is not None:
            operations.append({"add_task" if changes.after["tasks"][task_id] is None else "update_task": row})
    return operations + [{"add_dependency": row} for row in changes.before["dependencies"].values() if row is not None]


@given(
    st.lists(STATES, min_size=7, max_size=7),
    st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] < ends[1])),
    EDITS,
)
def test_any_sequence_of_edits_keeps_the_rules(states, edges, edits):
    tasks = [task_row(f"t{number}", state) for number, state in enumerate(states)]
    snapshot = snapshot_of(tasks, [dependency_row(f"t{one}>t{other}") for one, other in sorted(edges)])
    for operations in edits:
        try:
            changes = edit(snapshot, *operations)
        except EditRefused as refused:
            assert_said(refused.problems)
            continue
        newer = after(snapshot, changes)
        assert nx.is_directed_acyclic_graph(nx.DiGraph(newer.graph.edges()))
        assert newer.tasks
        started = {task_id for task_id, row in snapshot.tasks.items() if not may_change(row)}
        for task_id in started:
            assert newer.tasks[task_id] == snapshot.tasks[task_id]
            assert newer.graph.upstream(task_id) == snapshot.graph.upstream(task_id)
        changed_ends = {
            (row or {})["to"] for side in (changes.before, changes.after) for row in side["dependencies"].values() if row
        }
        assert set(changes.touched) == ({*changed_ends, *changes.updated_tasks} & newer.tasks.keys() & snapshot.tasks.keys())
        undone = inverse(changes)
        if undone:
            back = after(newer, edit(newer, *undone))
            assert {key: row["timeout"] for key, row in back.tasks.items()} == {
                key: row["timeout"] for key, row in snapshot.tasks.items()
            }
            assert back.graph == snapshot.graph
            assert not edit(newer, *repeated(changes))
        snapshot = newer


def repeated(changes: Changes) -> list[dict]:
    """An edit said once more, from its outcome."""
    operations = [{"add_task": row} for row in changes.added_tasks] + [
        {"add_dependency": row} for row in changes.added_dependencies
    ]
    operations += [{"remove_dependency": {"dependency_id": name}} for name in changes.removed_dependencies]
    operations += [{"update_task": {"task_id": task_id, **fields}} for task_id, fields in changes.updated_tasks.items()]
    operations += [
        {"update_dependency": {"dependency_id": key, **fields}} for key, fields in changes.updated_dependencies.items()
    ]
    return operations + [{"remove_task": {"task_id": task_id}} for task_id in changes.removed_tasks]


# What conditions read


def reading(*more: str, state: str = "WAITING_DEPENDENCY") -> Snapshot:
    """b waits for a on a condition that reads the result of x."""
    tasks = [task_row("a"), task_row("b", state), task_row("x"), *map(task_row, more)]
    return snapshot_of(tasks, [dependency_row("a>b", type="CONDITIONAL", condition="results['x'] == 1")])


READ = "x cannot go: the condition of a>b reads its result"
REMOVE = ("remove_task", {"task_id": "x"})
BUILD = {"tasks": [{"task_id": "a", "tool": "noop"}, {"task_id": "b", "tool": "noop"}]}
TIED = {"from": "a", "to": "b", "type": "CONDITIONAL", "condition": "results['x'] == 1"}


@pytest.mark.parametrize("operation", [REMOVE, ("build_constellation", {**BUILD, "dependencies": [TIED]})])
def test_a_task_that_a_condition_reads_does_not_go(operation):
    refused = refusal(reading(), operation)
    assert (str(refused), refused.status) == (READ, 409)


@pytest.mark.parametrize(
    "other",
    [
        ("remove_dependency", {"dependency_id": "a>b"}),
        ("update_dependency", {"dependency_id": "a>b", "condition": "done"}),
        ("remove_task", {"task_id": "b"}),
    ],
)
def test_a_task_goes_together_with_what_reads_it_in_any_order(other):
    for operations in ((REMOVE, other), (other, REMOVE)):
        assert "x" in edit(reading(), *operations).removed_tasks


def test_a_task_that_goes_and_comes_again_may_be_read():
    assert edit(reading(), REMOVE, add("x")).removed_tasks == []
    assert str(refusal(reading(state="COMPLETED"), REMOVE)) == READ


def test_an_input_may_come_from_any_task_above_from_one_that_has_ended_and_from_an_upload():
    rows = [task_row("a"), task_row("b"), task_row("old", state="COMPLETED")]
    snapshot = snapshot_of(rows, [dependency_row("a>b", type="UNCONDITIONAL")])
    changes = edit(snapshot, add("c", after=["b"], inputs=["a#far", "b#near", "old#done", "#upload"]))
    assert list(changes.after["tasks"]) == ["c"]


def test_two_operations_may_give_an_input_and_the_dependency_that_it_needs():
    snapshot = snapshot_of([task_row("a"), task_row("b")], [])
    changes = edit(snapshot, ("update_task", {"task_id": "b", "inputs": ["a#model"]}), link("a>b"))
    assert changes.updated_tasks["b"]["inputs"] == {"model": "a#model"}
