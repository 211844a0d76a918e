"""The standard header `Idempotency-Key`, in the place of an id in the body; and a session that is made twice with it."""

import threading

import pytest
from django.db import connections

from agents.models import InboxItem, Session
from tests.agents.conftest import PLAN, Rest

OTHER = "tasks: [{task_id: another, tool: noop}]"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("key", ["night-2", '"night-2"'])
def test_the_header_is_the_id_of_the_request(rest, session, key):
    where = f"/api/sessions/{session.pk}/interactions/"
    first = rest.post(where, {"plan": PLAN}, **{"Idempotency-Key": key}).json()
    again = rest.post(where, {"plan": PLAN}, **{"Idempotency-Key": "night-2"}).json()
    assert (first["client_id"], first["created"], again["created"]) == ("night-2", True, False)
    assert again["interaction"] == first["interaction"]
    assert InboxItem.objects.count() == 1


def test_a_command_that_was_taken_before_does_nothing_twice(rest, session):
    rest.post(f"/api/sessions/{session.pk}/interactions/", {"plan": PLAN})
    where, key = f"/api/sessions/{session.pk}/commands/", {"Idempotency-Key": "stop"}
    first = rest.post(where, {"kind": "cancel", "reason": "enough"}, **key)
    again = rest.post(where, {"kind": "cancel", "reason": "enough"}, **key)
    assert (first.status_code, again.status_code) == (202, 200)
    assert (first.json()["command"], again.json()["changed"]) == (again.json()["command"], False)
    other = rest.post(where, {"kind": "cancel", "reason": "another"}, **key)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


def test_two_ids_of_one_request_are_refused(rest, session):
    body = {"plan": PLAN, "client_id": "one"}
    answer = rest.post(f"/api/sessions/{session.pk}/interactions/", body, **{"Idempotency-Key": "two"})
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, "client_id")
    assert not InboxItem.objects.exists()


def test_a_header_that_is_no_id_is_refused(rest, session):
    answer = rest.post(f"/api/sessions/{session.pk}/interactions/", {"plan": PLAN}, **{"Idempotency-Key": "with space"})
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, "client_id")


def test_a_session_is_begun_once(rest):
    key = {"Idempotency-Key": "first"}
    first = rest.post("/api/sessions/", {"title": "digits", "plan": PLAN}, **key)
    again = rest.post("/api/sessions/", {"title": "digits", "plan": PLAN, "client_id": "first"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert [again.json()[name] for name in ("id", "interaction")] == [first.json()[name] for name in ("id", "interaction")]
    assert Session.objects.count() == 1
    other = rest.post("/api/sessions/", {"plan": OTHER}, **key)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert Session.objects.count() == 1


def test_the_same_id_of_somebody_else_begins_a_session_of_theirs(rest, admin_user):
    key = {"Idempotency-Key": "first"}
    made = [one.post("/api/sessions/", {"plan": PLAN}, **key) for one in (rest, Rest(admin_user))]
    assert [answer.status_code for answer in made] == [201, 201]
    assert Session.objects.count() == 2


def test_a_session_that_two_begin_at_once_under_one_id_is_one(operator):
    gate, answers = threading.Barrier(2), []

    def begin() -> None:
        rest = Rest(operator)
        gate.wait()
        answers.append(rest.post("/api/sessions/", {"plan": PLAN}, **{"Idempotency-Key": "both"}))
        connections.close_all()

    both = [threading.Thread(target=begin) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(answer.status_code for answer in answers) == [200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Session.objects.count() == 1


def test_where_a_request_has_no_id_the_header_means_nothing(rest, session):
    key = {"Idempotency-Key": "anything at all"}
    answer = rest.client.patch(f"/api/sessions/{session.pk}/", '{"title": "new"}', content_type="application/json", headers=key)
    assert (answer.status_code, answer.json()["title"]) == (200, "new")


def test_the_description_names_the_header_where_it_counts(rest):
    paths = rest.get("/api/schema/", format="json").json()["paths"]

    def headers(path: str) -> list[str]:
        return [each["name"] for each in paths[path]["post"].get("parameters", []) if each["in"] == "header"]

    assert headers("/api/sessions/") == headers("/api/sessions/{id}/commands/") == ["Idempotency-Key"]
    assert "Idempotency-Key" in headers("/api/constellations/{id}/edits/")
    assert headers("/api/tokens/") == []
