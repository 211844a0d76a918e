"""Gates on the other ways to change work: retry, reopen, fork, restart, import, MCP, proposals, admin, planner, a race."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from agents.models import Approval, Event, Session
from agents.services.approvals import ApprovalDecided, DigestDiffers, approval_decide
from agents.services.devices import device_create
from agents.services.tokens import token_create
from constellations.errors import GateKept
from constellations.models import Constellation, Edit, Task
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import constellation_fork, constellation_restart, constellation_retry
from tests.agents.conftest import Rest
from tests.attacks.gated import DAY, EDITOR, add, op, post, token, update
from tests.attacks.racing import gating
from tests.constellations.admin.admin_client import Staff
from tests.constellations.mcp.test_tools import Program
from tests.constellations.planting import advance, noop, plant, states
from tests.constellations.runs.test_run import command, query

pytestmark = pytest.mark.django_db(transaction=True)
OPENED = [update("danger", confirm=False)]


def test_a_retry_and_a_fork_with_operations_keep_gates(operator, found):
    text = token(operator, *EDITOR)[1]
    advance(found, free="COMPLETED")
    taken = [update("danger", confirm=False)]
    rest, path = Rest(token=text), f"/api/constellations/{found.pk}"
    answer = rest.post(f"{path}/fork/", {"operations": taken})
    assert (answer.status_code, answer.json()["code"]) == (403, "gate_kept")
    assert Session.objects.count() == 1
    with pytest.raises(GateKept):
        constellation_fork(found.pk, operator, operations=[add("x", "echo", "DANGER")], by=token(operator, *EDITOR)[0])
    assert Rest(operator).post(f"{path}/fork/", {"operations": taken}).status_code == 201


def test_a_fork_of_what_was_before_the_gate_has_the_gate(engine, operator):
    device_create("laptop", by="system")
    engine.submit({"tasks": [noop("hold", confirm=True), command("free", "echo", "free", after=["hold"])]})
    engine.run(waiting(1))
    found = Constellation.objects.get()
    before = Event.objects.filter(stream_id=found.session_id).latest("seq").seq
    edit_apply(found.pk, [update("free", confirm=True)], author=f"user:{operator.pk}")
    by = token(operator, *EDITOR)[0]
    constellation_fork(found.pk, operator, seq=before, by=by)
    engine.run(waiting(2))
    forked = Constellation.objects.get(forked_from=found)
    assert forked.tasks.get(task_id="free").confirm is True
    with pytest.raises(GateKept):
        edit_apply(forked.pk, [add("again", "echo", "free")], author=by)
    constellation_restart(found.pk, by=by)
    engine.run(lambda: query(f"SELECT count(*) FROM constellations_constellation WHERE replaces_id = {found.pk}") == 1)
    anew = Constellation.objects.get(replaces=found)
    assert (anew.tasks.get(task_id="free").confirm, anew.gates) == (True, Constellation.objects.get(pk=found.pk).gates)


def test_a_fork_of_what_was_before_a_task_came_behind_a_gate_has_a_gate(engine, operator):
    device_create("laptop", by="system")
    rest = [command(name, "echo", name, after=["hold"]) for name in ("free", "tied")]
    late = [noop("early", after=["hold"]), command("later", "echo", "later", after=["early"])]
    engine.submit({"tasks": [noop("hold", confirm=True), *rest, *late]})
    engine.run(waiting(1))
    found, by = Constellation.objects.get(), token(operator, *EDITOR)[0]
    before = Event.objects.filter(stream_id=found.session_id).latest("seq").seq
    tied = op("add_dependency", **{"from": "leave", "to": "tied"})
    operations = [add("leave", tool="noop", confirm=True, after=["hold"]), tied, update("early", confirm=True)]
    edit_apply(found.pk, operations, author=f"user:{operator.pk}")
    constellation_fork(found.pk, operator, seq=before, by=by)
    engine.run(waiting(2))
    forked = Constellation.objects.get(forked_from=found)
    assert dict(forked.tasks.filter(tool="command").values_list("task_id", "confirm")) == {
        "free": False, "tied": True, "later": True,
    }  # fmt: skip
    assert edit_apply(found.pk, [update("tied", name="renamed")], author=by)[1]  # it stays where it is


def test_a_rejected_task_is_not_replaced_mended_or_reopened_without_its_gate(engine, operator):
    device_create("laptop", by="system")
    engine.submit({"tasks": [command("danger", "echo", "DANGER", confirm=True), command("next", "ls", after=["danger"])]})
    engine.run(waiting(1))
    found, text = Constellation.objects.get(), token(operator, *EDITOR)[1]
    approval_decide(Approval.objects.get().pk, "reject", by=f"user:{operator.pk}")
    engine.run()
    assert states(found)["danger"] == "FAILED"
    rest, path = Rest(token=text), f"/api/constellations/{found.pk}"
    same, taken = add("other", "echo", "DANGER", replaces="danger"), update("danger", confirm=False)
    for where, body in (
        ("retry", {"tasks": ["danger"], "operations": [taken]}),
        ("reopen", {"retry": ["danger"], "operations": [taken]}),
        ("reopen", {"operations": [same]}),
        ("reopen", {"operations": [add("other", "ls", replaces="danger")]}),  # what came after the gate would begin
        ("fork", {"retry": ["danger"], "operations": [taken]}),
        ("fork", {"operations": [same]}),
    ):
        answer = rest.post(f"{path}/{where}/", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "gate_kept"), (where, body)
    constellation_retry(found.pk, ["danger"], by=token(operator, *EDITOR)[0])
    engine.run(waiting(1))  # a person is asked again


def test_leave_for_one_action_is_no_leave_for_another_in_its_place(engine, operator):
    device_create("laptop", by="system")
    engine.submit({"tasks": [command("danger", "false", confirm=True), noop("hold", confirm=True)]})
    engine.run(waiting(2))
    found, (by, text), person_ = Constellation.objects.get(), token(operator, *EDITOR), f"user:{operator.pk}"
    other = [update("danger", command=["echo", "B"])]
    assert post(text, found, other).status_code == 409  # it waits at its gate: it has begun
    first = Approval.objects.get(subject_id=found.tasks.get(task_id="danger").pk)
    approval_decide(first.pk, "approve", by=person_, digest=first.digest)
    engine.run(lambda: query("SELECT count(*) FROM constellations_task WHERE state = 'FAILED'") == 1)
    constellation_retry(found.pk, ["danger"], operations=other, by=by)
    engine.run(waiting(2))
    second = Approval.objects.get(subject_id=first.subject_id, state="waiting")
    assert second.digest != first.digest
    with pytest.raises(DigestDiffers):
        approval_decide(second.pk, "approve", by=person_, digest=first.digest)
    with pytest.raises(ApprovalDecided):
        approval_decide(first.pk, "approve", by="user:999", digest=first.digest)
    assert states(found)["danger"] == "RUNNING"


def test_an_import_of_an_edit_keeps_gates(operator, found):
    call = {"function": "execute_command", "arguments": {"command": "rm x"}}
    added = {"function": "add_task", "arguments": {"task_id": "z", "name": "z", "description": "z", "actions": [call]}}
    document = {"thought": "Once more.", "status": "CONTINUE", "action": [added]}
    rest = Rest(token=token(operator, *EDITOR)[1])
    answer = rest.post(f"/api/constellations/{found.pk}/import/", {"document": document})
    assert (answer.status_code, answer.json()["code"]) == (403, "gate_kept"), answer.content
    call["arguments"]["command"] = "ls x"
    answer = rest.post(f"/api/constellations/{found.pk}/import/", {"document": document})
    assert answer.status_code == 201, answer.content


def test_over_mcp_it_becomes_a_proposal_which_says_what_it_takes_away(operator, found):
    made, text = token_create(operator, "claude", EDITOR, DAY, by="system")
    said = Program((made, text))("update_task", constellation_id=found.pk, task_id="danger", confirm=False)
    row = Approval.objects.get()
    assert (said["changed"], said["edit"], said["proposal"]["approval"]) == (False, None, row.pk)
    assert "update task danger, which takes the gate of danger away" in row.title


def test_a_proposal_is_sent_again_decided_and_then_the_same_edit(operator, found):
    text = token(operator, *EDITOR)[1]
    first = post(text, found, OPENED, edit_id="e1")
    again = post(text, found, OPENED, edit_id="e1")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["proposal"] == again.json()["proposal"]
    approval_decide(first.json()["proposal"], "approve", by=f"user:{operator.pk}")
    last = post(text, found, OPENED, edit_id="e1")
    assert (last.status_code, last.json()["edit"]["edit_id"]) == (200, "e1")


def test_rules_of_the_planner_take_no_gate_away(engine, operator):
    device_create("laptop", by="system")
    rules = [
        {"name": name, "when": {"event": "task_completed", "task": "first"}, "edit": operations}
        for name, operations in {
            "opens": [update("danger", confirm=False)],
            "copies": [add("copy", copy="danger", confirm=False)],
            "repeats": [add("same", "echo", "DANGER")],
            "harmless": [add("fine", "ls")],
        }.items()
    ]
    tasks = [noop("first"), noop("hold", confirm=True), command("danger", "echo", "DANGER", confirm=True, after=["hold"])]
    engine.submit({"tasks": tasks, "replan": rules})
    engine.run(lambda: query("SELECT count(*) FROM constellations_task WHERE task_id = 'fine' AND state = 'COMPLETED'") == 1)
    found = Constellation.objects.get()
    assert states(found) == {"first": "COMPLETED", "hold": "RUNNING", "danger": "WAITING_DEPENDENCY", "fine": "COMPLETED"}
    refused = Event.objects.filter(type="edit_refused").values_list("data__rule", flat=True)
    assert set(refused) == {"opens", "copies", "repeats"}
    assert found.tasks.get(task_id="danger").confirm


def test_in_the_admin_a_person_takes_a_gate_away_and_who_has_no_role_changes_nothing(operator, found):
    task, staff = Task.objects.get(task_id="danger"), Staff(operator)
    values = staff.form(task)
    box = next(name for name in values if name.endswith("-confirm"))
    operator.groups.clear()
    assert staff.save(task, {name: value for name, value in values.items() if name != box}).status_code in (302, 403)
    assert Task.objects.get(pk=task.pk).confirm
    operator.groups.add(Group.objects.get(name="operator"))
    assert staff.save(task, {name: value for name, value in values.items() if name != box}).status_code == 302
    assert not Task.objects.get(pk=task.pk).confirm


@pytest.mark.attack
def test_no_copy_of_what_another_process_gates_meanwhile_goes_through_after_its_gate(operator, session, state_dir):
    count = 15
    found = plant(session, *(command(f"free{number}", "echo", str(number)) for number in range(count)))
    text = token(operator, *EDITOR)[1]
    gates = gating(state_dir, constellation=found.pk, author=f"user:{operator.pk}", count=count)
    answers = {}
    rounds = 0
    while gates.poll() is None or rounds < 2:
        rounds += gates.poll() is not None
        for number in range(count):
            name = f"copy{number}-{len(answers)}"
            answers[name] = post(text, found, [add(name, "echo", str(number))]).status_code
            if answers[name] == 202:
                Approval.objects.filter(state="waiting").update(state="withdrawn")
    assert gates.returncode == 0
    assert set(answers.values()) == {201, 202}
    gated: set[str] = set()
    for edit in Edit.objects.filter(constellation=found).order_by("version"):
        for task_id, row in edit.after["tasks"].items():
            if row["confirm"]:
                gated.add(row["arguments"]["argv"][1])
            else:
                assert row["arguments"]["argv"][1] not in gated, f"{task_id} came after the gate"
                assert answers[task_id] == 201
    assert len(gated) == count


def waiting(number: int):
    return lambda: query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'") == number
