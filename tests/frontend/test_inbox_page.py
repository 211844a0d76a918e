"""The inbox: who sees what waits and what was decided, and at what price."""

import json
import re

import pytest
from django.test import Client

from agents.streams.door import door
from constellations.reads.across.inbox import COUNTED, DECIDED_SHOWN
from tests.frontend.working_rows import Working

pytestmark = pytest.mark.one_database


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def inbox(user) -> str:
    return signed_in(user).get("/inbox/").content.decode()


def waiting(user) -> dict:
    return signed_in(user).get("/inbox/count/").json()


def config(html: str) -> dict:
    return json.loads(re.search(r'<script id="config" type="application/json">(.*?)</script>', html, re.S)[1])


@pytest.fixture
def working(operator, device) -> Working:
    return Working(operator, device)


@pytest.mark.parametrize("path", ["/inbox/", "/inbox/count/"])
def test_the_inbox_needs_a_login(client, db, path):
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


@pytest.mark.parametrize("path", ["/inbox/", "/inbox/count/"])
def test_the_inbox_is_only_for_reading(operator, path):
    assert signed_in(operator).post(path).status_code == 405


def test_every_page_of_somebody_logged_in_leads_to_the_inbox(viewer):
    html = signed_in(viewer).get("/").content.decode()
    assert 'href="/inbox/"' in html
    assert "frontend/waiting.js" in html
    login = Client().get("/login/").content.decode()
    assert "/inbox/" not in login
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
    assert "no-store" in signed_in(operator).get("/inbox/count/")["Cache-Control"]


def decided(user) -> list[dict]:
    return [entry["approval"] for entry in signed_in(user).get("/api/inbox/decided/").json()["entries"]]


def test_a_decision_by_a_token_names_the_token(working, operator):
    working.decide(working.ask("tool", "Push"), "rejected", "token:abc")
    assert [row["decided_by_name"] for row in decided(operator)] == ["token:abc"]


def test_what_expired_was_decided_by_nobody(working, operator):
    working.decide(working.ask("task", "Begin?"), "expired", "")
    assert [(row["state"], row["decided_by_name"]) for row in decided(operator)] == [("expired", "")]


def test_a_proposed_edit_is_among_what_people_decide(working, operator):
    number = working.ask("edit", "claude wants to change digits", {"tool": "edit"}, agent_id=None, subject_id=1)
    assert waiting(operator)["waiting"] == 1
    working.decide(number, "rejected", "user:1")
    assert [(row["kind"], row["title"]) for row in decided(operator)] == [("edit", "claude wants to change digits")]


def test_decisions_of_others_are_not_shown(working, viewer, admin_user):
    working.decide(working.ask("tool", "Push by force"), "approved", "system")
    assert decided(viewer) == []
    assert [row["title"] for row in decided(admin_user)] == ["Push by force"]


def test_call_backs_are_no_decisions_of_people(working, operator):
    working.decide(working.ask("callback", "the review"), "approved", "token:abc")
    assert decided(operator) == []


def test_the_latest_decisions_come_first_and_their_number_is_bounded(working, operator):
    for number in range(DECIDED_SHOWN + 2):
        working.decide(working.ask("tool", f"number {number}"), "approved", "system")
    titles = [row["title"] for row in decided(operator)]
    assert titles == [f"number {number}" for number in range(DECIDED_SHOWN + 1, 1, -1)]


def test_the_old_address_leads_to_the_inbox(operator):
    assert signed_in(operator).get("/approvals/?tab=decided")["Location"] == "/inbox/?tab=decided"


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


def test_the_page_costs_few_queries_and_decisions_the_same_however_many(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    with django_assert_num_queries(3):  # login session, user, groups for the role
        client.get("/inbox/")
    for _ in range(2):
        working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    with django_assert_num_queries(6):  # and rows, tasks, names of who decided
        client.get("/api/inbox/decided/")
    for _ in range(20):
        working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    with django_assert_num_queries(6):
        client.get("/api/inbox/decided/")


def test_the_count_costs_one_query_beside_the_login(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    working.ask_everything()
    with django_assert_num_queries(5):  # login session, user, groups twice, and all that is counted
        client.get("/inbox/count/")


def test_of_sessions_at_work_the_count_reads_the_verdicts_too(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    waiting = working.ask_everything()
    with door(working.session.pk, "system") as opened:
        opened.turn.record("interaction_changed", set={"inbox": {str(working.interaction): {"state": "running"}}})
    with django_assert_num_queries(6):
        found = client.get("/inbox/count/").json()
    assert found == {"waiting": len(waiting) - 1, "more": False}, "all but what is awaited from outside"


def test_the_inbox_holds_no_inline_script_or_style(operator):
    html = inbox(operator)
    assert re.findall(r"<script(?![^>]*(?:src=|application/json))", html) == []
    assert re.findall(r"\sstyle=|<style|\son[a-z]+=", html) == []
