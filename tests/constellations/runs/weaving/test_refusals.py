"""What a model answers is read, checked, and refused with what is wrong; it is asked again, three times at most."""

import json

import pytest

from agents.models import Agent, Event, Transition
from constellations.errors import PlanRejected
from constellations.models import Constellation, Edit, Task
from tests.constellations.runs.test_run import states
from tests.constellations.runs.weaving.conftest import answer, ask, calls, command, edited, planned, task

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

NOTHING = edited(thought="Nothing to do.")


def said_to(model, number: int) -> str:
    """What was new in a request to the model."""
    return model.model.asked[number].last


def test_a_plan_with_a_strange_device_is_asked_for_again_with_its_place(engine, device, thinking):
    model = thinking(planned({**task("a"), "device": "desktop"}), planned(task("a")), NOTHING)
    ask(engine)
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"
    refused, made, _ = calls()
    assert (refused.outcome, made.outcome, made.asked_again) == ("rejected", "answered", 1)
    assert "there is no device desktop" in refused.error
    assert "tasks[0].device" in said_to(model, 1)
    assert "there is no device desktop" in said_to(model, 1)


def test_a_cycle_is_asked_for_again_and_then_nothing_is_created(engine, device, thinking):
    circle = planned(task("a", after=["b"]), task("b", after=["a"]))
    model = thinking(*[circle] * 4)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, len(model.model.asked)) == ("failed", 4)
    assert not Constellation.objects.exists()
    assert Agent.objects.get().state == "FAIL"
    assert "would wait for each other" in item.result["summary"]
    assert [row.outcome for row in calls()] == ["rejected"] * 4
    assert all(row.reply for row in calls())  # every answer is on record
    assert list(Transition.objects.values_list("event", flat=True).filter(machine="constellation_agent")) == ["creation_failed"]


@pytest.mark.parametrize("said", ["I would rather not.", '{"status": "CONTINUE", "constel', '{"status": "PERHAPS"}', "[]"])
def test_garbage_four_times_fails_and_all_of_it_is_on_record(engine, device, thinking, said):
    thinking(*[said] * 4)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "failed"
    assert [(row.outcome, row.error_kind) for row in calls()] == [("rejected", "answer_unusable")] * 4


def test_a_model_that_cannot_be_asked_fails_the_creation_with_its_fault(engine, device, thinking):
    thinking({"fail": {"status": 401, "message": "who are you?"}})
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, calls()[0].outcome, calls()[0].error_kind) == ("failed", "failed", "model_key_rejected")
    assert "the model could not be asked" in item.result["summary"]


def test_answers_without_a_word_fail_in_the_end_and_each_is_on_record(engine, device, thinking):
    thinking(*[{"say": ""}] * 20)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "failed"
    assert [(row.outcome, row.error_kind) for row in calls()] == [("failed", "model_answer_empty")] * 4


def test_the_model_may_say_that_it_finds_no_plan(engine, device, thinking):
    thinking(answer("FAIL", result="There is no printer."))
    _, item = ask(engine, "Print it.")
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, calls()[0].status) == ("failed", "FAIL")
    assert "There is no printer." in item.result["summary"]


def test_a_refused_edit_is_told_with_the_newest_graph_and_applied_once(engine, device, thinking):
    wrong = edited(("remove_task", {"task_id": "nobody"}), thought="Away with it.")
    right = edited(("add_task", task("report")), thought="Then a report.")
    model = thinking(planned(task("a")), wrong, right, NOTHING)
    ask(engine)
    engine.run()
    made = Constellation.objects.get()
    assert states(made) == {"a": "COMPLETED", "report": "COMPLETED"}
    assert Edit.objects.get().edit_id.startswith("model:")
    _, refused, applied, _ = calls()
    assert (refused.outcome, refused.error_kind) == ("rejected", "edit_refused")
    assert (applied.editing_session, applied.asked_again, applied.taken) == (1, 1, refused.taken)
    assert "there is no task nobody" in said_to(model, 2)
    assert "read-only" in said_to(model, 2)  # the newest graph is shown again


def test_an_edit_that_is_refused_again_and_again_ends_the_run(engine, device, thinking):
    thinking(planned(task("a")), *[edited(("remove_task", {"task_id": "nobody"}))] * 4)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, Agent.objects.get(machine="constellation_agent").state) == ("failed", "FAIL")
    assert not Edit.objects.exists()
    assert [row.outcome for row in calls(purpose="editing")] == ["rejected"] * 4


def test_finish_is_refused_while_something_is_open(engine, device, thinking):
    done = edited(status="FINISH", result="All done.")
    plan = planned(task("a"), command("slow", "sleep", "5"))
    model = thinking(plan, done, NOTHING, done)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, item.result["answer"]) == ("completed", "All done.")
    early = calls(purpose="editing")[0]
    assert (early.status, early.outcome) == ("FINISH", "rejected")
    assert "slow" in said_to(model, 2)


def test_a_model_that_finishes_may_remove_what_is_left(engine, device, thinking):
    plan = planned(task("a"), command("slow", "sleep", "5"), task("later", after=["slow"]))
    end = edited(("remove_task", {"task_id": "later"}), status="CONTINUE", thought="Not needed.")
    thinking(plan, end, edited(status="FINISH", result="Enough."))
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert item.result["answer"] == "Enough."
    assert states(Constellation.objects.get()) == {"a": "COMPLETED", "slow": "COMPLETED"}


def test_fail_ends_the_run_and_says_why(engine, device, thinking):
    thinking(planned(task("a"), command("slow", "sleep", "20")), edited(status="FAIL", result="The disk is broken."))
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    made = Constellation.objects.get()
    assert (item.outcome, made.state, states(made)["slow"]) == ("failed", "FAILED", "CANCELLED")
    assert "The disk is broken." in made.result["summary"]


def test_a_run_that_fails_leaves_no_end_untold(engine, device, thinking):
    plan = planned(task("first"), *(task(f"t{n}", after=["first"]) for n in range(3)))
    thinking(plan, {"say": edited(status="FAIL", result="No."), "first_after": 1})
    ask(engine)
    engine.run()
    assert not Task.objects.filter(untold=True).exists()
    assert [len(data["tasks"]) for data in Event.objects.filter(type="ends_taken").values_list("data", flat=True)] == [1, 3]


def test_start_begins_once_more_from_the_same_words(engine, device, thinking):
    again = edited(status="START", thought="The plan was wrong from the beginning.")
    model = thinking(planned(task("a")), again, planned(task("b"), name="second"), NOTHING)
    ask(engine)
    engine.run()
    first, second = Constellation.objects.order_by("id")
    assert (first.state, second.state, second.replaces_id) == ("CANCELLED", "COMPLETED", first.pk)
    assert states(second) == {"b": "COMPLETED"}
    events = list(Transition.objects.filter(subject_id=second.agent_id).order_by("id").values_list("event", flat=True))
    assert events == ["created", "restart", "created", "edited", "finished"]
    assert "The plan was wrong from the beginning." in said_to(model, 2)


def test_a_sixth_beginning_is_a_limit_that_fails(engine, device, thinking):
    again = edited(status="START", thought="Once more.")
    thinking(*[planned(task("a")), again] * 6)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, Constellation.objects.count()) == ("failed", 6)
    assert "limit reached: 5 restarts" in item.result["summary"]


def test_editing_sessions_are_counted(engine, device, thinking, monkeypatch):
    monkeypatch.setattr("constellations.runs.weaving.editing.EDITING_SESSIONS", 2)
    more = [edited(("add_task", task(f"t{number}"))) for number in range(3)]
    thinking(planned(task("a")), *more)
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert "limit reached: 2 editing sessions" in item.result["summary"]
    assert len(calls(purpose="editing")) == 2


def test_a_creation_that_takes_too_long_is_cut_off(engine, device, thinking, monkeypatch):
    monkeypatch.setattr("constellations.limits.PLANNING_S", 1.0)
    thinking({"say": planned(task("a")), "first_after": 20})
    _, item = ask(engine)
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, item.result["summary"]) == ("failed", "limit reached: 1 s for a creation")
    assert calls()[0].planning_s < 10


def test_a_session_that_changes_nothing_keeps_its_thought(engine, device, thinking):
    thinking(planned(task("a")), edited(thought="It went as planned."))
    ask(engine)
    engine.run()
    assert calls(purpose="editing")[0].thought == "It went as planned."
    assert Transition.objects.get(event="edited").reason == "It went as planned."
    assert not Edit.objects.exists()


def test_a_plan_cannot_bring_models_or_rules_by_itself(engine, device, thinking):
    said = json.loads(planned(task("a")))
    said["constellation"]["replan"] = [{"when": {"event": "task_completed"}, "fail": "x"}]
    thinking(json.dumps(said), planned(task("a")), NOTHING)
    ask(engine)
    engine.run()
    assert Constellation.objects.get().rules == []
    assert "replan" in calls()[0].error


def test_words_without_any_profile_are_refused_with_what_to_configure(engine, device):
    with pytest.raises(PlanRejected) as refused:
        ask(engine)
    assert any("docs/models.md" in problem["message"] for problem in refused.value.problems)
    assert not Event.objects.filter(type="model_asked").exists()
