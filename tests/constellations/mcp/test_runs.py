"""The MCP tools that start requests, follow them and command what runs: by the same services and the same table as REST."""

from __future__ import annotations

import json

import pytest

from agents.models import InboxItem, Session
from agents.services import sessions
from agents.streams.verify import verify_database
from constellations.mcp.tools import TOOLS
from constellations.models import Constellation
from constellations.plan.schemas import DEFS
from project import settings as project_settings
from tests.agents.conftest import make_token
from tests.conftest import person
from tests.constellations.mcp.mcp_program import SCOPES, Program, with_scopes
from tests.constellations.planting import noop
from tests.constellations.services.test_proposals_at_work import count

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = {
    "name": "three",
    "tasks": [
        noop("fetch"), {"task_id": "train", "command": ["false"], "after": ["fetch"]}, noop("deploy", after=["train"]),
    ],
}  # fmt: skip
TEXT = json.dumps(PLAN)
LASTING = {"tasks": [noop("gate", confirm=True), noop("last", after=["gate"])]}


@pytest.fixture
def program(operator, device) -> Program:
    return Program(make_token(operator, *SCOPES, name="claude"))


def ended(program: Program, started: dict) -> dict:
    """What the session says of a request that has come to its end."""
    (found,) = [
        each
        for each in program("get_session", session=started["session"])["interactions"]
        if each["id"] == started["interaction"]
    ]
    assert found["state"] == "done"
    return found


def test_a_request_is_started_followed_mended_and_retried(program, engine, verified):
    started = program("start_request", plan=TEXT, title="one")
    assert Session.objects.get(pk=started["session"]).title == "one"
    engine.run()
    first = ended(program, started)
    assert (first["outcome"], first["asked"], first["by"]) == ("partially_failed", TEXT, program.by)
    stands = program("get_session", session=started["session"])["standing"]
    assert (stands["name"], stands["word"], stands["waiting"]) == ("partially_failed", "Partly failed", 0)
    (graph,) = first["constellations"]
    mend = {"op": "update_task", "parameters": {"task_id": "train", "command": ["true"]}}
    retry = {"constellation_id": graph, "tasks": ["train"], "operations": [mend], "client_id": "r"}
    retried = program("retry", **retry)
    assert (retried["tasks"][0], retried["changed"], program("retry", **retry)["changed"]) == ("train", True, False)
    engine.run()
    assert Constellation.objects.get(pk=graph).state == "COMPLETED"
    assert program("get_constellation", constellation_id=graph)["counts"] == {"COMPLETED": 3}


def test_the_same_client_id_is_the_same_request_also_where_it_began_a_session(program):
    started = program("start_request", plan=TEXT, client_id="mine")
    again = program("start_request", plan=TEXT, client_id="mine")
    assert (again, Session.objects.count()) == ({**started, "created": False}, 1)
    assert "client_id mine was used for another request" in program("start_request", plan=TEXT + " ", client_id="mine")
    more = program("start_request", plan=TEXT, session=started["session"], client_id="next")
    assert (more["session"], InboxItem.objects.count()) == (started["session"], 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "give exactly one of plan and request"),
        ({"plan": TEXT, "request": "x"}, "give exactly one of plan and request"),
        ({"plan": "tasks: ["}, "it is not YAML"),
        ({"plan": "tasks: [{task_id: a, tool: nop}]", "session": 1}, "there is no session 1, or it is not yours to see"),
        ({"request": "make me a sandwich"}, "language model"),
    ],
)
def test_a_request_that_cannot_begin_is_refused_and_nothing_is_made(program, arguments, says):
    assert says in program("start_request", **arguments)
    assert (Session.objects.count(), InboxItem.objects.count()) == (0, 0)


def test_what_runs_is_paused_resumed_and_cancelled_as_a_graph_and_as_a_session(program, engine, verified):
    started = program("start_request", plan=json.dumps(LASTING))
    engine.run(lambda: count("agents_approval WHERE state = 'waiting'"))
    (graph,) = program("get_session", session=started["session"])["interactions"][0]["constellations"]
    assert program("pause", constellation_id=graph, reason="look") == {"state": "PAUSED", "changed": True, "command": None}
    assert program("pause", constellation_id=graph)["changed"] is False
    assert program("resume", constellation_id=graph)["state"] == "EXECUTING"
    assert "reason: a cancel needs a reason" in program("cancel", constellation_id=graph)
    assert "exactly one of constellation_id and session" in program("pause")
    assert program("pause", session=started["session"])["changed"] is True
    assert program("cancel_task", constellation_id=graph, task_id="last", reason="no")["state"] == "CANCELLED"
    assert "has no task lost; did you mean last?" in program("cancel_task", constellation_id=graph, task_id="lost", reason="no")
    assert program("cancel", constellation_id=graph, reason="enough", client_id="c")["changed"] is True
    assert program("cancel", constellation_id=graph, reason="enough", client_id="c")["changed"] is False
    engine.run()
    assert Constellation.objects.get(pk=graph).state == "CANCELLED"


def test_a_constellation_is_restarted_reopened_and_forked(program, engine, verified):
    started = program("start_request", plan=TEXT)
    engine.run()
    (graph,) = ended(program, started)["constellations"]
    assert "has ended" in program("restart", constellation_id=graph)
    add = {"op": "add_task", "parameters": noop("report")}
    reopened = program("reopen", constellation_id=graph, operations=[add], client_id="again")
    assert program("reopen", constellation_id=graph, operations=[add], client_id="again") == {**reopened, "created": False}
    engine.run()
    assert Constellation.objects.get(pk=graph).tasks.get(task_id="report").state == "COMPLETED"
    forked = program("fork", constellation_id=graph, retry=["train"], title="other")
    assert forked["session"] != started["session"]
    engine.run()
    (other,) = ended(program, forked)["constellations"]
    assert Constellation.objects.get(pk=other).forked_from_id == graph


def test_what_a_run_needs_is_the_scope_operate_and_operations_are_an_edit(program, operator, engine):
    started = program("start_request", plan=TEXT)
    engine.run()
    (graph,) = ended(program, started)["constellations"]
    reader, editor = with_scopes(operator, "read"), with_scopes(operator, "read", "edit", "approve")
    calls = {
        "start_request": {"plan": TEXT}, "pause": {"constellation_id": graph}, "resume": {"session": started["session"]},
        "cancel": {"constellation_id": graph, "reason": "x"}, "restart": {"constellation_id": graph},
        "cancel_task": {"constellation_id": graph, "task_id": "train", "reason": "x"}, "retry": {"constellation_id": graph},
        "reopen": {"constellation_id": graph, "retry": ["train"]}, "fork": {"constellation_id": graph, "retry": ["train"]},
    }  # fmt: skip
    for name, arguments in calls.items():
        for caller in (reader, editor):
            assert caller(name, **arguments) == "the token lacks the scope operate"
    operating = with_scopes(operator, "read", "operate")
    mend = [{"op": "update_task", "parameters": {"task_id": "train", "command": ["true"]}}]
    for name in ("retry", "reopen", "fork"):
        assert operating(name, constellation_id=graph, operations=mend) == "the token lacks the scope edit"
    stranger = with_scopes(person("stranger", "operator"), *SCOPES)
    for name, arguments in calls.items():
        if "constellation_id" in arguments:
            assert "or it is not yours to see" in stranger(name, **arguments)
    assert "there is no session" in stranger("get_session", session=started["session"])


def test_output_is_read_in_pieces_and_from_its_end(program, engine):
    script = "for n in $(seq 1 3000); do echo line $n; done"
    started = program("start_request", plan=json.dumps({"tasks": [{"task_id": "talk", "command": ["sh", "-c", script]}]}))
    engine.run()
    (graph,) = ended(program, started)["constellations"]
    whole = "".join(f"line {number}\n" for number in range(1, 3_001))
    text, offset = "", 0
    while offset is not None:
        piece = program("get_output", constellation_id=graph, task_id="talk", offset=offset, limit=10_000)
        text, offset = text + piece["text"], piece["next"]
        assert piece["total"] == len(whole)
    assert text == whole
    assert program("get_output", constellation_id=graph, task_id="talk", attempt=1, offset=-10)["text"] == whole[-10:]
    assert "has no attempt 2" in program("get_output", constellation_id=graph, task_id="talk", attempt=2)


def test_a_question_that_is_longer_than_a_title_is_read_whole_before_it_is_answered(operator, engine, device, verified):
    question = "Which of these? " + "x" * 700
    engine.submit({"tasks": [{"task_id": "a", "steps": [{"ask": question}]}]})
    engine.run(lambda: count("agents_approval WHERE state = 'waiting'"))
    program = with_scopes(operator, *SCOPES)
    (row,) = program("list_approvals")["approvals"]
    assert (row["title"].endswith("…"), row["action"]["arguments"]["question"]) == (True, question)
    answer = {"approval_id": row["id"], "decision": "approve", "answer": "the first"}
    assert "needs the digest of the action" in program("decide_approval", **answer)
    assert program("decide_approval", **answer, digest=row["digest"])["changed"] is True
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"


def test_a_long_plan_and_a_long_result_of_a_request_are_cut_with_a_word(program, engine):
    plan = {"tasks": [noop("a", description="x" * 3_000, arguments={"result": "y" * 3_000})]}
    started = program("start_request", plan=json.dumps(plan))
    engine.run()
    found = ended(program, started)
    cuts = {each["key"]: each["more"] for each in found["cut"]}
    assert program.whole(cuts["asked"]) == json.dumps(plan)
    assert json.loads(program.whole(cuts["result"]))["results"] == {"a": "y" * 3_000}


def test_what_a_token_starts_below_a_session_of_its_own_names_it_as_the_parent(program):
    parent = program("start_request", plan=TEXT)
    child = program("start_request", plan=TEXT, parent=parent["session"])
    assert Session.objects.get(pk=child["session"]).parent_id == parent["session"]
    assert "leave them out" in program("start_request", plan=TEXT, session=child["session"], title="x")


def test_the_schemas_name_the_tools_that_there_are_to_call(program):
    for name in ("add_task", "update_task"):
        names = TOOLS[name].parameters["properties"]["tool"]["enum"]
        assert {"command", "noop", "read_file", "write_file", "edit_file"} <= set(names)
    built = TOOLS["build_constellation"].parameters["$defs"]
    for part in ("task", "step"):
        assert set(built[part]["properties"]["tool"]["enum"]) == set(program("list_devices")["tools"])
    assert "enum" not in built["policy"]["properties"]["tool"]
    assert "enum" not in DEFS["task"]["properties"]["tool"]


def test_the_server_says_its_version_and_there_is_no_second_word_for_device(program):
    told = program.ask(lambda client: _info(client))
    assert (told.name, told.version) == ("orrery", project_settings.VERSION)
    listed = program.ask(lambda client: client.list_tools()).model_dump_json()
    assert "wanted_device" not in listed


async def _info(client):
    return client.server_info


def test_every_tool_says_when_another_one_is_better_or_what_it_is_for():
    short = [tool.name for tool in TOOLS.values() if len(tool.description) < 50]
    assert short == []


def test_the_database_is_what_its_streams_say_after_commands_that_change_nothing(program, operator):
    session = sessions.session_create(operator, "mine", by="system")
    assert "has no actor to pause" in program("pause", session=session.pk)
    assert list(verify_database()) == []
