"""The file of a scripted model: what is matched, what is refused, and that the page shows the example as it is."""

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


@pytest.mark.parametrize(("text", "place"), [
    ("answers: {}", "answers"), ("[]", "answers"), ("answers: [7]", r"answers\[0\]"), ("a: [", "no YAML"), ("\x00", "no YAML"),
    ("answers: [{say: 7}]", r"answers\[0\].say"), ("answers: [{call: [{arguments: {}}]}]", r"answers\[0\].call.tool"),
    ("answers: [{fail: {status: 200}}]", "status: must be from 400"),
    ("answers: [{fail: {status: 500}, say: x}]", "stand alone"),
    ("answers: [{when: {lost: x}}]", "when: lost: known are"),
    ("answers: [{pause: -1}]", "pause"), ("answers: [{finish: soon}]", "finish"),
    ("answers: [{times: many}]", "times"), ("answers: [{tokens: {in: 1}}]", "tokens"),
])  # fmt: skip
def test_what_is_no_script_is_refused_at_its_place(text, place):
    with pytest.raises(ScriptRejected, match=place):
        read_script(text)


def test_the_page_shows_the_example_as_it_is():
    example = (ROOT / "examples" / "models" / "scripted.yaml").read_text().split("\n", 1)[1]
    assert example in (ROOT / "docs" / "models.md").read_text()
    assert len(read_script(example).answers) == 4
