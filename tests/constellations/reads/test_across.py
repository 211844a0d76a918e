"""Reads over many sessions: the inbox, search, runs of one plan; who sees what, and at what price."""

from urllib.parse import urlencode

import pytest

from agents.masks import values
from agents.reads.standing import OUTCOMES
from agents.services import sessions
from agents.streams.door import door
from constellations.models import Task
from constellations.reads.across.sessions import STATES
from tests.agents.conftest import Rest
from tests.constellations.runs.test_run import noop
from tests.frontend.working_rows import COMMAND, Working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


@pytest.fixture
def working(operator, device) -> Working:
    return Working(operator, device)


def entries(rest: Rest) -> list[dict]:
    answer = rest.get("/api/inbox/")
    assert answer.status_code == 200, answer.content
    return answer.json()["entries"]


def set_request(working: Working, **fields) -> None:
    with door(working.session.pk, "system") as opened:
        opened.turn.record("interaction_changed", set={"inbox": {str(working.interaction): fields}})


def test_what_people_are_asked_is_listed_with_exactly_what_would_be_done(rest, working):
    asked = working.ask_everything()
    found = {entry["key"]: entry for entry in entries(rest)}
    assert set(found) == {
        f"task-{asked['task']}", f"tool-{asked['tool']}", f"tool-{asked['file']}", f"lost-{asked['lost']}",
        f"question-{asked['question']}", f"question-{asked['words']}",
    }  # fmt: skip
    push = found[f"tool-{asked['tool']}"]
    assert push["approval"]["action"] == COMMAND
    assert push["session"] == {"id": working.session.pk, "title": "Digits, in three phases"}
    assert (push["task"]["name"], push["device"], push["by"]) == ("Train the model", "laptop", "Train the model")
    assert all(entry["waits"] for entry in found.values())


def test_an_agent_that_is_stuck_is_listed_while_its_request_runs(rest, working):
    working.add_work()
    assert entries(rest) == []
    set_request(working, state="running", outcome="")
    (entry,) = entries(rest)
    assert (entry["kind"], entry["agent"], entry["waits"]) == ("stuck", working.agent, True)
    assert entry["details"]["identity"] == "same_error:0123456789abcdef"
    assert "make test failed 3 times" in entry["details"]["sentence"]


def test_an_agent_that_may_go_on_anyway_is_stuck_no_more(rest, working):
    working.add_work()
    set_request(working, state="running", outcome="")
    with door(working.session.pk, "system") as opened:
        accepted = {"accepted": ["same_error:0123456789abcdef"]}
        opened.turn.record("loop_accepted", set={"task": {str(working.task): accepted}})
    assert entries(rest) == []


def test_a_request_that_failed_is_worth_a_look_and_waits_for_nobody(rest, working):
    set_request(working, state="done", outcome="failed", ended_at="2099-01-01T00:00:00.000000Z")
    (entry,) = entries(rest)
    assert (entry["kind"], entry["waits"], entry["title"]) == ("failed", False, "Digits, in three phases failed")


def test_what_was_decided_says_by_whom_and_exactly_what_was_allowed(rest, working, operator):
    for number in range(3):
        working.decide(working.ask("tool", f"push {number}", COMMAND), "approved", f"user:{operator.pk}")
    found = rest.get("/api/inbox/decided/").json()
    assert [entry["title"] for entry in found["entries"]] == ["push 2", "push 1", "push 0"]
    assert found["entries"][0]["approval"]["decided_by_name"] == "operator"
    assert found["entries"][0]["approval"]["action"] == COMMAND
    assert found["next"] is None
    before = found["entries"][0]["approval"]["id"]
    older = rest.get(f"/api/inbox/decided/?before={before}").json()
    assert [entry["title"] for entry in older["entries"]] == ["push 1", "push 0"]
    assert rest.get("/api/inbox/decided/?before=5").status_code == 400


def test_others_see_none_of_it(working, viewer, admin_user):
    working.ask_everything()
    assert entries(Rest(viewer)) == []
    assert len(entries(Rest(admin_user))) == 6


def test_the_inbox_costs_the_same_queries_however_much_waits(rest, working, django_assert_max_num_queries):
    working.ask_everything()
    working.add_work()
    set_request(working, state="running", outcome="")
    with django_assert_max_num_queries(20):
        entries(rest)
    for _ in range(5):
        working.ask_everything()
    with django_assert_max_num_queries(20):
        assert len(entries(rest)) == 6 * 6 + 1


def found_in(rest: Rest, text: str, **more) -> dict:
    answer = rest.get(f"/api/search/?{urlencode({'q': text, **more})}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_text_is_found_wherever_it_stands(rest, engine, device, operator):
    session = sessions.session_create(operator, "The Penguin run", by="system")
    plan = {"tasks": [{"task_id": "a", "description": "count penguins", "device": "laptop", "command": ["echo", "a PENGUIN!"]}]}
    engine.carry_out(plan, session)
    found = found_in(rest, "penguin")
    assert [hit["name"] for hit in found["sessions"]["hits"]] == ["The Penguin run"]
    assert [hit["name"] for hit in found["tasks"]["hits"]] == ["a"]
    (printed,) = found["outputs"]["hits"]
    assert printed["excerpt"][printed["begins"] : printed["ends"]] == "PENGUIN"
    assert printed["task"] == Task.objects.get().pk
    assert found_in(rest, "penguin", group="tasks").keys() == {"tasks"}


def test_a_result_is_found_and_a_search_goes_on_where_it_ended(rest, working):
    with door(working.session.pk, "system") as opened:
        opened.turn.record("task_changed", set={"task": {str(working.task): {"result": {"accuracy": 0.97}}}})
    (hit,) = found_in(rest, "accuracy")["results"]["hits"]
    assert hit["task"] == working.task
    again = found_in(rest, "accuracy", group="results", before=hit["id"])
    assert again["results"] == {"hits": [], "next": None}


def test_a_search_finds_nothing_of_others_and_nothing_that_a_mask_hides(rest, working, viewer, monkeypatch):
    assert [hit["name"] for hit in found_in(rest, "train")["tasks"]["hits"]] == ["Train the model"]
    assert all(group["hits"] == [] for group in found_in(Rest(viewer), "train").values())
    monkeypatch.setenv("ORRERY_SECRET_DEPLOY", "hunter2-hunter2-hunter2")
    with door(working.session.pk, "system") as opened:
        told = {"description": "with hunter2-hunter2-hunter2"}
        opened.turn.record("task_changed", set={"task": {str(working.task): told}})
    monkeypatch.setattr(values, "_KNOWN", values._Known())
    assert found_in(rest, "hunter2-hun")["tasks"]["hits"] == []


@pytest.mark.parametrize("query", ["", "?q=", "?q=%20", "?q=a&before=3", "?q=a&group=x", "?q=" + "a" * 201])
def test_a_search_for_nothing_is_refused(rest, query):
    assert rest.get(f"/api/search/{query}").status_code == 400


def test_runs_of_one_plan_stand_side_by_side(rest, engine, device, viewer):
    plan = {"name": "twice", "tasks": [noop("a"), noop("b", after=["a"])]}
    first, second = engine.carry_out(plan), engine.carry_out(plan)
    engine.carry_out({"name": "other", "tasks": [noop("a")]})
    plans = {row["name"]: row for row in rest.get("/api/runs/").json()["results"]}
    assert (plans["twice"]["runs"], plans["other"]["runs"]) == (2, 1)
    assert plans["twice"]["states"] == {"COMPLETED": 2}
    grid = rest.get(f"/api/runs/{plans['twice']['plan']}/").json()
    assert [run["id"] for run in grid["runs"]] == [second.pk, first.pk]
    assert [row["task_id"] for row in grid["tasks"]] == ["a", "b"]
    cell, other = grid["tasks"][0]["cells"]
    assert (cell["state"], cell["attempts"], cell["cost"]) == ("COMPLETED", 1, 0)
    assert cell["result"] == other["result"]
    assert Rest(viewer).get(f"/api/runs/{plans['twice']['plan']}/").status_code == 404
    assert Rest(viewer).get("/api/runs/").json() == {"results": []}


def home(rest: Rest, query: str = "") -> dict:
    answer = rest.get(f"/api/home/{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def titles(rest: Rest, query: str = "") -> list[str]:
    return [row["title"] for row in home(rest, query)["results"]]


def test_the_list_says_how_far_each_session_is_and_what_it_waits_for(rest, engine, working):
    working.ask("tool", "Push by force", COMMAND)
    engine.carry_out({"name": "both", "tasks": [noop("a"), {"task_id": "b", "device": "laptop", "command": ["false"]}]})
    ran, asked = home(rest)["results"]
    assert ran["tasks"] == {"total": 2, "ended": 2, "failed": 1}
    assert (ran["standing"]["name"], ran["plan"]) == ("partially_failed", "both")
    assert (ran["begun_at"] < ran["ended_at"], ran["cost"], ran["waits"]) == (True, 0, [])
    assert (asked["standing"]["name"], asked["standing"]["waiting"], asked["waits"]) == ("waiting", 1, ["Push by force"])
    assert asked["tasks"] == {"total": 1, "ended": 0, "failed": 0}


def test_the_list_is_narrowed_by_state_title_owner_and_time(rest, engine, working, viewer, admin_user):
    working.ask("tool", "Push", COMMAND)
    failed = sessions.session_create(viewer, "It fails", by="system")
    engine.carry_out({"tasks": [{"task_id": "b", "device": "laptop", "command": ["false"]}]}, failed)
    admin = Rest(admin_user)
    assert titles(admin) == ["It fails", "Digits, in three phases"]
    assert titles(admin, "?state=failed") == ["It fails"]
    assert titles(admin, "?state=waiting") == ["Digits, in three phases"]
    assert titles(admin, "?state=running") == []
    assert titles(admin, "?q=FAILS") == ["It fails"]
    assert titles(admin, "?owner=operator") == ["Digits, in three phases"]
    assert titles(admin, "?mine=1") == []
    assert titles(admin, "?since=2099-01-01T00:00:00Z") == []
    assert len(titles(admin, "?until=2099-01-01T00:00:00Z")) == 2
    assert titles(rest) == ["Digits, in three phases"]


@pytest.mark.parametrize("query", ["?state=x", "?since=now", "?since=2026-11-22T10:00:00", "?mine=2", "?limit=0", "?before=x"])
def test_a_filter_that_makes_no_sense_is_refused(rest, query):
    assert rest.get(f"/api/home/{query}").status_code == 400


def test_every_state_that_may_be_asked_for_is_that_of_a_standing(rest, working):
    for state in STATES:
        home(rest, f"?state={state}")
    names = {name for names in STATES.values() for name in names}
    assert names == {*OUTCOMES, "stale", "waiting", "waiting_others", "review", "paused", "running", "queued", "idle"}


def test_pages_follow_each_other_with_and_without_a_filter(rest, operator):
    made = [sessions.session_create(operator, f"number {number}", by="system").pk for number in range(7)]
    for query in ("?limit=3", "?limit=3&state=idle"):
        seen, before = [], ""
        for _ in range(3):
            page = home(rest, query + before)
            seen += [row["id"] for row in page["results"]]
            before = f"&before={page['next']}"
        assert (seen, page["next"]) == (made[::-1], None)


def test_the_list_costs_the_same_queries_however_many_sessions(rest, operator, device, django_assert_max_num_queries):
    Working(operator, device)
    with django_assert_max_num_queries(17):
        home(rest)
    for _ in range(10):
        Working(operator, device)
    with django_assert_max_num_queries(17):
        assert len(home(rest)["results"]) == 11
