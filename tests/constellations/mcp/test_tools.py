"""The MCP server through the SDK's own client, in memory: tools, results, resources, errors, who may what."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from mcp.shared.exceptions import MCPError

from agents.models import Approval
from agents.services import sessions
from agents.services.devices import device_create
from agents.services.tokens import token_revoke
from agents.streams.verify import verify_database
from constellations.mcp import editing, reading
from constellations.mcp.tools import REMOVING, TOOLS
from constellations.models import Constellation, Edit
from constellations.services import dispatcher
from constellations.services.edits import edit_apply
from tests.agents.conftest import Rest, add_approvals, make_token
from tests.conftest import person
from tests.constellations.mcp.mcp_program import SCOPES, Program, answer_of, with_scopes
from tests.constellations.planting import advance, noop, plant, states

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
TOOLS_BYTES = 31_000
"""Of the whole list of tools, as JSON: every conversation begins with it."""
WORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", "description", "minimum",
    "exclusiveMinimum", "$ref", "$defs",
}  # fmt: skip
"""Of JSON Schema, those that are understood wherever functions are given to a model."""


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def digits(session) -> Constellation:
    """fetch > train > deploy, of which nothing has started."""
    device_create("laptop", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]), noop("deploy", after=["train"]))


@pytest.fixture
def program(operator) -> Program:
    return Program(make_token(operator, *SCOPES, name="claude"))


# What there is


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_the_dispatchers_and_those_around_them(program, mode):
    program.mode = mode
    tools = {tool.name: tool for tool in program.ask(lambda client: client.list_tools()).tools}
    names = [tool.name for tool in dispatcher.list_tools()]
    assert list(tools)[: len(names)] == names
    assert set(tools) - set(names) == {
        "apply_edit", "preview_edit", "undo_edit", "start_request", "get_session", "get_constellation",
        "list_constellations", "why", "get_output", "read_value", "list_edits", "list_devices", "pause", "resume", "cancel",
        "restart", "cancel_task", "retry", "reopen", "fork", "list_approvals", "decide_approval",
    }  # fmt: skip
    for tool in dispatcher.list_tools():
        shown = tools[tool.name].input_schema
        assert tools[tool.name].description == tool.description
        assert not set(editing.ABOUT) & set(tool.parameters["properties"])
        assert set(shown["properties"]) == set(editing.ABOUT) | set(tool.parameters["properties"])
        assert shown["required"] == ["constellation_id", *tool.parameters.get("required", [])]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_list_of_tools_is_short_enough_to_be_read_with_every_conversation(program, mode):
    program.mode = mode
    listed = program.ask(lambda client: client.list_tools())
    sizes = {tool.name: len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in listed.tools}
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < TOOLS_BYTES, sizes


def test_every_tool_has_a_schema_and_says_whether_it_reads_or_takes_away(program):
    for tool in program.ask(lambda client: client.list_tools()).tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert (tool.input_schema["type"], tool.input_schema["additionalProperties"]) == ("object", False)
        assert tool.annotations.read_only_hint is TOOLS[tool.name].reads
        if not tool.annotations.read_only_hint:
            assert tool.annotations.destructive_hint is (tool.name in REMOVING)


def parts_of(schema):
    """A schema and all schemas inside it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    for each in inner + ([schema["items"]] if "items" in schema else []):
        yield from parts_of(each)


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_written_in_words_that_models_interfaces_know(name):
    for part in parts_of(TOOLS[name].parameters):
        assert set(part) <= WORDS
        assert {"type", "$ref"} & set(part)
        assert "items" in part or "array" not in part.get("type", ())


def test_the_page_about_mcp_names_every_tool_and_no_other():
    page = (settings.BASE_DIR / "docs" / "mcp.md").read_text()
    section = page.split("## Tools")[1].split("## Errors")[0]
    table = section.split("Every tool that edits")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(TOOLS)


def test_the_page_about_mcp_has_the_keys_of_every_answer():
    page = (settings.BASE_DIR / "docs" / "mcp.md").read_text()
    rows = [line.split("|")[1:3] for line in page.split("## Answers")[1].split("## Errors")[0].splitlines() if "| `" in line]
    told = {tool: keys for tools, keys in rows for tool in re.findall(r"`(\w+)`", tools)}
    assert set(told) == set(TOOLS)
    for name, keys in told.items():
        named = {field.alias or key for key, field in answer_of(name).model_fields.items()}
        assert set(re.findall(r"`(\w+)`", keys)) >= named, name


# Editing


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_program_builds_on_a_graph_by_the_editors_tools(program, digits, mode):
    program.mode = mode
    made = program(
        "add_task", constellation_id=digits.pk, task_id="lint", tool="noop", after=["fetch"], reason="tidy", edit_id="e1"
    )
    assert (made["changed"], made["version"], made["edit_id"]) == (True, 2, "e1")
    assert made["diff"][0] == {"change": "added", "task": "lint"}
    row = Edit.objects.get(pk=made["edit"])
    assert (row.author, row.reason) == (program.by, "tidy")
    assert program("update_task", constellation_id=digits.pk, task_id="lint", priority="HIGH", timeout=5)["version"] == 3
    assert program("add_dependency", constellation_id=digits.pk, **{"from": "lint", "to": "deploy"})["version"] == 4
    changed = program("update_dependency", constellation_id=digits.pk, dependency_id="lint>deploy", condition="ok", full=True)
    tied = {"dependency_id": "lint>deploy", "from": "lint", "to": "deploy", "type": "CONDITIONAL", "condition": "ok"}
    assert tied in changed["constellation"]["dependencies"]
    assert program("remove_dependency", constellation_id=digits.pk, **{"from": "lint", "to": "deploy"})["version"] == 6
    assert program("remove_task", constellation_id=digits.pk, task_id="lint")["version"] == 7
    built = program("build_constellation", constellation_id=digits.pk, tasks=[{"task_id": "only", "tool": "noop"}])
    assert built["changed"] is True
    assert states(digits) == {"only": "PENDING"}
    assert list(verify_database()) == []


def test_the_same_edit_id_is_one_edit_and_nothing_to_do_is_none(program, digits):
    wanted = {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop", "edit_id": "e1"}
    first, again = program("add_task", **wanted), program("add_task", **wanted)
    assert (again["changed"], again["edit"], again["message"]) == (
        False,
        first["edit"],
        "edit e1 had been made before; nothing was changed now",
    )
    program("remove_task", constellation_id=digits.pk, task_id="lint")
    nothing = program("remove_task", constellation_id=digits.pk, task_id="lint")
    assert (nothing["changed"], nothing["edit"], nothing["message"]) == (False, None, "there was nothing to change")
    never = program("remove_task", constellation_id=digits.pk, task_id="trian")
    assert never == "operation 1 (remove_task), task_id: there is no task trian; did you mean train?"


def test_several_operations_are_one_change_set_or_none(program, digits):
    operations = [
        {"op": "add_task", "parameters": {"task_id": "lint", "tool": "noop"}},
        {"op": "add_dependency", "parameters": {"from": "lint", "to": "trian"}},
    ]
    refused = program("apply_edit", constellation_id=digits.pk, operations=operations)
    assert refused == "operation 2 (add_dependency), to: there is no task trian; did you mean train?"
    assert "lint" not in states(digits)
    operations[1]["parameters"]["to"] = "train"
    made = program("apply_edit", constellation_id=digits.pk, operations=operations, based_on=1)
    assert [each["change"] for each in made["diff"]] == ["added", "added"]


def test_a_limit_that_no_schema_says_is_told_with_operation_field_and_reason(program, digits):
    operations = [{"op": "add_task", "parameters": {"task_id": "lint", "tool": "noop", "name": "n" * 201, "max_attempts": 101}}]
    assert program("apply_edit", constellation_id=digits.pk, operations=operations) == (
        "operation 1 (add_task), name: has 201 characters; 200 are allowed; "
        "operation 1 (add_task), max_attempts: is 101; it must be from 1 to 100"
    )
    assert program("list_constellations", limit=101) == "limit: is 101; it must be from 1 to 100"
    assert "lint" not in states(digits)


def test_parts_that_one_tool_spells_out_are_taken_and_judged_by_all(program, digits):
    steps = [{"say": "hello"}, {"wait": 1}]
    assert program("add_task", constellation_id=digits.pk, task_id="lint", steps=steps)["changed"] is True
    assert program("update_task", constellation_id=digits.pk, task_id="lint", steps=steps[:1])["changed"] is True
    refused = program("update_task", constellation_id=digits.pk, task_id="lint", steps=[{"wiat": 1}])
    assert "steps[0]" in refused
    assert "did you mean wait?" in refused


def test_a_preview_says_what_would_follow_and_changes_nothing(program, digits):
    operations = [{"op": "remove_dependency", "parameters": {"from": "fetch", "to": "train"}}]
    found = program("preview_edit", constellation_id=digits.pk, operations=operations)
    assert (found["version"], found["consequences"]["ready"]) == (1, ["train"])
    assert not Edit.objects.exists()


def test_an_edit_is_undone_and_done_again(program, digits):
    program("add_task", constellation_id=digits.pk, task_id="lint", tool="noop", edit_id="e1")
    undone = program("undo_edit", constellation_id=digits.pk, edit_id="e1", undo_id="u1", reason="not now")
    assert (undone["changed"], undone["edit_id"], "lint" in states(digits)) == (True, "u1", False)
    program("undo_edit", constellation_id=digits.pk, edit_id="u1")
    assert "lint" in states(digits)
    assert "has no edit e9" in program("undo_edit", constellation_id=digits.pk, edit_id="e9")


def test_a_stale_edit_says_who_came_first(program, digits):
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "timeout": 3}}], author="user:1")
    refused = program("update_task", constellation_id=digits.pk, task_id="train", timeout=4, based_on=1)
    first = "the edit was made on version 1, and version 2 is the newest: user:1 changed train (version 2)"
    assert refused.splitlines() == [first, "version: 2", "- version 2 by user:1 (updated task train (timeout))"]


def test_every_problem_of_an_edit_is_told_where_it_is(program, digits):
    operations = [{"op": "add_dependency", "parameters": {"from": "fetch", "to": f"nobody_{n}"}} for n in range(30)]
    lines = program("apply_edit", constellation_id=digits.pk, operations=operations).splitlines()
    assert lines[0].startswith("operation 1 (add_dependency), to: there is no task nobody_0")
    assert lines[1].startswith("- operation 4 (add_dependency), to: there is no task nobody_3")
    assert (len(lines), lines[-1]) == (22, "and 7 more")


def test_what_runs_is_refused_in_words(program, digits):
    advance(digits, fetch="RUNNING")
    refused = program("update_task", constellation_id=digits.pk, task_id="fetch", timeout=4)
    assert refused.startswith("operation 1 (update_task), task_id: fetch already runs")


# Bad arguments


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("add_task", {}, "constellation_id: is missing"),
        ("add_task", {"constellation_id": "5"}, "constellation_id: must be a whole number, not the text '5'"),
        ("add_task", {"constellation_id": True}, "constellation_id: must be a whole number, not true"),
        ("add_task", {"constellation_id": 0}, "constellation_id: is 0; it must be from 1 to"),
        ("get_constellation", {"constellation_id": 5, "ful": True}, "ful: there is no key ful here"),
        ("list_constellations", {"state": "EXECUTNG"}, "did you mean EXECUTING?"),
        ("list_constellations", {"limit": 1000}, "limit: is 1000; it must be from 1 to 100"),
        ("list_edits", {"constellation_id": 1, "author": "a\x00"}, "NUL"),
        ("list_edits", {"constellation_id": 1, "author": "\ud800"}, "author"),
        ("add_task", {"constellation_id": 1, "arguments": {"x": 10**30}}, "arguments.x"),
        ("add_task", {"constellation_id": 1, "edit_id": "a b"}, "edit_id: up to 64 letters"),
        ("decide_approval", {"approval_id": 1, "decision": "maybe"}, "decision: must be one of approve, reject"),
        (
            "apply_edit",
            {"constellation_id": 1, "operations": {}},
            "operations: must be a list, not an object; write each item behind a dash",
        ),
        ("add_task", {"constellation_id": 1 << 70}, "constellation_id: the number is out of range"),
        ("add_tsk", {}, "there is no tool add_tsk; did you mean add_task?"),
    ],
)
def test_bad_arguments_are_told_in_words(program, name, arguments, says):
    found = program(name, **arguments)
    assert says in found
    assert "Traceback" not in found


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (7, "an operation is an object (name: parameters), not the number 7"),
        ({}, "an operation is one key with its parameters; this one has 0 keys: write one operation for each"),
        ({"op": None}, "which tool? It is nothing"),
        ({"op": "add_task", "tool": "remove_task"}, "there is no key tool beside op and parameters: put it into parameters"),
        ({"op": "add_tsk"}, "there is no tool add_tsk; did you mean add_task?"),
        ({"op": "add_task", "x": 1}, "there is no key x beside op and parameters: put it into parameters"),
        (
            {"op": "add_task", "parameters": 7},
            "a task is an object with a task_id and a command, a tool or steps, not the number 7",
        ),
        ({"op": "add_task", "parameters": {"task_id": "a", "tool": "noop", "description": "\x00"}}, "NUL"),
        ({"op": "add_task", "parameters": {"task_id": "a", "tool": "noop", "conditon": "x"}}, "there is no key conditon"),
    ],
)
def test_bad_operations_are_told_in_words(program, digits, operation, says):
    assert says in program("apply_edit", constellation_id=digits.pk, operations=[operation])


def test_a_fault_of_ours_is_one_line_without_a_traceback(program, digits, monkeypatch):
    monkeypatch.setattr(reading, "read_overview", lambda row: 1 / 0)
    assert program("get_constellation", constellation_id=digits.pk) == "something broke on our side; it has been logged"


# Reading


def test_a_constellation_is_read_with_its_tasks_and_dependencies(program, digits):
    advance(digits, fetch="COMPLETED")
    found = program("get_constellation", constellation_id=digits.pk)
    assert (found["id"], found["session"], found["version"], found["truncated"]) == (digits.pk, digits.session_id, 1, False)
    assert found["counts"] == {"COMPLETED": 1, "WAITING_DEPENDENCY": 2}
    first = found["tasks"][0]
    assert (first["task_id"], first["state"], first["tool"]) == ("fetch", "COMPLETED", "noop")
    assert found["dependencies"][0]["from"] == "fetch"


def test_answers_are_bounded_and_say_so(program, digits, monkeypatch):
    program("update_task", constellation_id=digits.pk, task_id="train", description="x" * 20_000, edit_id="long")
    program("update_task", constellation_id=digits.pk, task_id="train", command=["echo", "y" * 3_000], edit_id="longer")
    tasks = {task["task_id"]: task for task in program("get_constellation", constellation_id=digits.pk)["tasks"]}
    assert (tasks["train"]["arguments"], tasks["fetch"]["arguments"]) == (None, {})
    assert (tasks["train"]["truncated"], tasks["fetch"]["truncated"]) == (True, False)
    history = program("list_edits", constellation_id=digits.pk)["edits"]
    assert {(edit["author"], edit["author_name"]) for edit in history} == {(program.by, "token claude of operator")}
    assert [(edit["edit_id"], edit["operations"], edit["truncated"]) for edit in history] == [
        ("longer", history[0]["operations"], history[0]["truncated"]), ("long", [], True),
    ]  # fmt: skip
    monkeypatch.setattr("constellations.reads.excerpts.overview.TASKS", 2)
    found = program("get_constellation", constellation_id=digits.pk)
    assert (len(found["tasks"]), found["truncated"]) == (2, True)


def test_constellations_come_newest_first_in_pages(program, session, digits):
    second = plant(session, noop("a"))
    found = program("list_constellations", limit=1)
    assert ([row["id"] for row in found["constellations"]], found["next"]) == ([second.pk], second.pk)
    rest = program("list_constellations", limit=1, before=found["next"])
    assert ([row["id"] for row in rest["constellations"]], rest["next"]) == ([digits.pk], None)
    assert program("list_constellations", state="CANCELLED") == {"constellations": [], "next": None}
    assert program("list_constellations", session=session.pk + 1) == {"constellations": [], "next": None}


def test_devices_are_listed_by_name(program):
    device_create("gpu_server", by="system", type="gpu", capabilities=["train"], labels=["prod"])
    found = program("list_devices")
    gpu = {"name": "gpu_server", "state": "disconnected", "type": "gpu", "capabilities": ["train"], "max_concurrent": 4}
    gpu |= {"used": 0, "labels": ["prod"]}
    assert any(gpu.items() <= row.items() for row in found["devices"])
    assert [row["name"] for row in found["devices"]] == sorted(row["name"] for row in found["devices"])
    assert found["next"] is None


def test_an_undo_may_say_which_version_it_was_made_on(program, digits):
    program("update_task", constellation_id=digits.pk, task_id="train", timeout=3, edit_id="mine")
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "name": "Training"}}], author="user:1")
    undo = {"constellation_id": digits.pk, "edit_id": "mine"}
    refused = program("undo_edit", **undo, based_on=2)
    assert refused.splitlines()[0].endswith("version 3 is the newest: user:1 changed train (version 3)")
    assert "version: 3" in refused.splitlines()
    assert program("undo_edit", **undo, based_on=3)["version"] == 4


def test_devices_are_shown_to_those_who_have_a_role_as_over_rest(user):
    device_create("laptop", by="system")
    row = make_token(user, "read")
    assert Program(row)("list_devices") == "this needs one of the roles admin, operator, viewer"
    assert Rest(token=row[1]).get("/api/devices/").status_code == 403


def test_the_history_is_filtered_as_over_rest(program, digits):
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "timeout": 3}}], author="user:1", edit_id="theirs")
    program("update_task", constellation_id=digits.pk, task_id="deploy", timeout=3, edit_id="mine")

    def found(**filters):
        return [edit["edit_id"] for edit in program("list_edits", constellation_id=digits.pk, **filters)["edits"]]

    assert found() == ["mine", "theirs"]
    assert found(author="user:1") == ["theirs"]
    assert found(since=2) == ["mine"]
    assert found(task_id="train") == ["theirs"]
    assert found(limit=1) == ["mine"]


def test_why_says_what_a_task_waits_for(program, digits):
    found = program("why", constellation_id=digits.pk, task_id="train")
    assert found["kind"] == "dependency"
    assert found["text"].startswith("waits for fetch (PENDING); besides, no runner lives")
    assert found["fields"]["waits_for"] == [{"task_id": "fetch", "state": "PENDING"}]
    assert "has no task trian; did you mean train?" in program("why", constellation_id=digits.pk, task_id="trian")


def test_constellations_are_resources(program, session, digits):
    (only,) = program.ask(lambda client: client.list_resources()).resources
    assert (only.uri, only.name, only.mime_type) == (f"orrery://constellations/{digits.pk}", "digits", "application/json")
    templates = program.ask(lambda client: client.list_resource_templates()).resource_templates
    assert templates[0].uri_template == "orrery://constellations/{id}"
    text = program.ask(lambda client: client.read_resource(only.uri)).contents[0].text
    assert json.loads(text) == program("get_constellation", constellation_id=digits.pk)


@pytest.mark.parametrize(
    "uri", ["orrery://constellations/99", "orrery://constellations/x", "orrery://tasks/1", "file:///etc/passwd"]
)
def test_a_resource_that_is_not_there_is_an_error_of_the_protocol(program, digits, uri):
    with pytest.raises(MCPError, match="there is no"):
        program.ask(lambda client: client.read_resource(uri))


# Approvals


def test_what_waits_is_listed_and_decided(program, session, digits):
    approval, other = add_approvals(session, 2)
    callback = add_approvals(session, kind="callback", action={})[0]
    assert [row["id"] for row in program("list_approvals")["approvals"]] == [other, approval]
    digest = program("list_approvals")["approvals"][-1]["digest"]
    approve = {"approval_id": approval, "decision": "approve", "digest": digest}
    done = program("decide_approval", **approve, reason="fine")
    assert (done["changed"], done["approval"]["state"], done["approval"]["decided_by"]) == (True, "approved", program.by)
    assert done["approval"]["decided_by_name"] == "token claude of operator"
    assert program("decide_approval", **approve)["changed"] is False
    assert "was approved by" in program("decide_approval", approval_id=approval, decision="reject")
    assert [row["id"] for row in program("list_approvals", state="approved", session=session.pk)["approvals"]] == [approval]
    assert "there is no approval" in program("decide_approval", approval_id=callback, decision="approve")
    assert list(verify_database()) == []


# Who may what


NEEDS = {
    "get_constellation": "read", "list_edits": "read", "why": "read", "add_task": "edit", "apply_edit": "edit",
    "preview_edit": "edit", "undo_edit": "edit",
}  # fmt: skip
GIVEN = {
    "why": {"task_id": "fetch"}, "add_task": {"task_id": "lint", "tool": "noop"}, "undo_edit": {"edit_id": "e"},
    "apply_edit": {"operations": [{"op": "remove_task", "parameters": {"task_id": "deploy"}}]},
    "preview_edit": {"operations": [{"op": "remove_task", "parameters": {"task_id": "deploy"}}]},
}  # fmt: skip


@pytest.mark.parametrize(("name", "scope"), NEEDS.items())
def test_a_token_may_do_what_its_scopes_say(operator, digits, name, scope):
    others = {"read", "edit", "approve", "admin"} - {scope}
    refused = with_scopes(operator, *others)(name, constellation_id=digits.pk, **GIVEN.get(name, {}))
    assert refused == f"the token lacks the scope {scope}"
    allowed = with_scopes(operator, scope)(name, constellation_id=digits.pk, **GIVEN.get(name, {}))
    assert isinstance(allowed, dict) or "has no edit e" in allowed


def test_the_lists_need_the_scope_read_and_deciding_the_scope_approve(operator, session, digits):
    blind = with_scopes(operator, "edit", "operate", "approve")
    for name in ("list_constellations", "list_approvals"):
        assert blind(name) == "the token lacks the scope read"
    with pytest.raises(MCPError, match="the token lacks the scope read"):
        blind.ask(lambda client: client.list_resources())
    assert blind("remove_task", constellation_id=digits.pk, task_id="x", full=True) == "the token lacks the scope read"
    approval = add_approvals(session)[0]
    seeing = with_scopes(operator, "read", "edit", "operate")
    assert seeing("decide_approval", approval_id=approval, decision="approve") == "the token lacks the scope approve"
    assert Approval.objects.get(pk=approval).state == "waiting"


def test_a_viewer_reads_what_is_theirs_and_changes_nothing(viewer):
    own = plant(sessions.session_create(viewer, "own", by="system"), noop("a"))
    program = with_scopes(viewer, *SCOPES)
    assert program("get_constellation", constellation_id=own.pk)["id"] == own.pk
    assert "needs one of the roles admin, operator" in program("remove_task", constellation_id=own.pk, task_id="x")


def test_what_is_not_visible_is_as_if_it_were_not_there(roles, digits):
    program = with_scopes(person("stranger", "operator"), *SCOPES)
    for name in NEEDS:
        for constellation in (digits.pk, digits.pk + 10_000):
            said = f"there is no constellation {constellation}, or it is not yours to see"
            assert program(name, constellation_id=constellation, **GIVEN.get(name, {})) == said
    assert program("list_constellations") == {"constellations": [], "next": None}
    assert program.ask(lambda client: client.list_resources()).resources == []
    with pytest.raises(MCPError, match="or it is not yours to see"):
        program.ask(lambda client: client.read_resource(f"orrery://constellations/{digits.pk}"))
    approval = add_approvals(digits.session)[0]
    assert program("list_approvals")["approvals"] == []
    assert program("decide_approval", approval_id=approval, decision="approve").startswith("there is no approval")


def test_a_token_that_is_revoked_stops_working_in_the_middle_of_a_connection(operator, digits):
    token, _ = made = make_token(operator, "read")

    async def talk(client):
        first = await client.call_tool("list_constellations", {})
        await sync_to_async(token_revoke)(token, by="system")
        with pytest.raises(MCPError, match="there is no such token"):
            await client.call_tool("list_constellations", {})
        return first

    assert Program(made).ask(talk).is_error is False


def test_reading_writes_nothing(program, digits, migrated_dump):
    program("list_constellations")  # notes that the token was used
    before = migrated_dump()
    program("get_constellation", constellation_id=digits.pk)
    program("list_edits", constellation_id=digits.pk)
    program("why", constellation_id=digits.pk, task_id="train")
    program("list_approvals")
    assert migrated_dump() == before


# All that can be edited


STEPS = [{"command": ["make"], "tries": 3}, {"say": "made"}]
FULL = {
    "task_id": "full", "name": "Full", "description": "All of it.", "tips": ["look"], "device": "laptop", "priority": "HIGH",
    "timeout": 5, "deadline": 60, "max_attempts": 2, "backoff": 0.5, "confirm": True, "on_lost": "ask",
    "policies": [{"tool": "*", "pattern": "x", "decision": "deny"}], "progress": {"stuck_threshold": 5}, "steps": STEPS,
}  # fmt: skip
TIED = {"dependency_id": "l", "from": "fetch", "to": "full", "type": "COMPLETION_ONLY", "description": "in any case"}


def test_tasks_that_are_named_are_shown_with_all_that_can_be_edited(program, digits):
    edit_apply(digits.pk, [{"add_task": FULL}, {"add_dependency": TIED}], author="user:1")
    found = program("get_constellation", constellation_id=digits.pk, tasks=["full", "fetch"])
    assert [task["task_id"] for task in found["tasks"]] == ["fetch", "full"]
    assert [line["dependency_id"] for line in found["dependencies"]] == ["l"]
    assert found["written"] == {
        "tasks": [{"task_id": "fetch", "tool": "noop"}, FULL],
        "dependencies": [TIED],
        "truncated": False,
        "cut": [],
    }
    assert found["counts"] == {"PENDING": 1, "WAITING_DEPENDENCY": 3}
    parts = {key: found["written"][key] for key in ("tasks", "dependencies")}
    again = {"op": "build_constellation", "parameters": {**parts, "clear": False}}
    assert program("preview_edit", constellation_id=digits.pk, operations=[again])["diff"] == []
    assert program("get_constellation", constellation_id=digits.pk)["written"] is None


def test_what_is_written_of_tasks_is_bounded_and_says_so(program, digits):
    for name in ("fetch", "train", "deploy"):
        edit_apply(digits.pk, [{"update_task": {"task_id": name, "tips": ["x" * 20_000] * 2}}], author="user:1")
    found = program("get_constellation", constellation_id=digits.pk, tasks=["fetch", "train", "deploy"])
    assert ([task["task_id"] for task in found["written"]["tasks"]], found["written"]["truncated"]) == (
        ["fetch", "train"],
        True,
    )


def test_a_named_task_that_is_not_there_is_said_to_be_so(program, digits):
    assert program("get_constellation", constellation_id=digits.pk, tasks=["fetch", "nope"]) == (
        f"constellation {digits.pk} has no task nope; there are deploy, fetch, train"
    )
    assert "101 items; 100 are allowed" in program("get_constellation", constellation_id=digits.pk, tasks=["fetch"] * 101)


def test_a_result_that_only_a_float_holds_is_read(program, digits):
    digits.tasks.filter(task_id="fetch").update(result={"perplexity": 1e25})
    found = program("get_constellation", constellation_id=digits.pk)
    assert float(found["tasks"][0]["result"]["perplexity"]) == 1e25
