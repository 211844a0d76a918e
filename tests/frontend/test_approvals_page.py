"""The inbox: who sees what waits and what was decided, and at what price."""

import json
import re

import pytest
from django.test import Client

from frontend.views.approvals import COUNTED, DECIDED_SHOWN
from tests.frontend.working_rows import Working

pytestmark = pytest.mark.one_database


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def inbox(user) -> str:
    return signed_in(user).get("/approvals/").content.decode()


def waiting(user) -> dict:
    return signed_in(user).get("/approvals/count/").json()


def config(html: str) -> dict:
    return json.loads(re.search(r'<script id="config" type="application/json">(.*?)</script>', html, re.S)[1])


@pytest.fixture
def working(operator, device) -> Working:
    return Working(operator, device)


@pytest.mark.parametrize("path", ["/approvals/", "/approvals/count/", "/approvals/places/"])
def test_the_inbox_needs_a_login(client, db, path):
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


@pytest.mark.parametrize("path", ["/approvals/", "/approvals/count/", "/approvals/places/"])
def test_the_inbox_is_only_for_reading(operator, path):
    assert signed_in(operator).post(path).status_code == 405


def test_every_page_of_somebody_logged_in_leads_to_the_inbox(viewer):
    html = signed_in(viewer).get("/").content.decode()
    assert 'href="/approvals/"' in html
    assert "frontend/waiting.js" in html
    login = Client().get("/login/").content.decode()
    assert "/approvals/" not in login
    assert "waiting.js" not in login


def test_what_waits_for_people_is_counted_and_a_call_back_is_not(working, operator):
    assert waiting(operator) == {"waiting": 0, "more": False}
    asked = working.ask_everything()
    assert waiting(operator) == {"waiting": len(asked) - 1, "more": False}


def test_what_was_decided_is_no_longer_counted(working, operator):
    working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    assert waiting(operator)["waiting"] == 0


def test_only_what_the_reader_may_see_is_counted(working, viewer, admin_user):
    working.ask("tool", "Push")
    assert waiting(viewer)["waiting"] == 0
    assert waiting(admin_user)["waiting"] == 1


def test_many_are_counted_up_to_a_bound(working, operator):
    for number in range(COUNTED + 1):
        working.ask("question", f"question {number}")
    assert waiting(operator) == {"waiting": COUNTED, "more": True}


def test_the_count_is_never_taken_from_a_cache(operator):
    assert "no-store" in signed_in(operator).get("/approvals/count/")["Cache-Control"]


def test_a_decision_is_listed_with_who_made_it(working, operator):
    working.decide(working.ask("tool", "Push by force"), "approved", f"user:{operator.pk}")
    html = inbox(operator)
    assert "Push by force" in html
    assert 'data-name="operator" data-word="approved"' in html
    assert "Permission for one call" in html
    assert "Train the model" in html


def test_an_answered_question_counts_as_answered_not_approved(working, operator):
    working.decide(working.ask("question", "Which branch?"), "approved", f"user:{operator.pk}")
    assert 'data-word="answered"' in inbox(operator)


def test_a_decision_by_a_token_names_the_token(working, operator):
    working.decide(working.ask("tool", "Push"), "rejected", "token:abc")
    assert 'data-name="token:abc"' in inbox(operator)


def test_what_expired_was_decided_by_nobody(working, operator):
    working.decide(working.ask("task", "Begin?"), "expired", "")
    html = inbox(operator)
    assert 'data-word="expired"' in html
    assert "<td>nobody</td>" in html


def test_a_proposed_edit_is_among_what_people_decide(working, operator):
    number = working.ask("edit", "claude wants to change digits", {"tool": "edit"}, agent_id=None, subject_id=1)
    assert waiting(operator)["waiting"] == 1
    working.decide(number, "rejected", "user:1")
    html = inbox(operator)
    assert "<td>Proposed edit</td>" in html
    assert "claude wants to change digits" in html


def test_decisions_of_others_are_not_shown(working, viewer, admin_user):
    working.decide(working.ask("tool", "Push by force"), "approved", "system")
    assert "Push by force" not in inbox(viewer)
    assert "Push by force" in inbox(admin_user)


def test_call_backs_are_no_decisions_of_people(working, operator):
    working.decide(working.ask("callback", "the review"), "approved", "token:abc")
    assert "the review" not in inbox(operator)
    assert "Nothing has been decided yet." in inbox(operator)


def test_the_latest_decisions_come_first_and_their_number_is_bounded(working, operator):
    for number in range(DECIDED_SHOWN + 2):
        working.decide(working.ask("tool", f"number {number};"), "approved", "system")
    html = inbox(operator)
    assert html.count("data-decided=") == DECIDED_SHOWN
    assert "number 1;" not in html
    assert html.index(f"number {DECIDED_SHOWN + 1};") < html.index("number 2;")


def test_who_may_not_decide_is_told_why(viewer, operator):
    html = inbox(viewer)
    assert "You can see what waits but not decide: this needs one of the roles admin, operator." in html
    assert config(html)["refusal"]
    assert "You can see what waits" not in inbox(operator)
    assert config(inbox(operator))["refusal"] == ""


def test_a_session_tells_its_cards_who_may_decide_and_who_the_reader_is(working, operator, viewer, device):
    found = config(signed_in(operator).get(f"/sessions/{working.session.pk}/").content.decode())
    assert (found["me"], found["refusal"]) == (f"user:{operator.pk}", "")
    assert found["people"] == {f"user:{operator.pk}": "operator"}
    html = signed_in(viewer).get(f"/sessions/{Working(viewer, device).session.pk}/").content.decode()
    assert "You can see what waits but not decide" in html


def test_titles_are_text_and_never_markup(working, operator):
    working.decide(working.ask("tool", "<script>alert(1)</script>"), "approved", "system")
    assert "<script>alert" not in inbox(operator)


def test_the_inbox_costs_the_same_queries_however_much_was_decided(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    for _ in range(2):
        working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    with django_assert_num_queries(7):  # login session, user, groups for what is visible and the role, rows, names, tasks
        client.get("/approvals/")
    for _ in range(20):
        working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    with django_assert_num_queries(7):
        client.get("/approvals/")


def test_the_count_costs_one_query_beside_the_login(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    working.ask_everything()
    with django_assert_num_queries(4):  # login session, user, groups for what is visible, the count
        client.get("/approvals/count/")


def test_the_inbox_holds_no_inline_script_or_style(working, operator):
    working.decide(working.ask("tool", "Push"), "approved", "system")
    html = inbox(operator)
    assert re.findall(r"<script(?![^>]*(?:src=|application/json))", html) == []
    assert re.findall(r"\sstyle=|<style|\son[a-z]+=", html) == []


def test_where_an_approval_comes_from_is_told_by_its_id(working, operator):
    number, back = working.ask("tool", "Push"), working.ask("callback", "the review")
    places = signed_in(operator).get("/approvals/places/").json()
    assert places[str(number)] == {"session": "Digits, in three phases", "task": "Train the model", "device": "laptop"}
    assert str(back) not in places


def test_an_approval_without_agent_or_task_has_a_place_all_the_same(working, operator):
    number = working.ask("tool", "Push", agent_id=None, subject_id=0)
    found = signed_in(operator).get("/approvals/places/").json()[str(number)]
    assert found == {"session": "Digits, in three phases", "task": "", "device": ""}


def test_places_are_told_of_what_the_reader_may_see_and_what_waits(working, viewer, operator):
    number = working.ask("tool", "Push")
    assert signed_in(viewer).get("/approvals/places/").json() == {}
    working.decide(number, "approved", "system")
    assert signed_in(operator).get("/approvals/places/").json() == {}


def test_places_cost_the_same_queries_however_much_waits(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    working.ask("tool", "Push")
    with django_assert_num_queries(5):  # login session, user, groups for what is visible, rows, tasks
        client.get("/approvals/places/")
    working.ask_everything()
    with django_assert_num_queries(5):
        client.get("/approvals/places/")
