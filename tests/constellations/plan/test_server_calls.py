"""Tools of tool servers in plans and edits: what is accepted, what is refused where, and which devices a task fits."""

import json

import pytest

from constellations.editor import editor
from constellations.errors import EditRefused, PlanRejected
from constellations.graph import Graph
from constellations.plan.fitting import KnownDevices, device_fits, why_none_fits
from constellations.plan.plan import parse_plan


def tool(name: str, *needed: str) -> dict:
    properties = {key: {"type": "string"} for key in needed}
    schema = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    return {"name": name, "description": "", "arguments": schema, "digest": name}


def device(name: str, kind: str, *tools: dict) -> dict:
    return {
        "name": name,
        "type": "",
        "capabilities": [],
        "labels": [],
        "state": "connected",
        "kind": kind,
        "tools": list(tools),
    }


DEVICES = KnownDevices(
    {
        row["name"]: row
        for row in (
            device("laptop", "local"),
            device("git", "mcp", tool("git.log", "path"), tool("git.show", "path", "revision")),
            device("git2", "mcp", tool("git.log", "path")),
            device("web", "mcp", tool("web.get", "url")),
            {**device("old", "mcp", tool("old.run")), "state": "retired"},
        )
    }
)


def task_of(**fields) -> dict:
    plan = parse_plan(json.dumps({"tasks": [{"task_id": "one", **fields}]}), devices=DEVICES)
    return plan.tasks[0]


def fitting(**fields) -> list[str]:
    task = task_of(**fields)
    return [name for name, row in DEVICES.items() if device_fits(name, row, task)]


def call(name: str, **arguments) -> dict:
    return {"tool": name, "arguments": arguments}


def test_a_task_fits_the_devices_that_offer_all_its_tools():
    assert fitting(**call("git.log", path=".")) == ["git", "git2"]
    assert fitting(steps=[call("git.log", path="."), call("git.show", path=".", revision="a")]) == ["git"]
    assert fitting(**call("git.log", path="."), device="git2") == ["git2"]


def test_a_task_without_such_a_tool_never_fits_a_tool_server():
    assert fitting(command="ls") == ["laptop"]
    assert fitting(tool="noop") == ["laptop"]
    assert fitting(tool="noop", device="git") == ["git"]


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        (call("git.lgo", path="."), "tasks[0].tool", "did you mean git.log?"),
        (call("svn.log"), "tasks[0].tool", "no device offers a tool svn.log"),
        (call("old.run"), "tasks[0].tool", "no device offers a tool old.run"),
        (call("git.log"), "tasks[0].arguments", "git.log needs path"),
        (call("git.log", path=3), "tasks[0].arguments.path", "must be text, not the number 3"),
        (call("git.log", path=".", more=1), "tasks[0].arguments.more", "git.log takes no more"),
        (
            {**call("git.show", path="."), "device": "git2"},
            "tasks[0].tool",
            "git2 does not offer git.show; git does",
        ),
        ({"command": "ls", "device": "git"}, "tasks[0].tool", "git is a tool server, which has no tool command"),
        ({"steps": [call("git.log", path="."), {"command": "ls"}]}, "tasks[0].steps[1].tool", "has no tool command"),
        (
            {"steps": [call("git.log", path="."), call("web.get", url="x")]},
            "tasks[0].steps",
            "offers git.log, web.get",
        ),
        ({"steps": [call("git.log", path="."), call("git.log")]}, "tasks[0].steps[1].arguments", "git.log needs path"),
        (
            {"steps": [{"delegate": {"name": "x", "steps": [call("git.log")]}}]},
            "tasks[0].steps[0].steps[0].arguments",
            "git.log needs path",
        ),
    ],
)
def test_what_is_wrong_with_a_call_is_said_where_it_is_written(fields, key, said):
    with pytest.raises(PlanRejected) as refused:
        task_of(**fields)
    ((place, message),) = [(each["key"], each["message"]) for each in refused.value.problems]
    assert (place, said in message) == (key, True), message


def test_without_devices_at_hand_a_plan_is_read_and_nothing_is_said_of_them():
    assert (
        parse_plan('{"tasks": [{"task_id": "one", "tool": "any.thing", "arguments": {"a": 1}}]}').tasks[0]["tool"]
        == "any.thing"
    )


def test_who_waits_for_a_server_is_told_which_tools_are_missing():
    task = task_of(**call("git.log", path="."))
    assert why_none_fits(task) == "no device has the tools git.log"


def test_an_edit_is_held_to_what_is_offered():
    empty = editor.Snapshot(version=1, state="CREATED", tasks={}, dependencies={}, graph=Graph())
    good = {"add_task": {"task_id": "one", **call("git.log", path=".")}}
    assert "one" in {task["task_id"] for task in editor.apply_operations(empty, [good], DEVICES).added_tasks}
    for edit, said in [
        ([{"add_task": {"task_id": "one", **call("git.log")}}], "git.log needs path"),
        ([good, {"update_task": {"task_id": "one", **call("git.lgo", path=".")}}], "did you mean git.log"),
        ([good, {"update_task": {"task_id": "one", "arguments": {}}}], "git.log needs path"),
        ([good, {"update_task": {"task_id": "one", "device": "laptop"}}], "laptop does not offer git.log"),
    ]:
        with pytest.raises(EditRefused, match=said):
            editor.apply_operations(empty, edit, DEVICES)
