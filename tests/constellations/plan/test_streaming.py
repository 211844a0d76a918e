"""Tasks come out of a plan while it is written, however the text is cut, and whatever stands around them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.plan.streaming import CHARACTERS, TaskReader

TASKS = [
    {"task_id": "a", "description": 'say "}]" and \\', "after": []},
    {"task_id": "b", "steps": [{"call": {"tool": "noop"}}, {"wait": 1}], "arguments": {"x": {"y": [1, {"z": "{"}]}}},
    {"task_id": "ü", "name": "\n\t"},
]
TEXT = json.dumps({"thought": 'the "tasks" are few', "constellation": {"name": "n", "tasks": TASKS, "dependencies": [{}]}})


def read(*pieces: str) -> list[dict]:
    reader = TaskReader()
    return [task for piece in pieces for task in reader.feed(piece)]


@given(st.lists(st.integers(0, len(TEXT))))
def test_the_tasks_are_the_same_however_the_text_is_cut(cuts):
    places = [0, *sorted(cuts), len(TEXT)]
    assert read(*(TEXT[one:other] for one, other in pairwise(places))) == TASKS


def test_a_task_comes_out_with_its_last_sign():
    reader, found = TaskReader(), []
    for at, sign in enumerate(TEXT):
        found += [(at, task["task_id"]) for task in reader.feed(sign)]
    assert [task for _, task in found] == ["a", "b", "ü"]
    assert [TEXT[at] for at, _ in found] == ["}"] * 3
    assert found[0][0] < TEXT.index('"b"')


@pytest.mark.parametrize("around", ["```json\n{}\n```", "Here it is:\n{}\nGood?", '{{"observation": "tasks: [", "x": {}}}'])
def test_what_stands_around_the_plan_does_no_harm(around):
    assert read(around.format(TEXT)) == TASKS


@pytest.mark.parametrize(
    "text", ["", "no plan", '{"tasks": []}', '{"tasks": [1, "x", [{"task_id": "inner"}]]}', '{"tasks": [{"a']
)
def test_what_is_no_task_does_not_come_out(text):
    assert read(text) == []


@given(st.text(alphabet='{}[]"\\:,tasks 1', max_size=200))
def test_nothing_that_a_model_writes_breaks_the_reader(text):
    assert all(isinstance(task, dict) for task in read('{"tasks": [', *text))


def test_an_endless_text_is_left_at_its_bound():
    reader = TaskReader()
    assert reader.feed('{"tasks": [' + " " * CHARACTERS) == []
    assert reader.feed('{"task_id": "late"}') == []
