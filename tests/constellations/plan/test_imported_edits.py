"""Answers of agents that edit a constellation: named as edits, read in their words, applied as one change set."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.services import sessions
from agents.services.devices import device_create
from constellations.errors import PlanRejected
from constellations.models import Edit
from constellations.plan.dialects import read_edit
from tests.agents.conftest import Rest, make_token
from tests.constellations.planting import advance, noop, plant, states

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

DOCUMENTS = Path(__file__).parent / "dialects"
SEED = (DOCUMENTS / "seed_edit.json").read_text()
"""The seeds' own: a retraining in words alone, and no deployment."""
RETRAINED = {**dict.fromkeys(("task_001", "task_002", "task_003"), "COMPLETED"), "task_005": "PENDING"}
GALAXY = {
    "thought": "Train again.",
    "status": "CONTINUE",
    "action": [
        {
            "function": "add_task",
            "arguments": {
                "task_id": "task_005", "name": "retrain", "description": "Retrain.", "target_device_id": "laptop", "tips": None,
                "actions": [{"function": "execute_command", "arguments": {"command": "make train"}}],
            },
            "status": "success",
        },
        {
            "function": "add_dependency",
            "arguments": {
                "dependency_id": "line-5", "from_task_id": "task_003", "to_task_id": "task_005",
                "condition_description": "when it is not good enough",
            },
        },
        {"function": "update_task", "arguments": {"task_id": "task_004", "name": "ship", "target_device_id": None}},
    ],
}  # fmt: skip


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def evaluated(operator):
    """The seeds' constellation when task_003 is COMPLETED."""
    for name in ("laptop", "gpu_server"):
        device_create(name, by="system")
    names = [f"task_00{number}" for number in range(1, 5)]
    tasks = [noop(name, after=names[max(number - 1, 0) : number]) for number, name in enumerate(names)]
    made = plant(sessions.session_create(operator, "mnist", by="system"), *tasks)
    advance(made, task_001="COMPLETED", task_002="COMPLETED", task_003="COMPLETED")
    return made


def address(constellation) -> str:
    return f"/api/constellations/{constellation.pk}/import/"


def test_the_seeds_edit_is_applied_as_it_is_written(rest, evaluated):
    answer = rest.post(address(evaluated), {"document": SEED, "edit_id": "once", "based_on": 1})
    assert answer.status_code == 201, answer.content
    edit = Edit.objects.get()
    assert (edit.edit_id, edit.version, edit.reason) == ("once", 2, json.loads(SEED)["thought"])
    assert states(evaluated) == RETRAINED
    fresh = evaluated.tasks.get(task_id="task_005")
    assert (fresh.name, fresh.wanted_device, fresh.tool) == ("retrain_with_tuning", "gpu_server", "")
    assert answer["ETag"] == '"v2"'
    again = rest.post(address(evaluated), {"document": json.loads(SEED), "edit_id": "once", "based_on": 1})
    assert (again.status_code, again.json()["changed"]) == (200, False)


def test_galaxys_edit_is_applied_in_its_words(rest, evaluated):
    answer = rest.post(address(evaluated), {"document": f"I suggest:\n\n```json\n{json.dumps(GALAXY, indent=1)}\n```\nDone."})
    assert answer.status_code == 201, answer.content
    fresh = evaluated.tasks.get(task_id="task_005")
    assert (fresh.wanted_device, fresh.arguments) == ("laptop", {"argv": ["make", "train"]})
    line = evaluated.dependencies.get(dependency_id="line-5")
    assert (line.type, line.condition, line.description) == ("UNCONDITIONAL", "", "when it is not good enough")
    assert evaluated.tasks.get(task_id="task_004").name == "ship"


def test_a_command_applies_an_edit(evaluated, tmp_path):
    file, out = tmp_path / "answer.md", StringIO()
    file.write_text(f"```json\n{SEED}\n```\n")
    call_command("constellation_import", file, constellation=evaluated.pk, stdout=out)
    assert states(evaluated) == RETRAINED
    assert Edit.objects.get().edit_id == out.getvalue().strip()
    file.write_text(SEED.replace("task_004", "task_002"))
    with pytest.raises(CommandError, match=r"line 14, actions\[2\]\.parameters\.task_id: task_002 has ended"):
        call_command("constellation_import", file, constellation=evaluated.pk)


@pytest.mark.parametrize(
    "written",
    [
        SEED,
        GALAXY,
        f"```\n{SEED}```",
        json.dumps(json.loads(SEED)["actions"]),
        json.dumps({"add_task": {"task_id": "x", "tool": "noop"}}),
    ],
)
def test_an_edit_is_named_as_one_where_a_constellation_was_wanted(rest, evaluated, written):
    for target in ("/api/import/check", f"/api/sessions/{evaluated.session_id}/import/"):
        answer = rest.post(target, {"document": written})
        assert (answer.status_code, answer.json()["code"]) == (400, "edit_given")
        assert "this is an edit of a constellation, and no constellation: apply it to one" in answer.json()["detail"]


def test_a_constellation_is_no_edit(rest, evaluated):
    answer = rest.post(address(evaluated), {"document": (DOCUMENTS / "seed.json").read_text()})
    assert answer.status_code == 400
    assert "this is no edit of a constellation" in answer.json()["detail"]


def test_every_refusal_of_an_edit_names_line_and_key(rest, evaluated):
    wrong = SEED.replace('"gpu_server"', '"moon"').replace("task_004", "task_001")
    answer = rest.post(address(evaluated), {"document": wrong})
    assert answer.status_code == 409
    assert [(each["line"], each["key"], each["message"]) for each in answer.json()["problems"]] == [
        (8, "actions[0].parameters.device", "there is no device moon; there are gpu_server, laptop"),
        (14, "actions[2].parameters.task_id", "task_001 has ended (COMPLETED)"),
    ]
    assert not Edit.objects.exists()


def test_an_edit_needs_the_scope_to_edit(operator, evaluated):
    _, text = make_token(operator, "read", "operate")
    assert Rest(token=text).post(address(evaluated), {"document": SEED}).status_code == 403
    _, text = make_token(operator, "edit")
    assert Rest(token=text).post(address(evaluated), {"document": SEED}).status_code == 201


def test_an_old_edit_is_stale(rest, evaluated):
    rename = {"update_task": {"task_id": "task_004", "name": "x"}}
    rest.post(f"/api/constellations/{evaluated.pk}/edits/", {"operations": [rename]})
    answer = rest.post(address(evaluated), {"document": SEED}, **{"If-Match": '"v1"'})
    assert (answer.status_code, answer.json()["code"], answer.json()["version"]) == (409, "stale_edit", 2)


# What is read


def problem(written) -> tuple[str, str]:
    with pytest.raises(PlanRejected) as refused:
        read_edit(written)
    (found,) = refused.value.problems
    return found["key"], found["message"]


def operations(*actions, dialect="") -> list[dict]:
    return read_edit({"status": "CONTINUE", "actions": list(actions)}, dialect).operations


def test_words_of_ours_are_read_in_any_form():
    said = {"task_id": "x", "command": ["make"]}
    for action in ({"tool": "add_task", "parameters": said}, {"function": "add_task", "arguments": said}, {"add_task": said}):
        assert operations(action) == [{"op": "add_task", "parameters": said}]


def test_words_alone_are_a_task_in_words_where_the_dialect_has_such():
    said = {"task_id": "x", "device": "laptop"}
    assert operations({"tool": "add_task", "parameters": said})[0]["parameters"]["tool"] == ""
    assert operations({"op": "add_task", "parameters": said})[0]["parameters"] == said
    assert operations({"op": "add_task", "parameters": said}, dialect="seed")[0]["parameters"]["tool"] == ""


def test_an_answer_may_say_that_it_holds_no_constellation():
    remove = {"tool": "remove_task", "parameters": {"task_id": "a"}}
    assert len(read_edit({"thought": "x", "constellation": None, "status": "CONTINUE", "action": remove}).operations) == 1


def test_what_is_built_anew_is_translated_as_a_whole():
    config = {"tasks": {"a": {"name": "A", "priority": 4}, "b": {"dependencies": ["a"]}}}
    found = operations({"function": "build_constellation", "arguments": {"config": config, "clear_existing": False}})
    assert found[0]["parameters"] == {
        "tasks": [
            {"task_id": "a", "name": "A", "priority": "CRITICAL", "tool": ""},
            {"task_id": "b", "tool": ""},
        ],
        "dependencies": [{"from": "a", "to": "b", "type": "UNCONDITIONAL"}],
        "clear": False,
    }


def test_conditions_and_prose_of_a_line_are_told_apart():
    said = {"dependency_id": "l", "condition_description": "accuracy > 0.9"}
    assert operations({"function": "update_dependency", "arguments": said})[0]["parameters"] == {
        "dependency_id": "l", "condition": "accuracy > 0.9",
    }  # fmt: skip
    said["condition_description"] = "when it is good"
    assert operations({"function": "update_dependency", "arguments": said})[0]["parameters"] == {
        "dependency_id": "l", "description": "when it is good",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        ({"thought": "x", "actions": 5}, "actions", "must be a list of operations, not the number 5"),
        ({"thoughts": "x", "actions": [{"remove_task": {"task_id": "a"}}]}, "thoughts", "there is no key thoughts here"),
        ({"status": "FAIL", "actions": [{"remove_task": {"task_id": "a"}}]}, "status", "the agent says FAIL"),
        ({"actions": [{"remove_task": {"task_id": "a"}, "x": 1}]}, "actions[0]", "an operation is one key"),
        (
            {"actions": [{"remove_task": {"task_id": "a"}}], "action": [{"remove_task": {"task_id": "a"}}]},
            "action",
            "the edit is in actions already; give one of the two",
        ),
        (
            [{"function": "add_task", "arguments": {"task_id": "a", "target_device_id": "x", "prio": 1}}],
            "[0].arguments.prio",
            "there is no key prio here; did you mean priority?",
        ),
        ({"thought": "all done", "status": "FINISH"}, "", "this is no edit of a constellation"),
        (
            [{"function": "update_task", "arguments": {"task_id": "a", "status": "completed"}}],
            "[0].arguments.status",
            "status is not edited; it follows from what happens",
        ),
        (
            [{"function": "update_task", "arguments": {"task_id": "a", "target_device_id": "x", "dependencies": ["b"]}}],
            "[0].arguments.dependencies",
            "dependencies are edited by add_dependency and remove_dependency",
        ),
    ],
)
def test_what_is_wrong_with_an_edit_is_said_where_it_is(written, key, message):
    found, said = problem(written)
    assert found == key
    assert message in said
