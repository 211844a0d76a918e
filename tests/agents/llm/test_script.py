"""The file of a scripted model: what is matched, what is refused, and that the page shows the example as it is."""

import json
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from agents.llm.scripted.script import PIECE, Asked, ScriptRejected, read_script

ROOT = Path(django_settings.BASE_DIR)


def asked(last: str = "", **more) -> Asked:
    return Asked(**{"model": "m", "system": "", "last": last, "tools": (), "key": "", "body": {}, **more})


def said(script, *requests: Asked) -> list[str | None]:
    found = [script.answer(each) for each in requests]
    return [None if each is None else "".join(each.say) for each in found]


def test_the_first_answer_that_fits_is_given_as_often_as_its_times():
    script = read_script("answers: [{when: {last: a}, times: 2, say: first}, {when: {last: a}, say: then}]")
    assert said(script, asked("a"), asked("xax"), asked("a"), asked("a"), asked("b")) == [
        "first",
        "first",
        "then",
        "then",
        None,
    ]


def test_all_that_is_said_of_a_request_must_hold():
    script = read_script("answers: [{when: {last: a, system: s, model: m, tools: [t, u]}, say: x}]")
    fits = asked("a", system="is", tools=("u", "t", "v"))
    assert said(script, fits) == ["x"]
    others = [{"system": ""}, {"model": "n"}, {"tools": ("t",)}, {"last": "b"}]
    assert said(script, *(asked(**{**vars(fits), **other}) for other in others)) == [None] * 4


def test_a_text_is_streamed_in_pieces_and_a_list_as_it_is():
    long, listed = read_script(f"answers: [{{say: {'x' * 100}}}, {{say: [a, b]}}]").answers
    assert [len(piece) for piece in long.say] == [PIECE, PIECE, 100 - 2 * PIECE]
    assert listed.say == ("a", "b")


def test_answers_that_follow_each_other_are_given_in_order_and_the_last_as_often_as_it_fits():
    script = read_script("answers: [{when: {last: a}, say: first, then: [{say: second}, {say: third}]}]")
    assert said(script, *[asked("a")] * 5) == ["first", "second", "third", "third", "third"]
    assert said(script, asked("b")) == [None]


def test_a_last_answer_with_times_is_used_up_and_said_to_be():
    script = read_script("answers: [{say: z, when: {last: z}}, {when: {last: a}, say: first, then: [{say: second, times: 1}]}]")
    assert said(script, *[asked("a")] * 3) == ["first", "second", None]
    assert script.used_up(asked("a")) == [1, 2]


def test_an_answer_is_for_a_turn_of_the_conversation_and_for_what_was_said_in_it():
    script = read_script("answers: [{when: {turn: 1, said: digits}, say: then}, {when: {turn: 0}, say: first}]")
    turns = [asked("x", turn=0), asked("x", turn=1, said="read digits"), asked("x", turn=1, said="letters")]
    assert said(script, *turns) == ["first", "then", None]


def test_what_a_pattern_finds_in_the_conversation_comes_back_in_the_answer():
    script = read_script(r"""
answers:
  - when: {matches: 'task (?P<task>\w+) says (?P<word>.+)'}
    say: {status: CONTINUE, result: "$task: $word costs $5"}
    think: About $task.
    call: [{tool: remove_task, arguments: {task_id: $task, reason: $word}}]
  - say: nothing of $task
""")
    found = script.answer(asked(said='task t7 says "no"\nnever'))
    assert json.loads("".join(found.say)) == {"status": "CONTINUE", "result": 't7: "no"\nnever costs $5'}
    assert "".join(found.think) == "About t7."
    assert json.loads(found.calls[0].arguments) == {"task_id": "t7", "reason": '"no"\nnever'}
    assert said(script, asked()) == ["nothing of $task"]


@pytest.mark.parametrize(("text", "place"), [
    ("answers: {}", "answers"), ("[]", "answers"), ("answers: [7]", r"answers\[0\]"), ("a: [", "no YAML"), ("\x00", "no YAML"),
    ("answers: [{say: 7}]", r"answers\[0\].say"), ("answers: [{call: [{arguments: {}}]}]", r"answers\[0\].call.tool"),
    ("answers: [{fail: {status: 200}}]", "status: must be from 400"),
    ("answers: [{fail: {status: 500}, say: x}]", "stand alone"),
    ("answers: [{when: {lost: x}}]", "when: lost: known are"),
    ("answers: [{pause: -1}]", "pause"), ("answers: [{finish: soon}]", "finish"),
    ("answers: [{when: {matches: '('}}]", "matches: is no regular"), ("answers: [{when: {turn: first}}]", "when.turn"),
    ("answers: [{say: a, then: [{when: {last: b}}]}]", r"then\[0\]: when: known are"),
    ("answers: [{say: a, then: b}]", r"then: must be a list"), ("answers: [{wait_for: 3}]", "wait_for"),
    ("answers: [{times: many}]", "times"), ("answers: [{tokens: {in: 1}}]", "tokens"),
])  # fmt: skip
def test_what_is_no_script_is_refused_at_its_place(text, place):
    with pytest.raises(ScriptRejected, match=place):
        read_script(text)


def test_the_page_shows_the_example_as_it_is():
    example = (ROOT / "examples" / "models" / "scripted.yaml").read_text().split("\n", 1)[1]
    assert example in (ROOT / "docs" / "models.md").read_text()
    assert len(read_script(example).answers) == 4
