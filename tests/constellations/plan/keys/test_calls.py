"""Calls are judged where they are written: tools there are not, and arguments that a tool does not take, in every place."""

import json

import pytest

from agents.services import sessions
from constellations.errors import EditRefused, PlanRejected
from constellations.models import Edit
from constellations.plan.plan import parse_plan
from constellations.services.edits import edit_apply
from constellations.services.imports import check_document, read_document
from constellations.services.plans import read_plan
from constellations.services.preview import edit_preview
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]


def edit(constellation_id: int, operation: dict):
    return edit_apply(constellation_id, [operation], author="user:1")


UNKNOWN = {"tool": "raed_file", "arguments": {"path": "a"}}
UNKNOWN_SAID = (
    "there is no tool raed_file; there are command, edit_file, noop, observe, read_file, write_file; did you mean read_file?"
)
STRANGE = {"tool": "read_file", "arguments": {"path": "a", "lines": 5}}
STRANGE_SAID = "read_file takes no lines; it takes path, offset, limit"
MISSING = {"tool": "write_file", "arguments": {"path": "a"}}
MISSING_SAID = "write_file needs content"
OTHERWISE = {"tool": "command", "arguments": {"command": "ls"}}
OTHERWISE_SAID = "command takes no command; it takes argv; did you mean argv?"
CALLS = [
    (UNKNOWN, "tool", UNKNOWN_SAID), (STRANGE, "arguments.lines", STRANGE_SAID), (MISSING, "arguments", MISSING_SAID),
    (OTHERWISE, "arguments.command", OTHERWISE_SAID),
]  # fmt: skip


def problems_of(plan: dict) -> list[tuple[str, str]]:
    with pytest.raises(PlanRejected) as refused:
        parse_plan(json.dumps(plan))
    return [(problem["key"], problem["message"]) for problem in refused.value.problems]


@pytest.mark.parametrize(("call", "key", "message"), CALLS)
def test_a_plan_is_refused_wherever_it_calls_what_there_is_not(call, key, message):
    steps = {
        "steps[0]": [call],
        "steps[0].recover[0]": [{"command": ["make"], "recover": [call]}],
        "steps[0].delegate.steps[0]": [{"delegate": {"name": "x", "steps": [call]}}],
    }
    for place, written in {"": call, **{place: {"steps": each} for place, each in steps.items()}}.items():
        found = problems_of({"tasks": [{"task_id": "a", **written}]})
        assert found == [(f"tasks[0].{place}.{key}".replace("..", "."), message)]
    phases = [{"steps": [{"do": "call", **call}]}]
    assert problems_of({"tasks": [{"task_id": "a", "phases": phases}]}) == [(f"tasks[0].phases[0].steps[0].{key}", message)]


@pytest.mark.parametrize(("call", "key", "message"), CALLS)
def test_the_operations_of_a_rule_are_looked_at_as_the_plan_is(call, key, message):
    edits = {
        "add_task": {"task_id": "b", **call},
        "update_task": {"task_id": "a", **call},
        "build_constellation": {"tasks": [{"task_id": "b", **call}], "clear": False},
    }
    for op, parameters in edits.items():
        rule = {"when": {"event": "task_failed"}, "edit": [{op: parameters}]}
        place = f"{op}.tasks[0]" if op == "build_constellation" else op
        found = problems_of({"tasks": [noop("a")], "replan": [rule]})
        assert found == [(f"replan[0].edit[0].{place}.{key}", message)]


def test_a_rule_may_name_the_task_that_ended_in_what_a_tool_is_given():
    add = {"add_task": {"task_id": "{task}_log", "tool": "read_file", "arguments": {"path": "{task}.log"}}}
    plan = parse_plan(json.dumps({"tasks": [noop("a")], "replan": [{"when": {"event": "task_failed"}, "edit": [add]}]}))
    assert plan.rules[0]["edit"][0]["parameters"]["arguments"] == {"path": "{task}.log"}


@pytest.mark.parametrize(("call", "key", "message"), CALLS)
def test_an_edit_and_a_preview_are_refused_and_nothing_is_written(operator, verified, call, key, message):
    session = sessions.session_create(operator, by="system")
    made = plant(session, noop("a"))
    for operation in ({"add_task": {"task_id": "b", **call}}, {"update_task": {"task_id": "a", **call}}):
        for attempt in (edit, lambda constellation_id, operation: edit_preview(constellation_id, [operation])):
            with pytest.raises(EditRefused) as refused:
                attempt(made.pk, operation)
            (problem,) = refused.value.problems
            assert (problem["field"], problem["message"], refused.value.status) == (key, message, 400)
    assert not Edit.objects.exists()


def test_a_change_of_the_tool_or_of_the_arguments_alone_is_judged_with_what_stays(operator, verified):
    session = sessions.session_create(operator, by="system")
    made = plant(session, {"task_id": "a", "tool": "read_file", "arguments": {"path": "a"}})
    for fields, field, message in (
        ({"arguments": {"path": 5}}, "arguments.path", "must be text, not the number 5; put it in quotes"),
        ({"arguments": {}}, "arguments", "read_file needs path"),
        ({"tool": "write_file"}, "arguments", "write_file needs path and content"),
    ):
        with pytest.raises(EditRefused) as refused:
            edit(made.pk, {"update_task": {"task_id": "a", **fields}})
        (problem,) = refused.value.problems
        assert (problem["field"], problem["message"]) == (field, message)
    made_edit, changed = edit(made.pk, {"update_task": {"task_id": "a", "tool": "read_file", "timeout": 5}})
    assert (changed, [sorted(entry["fields"]) for entry in made_edit.diff]) == (True, [["timeout"]])
    assert edit(made.pk, {"update_task": {"task_id": "a", "arguments": {"path": "b"}}})[1]


def test_an_import_is_refused_in_the_words_of_its_document(db):
    galaxy = {"tasks": {"t": {"name": "T", "actions": [{"function": "click", "arguments": {"x": 1}}]}}}
    seed = {"tasks": [{"task_id": "t", "actions": [{"tool": "read_file", "parameters": {"file": "a"}}]}], "dependencies": []}
    there = "there are command, edit_file, noop, observe, read_file, write_file"
    for document, dialect, found in (
        (galaxy, "galaxy", [("tasks.t.actions[0].function", f"there is no tool click; {there}")]),
        (
            seed, "seed",
            [
                (
                    "tasks[0].actions[0].parameters.file",
                    "read_file takes no file; it takes path, offset, limit; did you mean path?",
                ),
                ("tasks[0].actions[0].parameters", "read_file needs path"),
            ],
        ),
    ):  # fmt: skip
        for imported in (check_document, read_document):
            with pytest.raises(PlanRejected) as refused:
                imported(document, dialect)
            assert [(problem["key"], problem["message"]) for problem in refused.value.problems] == found


def test_a_tool_that_the_installation_adds_is_one_that_there_is(more_tools):
    plan = {"plan": json.dumps({"tasks": [{"task_id": "a", "tool": "deploy", "arguments": {"to": "x"}}]})}
    with pytest.raises(PlanRejected, match="there is no tool deploy; there are command"):
        read_plan(plan)
    more_tools("deploy")
    assert read_plan(plan).tasks[0]["arguments"] == {"to": "x"}
