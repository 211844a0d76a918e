"""Words become a constellation, which a model edits when tasks end, until it has finished: in both protocols."""

import json

import pytest

from agents.models import Agent, Event, ModelProfile, Transition
from agents.services.model_profiles import model_profile_delete
from constellations.models import Constellation, Edit
from tests.constellations.runs.test_run import states
from tests.constellations.runs.weaving.conftest import answer, ask, calls, edited, planned, task

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

GOOD_ENOUGH = {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}
PLAN = planned(
    task("fetch"), task("train", {"accuracy": 0.92}, after=["fetch"]), task("deploy"), dependencies=[GOOD_ENOUGH],
    thought="Fetch, train, and deploy only what is good enough.",
)  # fmt: skip
TUNE = edited(
    ("add_task", task("tune", {"accuracy": 0.97})),
    ("add_task", task("deploy_tuned")),
    ("add_dependency", {"from": "tune", "to": "deploy_tuned", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}),
    thought="0.92 is below 0.95: tune, and deploy what comes of it.",
)
NOTHING = edited(thought="All is well so far.")
DONE = edited(status="FINISH", thought="It is deployed.", result="The tuned model is deployed, with 0.97.")


def test_words_become_a_plan_its_result_an_edit_and_the_last_word_ends_the_run(engine, device, thinking_in_any_protocol):
    thinking_in_any_protocol(PLAN, NOTHING, TUNE, NOTHING, DONE)
    _, item = ask(engine)
    engine.run()
    made, agent = Constellation.objects.get(), Agent.objects.get(machine="constellation_agent")
    item.refresh_from_db()
    assert states(made) == {
        "fetch": "COMPLETED", "train": "COMPLETED", "deploy": "CANCELLED", "tune": "COMPLETED", "deploy_tuned": "COMPLETED",
    }  # fmt: skip
    assert (made.state, made.model_profiles["editing"], made.name) == ("COMPLETED", "weaver", "digits")
    assert (item.outcome, item.result["answer"]) == ("completed", "The tuned model is deployed, with 0.97.")
    edit = Edit.objects.get()
    assert (len(edit.operations), edit.author) == (3, "planner")
    assert edit.reason == "0.92 is below 0.95: tune, and deploy what comes of it."
    events = list(Transition.objects.filter(subject_id=agent.pk).order_by("id").values_list("event", flat=True))
    assert events == ["created", "edited", "edited", "edited", "edited", "finished"]

    creation, first, second, *_ = calls()
    assert (creation.purpose, creation.status, creation.outcome) == ("creation", "CONTINUE", "answered")
    assert creation.actions[0]["tool"] == "build_constellation"
    assert [row.editing_session for row in calls()] == [0, 1, 2, 3, 4]
    assert first.taken == [{"task_id": "fetch", "state": "COMPLETED", "reason": ""}]
    assert [each["task_id"] for each in second.taken] == ["train", "deploy"]
    assert (second.version_before, second.version_after, second.result["changed"]) == (1, 2, True)
    assert second.thought == edit.reason
    assert (first.thought, first.result) == ("All is well so far.", {"said": "", "changed": False})
    assert [each["name"] for each in second.devices] == ["laptop"]
    assert all(row.prompt_digest and row.planning_s is not None and row.input_tokens for row in calls())


def test_an_answer_that_needs_no_task_passes_through_an_empty_constellation(engine, device, thinking):
    thinking(answer("FINISH", result="There are four slots."))
    _, item = ask(engine, "How many slots has the laptop?")
    engine.run()
    made, agent = Constellation.objects.get(), Agent.objects.get()
    item.refresh_from_db()
    assert (made.state, made.tasks.count(), agent.state) == ("COMPLETED", 0, "FINISH")
    assert item.result["summary"] == item.result["answer"] == "There are four slots."
    assert item.outcome == "completed"
    moves = list(Transition.objects.filter(subject_id=agent.pk).order_by("id").values_list("from_state", "to_state"))
    assert moves == [("START", "CONTINUE"), ("CONTINUE", "FINISH")]


def test_tasks_are_told_of_while_the_model_still_writes_them(engine, device, thinking_in_any_protocol):
    text = planned(*(task(f"t{number}") for number in range(6)))
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    thinking_in_any_protocol({"say": pieces, "pause": 0.03}, *[NOTHING] * 7)
    ask(engine)
    engine.run()
    drafted = list(Event.objects.filter(type="task_drafted").order_by("seq"))
    built = Event.objects.get(type="constellation_created")
    told = [each for event in drafted for each in event.data["tasks"]]
    assert [each["task_id"] for each in told] == [f"t{number}" for number in range(6)]
    assert told[0] == {"task_id": "t0", "name": "", "device": "laptop"}
    assert len(drafted) > 1
    assert drafted[0].seq < built.seq


def test_a_plan_may_come_as_the_call_that_follows_the_schema(engine, device, thinking_in_any_protocol):
    said = json.loads(planned(task("a"), task("b")))
    thinking_in_any_protocol({"call": [{"tool": "constellation", "arguments": said}]}, *[NOTHING] * 2)
    ask(engine)
    engine.run()
    drafted = Event.objects.filter(type="task_drafted").values_list("data", flat=True)
    assert [each["task_id"] for data in drafted for each in data["tasks"]] == ["a", "b"]
    assert states(Constellation.objects.get()) == {"a": "COMPLETED", "b": "COMPLETED"}


def test_what_the_plain_text_reader_understands_asks_no_model(engine, device, thinking):
    model = thinking(NOTHING)
    ask(engine, "`true` on laptop")
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"
    assert not model.model.asked
    assert not calls()


def test_a_plan_may_name_the_model_that_edits_it(engine, device, thinking):
    model = thinking(edited(("add_task", task("report")), thought="A report is missing."), DONE)
    engine.carry_out({"tasks": [task("a")], "models": {"editing": "weaver"}})
    made = Constellation.objects.get()
    assert states(made) == {"a": "COMPLETED", "report": "COMPLETED"}
    assert [row.purpose for row in calls()] == ["editing", "editing"]
    assert len(model.model.asked) == 2


def test_the_next_request_of_a_session_knows_what_was_done_before(engine, device, thinking):
    model = thinking(planned(task("count", {"digits": 60_000}), name="counting"), DONE, answer("FINISH", result="60,000."))
    session, _ = ask(engine, "Count the digits.")
    engine.run()
    ask(engine, "How many were there?", session)
    engine.run()
    assert "Count the digits." in model.model.asked[2].last
    assert "60000" in model.model.asked[2].last
    assert Constellation.objects.latest("id").result["answer"] == "60,000."


def test_words_whose_model_is_gone_when_they_begin_fail_with_what_to_configure(engine, device, thinking):
    thinking(NOTHING)
    _, item = ask(engine)
    model_profile_delete(ModelProfile.objects.get().pk, by="system")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "failed"
    assert any("docs/models.md" in problem["message"] for problem in item.result["problems"])


def test_after_an_answer_that_broke_off_the_next_is_read_from_its_beginning(engine, device, thinking):
    text = planned(*(task(f"t{number}") for number in range(6)))
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    thinking({"say": pieces, "stop_after": len(pieces) // 2}, {"say": pieces, "pause": 0.03}, *[NOTHING] * 7)
    ask(engine)
    engine.run()
    told = [
        each["task_id"] for event in Event.objects.filter(type="task_drafted").order_by("seq") for each in event.data["tasks"]
    ]
    assert told == [f"t{number}" for number in range(6)]
    assert [each["code"] for each in calls()[0].tries] == ["model_answer_broken"]
