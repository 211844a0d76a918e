"""A constellation under review: nothing of it runs until somebody starts it, and until then it is edited like any other."""

from __future__ import annotations

import json

import pytest

from agents.errors import Conflict
from agents.llm.choices import REVIEW
from agents.models import InboxItem, Session, Transition
from agents.services import sessions
from agents.services.model_profiles import model_profile_create
from constellations.errors import ConstellationEnded, PlanRejected
from constellations.models import Attempt, Constellation, Task
from constellations.plan.plan import Plan
from constellations.reads.why import explain_task
from constellations.runs.choosing import chosen_models, waits_for_review
from constellations.services import lifecycle
from constellations.services.edits import edit_apply
from constellations.services.plans import read_words
from tests.agents.conftest import Rest, make_token
from tests.constellations.runs.test_run import noop, query, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
PLAN = {"name": "shown first", "start": "review", "tasks": [noop("a"), noop("b", after=["a"])]}


def is_ready() -> bool:
    return query("SELECT count(*) FROM constellations_constellation WHERE state = 'READY'") == 1


@pytest.fixture
def under_review(engine, device) -> Constellation:
    engine.submit(PLAN)
    engine.run(is_ready)
    return Constellation.objects.get()


def test_nothing_runs_before_it_is_started_and_everything_after(engine, under_review):
    engine.run(lambda: True)  # another runner finds nothing to do either
    assert states(under_review) == {"a": "PENDING", "b": "WAITING_DEPENDENCY"}
    assert not Attempt.objects.exists()
    row, changed = lifecycle.constellation_start(under_review.pk, by="user:1", reason="looks good")
    assert (row.state, changed) == ("EXECUTING", True)
    assert lifecycle.constellation_start(under_review.pk, by="user:1")[1] is False
    engine.run()
    under_review.refresh_from_db()
    assert under_review.state == "COMPLETED"
    started = Transition.objects.get(machine="constellation", event="start")
    assert (started.reason, started.from_state) == ("looks good", "READY")


def test_why_says_that_it_is_under_review(under_review):
    told = explain_task(Task.objects.get(task_id="a"))
    assert told["kind"] == "review"
    assert told["text"].startswith("its constellation is under review: nothing runs until somebody starts it")


def test_it_is_edited_before_it_is_started(engine, under_review):
    edit_apply(
        under_review.pk,
        [{"op": "remove_task", "parameters": {"task_id": "b"}}, {"op": "add_task", "parameters": noop("c")}],
        author="user:1",
    )
    engine.run(lambda: True)
    assert set(states(under_review)) == {"a", "c"}
    assert not Attempt.objects.exists()
    lifecycle.constellation_start(under_review.pk, by="user:1")
    engine.run()
    assert states(under_review) == {"a": "COMPLETED", "c": "COMPLETED"}


def test_a_pause_and_a_resume_do_not_start_it(under_review):
    for ask in (lifecycle.constellation_pause, lifecycle.constellation_resume):
        with pytest.raises(Conflict, match="shown first is under review: it runs once it is started"):
            ask(under_review.pk, by="user:1")
    under_review.refresh_from_db()
    assert under_review.state == "READY"


def test_it_can_be_cancelled_and_is_then_not_started(engine, under_review):
    lifecycle.constellation_cancel(under_review.pk, by="user:1", reason="no")
    engine.run()
    under_review.refresh_from_db()
    assert under_review.state == "CANCELLED"
    with pytest.raises(ConstellationEnded):
        lifecycle.constellation_start(under_review.pk, by="user:1")


def test_it_is_started_over_rest(engine, under_review, operator):
    rest = Rest(operator)
    address = f"/api/constellations/{under_review.pk}/start/"
    for changed in (True, False):
        answer = rest.post(address, {"reason": "reviewed"})
        assert (answer.status_code, answer.json()) == (200, {"state": "EXECUTING", "changed": changed, "command": None})
    engine.run()
    under_review.refresh_from_db()
    assert under_review.state == "COMPLETED"


def test_a_token_does_not_end_the_review_of_its_own_work(engine, device, operator):
    text = make_token(operator, "read", "operate")[1]
    rest = Rest(token=text)
    session = rest.post("/api/sessions/", {"plan": json.dumps(PLAN)}).json()["id"]
    engine.run(is_ready)
    found = Constellation.objects.get(session=session)
    refused = rest.post(f"/api/constellations/{found.pk}/start/", {})
    assert (refused.status_code, refused.json()["code"]) == (403, "own_approval")
    assert "a person starts it" in refused.json()["detail"]
    assert Rest(operator).post(f"/api/constellations/{found.pk}/start/", {}).status_code == 200
    engine.run()
    found.refresh_from_db()
    assert found.state == "COMPLETED"


def test_a_request_may_ask_for_the_review_of_a_plan_that_does_not(engine, device, operator):
    session = sessions.session_create(operator, by="system")
    answer = Rest(operator).post(
        f"/api/sessions/{session.pk}/interactions/", {"plan": "tasks: [{task_id: a, tool: noop}]", "start": "review"}
    )
    assert answer.status_code == 202
    engine.run(is_ready)
    assert Constellation.objects.get().state == "READY"


@pytest.mark.django_db
def test_session_and_installation_ask_for_the_review_of_what_a_model_plans_only(operator, settings):
    model_profile_create("wise", provider="anthropic", model="m", purposes=["creation"], by="system")
    plain = sessions.session_create(operator, by="system").pk
    careful = sessions.session_create(operator, by="system", start=REVIEW).pk
    refused = PlanRejected([], "request")
    assert read_words(plain, {"request": "Make tea."}, refused).waits is False
    assert read_words(careful, {"request": "Make tea."}, refused).waits is True
    assert read_words(plain, {"request": "Make tea.", "start": REVIEW}, refused).waits is True
    settings.START = REVIEW
    assert read_words(plain, {"request": "Make tea."}, refused).waits is True
    assert waits_for_review(Plan(), {}) is False


def test_the_models_of_a_plan_and_a_request_stand_in_the_constellation(engine, device):
    for name in ("wise", "quick"):
        model_profile_create(name, provider="anthropic", model="m", by="system")
    found = engine.carry_out({"models": {"creation": "quick", "device_agent": "wise"}, "tasks": [noop("a")]})
    assert found.model_profiles == {"creation": "quick", "device_agent": "wise"}
    plan = Plan(models={"editing": "wise"})
    assert chosen_models(plan, {"models": {"editing": "quick"}}) == {"editing": "quick"}
    assert InboxItem.objects.get().outcome == "completed"
    assert Session.objects.get().model_profiles == {}
