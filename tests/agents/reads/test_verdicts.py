"""What a verdict says to a person: plain words, since when, and ways on."""

import re
from pathlib import Path

import pytest
from django.urls import reverse

from agents import progress
from agents.crews.evidence import TRIES_USED_UP
from agents.models import Agent, Evidence
from agents.reads.verdicts import FOLLOWED, RULES, describe_rule, latest_verdict, set_since
from agents.services.sessions import session_create
from tests.agents.conftest import add_agents, add_evidence, add_loop

VERDICT = {
    "rule": "same_tool_error", "identity": "same_tool_error:1", "rows": [1, 3], "sentence": "It failed.", "action": "steer",
    "first": True,
}  # fmt: skip


@pytest.fixture
def judged(operator):
    """The session of an agent with four rows: the first and the third failed, the third has a verdict."""
    session = session_create(operator, "s", by="system")
    loop = add_loop(add_agents(session)[0], session)
    add_evidence(loop, session, {"success": False}, {}, {"success": False, "verdict": VERDICT}, {})
    return session


def test_every_rule_has_plain_words():
    sources = (path.read_text() for path in (Path(progress.__file__).parent / "rules").glob("*.py"))
    named = {name for text in sources for name in re.findall(r'make_hit\(\s*"(\w+)"', text)}
    assert len(named) > 5
    assert RULES.keys() == named | {TRIES_USED_UP}


def test_a_rule_that_is_gone_is_said_by_its_name():
    assert describe_rule("same_error") == "same error"


@pytest.mark.django_db
def test_a_verdict_says_since_when_and_what_can_be_done(judged, django_assert_num_queries):
    rows = list(Evidence.objects.order_by("id"))
    with django_assert_num_queries(1):
        set_since(rows)
    found = latest_verdict(rows, lives=True)
    assert found["about"] == "one tool fails alike, whatever it is given"
    assert (found["row"], found["since"]["row"], found["since"]["at"]) == (3, 1, rows[0].started_at)
    assert found["followed"] == FOLLOWED["steer"]
    assert [way["way"] for way in found["ways"]] == ["go_on", "change", "elsewhere", "patience"]
    assert [way["way"] for way in latest_verdict(rows, lives=False)["ways"]] == ["change", "elsewhere", "patience"]


@pytest.mark.django_db
def test_without_a_verdict_nothing_is_asked_for(judged, django_assert_num_queries):
    rows = list(Evidence.objects.filter(verdict=None))
    with django_assert_num_queries(0):
        set_since(rows)
    assert latest_verdict(rows, lives=True) is None


@pytest.mark.django_db
def test_rest_says_it_of_the_agent_and_of_each_row(judged, client, operator):
    client.force_login(operator)
    agent = Agent.objects.get().pk
    found = client.get(f"/api/agents/{agent}/").json()
    assert (found["stuck"]["about"], found["stuck"]["row"]) == ("one tool fails alike, whatever it is given", 3)
    assert found["evidence"][2]["verdict"]["since"] == {"row": 1, "at": found["evidence"][0]["started_at"]}
    rows = client.get(f"/api/agents/{agent}/evidence/").json()["results"]
    assert [row["verdict"] and row["verdict"]["about"] for row in rows] == [None, None, found["stuck"]["about"], None]


@pytest.mark.django_db
def test_the_admin_says_it_with_links_to_the_rows(judged, client, admin_user):
    client.force_login(admin_user)
    row = Evidence.objects.get(number=3)
    page = client.get(reverse("admin:agents_evidence_change", args=[row.pk])).content.decode()
    assert "<strong>one tool fails alike, whatever it is given</strong> since row 1" in page
    first = Evidence.objects.get(number=1).pk
    assert f'<a href="/admin/agents/evidence/{first}/change/">1</a>' in page
    assert "Let it go on anyway" in page
    assert "one tool fails alike" in client.get(reverse("admin:agents_evidence_changelist")).content.decode()
