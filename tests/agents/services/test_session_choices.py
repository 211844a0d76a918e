"""What is chosen about models for a session: with its making, later, and over REST."""

from __future__ import annotations

import pytest

from agents.errors import PayloadRejected
from agents.models import Event, InboxItem, Session
from agents.services.model_profiles import model_profile_create
from agents.services.sessions import check_payload, session_change, session_create
from tests.agents.conftest import Rest

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


@pytest.fixture(autouse=True)
def wise(transactional_db):
    return model_profile_create("wise", provider="anthropic", model="m", by="system")


def test_a_session_has_what_was_chosen_when_it_was_made(operator):
    made = session_create(operator, by="system", models={"creation": "wise"}, start="review")
    assert (made.model_profiles, made.start) == ({"creation": "wise"}, "review")


def test_a_change_is_an_event_and_what_is_so_already_is_none(operator):
    made = session_create(operator, by="system")
    for _ in range(2):
        changed = session_change(made.pk, by="user:1", models={"editing": "wise"}, start="review", title="t")
        assert (changed.model_profiles, changed.start, changed.title) == ({"editing": "wise"}, "review", "t")
    assert Event.objects.filter(stream=made.pk, type="session_changed").count() == 1
    assert session_change(made.pk, by="user:1", models={}).model_profiles == {}


@pytest.mark.parametrize(
    ("said", "key", "message"),
    [
        ({"models": {"editing": "clever"}}, "models.editing", "there is no model profile clever; there are wise"),
        (
            {"models": {"cooking": "wise"}},
            "models.cooking",
            "there is no such purpose; there are creation, editing, device_agent",
        ),
        ({"models": "wise"}, "models", "must be an object with names of model profiles by purpose"),
        ({"models": {"editing": 7}}, "models.editing", "must be the name of a model profile"),
        ({"start": "now"}, "start", "must be review, or be left out"),
        ({"start": ["review"]}, "start", "must be review, or be left out"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name_wherever_it_is_said(operator, said, key, message):
    made = session_create(operator, by="system")
    for ask in (
        lambda: session_create(operator, by="system", **said),
        lambda: session_change(made.pk, by="system", **said),
        lambda: check_payload({"plan": "tasks: [{task_id: a, tool: noop}]", **said}),
    ):
        with pytest.raises(PayloadRejected) as refused:
            ask()
        assert refused.value.problems[0]["key"] == key
        assert refused.value.problems[0]["message"].startswith(message)


def test_rest_chooses_for_a_session_and_for_one_request(operator, device):
    rest = Rest(operator)
    answer = rest.post("/api/sessions/", {"models": {"creation": "wise"}, "start": "review"})
    assert (answer.status_code, answer.json()["models"], answer.json()["start"]) == (201, {"creation": "wise"}, "review")
    address = f"/api/sessions/{answer.json()['id']}/"
    changed = rest.patch(address, {"start": "", "models": {}})
    assert (changed.status_code, changed.json()["models"], changed.json()["start"]) == (200, {}, "")
    refused = rest.patch(address, {"models": {"creation": "clever"}})
    assert refused.status_code == 400
    assert "there is no model profile clever" in refused.json()["detail"]
    body = {"plan": "tasks: [{task_id: a, tool: noop}]", "models": {"editing": "wise"}, "start": "review"}
    assert rest.post(f"{address}interactions/", body).status_code == 202
    assert {key: InboxItem.objects.get().payload[key] for key in ("models", "start")} == {
        "models": {"editing": "wise"},
        "start": "review",
    }
    assert Session.objects.get().model_profiles == {}


def test_a_request_has_to_ask_for_something_beside_its_choices(operator):
    made = session_create(operator, by="system")
    assert Rest(operator).post(f"/api/sessions/{made.pk}/interactions/", {"start": "review"}).status_code == 400
