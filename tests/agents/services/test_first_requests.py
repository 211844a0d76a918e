"""A session made together with its first request: both are there afterwards, or nothing is."""

import pytest

from agents.engine import summon
from agents.models import Event, InboxItem, Session
from agents.services import sessions
from tests.agents.conftest import PLAN, Rest, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

CYCLE = """\
name: round and round
tasks:
  - {task_id: fetch, tool: noop, after: [deploy]}
  - {task_id: train, tool: noop, after: [fetch]}
  - {task_id: deploy, tool: noop, after: [train]}
"""
UNKNOWN_KEY = """\
name: mistyped
tasks:
  - task_id: train
    tool: noop
    conditon: yes
"""
BAD_CONDITION = """\
name: half a condition
tasks:
  - {task_id: evaluate, tool: noop}
  - {task_id: deploy, tool: noop}
dependencies:
  - from: evaluate
    to: deploy
    type: CONDITIONAL
    condition: accuracy >
"""


def ask(rest, **body):
    return rest.post("/api/sessions/", body)


def assert_refused(answer, status):
    """A problem document, without a word of our code in it."""
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    text = answer.content.decode()
    for inside in ("Traceback", 'File \\"', ".py", "line 1, in"):
        assert inside not in text
    return answer.json()


def test_a_session_and_its_first_request_are_made_together(rest, operator):
    answer = ask(rest, title="digits", plan=PLAN, client_id="mine-1")
    assert answer.status_code == 201
    made = answer.json()
    item = InboxItem.objects.get(pk=made["interaction"])
    assert (item.session_id, item.kind, item.client_id, item.payload) == (made["id"], "interaction", "mine-1", {"plan": PLAN})
    assert (item.by, item.state) == (f"user:{operator.pk}", "queued")
    events = Event.objects.filter(stream_id=made["id"]).order_by("seq").values_list("type", flat=True)
    assert list(events) == ["session_created", "command_received"]
    assert (made["title"], made["head"]) == ("digits", 2)
    assert rest.get(f"/api/sessions/{made['id']}/interactions").json()["results"][0]["id"] == made["interaction"]


def test_without_a_request_there_is_a_session_and_no_interaction(rest):
    made = ask(rest, title="empty")
    assert (made.status_code, made.json()["interaction"]) == (201, None)
    assert not InboxItem.objects.exists()


def test_a_runner_is_asked_for_with_the_first_request(rest):
    assert summon.runners_asked_for() == 0
    ask(rest, plan=PLAN)
    assert summon.runners_asked_for() == 1


@pytest.mark.parametrize(
    ("plan", "line", "key", "says"),
    [
        (CYCLE, 5, "tasks[2].after[0]", "fetch > train > deploy > fetch"),
        (UNKNOWN_KEY, 5, "tasks[0].conditon", "there is no key conditon"),
        (BAD_CONDITION, 9, "dependencies[0].condition", "the condition is not understood"),
        ("tasks: [", 2, "", ""),
        ("", None, "", ""),
    ],
)
def test_a_plan_that_is_refused_leaves_nothing_behind(rest, migrated_dump, plan, line, key, says):
    before = migrated_dump()
    problem = assert_refused(ask(rest, title="refused", plan=plan), 400)
    places = problem["problems"]
    assert any(says in text for text in (problem["detail"], *(place["message"] for place in places)))
    if line is not None:
        assert line in [place.get("line") for place in places]
    if key:
        assert key in [place["key"] for place in places]
    assert migrated_dump() == before


def test_words_that_nobody_here_understands_leave_nothing_behind(rest, migrated_dump):
    before = migrated_dump()
    assert assert_refused(ask(rest, request="make me rich"), 400)["problems"]
    assert migrated_dump() == before


def test_a_request_that_fails_after_the_session_was_made_takes_it_along(rest, migrated_dump, monkeypatch):
    before = migrated_dump()
    monkeypatch.setattr(sessions, "wake_a_runner", lambda: 1 / 0)
    assert_refused(ask(rest, plan=PLAN), 500)
    assert migrated_dump() == before
    assert not Session.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "\x00",
        '{"plan": "a"',
        '{"plan": 7}',
        '{"plan": "x", "request": "y"}',
        '{"client_id": "x"}',
        '{"colour": 1}',
    ],
)
def test_a_malformed_body_leaves_nothing_behind(rest, migrated_dump, body):
    before = migrated_dump()
    assert_refused(rest.post("/api/sessions/", body), 400)
    assert migrated_dump() == before


def test_without_a_login_nothing_is_made(roles, migrated_dump):
    before = migrated_dump()
    for rest in (Rest(), Rest(token="orr_nonsense")):
        assert_refused(ask(rest, plan=PLAN), 401)
    assert migrated_dump() == before


@pytest.mark.parametrize("who", ["viewer", "user"])
def test_who_is_no_operator_makes_nothing(who, request, migrated_dump):
    rest = Rest(request.getfixturevalue(who))
    before = migrated_dump()
    assert "operator" in assert_refused(ask(rest, plan=PLAN), 403)["detail"]
    assert migrated_dump() == before


def test_a_token_without_the_scope_operate_makes_nothing(operator):
    _, text = make_token(operator, "read")
    assert "operate" in assert_refused(ask(Rest(token=text), plan=PLAN), 403)["detail"]
    assert not Session.objects.exists()


def test_a_login_without_its_csrf_token_makes_nothing(operator, migrated_dump):
    rest = Rest(operator, csrf=True)
    before = migrated_dump()
    assert_refused(ask(rest, plan=PLAN), 403)
    assert migrated_dump() == before
