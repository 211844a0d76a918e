"""What a token has written into somebody's run is not its own to approve, with the real engine and REST."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.access import ancestry
from agents.access.ancestry import OwnApproval
from agents.models import Approval, Session
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.services.sessions import session_create
from agents.services.tokens import token_create, token_revoke
from constellations.models import Constellation, Task
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import constellation_fork, constellation_reopen, constellation_retry
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest, add_approvals
from tests.conftest import person
from tests.constellations.planting import noop, plant
from tests.constellations.runs.test_run import command, query, states

pytestmark = pytest.mark.django_db(transaction=True)

SCOPES = ("read", "operate", "edit", "approve")


def program(user) -> tuple[str, str]:
    """A token: (its author's name, its text)."""
    token, text = token_create(user, "agent", SCOPES, timedelta(days=1), by="system")
    return f"token:{token.token_key}", text


@pytest.fixture
def another(roles) -> tuple[str, str]:
    """A token of an admin, who sees everything and has a part in nothing."""
    return program(person("another", "admin"))


@pytest.fixture
def session(operator) -> Session:
    device_create("laptop", by="system")
    return session_create(operator, "theirs", by=f"user:{operator.pk}")


def waiting_for(task_id: str) -> Approval:
    """The approval that the newest attempt of the task waits for."""
    return Approval.objects.get(state="waiting", subject_id__in=Task.objects.filter(task_id=task_id).values("pk"))


def until_waiting(number: int):
    return lambda: query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'") == number


def refused_over_rest(text: str, approval: Approval) -> str:
    answer = Rest(token=text).post(f"/api/approvals/{approval.pk}/decision", {"decision": "approve", "digest": approval.digest})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_approval")
    return answer.json()["detail"]


def test_a_token_does_not_approve_what_it_wrote_into_the_run_of_a_person(engine, operator, another, verified):
    device_create("laptop", by="system")
    by, text = program(operator)
    made_with = token_create(operator, "made", SCOPES, timedelta(days=1), by=by)[1]
    plan = [noop("hold", confirm=True), command("g", "ls", confirm=True, after=["hold"]), command("h", "ls", confirm=True)]
    engine.submit({"tasks": [*plan, command("moved", "ls", confirm=True)]})
    engine.run(until_waiting(3))
    constellation = Constellation.objects.get()
    operations = [
        {"op": "update_task", "parameters": {"task_id": "g", "command": ["echo", "the token wrote this"]}},
        {"op": "add_task", "parameters": {"task_id": "evil", "command": ["ls"], "confirm": True}},
    ]
    answer = Rest(token=text).post(f"/api/constellations/{constellation.pk}/edits", {"operations": operations})
    assert answer.status_code == 201
    approval_decide(waiting_for("hold").pk, "approve", by=f"user:{operator.pk}")
    engine.run(until_waiting(4))
    for task_id in ("g", "evil"):
        approval = waiting_for(task_id)
        for own in (text, made_with, program(operator)[1]):
            told = refused_over_rest(own, approval)
            assert (
                f"approval {approval.pk} was asked for by task {task_id}, which token {by[6:]} has written or changed" in told
            )
    assert states(constellation)["g"] == "RUNNING"
    other = Rest(token=another[1])
    assert other.post(f"/api/approvals/{waiting_for('g').pk}/decision", {"decision": "approve"}).status_code == 200
    for task_id in ("h", "moved"):  # nothing of them is the token's
        assert approval_decide(waiting_for(task_id).pk, "approve", by=by)[1]
    assert approval_decide(waiting_for("evil").pk, "approve", by=f"user:{operator.pk}")[1]
    engine.run()
    assert set(states(constellation).values()) == {"COMPLETED"}


def test_a_token_does_not_approve_what_it_put_into_another_place_or_brought_back(engine, operator, verified):
    device_create("laptop", by="system")
    by = program(operator)[0]
    names = ("later", "back", "before", "downstream")
    engine.submit({"tasks": [noop("hold", confirm=True), *(noop(name, after=["hold"], confirm=True) for name in names)]})
    engine.run(until_waiting(1))
    constellation = Constellation.objects.get()
    person = f"user:{operator.pk}"
    edit_apply(constellation.pk, [{"op": "remove_task", "parameters": {"task_id": "back"}}], author=person, edit_id="gone")
    edit_undo(constellation.pk, "gone", by)
    moved = {"op": "remove_dependency", "parameters": {"from": "hold", "to": "later"}}
    added = {"op": "add_task", "parameters": {"task_id": "own", "tool": "noop", "after": ["before"]}}
    edit_apply(constellation.pk, [moved, added], author=by)
    approval_decide(waiting_for("hold").pk, "approve", by=person)
    engine.run(until_waiting(4))
    text = token_create(operator, "made", SCOPES, timedelta(days=1), by=by)[1]
    for task_id in ("later", "back"):
        assert f"asked for by task {task_id}, which token" in refused_over_rest(text, waiting_for(task_id))
    assert approval_decide(waiting_for("before").pk, "approve", by=by)[1]  # its own comes behind it
    assert approval_decide(waiting_for("downstream").pk, "approve", by=by)[1]


def test_a_token_does_not_approve_what_it_let_begin_again(engine, operator, verified):
    device_create("laptop", by="system")
    by, text = program(operator)
    tasks = [noop("hold", confirm=True), command("f", "false", confirm=True), command("k", "ls", confirm=True, after=["f"])]
    engine.submit({"tasks": tasks})
    engine.run(until_waiting(2))
    constellation, person = Constellation.objects.get(), f"user:{operator.pk}"
    approval_decide(waiting_for("f").pk, "approve", by=person)
    engine.run(lambda: query("SELECT count(*) FROM constellations_task WHERE state = 'FAILED'") == 1)
    mended = [{"op": "update_task", "parameters": {"task_id": "k", "command": ["echo", "written by the token"]}}]
    Rest(token=text).post(f"/api/constellations/{constellation.pk}/retry", {"tasks": ["f"], "operations": mended})
    engine.run(until_waiting(2))
    assert "asked for by task f, which token" in refused_over_rest(text, waiting_for("f"))
    assert "has let begin again" in refused_over_rest(text, waiting_for("f"))
    approval_decide(waiting_for("f").pk, "approve", by=person)
    engine.run(lambda: query("SELECT count(*) FROM constellations_task WHERE state = 'FAILED'") == 1)
    constellation_retry(constellation.pk, ["f"], by=person)
    engine.run(until_waiting(2))
    assert approval_decide(waiting_for("f").pk, "approve", by=by)[1]  # this time a person let it begin


def test_what_a_token_wrote_is_not_its_own_to_approve_in_a_fork_either_nor_when_it_is_reopened(
    engine, operator, another, verified
):
    device_create("laptop", by="system")
    by, text = program(operator)
    person = f"user:{operator.pk}"
    constellation = engine.carry_out({"tasks": [noop("first"), command("failed", "false")]})
    written = [{"op": "add_task", "parameters": {"task_id": "evil", "command": ["ls"], "confirm": True}}]
    constellation_reopen(constellation.pk, operations=written, by=by)
    engine.run(until_waiting(1))
    assert "by work in session" in refused_over_rest(text, waiting_for("evil"))
    _, item, _ = constellation_fork(constellation.pk, operator, by=person)
    engine.run(until_waiting(2))
    forked = Approval.objects.get(state="waiting", session=item.session_id)
    assert "asked for by task evil, which token" in refused_over_rest(text, forked)
    assert approval_decide(forked.pk, "approve", by=another[0])[1]


@pytest.mark.parametrize("kind", ["task", "tool", "question", "lost"])
def test_whatever_is_asked_about_a_task_is_not_for_its_author(operator, session, another, verified, kind):
    found = plant(session, noop("fetch"), noop("other"))
    by = program(operator)[0]
    edit_apply(found.pk, [{"op": "update_task", "parameters": {"task_id": "fetch", "name": "written"}}], author=by)
    asked = {task.task_id: add_approvals(session, kind=kind, subject_id=task.pk)[0] for task in found.tasks.all()}
    with pytest.raises(OwnApproval, match="asked for by task fetch, which token"):
        approval_decide(asked["fetch"], "reject", by=by)
    assert approval_decide(asked["other"], "reject", by=by)[1]
    assert approval_decide(asked["fetch"], "reject", by=another[0])[1]


def test_what_too_many_tokens_have_written_a_person_decides(operator, session, verified, monkeypatch):
    monkeypatch.setattr(ancestry, "AUTHORS", 2)
    found = plant(session, noop("fetch"))
    for number in range(3):
        renamed = [{"op": "update_task", "parameters": {"task_id": "fetch", "name": f"name {number}"}}]
        edit_apply(found.pk, renamed, author=program(operator)[0])
    approval = add_approvals(session, subject_id=found.tasks.get().pk)[0]
    with pytest.raises(OwnApproval, match="about what more than 2 tokens have written; a person decides it"):
        approval_decide(approval, "reject", by=program(operator)[0])
    assert approval_decide(approval, "reject", by=f"user:{operator.pk}")[1]


def test_a_revoked_token_that_wrote_a_task_leaves_it_to_tokens_without_a_part(operator, session, another, verified):
    found = plant(session, noop("fetch"))
    (by, _), (other, _) = program(operator), another
    made = token_create(operator, "made", SCOPES, timedelta(days=1), by=by)[0]
    edit_apply(
        found.pk, [{"op": "update_task", "parameters": {"task_id": "fetch", "name": "a"}}], author=f"token:{made.token_key}"
    )
    token_revoke(made, by="system")
    approval = add_approvals(session, subject_id=found.tasks.get().pk)[0]
    with pytest.raises(OwnApproval):
        approval_decide(approval, "reject", by=by)
    assert approval_decide(approval, "reject", by=other)[1]
