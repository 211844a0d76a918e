"""What a model plans waits for its review where that is wanted, and knows what its session did before."""

from __future__ import annotations

import pytest

from agents.models import ModelCall
from agents.services.sessions import session_change, session_create
from constellations.models import Attempt, Constellation
from constellations.services import lifecycle
from tests.constellations.runs.test_run import query, states
from tests.constellations.runs.weaving.conftest import answer, ask, edited, planned, task

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def is_ready() -> bool:
    return query("SELECT count(*) FROM constellations_constellation WHERE state = 'READY'") == 1


def words_of(row: ModelCall) -> str:
    """What was said to the model."""
    return "".join(part["text"] for message in row.added["messages"] for part in message["parts"])


@pytest.mark.parametrize("by", ["request", "session", "installation"])
def test_what_a_model_plans_waits_where_request_session_or_installation_want_it(by, engine, device, thinking, settings):
    thinking(planned(task("a")), edited(status="FINISH", result="done"))
    settings.START = "review" if by == "installation" else ""
    if by == "session":
        session = _session(engine, start="review")
        ask(engine, session=session)
    else:
        ask(engine, **({"start": "review"} if by == "request" else {}))
    engine.run(is_ready)
    engine.run(lambda: True)
    found = Constellation.objects.get()
    assert (found.state, states(found), Attempt.objects.count()) == ("READY", {"a": "PENDING"}, 0)
    lifecycle.constellation_start(found.pk, by="user:1")
    engine.run()
    found.refresh_from_db()
    assert (found.state, states(found)) == ("COMPLETED", {"a": "COMPLETED"})


def test_an_answer_without_tasks_has_nothing_to_review(engine, device, thinking):
    empty = {"name": "", "tasks": [], "dependencies": []}
    thinking(answer("FINISH", result="There is one device.", constellation=empty))
    _, item = ask(engine, start="review")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"


def test_a_plan_that_a_person_wrote_does_not_wait_for_what_models_plan(engine, device, settings):
    settings.START = "review"
    found = engine.carry_out({"tasks": [{"task_id": "a", "tool": "noop"}]})
    assert found.state == "COMPLETED"


def test_the_model_is_told_what_the_session_did_before(engine, device, thinking):
    thinking(
        planned(task("a", {"accuracy": 0.92}), name="first"), edited(status="FINISH", result="It is 0.92."),
        answer("FINISH", result="0.92", constellation={"name": "", "tasks": [], "dependencies": []}),
    )  # fmt: skip
    session, _ = ask(engine, "How good is it?")
    engine.run()
    ask(engine, "And now?", session=session)
    engine.run()
    first, *_, last = ModelCall.objects.order_by("id")
    assert "This is the first request of the session." in words_of(first)
    told = words_of(last)
    assert "Request (completed): How good is it?" in told
    assert "accuracy" in told
    assert "It is 0.92." in told
    assert told.rstrip().endswith("And now?")


def _session(engine, **chosen):
    made = session_create(engine.owner, by=f"user:{engine.owner.pk}")
    return session_change(made.pk, by="system", **chosen)
