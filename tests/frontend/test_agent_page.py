"""The page of an agent: who sees it, what it says, at what price."""

import re
from datetime import timedelta
from itertools import pairwise

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Output
from agents.streams.door import door
from constellations.models import Attempt
from frontend.views.agents import EVIDENCE_SHOWN, state_spans
from tests.frontend.working_rows import VERDICT, Working

pytestmark = pytest.mark.one_database


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user, agent: int) -> str:
    return signed_in(user).get(f"/agents/{agent}/").content.decode()


def part(html: str, name: str) -> str:
    """One section, without its markup."""
    section = re.search(rf'<section class="card" data-part="{name}".*?</section>', html, re.S)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", section).split())


@pytest.fixture
def working(operator, device) -> Working:
    return Working(operator, device)


@pytest.fixture
def worked(working) -> Working:
    working.add_work()
    return working


def end(working: Working, state: str = "FINISH") -> None:
    with door(working.session.pk, "system") as opened:
        opened.turn.record("ended", set={"agent": {str(working.agent): {"state": state, "entered_at": opened.turn.at}}})


def test_the_page_needs_a_login(client, working):
    answer = client.get(f"/agents/{working.agent}/")
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next=/agents/{working.agent}/")


def test_the_page_is_only_for_reading(working, operator):
    assert signed_in(operator).post(f"/agents/{working.agent}/").status_code == 405


def test_the_agent_of_another_is_not_found(working, viewer, admin_user):
    assert signed_in(viewer).get(f"/agents/{working.agent}/").status_code == 404
    assert signed_in(admin_user).get(f"/agents/{working.agent}/").status_code == 200


def test_an_agent_that_does_not_exist_is_not_found(operator):
    assert signed_in(operator).get("/agents/999/").status_code == 404


def test_the_page_says_who_the_agent_is_and_where_it_stands(working, operator):
    html = page(operator, working.agent)
    said = part(html, "state")
    assert said.startswith("Train the model CONTINUE Device agent on laptop")
    assert "Train the model , attempt 1" in said
    assert 'href="/machines/device_agent/"' in html
    assert f'href="/sessions/{working.session.pk}/#task-{working.task}"' in html


def test_host_and_app_agent_lead_to_each_other(working, operator):
    assert f'href="/agents/{working.child}/"' in page(operator, working.agent)
    html = page(operator, working.child)
    assert f'href="/agents/{working.agent}/"' in html
    assert "Works for Train the model" in part(html, "state")
    assert "attempt 1" in part(html, "state")


def test_an_app_agents_page_says_what_it_is_held_to(working, operator):
    app = {
        "name": "shop", "visual": False, "process": {"name": "chromium", "pid": 7123}, "tools": ["browser.read"],
        "prompts": ["main/3"],
    }  # fmt: skip
    with door(working.session.pk, "system") as opened:
        opened.turn.record("app_process", set={"agent": {str(working.child): {"app": app}}})
    said = part(page(operator, working.child), "state")
    assert "App shop, chromium process 7123, without pictures, only browser.read, prompts main/3" in said


def test_an_agent_without_a_loop_or_work_says_so(working, operator):
    html = page(operator, working.child)
    assert "It has no tool loop." in part(html, "loop")
    assert "Its work has no phases." in part(html, "phases")
    assert "It has not acted yet." in part(html, "evidence")
    assert "It has asked nobody for anything." in part(html, "approvals")
    assert "Nothing is noted there: its host keeps it." in part(html, "blackboard")
    assert "It has not moved yet." in part(html, "transitions")


def test_the_time_in_each_state_is_told_in_seconds(working, operator):
    html = page(operator, working.agent)
    assert "PENDING 12.5 s" in part(html, "times")
    assert "StreamingResponse 6.0 s" in part(html, "loop")
    assert "ErrorRecovery 3.0 s" in part(html, "loop")


def test_the_present_state_counts_until_now_and_the_last_one_not_at_all():
    entered = timezone.now() - timedelta(seconds=30)
    (still,) = state_spans("device_agent", "CONTINUE", entered, {})
    assert still.seconds == pytest.approx(30, abs=5)
    assert [(span.state, span.seconds) for span in state_spans("device_agent", "FINISH", entered, {"CONTINUE": 4.0})] == [
        ("CONTINUE", 4.0)
    ]


def test_the_bar_of_times_is_filled_without_gaps():
    found = state_spans("device_agent", "FINISH", timezone.now(), {"CONTINUE": 1000.0, "PENDING": 0.0, "CONFIRM": 1.0})
    assert found[0].left == 0
    for before, after in pairwise(found):
        assert after.left == pytest.approx(before.left + before.width, abs=0.01)
    assert found[-1].left + found[-1].width == pytest.approx(100, abs=0.01)
    assert min(span.width for span in found) > 0.3


def test_phases_are_told_with_what_came_of_them(worked, operator):
    said = part(page(operator, worked.agent), "phases")
    assert "1 of 2 Mend the tests with issues" in said
    assert "90 s src/digits/train.py , README.md pytest -q make lint took more than twice as long as expected" in said
    assert "2 of 2 Publish under way" in said


def test_evidence_is_told_the_latest_first(worked, operator):
    html = page(operator, worked.agent)
    assert re.findall(r'data-evidence="(\d+)"', html) == ["5", "4", "3", "2", "1"]
    said = part(html, "evidence")
    assert "make test missing" in said
    assert "No module named" in said


def test_a_verdict_stands_out_with_its_sentence_and_a_way_on(worked, operator):
    html = page(operator, worked.agent)
    said = part(html, "evidence")
    assert "Stuck: same error since row 2 ," in said
    assert "make test failed 3 times" in said
    assert "It was told so, and goes on. Rows 2 , 3 , 4 ; rule same_error" in said
    assert [f'<a href="#row-{n}">{n}</a>' in html and f'<tr id="row-{n}"' in html for n in (2, 3, 4)] == [True] * 3
    assert f'data-go-on="{VERDICT["identity"]}" data-agent="{worked.agent}" data-session="{worked.session.pk}"' in html


def test_who_may_not_operate_cannot_send_an_agent_on(viewer, device):
    worked = Working(viewer, device)
    worked.add_work()
    html = page(viewer, worked.agent)
    assert "Stuck: same error" in html
    assert "data-go-on" not in html


def test_a_verdict_offers_other_ways_where_it_is_read(worked, operator):
    said = part(page(operator, worked.agent), "evidence")
    assert "Another way" in said
    assert "Let the task begin again on another device." in said
    assert f'/sessions/{worked.session.pk}/#task-{worked.task}">The task</a>' in page(operator, worked.agent)
    assert "change it in the admin" not in said
    operator.is_staff = True
    operator.save()
    assert "change it in the admin" in part(page(operator, worked.agent), "evidence")


def test_a_step_that_was_given_up_is_not_called_stuck(working, operator):
    verdict = {
        "rule": "tries_used_up", "identity": "tries_used_up:1", "rows": [1, 2], "action": "fail", "first": True,
        "sentence": "command “make” was tried 2 of 2 times; the last error: “exit code 2”",
    }  # fmt: skip
    with door(working.session.pk, "system") as opened:
        shared = {"loop_id": working.loop, "kind": "tool", "tool": "command", "success": False, "started_at": opened.turn.at}
        rows = [{"id": opened.take(), "number": n, "ordered": n > 1, "ended_at": opened.turn.at, **shared} for n in (1, 2)]
        rows[1]["verdict"] = verdict
        opened.turn.record("evidence_began", add={"evidence": rows})
    html = page(operator, working.agent)
    said = part(html, "evidence")
    assert "Given up: all tries are used up since row 1" in said
    assert "was tried 2 of 2 times; the last error: “exit code 2” Its task failed." in said
    assert said.count("tried again") == 1
    assert "data-go-on" not in html


def test_an_agent_that_has_ended_cannot_be_sent_on(worked, operator):
    end(worked, "FAIL")
    html = page(operator, worked.agent)
    assert "data-go-on" not in html
    assert 'data-lives="no"' in html
    assert "it has ended" in part(html, "state")


def test_a_loop_that_was_accepted_is_not_offered_again(worked, operator):
    with door(worked.session.pk, "system") as opened:
        opened.turn.record("identity_accepted", set={"task": {str(worked.task): {"accepted": [VERDICT["identity"]]}}})
    html = page(operator, worked.agent)
    assert "Somebody said to go on anyway." in html
    assert "data-go-on" not in html


def test_evidence_shown_is_bounded(working, operator):
    with door(working.session.pk, "system") as opened:
        shared = {"loop_id": working.loop, "kind": "tool", "tool": "command", "started_at": opened.turn.at}
        rows = [{"id": opened.take(), "number": number, **shared} for number in range(1, EVIDENCE_SHOWN + 3)]
        opened.turn.record("evidence_began", add={"evidence": rows})
    html = page(operator, working.agent)
    assert html.count("data-evidence=") == EVIDENCE_SHOWN
    assert 'data-evidence="2"' not in html
    assert f'data-evidence="{EVIDENCE_SHOWN + 2}"' in html


def test_what_it_asked_for_is_listed_and_what_waits_leads_to_its_card(worked, operator):
    waits, over = worked.ask("tool", "Push by force"), worked.ask("tool", "Delete the build")
    worked.decide(over, "approved", f"user:{operator.pk}")
    html = page(operator, worked.agent)
    assert f'href="/inbox/#approval-{waits}"' in html
    assert f'href="/inbox/#approval-{over}"' not in html
    assert part(html, "approvals").endswith(f"Push by force tool waiting {shown_time(html, waits)}")
    assert "operator" in part(html, "approvals")


def shown_time(html: str, approval: int) -> str:
    row = html[html.index(f"#approval-{approval}") :]
    return re.search(r"<time[^>]*>([^<]+)</time>", row)[1]


def test_blackboard_and_transitions_are_shown(worked, operator):
    html = page(operator, worked.agent)
    assert "&quot;accuracy&quot;: 0.93" in part(html, "blackboard")
    assert "PENDING received CONTINUE 12.50 s" in part(html, "transitions")


def test_what_agents_wrote_is_text_and_never_markup(working, operator):
    with door(working.session.pk, "system") as opened:
        fields = {"name": "<script>alert(1)</script>", "blackboard": {"<b>": "<img src=x>"}, "reason": "<i>"}
        opened.turn.record("blackboard_changed", set={"agent": {str(working.agent): fields}})
    html = page(operator, working.agent)
    assert re.findall(r"<script>|<b>|<img src=x|<i>", html) == []


def test_the_constellation_agent_has_a_page_too(working, operator):
    planner = Agent.objects.get(session=working.session, machine="constellation_agent")
    assert "Constellation agent" in part(page(operator, planner.pk), "state")


def test_a_page_costs_the_same_queries_however_much_the_agent_did(working, operator, django_assert_num_queries):
    client = signed_in(operator)
    working.add_work()
    working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    # login session, user, groups twice; agent, attempt, times, phases, evidence, since when, approvals, names, children,
    # transitions, what it cost
    with django_assert_num_queries(15):
        client.get(f"/agents/{working.agent}/")
    working.act()
    working.decide(working.ask("tool", "Push"), "approved", f"user:{operator.pk}")
    with django_assert_num_queries(16):  # of a stuck one also whether it has a model
        client.get(f"/agents/{working.agent}/")


def test_the_page_holds_no_inline_script_or_style(worked, operator):
    html = page(operator, worked.agent)
    assert re.findall(r"<script(?![^>]*src=)", html) == []
    assert re.findall(r"\sstyle=|<style|\son[a-z]+=", html) == []


def test_of_a_coding_agent_the_page_has_the_newest_plan_and_its_last_words_as_text(working, operator):
    entries = [{"content": "Read <b>all</b>", "status": "completed"}, {"content": "Mend it", "status": "in_progress"}]
    assert 'data-part="plan"' not in page(operator, working.agent)
    with door(working.session.pk, "system") as opened:
        fields = {"platform": "acp", "plan": entries}
        opened.turn.record("agent_planned", set={"agent": {str(working.agent): fields}})
    attempt = Attempt.objects.get(agent=working.agent)
    Output.objects.create(attempt_id=attempt.pk, offset=0, text="I look at <i>it</i>.")
    html = page(operator, working.agent)
    assert part(html, "plan") == "Plan done Read &lt;b&gt;all&lt;/b&gt; at it Mend it"
    assert part(html, "says") == "What it says I look at &lt;i&gt;it&lt;/i&gt;."
