"""Budgets, costs and calls of models over REST."""

from __future__ import annotations

import pytest

from agents.minds.budgets.ledger import Settlement, Used
from agents.models import Agent, Prompt
from tests.agents.conftest import Rest, add_agents, add_model_calls, make_token
from tests.agents.minds.budgets.test_ledger import ask, demand

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/api/budgets/"


@pytest.fixture
def as_admin(admin_user):
    return Rest(admin_user)


@pytest.fixture
def used(session):
    """A call of the session that used 30 tokens in and 6 out for 120 millionths, and one that was lost."""
    told, lost = ask(demand(session.pk, 100, 500, task=9), demand(session.pk, 100, 500))
    ask(settlements=[Settlement(told.reservation, Used(30, 10, 6, 120)), Settlement(lost.reservation, None)])


def test_an_admin_makes_changes_and_deletes_a_budget(as_admin, operator, session, used, verified):
    made = as_admin.post(ADDRESS, {"scope": "user", "subject": operator.pk, "tokens": 1000, "then": "ask"})
    assert made.status_code == 201
    row = made.json()
    assert row["used"] == {"tokens": 136, "money": 0.00062, "raised_tokens": 0, "raised_money": 0.0}
    changed = as_admin.patch(f"{ADDRESS}{row['id']}/", {"money": 2.5}).json()
    assert (changed["tokens"], changed["money"]) == (1000, 2.5)
    assert as_admin.get(ADDRESS).json()["results"] == [changed]
    assert as_admin.delete(f"{ADDRESS}{row['id']}/").status_code == 204
    assert as_admin.get(f"{ADDRESS}{row['id']}/").status_code == 404


def test_people_see_the_budgets_that_are_for_them_and_change_none(as_admin, viewer, operator, session):
    for said in ({"scope": "user"}, {"scope": "user", "subject": operator.pk}, {"scope": "session", "subject": session.pk}):
        made = as_admin.post(ADDRESS, {**said, "tokens": 5}).json()
    assert [row["subject"] for row in Rest(viewer).get(ADDRESS).json()["results"]] == [None]
    assert len(Rest(operator).get(ADDRESS).json()["results"]) == 3
    assert Rest(operator).patch(f"{ADDRESS}{made['id']}/", {"tokens": 9}).status_code == 403


@pytest.mark.parametrize(("body", "field"), [
    ({"scope": "user"}, "tokens"), ({"scope": "all", "tokens": 1}, "scope"), ({"scope": "user", "tokens": "9"}, "tokens"),
    ({"scope": "user", "tokens": 1, "owned": True}, "owned"),
])  # fmt: skip
def test_what_is_wrong_is_named(as_admin, body, field):
    answer = as_admin.post(ADDRESS, body)
    assert answer.status_code == 400
    assert field in str(answer.json())


def test_an_owner_bounds_a_session_and_nobody_elses(rest, session, viewer, operator, verified):
    address = f"/api/sessions/{session.pk}/budget/"

    def put(client, body):
        return client.client.put(address, body, content_type="application/json", headers=client.headers)

    made = put(rest, {"tokens": 1000, "then": "ask"})
    assert (made.status_code, made.json()["owned"], made.json()["subject"]) == (200, True, session.pk)
    assert put(Rest(viewer), {"tokens": 1}).status_code == 403
    own = Rest(token=make_token(operator, "operate", session_id=session.pk)[1])
    assert put(own, {"tokens": 10**9}).status_code == 403
    assert own.delete(address).status_code == 403
    assert rest.delete(address).status_code == 204
    assert rest.get(ADDRESS).json()["results"] == []


def test_a_session_says_what_it_cost(rest, session, used):
    assert rest.get(f"/api/sessions/{session.pk}/").json()["cost"] == {
        "tokens_in": 30, "tokens_out": 6, "cached": 10, "cost": 0.00012, "unpriced_tokens": 0, "unknown_calls": 1,
        "unknown_tokens": 100, "open_tokens": 0,
    }  # fmt: skip


def test_an_agent_says_what_its_calls_cost(rest, session):
    agent = Agent.objects.get(pk=add_agents(session)[0])
    priced = {"input_tokens": 30, "cached_tokens": 10, "output_tokens": 6, "cost": 0.5}
    lost = {"outcome": "lost", "reserved_tokens": 70}
    add_model_calls(agent, session, priced, {**priced, "cost": None}, lost, {"ended_at": None, "reserved_tokens": 9})
    assert rest.get(f"/api/agents/{agent.pk}/").json()["cost"] == {
        "tokens_in": 60, "tokens_out": 12, "cached": 20, "cost": 0.5, "unpriced_tokens": 36, "unknown_calls": 1,
        "unknown_tokens": 70, "open_tokens": 9,
    }  # fmt: skip


def test_calls_are_listed_and_one_is_shown_with_its_prompt(rest, session, viewer):
    agent = Agent.objects.get(pk=add_agents(session)[0])
    Prompt.objects.create(digest="d" * 64, version="creation/1", text="You plan.")
    add_model_calls(agent, session, {"prompt_digest": "d" * 64, "thought": "first"}, {"thought": "second"})
    page = rest.get(f"/api/sessions/{session.pk}/model_calls/", limit=1).json()
    assert [row["thought"] for row in page["results"]] == ["second"]
    (first,) = rest.get(f"/api/sessions/{session.pk}/model_calls/", cursor=page["next"]).json()["results"]
    shown = rest.get(f"/api/model_calls/{first['id']}/").json()
    assert shown == {**first, "prompt": "You plan."}
    assert Rest(viewer).get(f"/api/model_calls/{first['id']}/").status_code == 404
    assert Rest(viewer).get(f"/api/sessions/{session.pk}/model_calls/").status_code == 404
