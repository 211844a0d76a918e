"""Answers of models: found in whatever stands around them, and refused with the place of what is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.prompts.answers import ANSWER, AnswerUnusable, problem
from constellations.prompts.prompter import UnknownMode, prompter_for, supported_modes

CREATION, EDITING = prompter_for("creation"), prompter_for("editing")
PLAN = {"name": "p", "tasks": [{"task_id": "a", "command": ["ls"]}], "dependencies": []}


def created(**more) -> str:
    return json.dumps({"observation": "o", "thought": "t", "status": "CONTINUE", "constellation": PLAN, "result": None, **more})


def edited(**more) -> str:
    return json.dumps({"observation": "o", "thought": "t", "status": "CONTINUE", "actions": [], "result": "", **more})


def problems_of(prompter, text: str) -> list[dict]:
    with pytest.raises(AnswerUnusable) as caught:
        prompter.read_answer(text)
    return caught.value.problems


def test_there_are_two_modes_and_another_is_refused_by_name():
    assert supported_modes() == ("creation", "editing")
    with pytest.raises(UnknownMode, match="weaving mode 'dreaming'; there are creation, editing"):
        prompter_for("dreaming")


@pytest.mark.parametrize(
    "around",
    [
        "ANSWER",
        "```json\nANSWER\n```",
        "Here it is:\n```\nANSWER\n```\nDone.",
        "I think {so} of it: ANSWER - {that} is all.",
        "\ufeff ANSWER\n",
    ],
)
def test_an_answer_is_found_alone_in_a_fence_and_among_words(around):
    answer = CREATION.read_answer(around.replace("ANSWER", created()))
    assert (answer.status, answer.thought, answer.plan["tasks"][0]["task_id"]) == ("CONTINUE", "t", "a")


def test_a_comma_before_a_closing_bracket_means_nothing_but_in_texts():
    text = (
        '{"thought": "a,} b,]", "status": "continue", "actions": [{"tool": "remove_task", "parameters": {"task_id": "a",},},],}'
    )
    answer = EDITING.read_answer(text)
    assert (answer.thought, answer.status) == ("a,} b,]", "CONTINUE")
    assert answer.actions == [{"tool": "remove_task", "parameters": {"task_id": "a"}}]


@pytest.mark.parametrize("status", ["", "DONE", "start over", None, 7, ["CONTINUE"], "CONTINUE\u200b"])
def test_an_unknown_status_is_refused_and_never_a_beginning_again(status):
    told = problems_of(EDITING, edited(status=status))
    assert told[0]["field"] == "status"
    assert told[0]["message"].startswith("must be one of CONTINUE, FINISH, FAIL, START, not ")


def test_only_editing_can_begin_again():
    assert EDITING.read_answer(edited(status="start")).status == "START"
    assert problems_of(CREATION, created(status="START"))[0]["field"] == "status"


def test_a_constellation_without_tasks_is_a_direct_answer_only_with_finish():
    empty = {"name": "", "tasks": [], "dependencies": []}
    answer = CREATION.read_answer(created(status="FINISH", constellation=empty, result="Two devices."))
    assert (answer.plan, answer.result) == (None, "Two devices.")
    assert problems_of(CREATION, created(constellation=empty))[0]["field"] == "constellation"
    assert problems_of(CREATION, created(status="FINISH"))[0]["field"] == "status"
    assert CREATION.read_answer(created(status="FAIL", result="No GPU.")).plan is None


@pytest.mark.parametrize("key", ["models", "start", "replan", "absent", "x"])
def test_what_is_for_people_to_choose_is_refused_in_a_models_constellation(key):
    (told,) = problems_of(CREATION, created(constellation={**PLAN, key: "x"}))
    assert told["field"] == f"constellation.{key}"


def test_each_wrong_action_is_named_by_its_number_and_place():
    told = problems_of(
        EDITING,
        edited(
            actions=[
                {"tool": "add_tasks", "parameters": {}},
                {"tool": "add_task", "parameters": [1]},
                "remove_task",
                {"tool": "remove_task", "parameters": {"task_id": "a"}, "why": "old"},
                {"tool": "remove_task", "parameters": {"task_id": "a"}},
            ]
        ),
    )
    assert [(each["operation"], each["field"]) for each in told] == [
        (1, "actions[0].tool"), (2, "actions[1].parameters"), (3, "actions[2]"), (4, "actions[3].why"),
    ]  # fmt: skip
    assert "there is no tool add_tasks; did you mean add_task" in told[0]["message"]


def test_parts_may_come_as_json_text():
    parameters = {"task_id": "a", "tool": "write_file", "arguments": '{"path": "x", "text": "{}"}'}
    action = EDITING.read_answer(edited(actions=[{"tool": "add_task", "parameters": json.dumps(parameters)}])).actions[0]
    assert action["parameters"]["arguments"] == {"path": "x", "text": "{}"}


def test_an_answer_that_broke_off_is_refused_and_not_taken_for_its_largest_part():
    told = problems_of(CREATION, created()[:-25])
    assert told[0]["message"].startswith("it must be one JSON object, and it is not JSON: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("I cannot do that.", "it must be one JSON object, and there is none"),
        ("[1, 2]", "it must be one JSON object"),
        ('{"status": "FAIL", "status": "START"}', "the key status is there twice"),
        ('{"status": "FAIL", "result": NaN}', "NaN is no number in JSON"),
        ('{"status": "FAIL", "result": "\\ud800"}', "half"),
        ('{"status": "FAIL", "result": ' + "[" * 40 + "]" * 40 + "}", "nested more than 20 deep"),
        ("[" * 100_000, "it must be one JSON object"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"result": 1' + "0" * 10_000 + "}", "digits"),
        ("x" * (ANSWER + 1), "1,000,000 are read"),
    ],
)
def test_what_is_no_answer_is_refused_with_the_reason(text, said):
    assert said in problems_of(EDITING, text)[0]["message"]


def test_an_answer_of_200_kb_is_read():
    tasks = [{"task_id": f"t{n}", "description": "x" * 150, "command": ["ls"]} for n in range(1_000)]
    text = created(constellation={"tasks": tasks})
    assert len(text) > 200_000
    assert len(CREATION.read_answer(text).plan["tasks"]) == 1_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["observation", "thought", "status", "constellation", "actions", "result", "extra"])
STATUS = st.sampled_from(["CONTINUE", "FINISH", "FAIL", "START", "start", "no"])


@given(text=st.text() | st.text('{}[]",:\\ntrue0`', max_size=60), mode=st.sampled_from(supported_modes()))
def test_junk_raises_nothing_but_its_refusal(text, mode):
    _read_or_refuse(text, mode)


@given(found=st.dictionaries(KEYS, JSON, max_size=6), status=STATUS, mode=st.sampled_from(supported_modes()))
def test_objects_of_any_values_raise_nothing_but_their_refusal(found, status, mode):
    _read_or_refuse(json.dumps({**found, "status": status}), mode)


def _read_or_refuse(text: str, mode: str) -> None:
    try:
        answer = prompter_for(mode).read_answer(text)
    except AnswerUnusable as error:
        told = error.problems
    else:
        told = [problem("", "none")]
        assert answer.status in ("CONTINUE", "FINISH", "FAIL", "START")
        assert answer.plan is None or isinstance(answer.plan["tasks"], list)
        assert all(isinstance(each["parameters"], dict) for each in answer.actions)
    assert told
    assert all(set(each) <= {"operation", "field", "message"} and each["message"] for each in told)
