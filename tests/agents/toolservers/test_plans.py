"""Plans that call tools of a server: through a real runner, to a real program."""

import threading

import pytest
from django.db import connection

from agents.models import Agent, Approval, Artifact, Evidence, Output, Transition
from agents.streams.statements import raw_cursor
from constellations.models import Task
from tests.agents.conftest import Rest
from tests.agents.toolservers.conftest import make_server, stdio_connection
from tests.conftest import TestRunner

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def test_a_plan_calls_a_tool_by_its_namespace_and_names_no_device(engine, device, srv):
    found = engine.carry_out({"tasks": [{"task_id": "sum", "tool": "srv.add", "arguments": {"a": 1, "b": 2}}]})
    task = Task.objects.get(constellation=found)
    assert (task.state, task.result, task.device.name) == ("COMPLETED", {"sum": 3}, "srv")


def plan(tool: str, **arguments) -> dict:
    return {"tasks": [{"task_id": "one", "tool": f"srv.{tool}", "arguments": arguments}]}


def test_steps_of_a_task_call_a_server_and_read_what_it_answered(engine, srv):
    steps = [
        {"tool": "srv.add", "arguments": {"a": 1, "b": 2}, "save": "first", "expect": {"result": "result['sum'] == 3"}},
        {"tool": "srv.echo", "arguments": {"text": "twice"}, "if": "first['sum'] == 3", "expect": {"contains": "twice"}},
    ]
    found = engine.carry_out({"tasks": [{"task_id": "one", "device": "srv", "steps": steps}]})
    assert Task.objects.get(constellation=found).state == "COMPLETED"
    assert [(row.tool, row.success) for row in Evidence.objects.order_by("id")] == [("srv.add", True), ("srv.echo", True)]


def test_what_a_tool_says_of_its_failure_fails_the_task(engine, srv):
    found = engine.carry_out(plan("fail"))
    task = Task.objects.get(constellation=found)
    assert (task.state, task.error) == ("FAILED", "Error executing tool fail: the disk is on fire")


def test_progress_is_output_and_its_agent_is_pending_meanwhile(engine, srv):
    found = engine.carry_out(plan("count", to=3, pause=0.1))
    assert Task.objects.get(constellation=found).result == {"result": "counted to 3"}
    printed = "".join(row.text for row in Output.objects.order_by("offset"))
    assert printed == "1/3 counted 1\n2/3 counted 2\n3/3 counted 3\ncounted to 3"
    agent = Agent.objects.get(machine="device_agent")
    moves = Transition.objects.filter(machine="device_agent", subject_id=agent.pk).order_by("id")
    assert [(row.event, row.to_state) for row in moves if row.event != "step"] == [
        ("wait", "PENDING"), ("received", "CONTINUE"), ("finish", "FINISH"),
    ]  # fmt: skip


def test_a_call_that_takes_too_long_is_cancelled_at_the_server(engine, srv, marks):
    first = {"task_id": "first", "tool": "srv.add", "arguments": {"a": 1, "b": 1}}
    long = {"task_id": "long", "tool": "srv.count", "arguments": {"to": 1000, "pause": 0.05}, "timeout": 0.5}
    found = engine.carry_out({"tasks": [first, long | {"after": ["first"]}]})
    assert [row.state for row in Task.objects.filter(constellation=found).order_by("id")] == ["COMPLETED", "FAILED"]
    assert marks.read_text().splitlines() == ["add 1 1", "count begins", "count cancelled"]


def test_a_picture_is_an_artifact_that_the_result_names(engine, srv):
    (part,) = Task.objects.get(constellation=engine.carry_out(plan("picture"))).result["content"]
    kept = Artifact.objects.get()
    assert (part["kind"], part["bytes"], part["artifact"]) == ("image", 17, "srv.picture-1")
    assert (kept.name, kept.kind, kept.media_type, kept.size) == ("srv.picture-1", "picture", "image/png", 17)
    assert kept.sha256 == part["sha256"]


def test_a_server_that_dies_loses_the_call_and_comes_back(engine, srv, marks):
    dying = {"task_id": "one", "tool": "srv.die", "on_lost": "fail"}
    after = {"task_id": "two", "tool": "srv.add", "arguments": {"a": 2, "b": 3}}
    found = engine.carry_out({"tasks": [dying]})
    task = Task.objects.get(constellation=found)
    assert (task.state, task.reason) == ("FAILED", "lost")
    assert marks.read_text().splitlines() == ["dies"]
    found = engine.carry_out({"tasks": [after]})
    assert Task.objects.get(constellation=found).result == {"sum": 5}
    states = Transition.objects.filter(machine="device", subject_id=srv.pk).order_by("id").values_list("to_state", flat=True)
    assert list(states) == ["connecting", "connected", "disconnected", "connecting", "connected"]


# Questions


class AskedRunner(TestRunner):
    """One that ends when `until`, which is given the runner, holds."""

    def __init__(self, until):
        super().__init__(until=lambda: until(self))


MISFITS = [
    ({}, "must be an object with name, seats"),
    ({"answer": {"name": "Ann"}}, "needs seats"),
    ({"answer": {"name": "Ann", "seats": "two"}}, "must be a whole number"),
    ({"answer": {"name": "Ann", "seats": 1, "more": 1}}, "takes no more"),
]
"""Answers that do not fit what the server asks for, and what is said of them."""


def answer_when_asked(rest: Rest, refused: list[str], decision: str, **more):
    """`until` of a runner: answers the first question from a thread, as a person would; the session then rests.

    Answers that do not fit are tried first, and noted in `refused`.
    """

    def answer() -> None:
        (row,) = rest.get("/api/approvals/", state="waiting").json()["results"]
        path = f"/api/approvals/{row['id']}/decision/"
        for misfit, said in MISFITS:
            refusal = rest.post(path, {"decision": "approve", **misfit})
            if refusal.status_code == 400 and said in refusal.content.decode():
                refused.append(said)
        assert rest.post(path, {"decision": decision, "digest": row["digest"], **more}).status_code == 200
        connection.close()

    def until(runner) -> bool:
        cursor = raw_cursor()
        cursor.execute("SELECT count(*) FROM agents_approval WHERE state = 'waiting'")
        if cursor.fetchone()[0] and not asked:
            asked.append(threading.Thread(target=answer))
            asked[0].start()
        return bool(asked) and not asked[0].is_alive() and runner._all_rest()

    asked: list[threading.Thread] = []
    return until


@pytest.mark.parametrize("protocol", ["newest", "handshake"])
@pytest.mark.parametrize(
    ("decision", "more", "result"),
    [
        ("approve", {"answer": {"name": "Ann", "seats": 2}}, "2 seats for Ann"),
        ("approve", {"answer": '{"name": "Bo", "seats": 1}'}, "1 seats for Bo"),
        ("reject", {}, "nobody: decline"),
    ],
)
def test_a_servers_question_is_asked_in_the_inbox_and_its_answer_goes_back(
    engine, transactional_db, admin_user, protocol, decision, more, result
):
    make_server("srv", {**stdio_connection(), "protocol": protocol})
    refused: list[str] = []
    _, item = engine.submit(plan("book" if protocol == "handshake" else "reserve"))
    runner = AskedRunner(answer_when_asked(Rest(admin_user), refused, decision, **more))
    runner.run()
    assert not runner.gave_up
    assert len(refused) == len(MISFITS)
    task = Task.objects.get(constellation__interaction=item)
    assert (task.state, task.result) == ("COMPLETED", {"result": result})
    approval = Approval.objects.get()
    assert (approval.kind, approval.used_at is not None) == ("elicitation", True)
    assert set(approval.action["arguments"]["schema"]["properties"]) == {"name", "seats"}
    assert "ghp_" not in approval.title


def test_sampling_is_refused(engine, transactional_db):
    make_server("srv", {**stdio_connection(), "protocol": "handshake"})
    found = engine.carry_out(plan("think"))
    assert "refused" in Task.objects.get(constellation=found).result["result"]


def test_a_program_is_handed_inputs_in_its_workspace_and_its_outputs_are_kept(engine, device, srv):
    make = {"task_id": "make", "device": "laptop", "command": "echo 1 > a", "shell": True, "outputs": ["a"]}
    use = {
        "task_id": "use", "tool": "srv.copy", "arguments": {"source": "in", "target": "out"}, "after": ["make"],
        "inputs": {"in": "make#a"}, "outputs": ["out"],
    }  # fmt: skip
    engine.carry_out({"tasks": [make, use]})
    assert {task.task_id: (task.state, task.error) for task in Task.objects.all()} == dict.fromkeys(
        ("make", "use"), ("COMPLETED", "")
    )
    assert {row.name for row in Artifact.objects.all()} == {"a", "out"}
    assert len({row.sha256 for row in Artifact.objects.all()}) == 1


def test_a_server_over_http_has_no_workspace_and_says_so_before_its_call(engine, http_server, marks):
    make_server("web", {"transport": "http", "url": http_server})
    add = {"task_id": "one", "tool": "web.add", "arguments": {"a": 1, "b": 2}, "outputs": ["a"]}
    engine.carry_out({"tasks": [add]})
    assert Task.objects.get().error == "a device of the kind mcp takes no inputs and keeps no outputs"
    assert not marks.exists()
