"""`build_constellation` in a graph that runs: what has started stays, what may still change is replaced."""

import pytest

from agents.models import Event
from constellations.models import Constellation, Edit
from tests.agents.conftest import Rest
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
RUNS = command("train", "sleep", "0.3")


def test_over_rest_it_keeps_what_runs_and_names_the_fields_of_what_is_listed_otherwise(engine, device, operator):
    rest = Rest(operator)
    answers = []

    def edit(key):
        def build(*tasks):
            operation = {"op": "build_constellation", "parameters": {"tasks": list(tasks)}}
            return rest.post(f"/api/constellations/{key}/edits/", {"operations": [operation]})

        answers.append(build({**RUNS, "timeout": 9, "command": ["sleep", "9"]}, noop("report")))
        answers.append(build(RUNS, noop("report", after=["train"])))
        answers.append(build(noop("publish", after=["train"])))

    def until() -> bool:
        if not answers and something_runs():
            in_thread(edit, query("SELECT id FROM constellations_constellation"))
        return bool(answers) and inbox_rests()

    _, item = engine.submit({"tasks": [RUNS, noop("deploy", after=["train"])]})
    engine.run(until)
    other, same, unlisted = answers
    assert (other.status_code, other.json()["problems"]) == (
        409,
        [
            {
                "operation": 1, "op": "build_constellation", "field": "tasks[0].command",
                "message": "train already runs, and what is listed differs from it in command, timeout: "
                "list it as it is, or leave it out",
            }
        ],
    )  # fmt: skip
    assert (same.status_code, unlisted.status_code) == (201, 201)
    found = Constellation.objects.get(interaction=item)
    assert states(found) == {"train": "COMPLETED", "publish": "COMPLETED"}


def test_a_rule_builds_the_rest_anew_while_the_task_that_made_it_fire_stays(engine, device):
    rule = {
        "name": "otherwise",
        "when": {"event": "task_completed", "task": "train", "condition": "accuracy < 0.9"},
        "edit": [{"build_constellation": {"tasks": [noop("retrain"), noop("report", after=["train", "retrain"])]}}],
    }
    plan = {"tasks": [noop("train", {"accuracy": 0.5}), noop("deploy", after=["train"])], "replan": [rule]}
    found = engine.carry_out(plan)
    assert list(Event.objects.filter(type="edit_refused").values_list("data", flat=True)) == []
    assert states(found) == dict.fromkeys(("train", "retrain", "report"), "COMPLETED")
    assert Edit.objects.get().author == "planner"


def test_a_rule_that_lists_what_has_started_otherwise_is_refused_with_the_field(engine, device):
    rule = {
        "name": "otherwise",
        "when": {"event": "task_completed", "task": "train"},
        "edit": [{"build_constellation": {"tasks": [noop("train", priority="HIGH"), noop("report")]}}],
    }
    found = engine.carry_out({"tasks": [noop("train", 1), noop("deploy", after=["train"])], "replan": [rule]})
    assert states(found) == {"train": "COMPLETED", "deploy": "COMPLETED"}
    assert Event.objects.get(type="edit_refused").data["message"] == (
        "operation 1 (build_constellation), tasks[0].arguments: train has ended (COMPLETED), and what is listed differs from "
        "it in arguments, priority: list it as it is, or leave it out"
    )
