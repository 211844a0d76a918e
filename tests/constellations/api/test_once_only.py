"""What is sent twice counts once; another thing under the same id is refused, and nothing of it is done."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from agents.models import InboxItem, Session
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.door import door
from agents.streams.verify import verify_database
from constellations.models import Constellation, Edit
from constellations.services.lifecycle import constellation_fork
from tests.agents.conftest import Rest, make_token
from tests.conftest import person
from tests.constellations.mcp.test_tools import Program
from tests.constellations.planting import noop, plant, states

pytestmark = pytest.mark.django_db(transaction=True)
ADD, OTHER = ({"op": "add_task", "parameters": noop(name)} for name in ("extra", "other"))
NONSENSE = {"op": "nonsense", "parameters": {}}


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


@pytest.fixture
def found(operator) -> Constellation:
    device_create("laptop", by="system")
    return plant(sessions.session_create(operator, "mine", by="system"), noop("a"), noop("b", after=["a"]), noop("c"))


def address(found: Constellation, end: str) -> str:
    return f"/api/constellations/{found.pk}/{end}/"


def sent(rest: Rest, where: str, body: dict, status: int, code: str = "") -> dict:
    answer = rest.post(where, body)
    assert (answer.status_code, answer.json().get("code", "")) == (status, code), answer.json()
    return answer.json()


def bring(found: Constellation, state: str = "EXECUTING", **tasks: str) -> None:
    """The constellation and these tasks into states, as somebody's event would have it."""
    keys = dict(found.tasks.values_list("task_id", "id"))
    with door(found.session_id, "system") as opened:
        changed = {str(keys[name]): {"state": wanted} for name, wanted in tasks.items()}
        opened.turn.record("brought", set={"task": changed, "constellation": {str(found.pk): {"state": state}}})


# Edits


def test_the_same_edit_again_is_the_same_edit_whatever_form_it_is_written_in(rest, found):
    first = sent(rest, address(found, "edits"), {"operations": [ADD], "edit_id": "e1"}, 201)
    for written in (ADD, {"add_task": ADD["parameters"]}, {"function": "add_task", "arguments": ADD["parameters"]}):
        body = {"operations": [written], "edit_id": "e1", "reason": "once more", "based_on": 2}
        assert sent(rest, address(found, "edits"), body, 200) == {**first, "changed": False}


@pytest.mark.parametrize("operations", [[OTHER], [ADD, OTHER], [NONSENSE], [{}], []])
def test_another_edit_under_the_same_id_is_refused(rest, found, operations):
    by = sent(rest, address(found, "edits"), {"operations": [ADD], "edit_id": "e1"}, 201)["edit"]["author"]
    refused = sent(rest, address(found, "edits"), {"operations": operations, "edit_id": "e1"}, 409, "edit_id_taken")
    assert refused["detail"] == f"edit e1 was another one (by {by}, version 2): give this one an edit_id of its own"
    assert Edit.objects.count() == 1


def test_the_same_edit_by_somebody_else_is_another_one(rest, found):
    sent(rest, address(found, "edits"), {"operations": [ADD], "edit_id": "e1"}, 201)
    boss = Rest(person("boss", "admin"))
    sent(boss, address(found, "edits"), {"operations": [ADD], "edit_id": "e1"}, 409, "edit_id_taken")


def test_an_undo_is_another_edit_than_the_edit_and_than_the_undo_of_another(rest, found):
    for operation, name in ((ADD, "e1"), (OTHER, "e2")):
        sent(rest, address(found, "edits"), {"operations": [operation], "edit_id": name}, 201)
    sent(rest, address(found, "edits/e1/undo"), {"edit_id": "e2"}, 409, "edit_id_taken")
    sent(rest, address(found, "edits/e1/undo"), {"edit_id": "u1"}, 201)
    sent(rest, address(found, "edits/e1/undo"), {"edit_id": "u1"}, 200)
    sent(rest, address(found, "edits/e2/undo"), {"edit_id": "u1"}, 409, "edit_id_taken")
    remove = {"op": "remove_task", "parameters": {"task_id": "extra"}}
    sent(rest, address(found, "edits"), {"operations": [remove], "edit_id": "u1"}, 409, "edit_id_taken")
    assert "other" in states(found)


def test_another_edit_under_the_same_id_is_refused_over_mcp(operator, found):
    program = Program(make_token(operator, "read", "edit"))
    said = {"constellation_id": found.pk, "edit_id": "e1", "tool": "noop"}
    assert program("add_task", **said, task_id="extra")["changed"] is True
    assert program("add_task", **said, task_id="extra")["message"] == "edit e1 had been made before; nothing was changed now"
    assert program("add_task", **said, task_id="other").startswith("edit e1 was another one (by token:")


# Retries


@pytest.fixture
def failing(found) -> Constellation:
    """Two of its tasks have FAILED, and it goes on."""
    bring(found, a="FAILED", b="COMPLETED", c="FAILED")
    return found


@pytest.mark.parametrize("body", [{"tasks": ["a"]}, {}], ids=["one", "every one that has failed"])
def test_the_same_retry_again_is_the_same_while_the_constellation_is_open(rest, failing, body):
    first = sent(rest, address(failing, "retry"), {**body, "client_id": "r1"}, 200)
    assert (first["changed"], first["tasks"]) == (True, ["a"] if body else ["a", "c"])
    bring(failing, a="FAILED", c="FAILED")
    assert sent(rest, address(failing, "retry"), {**body, "client_id": "r1"}, 200) == {**first, "changed": False}
    assert states(failing)["a"] == "FAILED"
    assert list(verify_database()) == []


def test_the_same_retry_again_is_the_same_after_the_end(rest, failing):
    first = sent(rest, address(failing, "retry"), {"client_id": "r1"}, 200)
    bring(failing, "PARTIALLY_FAILED", a="FAILED", c="COMPLETED")
    assert sent(rest, address(failing, "retry"), {"client_id": "r1"}, 200) == {**first, "changed": False}
    assert not InboxItem.objects.filter(kind="interaction", payload__has_key="reopen").exists()


def test_another_retry_under_the_same_id_is_refused(rest, failing):
    sent(rest, address(failing, "retry"), {"tasks": ["a"], "client_id": "r1"}, 200)
    bring(failing, a="FAILED")
    for other in ({"tasks": ["c"]}, {"tasks": ["a", "c"]}, {}):
        sent(rest, address(failing, "retry"), {**other, "client_id": "r1"}, 409, "conflict")
    refused = sent(rest, address(failing, "commands"), {"kind": "cancel", "reason": "x", "client_id": "r1"}, 409, "conflict")
    assert refused["detail"] == "client_id r1 was used for a request of kind retry"


def test_a_retry_is_on_record_as_done_and_a_runner_has_nothing_to_do_for_it(rest, failing):
    sent(rest, address(failing, "retry"), {"client_id": "r1", "reason": "disk was full"}, 200)
    row = InboxItem.objects.get(client_id="r1")
    assert (row.kind, row.state, row.result) == ("retry", "done", {"tasks": ["a", "c"]})


def test_a_task_that_is_named_twice_is_retried_once(rest, failing):
    assert sent(rest, address(failing, "retry"), {"tasks": ["a", "a"]}, 200)["tasks"] == ["a"]
    bring(failing, "PARTIALLY_FAILED", a="FAILED")
    assert sent(rest, address(failing, "retry"), {"tasks": ["a", "a"]}, 202)["tasks"] == ["a"]


# Requests to a session


@pytest.fixture
def ended(failing) -> Constellation:
    bring(failing, "PARTIALLY_FAILED")
    return failing


def test_another_reopening_under_the_same_id_is_refused(rest, ended):
    body = {"operations": [ADD], "client_id": "o1"}
    first = sent(rest, address(ended, "reopen"), body, 202)
    assert sent(rest, address(ended, "reopen"), body, 200) == {**first, "created": False}
    refused = sent(rest, address(ended, "reopen"), {"operations": [OTHER], "client_id": "o1"}, 409, "conflict")
    by = InboxItem.objects.get(client_id="o1").by
    assert refused["detail"] == f"client_id o1 was used for another request, by {by}; give this one an id of its own"
    sent(rest, address(ended, "retry"), {"tasks": ["a"], "client_id": "o1"}, 409, "conflict")


def test_a_retry_that_reopens_is_the_same_again_also_when_others_have_failed_meanwhile(rest, ended):
    first = sent(rest, address(ended, "retry"), {"client_id": "r1"}, 202)
    bring(ended, "PARTIALLY_FAILED", b="FAILED")
    assert sent(rest, address(ended, "retry"), {"client_id": "r1"}, 200) == {**first, "changed": False}


@pytest.mark.parametrize("verb", ["interactions", "import"])
def test_another_plan_under_the_same_id_is_refused(rest, found, verb):
    key = "plan" if verb == "interactions" else "document"
    where, one, other = f"/api/sessions/{found.session_id}/{verb}/", *(f"tasks: [{{task_id: {n}, tool: noop}}]" for n in "xy")
    first = sent(rest, where, {key: one, "client_id": "i1"}, 202)
    assert sent(rest, where, {key: one, "client_id": "i1"}, 202) | {"seq": 0} == {**first, "created": False, "seq": 0}
    sent(rest, where, {key: other, "client_id": "i1"}, 409, "conflict")


def test_a_request_of_another_author_is_another_one(rest, found):
    where, plan = f"/api/sessions/{found.session_id}/interactions/", "tasks: [{task_id: x, tool: noop}]"
    sent(rest, where, {"plan": plan, "client_id": "i1"}, 202)
    sent(Rest(person("boss", "admin")), where, {"plan": plan, "client_id": "i1"}, 409, "conflict")


# Forks


def test_the_same_fork_again_is_the_same_fork(rest, found):
    for body in ({"client_id": "f1"}, {"client_id": "f2", "operations": [ADD], "title": "What if"}):
        first = sent(rest, address(found, "fork"), body, 201)
        sent(rest, address(found, "edits"), {"operations": [{"add_task": noop(body["client_id"])}]}, 201)  # the head moves on
        assert sent(rest, address(found, "fork"), body, 200) == {**first, "created": False}
    assert Session.objects.count() == 3


def test_another_fork_under_the_same_id_is_refused(rest, found):
    sent(rest, address(found, "fork"), {"client_id": "f1"}, 201)
    for more in ({"operations": [ADD]}, {"title": "What if"}, {"seq": 5}):
        sent(rest, address(found, "fork"), {"client_id": "f1", **more}, 409, "conflict")
    assert Session.objects.count() == 2


def test_a_fork_of_another_constellation_or_for_somebody_else_has_ids_of_its_own(rest, operator, found):
    other = plant(sessions.session_create(operator, "other", by="system"), noop("a"))
    boss = Rest(person("boss", "admin"))
    answers = [sent(*asked, {"client_id": "f1"}, 201) for asked in ((rest, address(found, "fork")),
               (rest, address(other, "fork")), (boss, address(found, "fork")))]  # fmt: skip
    assert len({answer["session"] for answer in answers}) == 3


def test_of_two_alike_at_once_one_makes_the_fork(operator, found):
    made, together = [], threading.Barrier(2)

    def fork() -> None:
        together.wait()
        made.append(constellation_fork(found.pk, operator, by="user:1", client_id="f1"))
        connections.close_all()

    threads = [threading.Thread(target=fork) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created for _, _, created in made) == [False, True]
    assert len({session.pk for session, _, _ in made}) == 1


def test_operations_of_a_fork_need_the_scope_edit(operator, found):
    rest = Rest(token=make_token(operator, "read", "operate")[1])
    refused = sent(rest, address(found, "fork"), {"operations": [ADD]}, 403, "permission_denied")
    assert refused["detail"] == "the token lacks the scope edit"
    sent(rest, address(found, "fork"), {}, 201)
