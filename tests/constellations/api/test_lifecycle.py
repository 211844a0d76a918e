"""REST of commands to constellations: who may, what is answered, what is refused."""

import pytest

from agents.models import InboxItem, Session
from agents.services import sessions
from constellations.models import Constellation
from tests.agents.conftest import Rest, make_token
from tests.conftest import person
from tests.constellations.planting import plant
from tests.constellations.runs.test_run import command, noop, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


@pytest.fixture
def ended(engine, device, tmp_path) -> Constellation:
    """One task FAILED the first time, one was skipped because of it, one is COMPLETED."""
    script = f"test -e {tmp_path}/x || {{ touch {tmp_path}/x; exit 3; }}"
    return engine.carry_out({"name": "n", "tasks": [command("a", "sh", "-c", script), noop("b", after=["a"]), noop("c")]})


def address(found: Constellation, verb: str) -> str:
    return f"/api/constellations/{found.pk}/{verb}/"


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


UNCHANGED = {"version": 1, "newest": 1, "between": [], "between_total": 0}
"""Where the author of a retry stands that is no edit."""


def test_a_retry_answers_with_the_tasks_and_the_interaction(engine, ended, rest):
    answer = rest.post(address(ended, "retry"), {"reason": "again"})
    assert answer.status_code == 202
    assert answer.json() == {
        "tasks": ["a"],
        "changed": True,
        "interaction": InboxItem.objects.latest("id").pk,
        "edit": None,
        **UNCHANGED,
    }
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, set(states(ended).values())) == ("COMPLETED", {"COMPLETED"})
    answer = rest.post(address(ended, "retry"), {})
    assert (answer.status_code, answer.json()) == (
        200,
        {"tasks": [], "changed": False, "interaction": None, "edit": None, **UNCHANGED},
    )


def test_one_task_is_retried_at_its_own_address(engine, ended, rest):
    task = ended.tasks.get(task_id="a")
    assert rest.post(f"/api/tasks/{task.pk}/retry/", {}).status_code == 202
    engine.run()
    task.refresh_from_db()
    assert task.state == "COMPLETED"
    answer = rest.post(f"/api/tasks/{task.pk}/retry/", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_retried")
    assert answer.json()["detail"] == "a is COMPLETED; only what has FAILED or was cancelled begins again"


def test_the_same_client_id_is_the_same_retry(engine, ended, rest):
    body = {"tasks": ["a"], "client_id": "r1"}
    first, again = (rest.post(address(ended, "retry"), body) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["interaction"] == again.json()["interaction"]
    engine.run()
    assert rest.post(address(ended, "retry"), body).json() == {**first.json(), "changed": False}


def test_pause_and_resume_are_answered_at_once(operator, device, rest, engine):
    """Also while no runner lives; a cancel waits for one."""
    found = plant(sessions.session_create(operator, by="system"), noop("a"))
    answer = rest.post(address(found, "commands"), {"kind": "pause", "reason": "lunch"})
    assert (answer.status_code, answer.json()) == (200, {"state": "PAUSED", "changed": True, "command": None})
    assert rest.post(address(found, "commands"), {"kind": "pause"}).json()["changed"] is False
    assert rest.post(address(found, "commands"), {"kind": "resume"}).json()["state"] == "EXECUTING"
    answer = rest.post(address(found, "commands"), {"kind": "cancel", "reason": "enough", "client_id": "c"})
    assert (answer.status_code, answer.json()["command"]) == (202, InboxItem.objects.latest("id").pk)
    assert rest.post(address(found, "commands"), {"kind": "cancel", "reason": "enough", "client_id": "c"}).status_code == 200


def test_a_cancel_of_what_has_ended_changes_nothing(ended, rest):
    answer = rest.post(address(ended, "commands"), {"kind": "cancel", "reason": "enough"})
    assert (answer.status_code, answer.json()) == (200, {"state": "PARTIALLY_FAILED", "changed": False, "command": None})


def test_reopening_and_forking_say_where_it_goes_on(engine, ended, rest):
    operations = [{"add_task": noop("d", after=["c"])}]
    answer = rest.post(address(ended, "reopen"), {"operations": operations, "reason": "more"})
    assert (answer.status_code, answer.json()["session"]) == (202, ended.session_id)
    engine.run()
    ended.refresh_from_db()
    assert states(ended)["d"] == "COMPLETED"
    answer = rest.post(address(ended, "fork"), {"retry": ["a"], "title": "What if"})
    assert answer.status_code == 201
    assert Session.objects.get(pk=answer.json()["session"]).title == "What if"
    engine.run()
    other = Constellation.objects.get(session=answer.json()["session"])
    assert (other.state, other.forked_from) == ("COMPLETED", ended)
    assert rest.get(f"/api/constellations/{other.pk}/").json()["forked_from"] == ended.pk


REFUSED = [
    ("commands", {"kind": "cancel"}, 400, "reason", "a cancel needs a reason"),
    ("commands", {"kind": "explode"}, 400, "kind", '"explode" is not a valid choice.'),
    (
        "commands", {"kind": "pause", "client_id": "x"}, 400, "client_id",
        "a pause or a resume takes none: the same again changes nothing",
    ),
    ("retry", {"task": ["a"]}, 400, "task", "unknown key; known are reason, client_id, operations, based_on, tasks"),
    ("fork", {"seq": 0}, 400, "seq", "Ensure this value is greater than or equal to 1."),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "body", "status", "key", "message"), REFUSED)
def test_what_makes_no_sense_is_named(ended, rest, verb, body, status, key, message):
    answer = rest.post(address(ended, verb), body)
    assert answer.status_code == status
    assert {"key": key, "message": message} in answer.json()["problems"]


CONFLICTS = [
    ("commands", {"kind": "pause"}, "constellation_ended", "n has ended (PARTIALLY_FAILED)"),
    ("commands", {"kind": "restart"}, "constellation_ended", "n has ended (PARTIALLY_FAILED)"),
    ("reopen", {}, "not_reopened", "n: nothing to do: name tasks to retry, or give operations that change something"),
    ("reopen", {"retry": ["c"]}, "not_retried", "c is COMPLETED; only what has FAILED or was cancelled begins again"),
]


@pytest.mark.parametrize(("verb", "body", "code", "message"), CONFLICTS)
def test_what_cannot_be_any_more_is_a_conflict(ended, rest, verb, body, code, message):
    answer = rest.post(address(ended, verb), body)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (409, code, message)


@pytest.mark.parametrize("verb", ["commands", "retry", "reopen", "fork"])
def test_a_constellation_of_somebody_else_is_not_there(ended, user, verb):
    body = {"kind": "pause"} if verb == "commands" else {}
    assert Rest(person("other", "operator")).post(address(ended, verb), body).status_code == 404
    assert Rest(user).post(address(ended, verb), body).status_code == 403


def test_operations_need_the_scope_edit_as_every_edit_does(ended, operator):
    rest = Rest(token=make_token(operator, "read", "operate")[1])
    answer = rest.post(address(ended, "reopen"), {"operations": [{"add_task": noop("d")}]})
    assert (answer.status_code, answer.json()["detail"]) == (403, "the token lacks the scope edit")
    assert rest.post(address(ended, "retry"), {}).status_code == 202
