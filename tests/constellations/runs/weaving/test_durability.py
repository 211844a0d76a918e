"""No end is lost and no edit is made twice, whatever happens while a model thinks."""

import pytest

from agents.models import Actor, Approval, Event, ModelCall
from agents.services.approvals import approval_decide
from agents.services.budgets import budget_create
from constellations.models import Constellation, Edit
from constellations.services.lifecycle import constellation_pause, constellation_resume
from tests.conftest import TestRunner
from tests.constellations.runs.test_run import actor_state, in_thread, inbox_rests, query, something_runs, states
from tests.constellations.runs.weaving.conftest import ask, calls, command, edited, planned, task, tell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

NOTHING = edited(thought="Nothing to do.")
REPORT = edited(("add_task", task("report")), thought="Then a report.")


def asked(purpose: str) -> bool:
    """Whether such a call is under way."""
    return query(f"SELECT count(*) FROM agents_modelcall WHERE purpose = '{purpose}' AND outcome = ''") > 0


def once(condition, act):
    """`act`, the first time that `condition` holds; whether that has been."""
    done = []

    def look() -> bool:
        if not done and condition():
            done.append(True)
            act()
        return bool(done)

    return look


def paused_while_it_thinks(engine, session, purpose: str, **more) -> None:
    """Run until the actor is paused, which is asked for while such a call is under way."""
    look = once(lambda: asked(purpose), lambda: tell(session, "pause", **more))
    engine.run(until=lambda: look() and actor_state() == "paused")


def stop_at_once(condition) -> None:
    """A runner that is told to stop when `condition` holds, and waits for nothing."""

    def stop() -> bool:
        if condition():
            runner.stop()
            runner.stop()
        return condition()

    runner = TestRunner(stop)
    runner.run()


def test_five_tasks_that_end_while_the_model_thinks_are_one_editing_session(engine, device, thinking):
    plan = planned(task("first"), *(task(f"t{n}", after=["first"]) for n in range(5)))
    thinking(plan, {"say": NOTHING, "first_after": 1.5}, edited(status="FINISH", result="Five."))
    ask(engine)
    engine.run()
    first, second = calls(purpose="editing")
    assert [each["task_id"] for each in first.taken] == ["first"]
    assert sorted(each["task_id"] for each in second.taken) == [f"t{n}" for n in range(5)]
    records = list(Event.objects.filter(type="ends_taken").order_by("seq").values_list("data", flat=True))
    assert [len(record["tasks"]) for record in records] == [1, 5]
    assert Constellation.objects.get().result["answer"] == "Five."


@pytest.mark.parametrize("purpose", ["creation", "editing"])
def test_a_pause_waits_for_the_answer_and_keeps_it_for_later(engine, device, thinking, purpose):
    slow = {"first_after": 0.5}
    model = thinking({"say": planned(task("a")), **slow}, {"say": REPORT, **slow}, NOTHING)
    session, _ = ask(engine)
    paused_while_it_thinks(engine, session, purpose)
    row = ModelCall.objects.get(purpose=purpose)
    assert (row.outcome, row.status) == ("answered", "")  # it has come, and nothing is decided about it
    assert not Edit.objects.exists()
    assert Constellation.objects.count() == (0 if purpose == "creation" else 1)
    engine.run(until=lambda: True)  # another runner finds it in the row
    tell(session, "resume")
    engine.run()
    assert states(Constellation.objects.get()) == {"a": "COMPLETED", "report": "COMPLETED"}
    assert (len(model.model.asked), Edit.objects.count()) == (3, 1)


@pytest.mark.parametrize("purpose", ["creation", "editing"])
def test_an_immediate_pause_cuts_the_answer_off_and_it_is_asked_for_again(engine, device, thinking, purpose):
    slow = {"say": ["{", *" " * 60], "pause": 0.5}
    answers = [planned(task("a")), REPORT, NOTHING]
    answers.insert(0 if purpose == "creation" else 1, slow)
    thinking(*answers)
    session, _ = ask(engine)
    under_way = f"SELECT id FROM agents_modelcall WHERE purpose = '{purpose}' AND outcome = ''"
    said = f"SELECT count(*) FROM agents_modeldelta WHERE text LIKE '{{%' AND call_id = ({under_way})"
    heard = once(
        lambda: query(said) > 0,
        lambda: tell(session, "pause", mode="immediate"),
    )  # fmt: skip
    engine.run(until=lambda: heard() and actor_state() == "paused")
    assert ModelCall.objects.filter(purpose=purpose).get().outcome == "cancelled"
    assert Event.objects.get(type="stopped").data["partial_response"].startswith("{")
    tell(session, "resume")
    engine.run()
    assert states(Constellation.objects.get()) == {"a": "COMPLETED", "report": "COMPLETED"}
    assert [row.outcome for row in calls(purpose=purpose)][:2] == ["cancelled", "answered"]


@pytest.mark.parametrize("purpose", ["creation", "editing"])
def test_a_call_whose_runner_is_told_to_stop_is_made_again_by_the_next(engine, device, thinking, purpose):
    answers = [planned(task("a")), REPORT, NOTHING]
    answers.insert(0 if purpose == "creation" else 1, {"say": "never", "first_after": 30})
    model = thinking(*answers)
    ask(engine)
    stop_at_once(lambda: len(model.model.asked) == 1 + (purpose == "editing"))
    assert [row.outcome for row in calls(purpose=purpose)] == ["lost"]
    engine.run()
    assert states(Constellation.objects.get()) == {"a": "COMPLETED", "report": "COMPLETED"}
    lost, answered = calls(purpose=purpose)[:2]
    assert (lost.outcome, answered.outcome, answered.asked_again) == ("lost", "answered", 1)
    assert (answered.added["messages"], answered.taken) == ([], lost.taken)  # the same is asked again
    assert Edit.objects.count() == 1


@pytest.mark.parametrize("purpose", ["creation", "editing"])
def test_a_cancel_while_the_model_thinks_ends_everything(engine, device, thinking, purpose):
    answers = [planned(task("a")), NOTHING]
    answers.insert(0 if purpose == "creation" else 1, {"say": "never", "first_after": 30})
    model = thinking(*answers)
    session, item = ask(engine)
    look = once(lambda: asked(purpose), lambda: tell(session, "cancel", reason="changed my mind"))
    engine.run(until=lambda: look() and inbox_rests())
    item.refresh_from_db()
    assert (item.outcome, Actor.objects.get().state) == ("cancelled", "cancelled")
    assert [row.outcome for row in calls(purpose=purpose)] == ["cancelled"]
    assert model.model.open == 0 or purpose  # the connection is closed with the call


def test_a_stop_while_the_model_thinks_leaves_the_actor_to_the_next_request(engine, device, thinking):
    model = thinking(planned(task("a")), {"say": "never", "first_after": 30}, planned(task("b")), NOTHING)
    session, item = ask(engine)

    def stop() -> None:
        tell(session, "stop", subject=query("SELECT id FROM constellations_constellation"), reason="enough")

    look = once(lambda: len(model.model.asked) == 2, stop)
    engine.run(until=lambda: look() and inbox_rests())
    item.refresh_from_db()
    assert (item.outcome, actor_state()) == ("cancelled", "idle")
    ask(engine, session=session)
    engine.run()
    assert states(Constellation.objects.latest("id")) == {"b": "COMPLETED"}


def test_a_restart_while_the_model_thinks_begins_again_from_the_words(engine, device, thinking):
    model = thinking(planned(task("a")), {"say": "never", "first_after": 30}, planned(task("b")), NOTHING)
    session, _ = ask(engine)

    def restart() -> None:
        tell(session, "restart", subject=query("SELECT id FROM constellations_constellation"), reason="anew")

    look = once(lambda: len(model.model.asked) == 2, restart)
    engine.run(until=lambda: look() and inbox_rests())
    first, second = Constellation.objects.order_by("id")
    assert (first.state, states(second)) == ("CANCELLED", {"b": "COMPLETED"})
    assert [(row.purpose, row.outcome) for row in calls()] == [
        ("creation", "answered"), ("editing", "cancelled"), ("creation", "answered"), ("editing", "answered"),
    ]  # fmt: skip


def test_a_constellation_that_is_paused_asks_no_model_until_it_goes_on(engine, device, thinking):
    model = thinking(planned(command("a", "sleep", "0.5")), NOTHING)
    ask(engine)
    key = lambda: query("SELECT id FROM constellations_constellation")  # noqa: E731
    look = once(something_runs, lambda: in_thread(constellation_pause, key(), by="user:1"))
    engine.run(until=lambda: look() and not something_runs())
    assert len(model.model.asked) == 1
    constellation_resume(key(), by="user:1")
    engine.run()
    assert len(model.model.asked) == 2
    assert Constellation.objects.get().state == "COMPLETED"


@pytest.mark.parametrize(("decision", "outcome"), [("approve", "completed"), ("reject", "failed")])
def test_a_budget_that_is_used_up_asks_a_person_while_the_session_rests(engine, device, thinking, decision, outcome):
    model = thinking(planned(task("a")), NOTHING)
    session, item = ask(engine)
    budget_create(by="system", scope="session", subject=session.pk, tokens=10, then="ask")
    engine.run(until=lambda: query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'") == 1)
    approval = Approval.objects.get()
    assert (approval.kind, model.model.asked) == ("budget", [])
    assert calls()[0].error_kind == "model_budget_used_up"
    engine.run(until=lambda: True)  # a runner that finds it waiting
    approval_decide(approval.pk, decision, by="user:1")
    approving = once(
        lambda: query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'") > 0,
        lambda: in_thread(lambda: approval_decide(Approval.objects.get(state="waiting").pk, decision, by="user:1")),
    )  # fmt: skip

    def all_is_decided() -> bool:
        approving()
        return inbox_rests()

    engine.run(until=all_is_decided)
    item.refresh_from_db()
    assert item.outcome == outcome
    assert bool(model.model.asked) == (decision == "approve")
