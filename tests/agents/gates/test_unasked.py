"""What levels write of calls that a model may make unasked: read, and merged so that narrowing never widens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.gates.chosen import judge_chosen
from agents.gates.policies import Act, Judgement, Site
from agents.gates.unasked import DEFAULT, MAX_ENTRIES, MAX_WORDS, Unasked, UnaskedRejected, read_unasked

WORDS = st.lists(st.sampled_from(["git", "push", "-f", "src", "a/b", "../up", "X=1"]), min_size=1, max_size=3)
PATTERNS = st.tuples(st.sampled_from(["git", "src"]), st.lists(st.sampled_from(["push", "*", "a/*", "-f"]), max_size=2)).map(
    lambda parts: (parts[0], *parts[1])
)
TOOLS = st.sampled_from(["read_file", "write_file", "noop"])
LEVELS = st.builds(
    Unasked,
    commands=st.frozensets(PATTERNS, max_size=3),
    tools=st.frozensets(TOOLS, max_size=3),
    ask=st.frozensets(st.one_of(TOOLS, st.just("*"), PATTERNS), max_size=2),
)
CALLS = st.one_of(
    WORDS.map(lambda argv: Act("command", {"argv": argv})),
    TOOLS.map(lambda tool: Act(tool, {"path": "x"} if tool != "noop" else {})),
)
HERE = Site("here", is_here=True, is_confined=True)


def is_let(act: Act, level: Unasked) -> bool:
    return judge_chosen(act, HERE, Judgement(), level).decision == "allow"


@given(act=CALLS, level=LEVELS, others=st.lists(LEVELS, max_size=3))
@settings(max_examples=300)
def test_a_level_that_only_asks_never_widens_the_others(act, level, others):
    narrow = [Unasked(ask=each.ask) for each in others]
    assert is_let(act, level) or not is_let(act, level.merge(*narrow))


@given(act=CALLS, one=LEVELS, other=LEVELS)
@settings(max_examples=300)
def test_what_merged_levels_let_one_of_them_lets_and_none_asks_about(act, one, other):
    if is_let(act, one.merge(other)):
        assert is_let(act, one) or is_let(act, other)
        assert is_let(act, Unasked(one.commands | other.commands, one.tools | other.tools, one.ask))


@given(one=LEVELS, other=LEVELS, third=LEVELS)
def test_levels_merge_alike_in_any_order_and_any_number_of_times(one, other, third):
    assert one.merge(other, third) == third.merge(one).merge(other) == one.merge(one, other.merge(third))


@given(act=CALLS, old=LEVELS, new=LEVELS)
@settings(max_examples=300)
def test_a_change_that_is_no_widening_lets_nothing_more(act, old, new):
    if not new.widening_of(old):
        assert is_let(act, old) or not is_let(act, new)


@given(level=LEVELS)
def test_a_level_widens_itself_in_nothing(level):
    assert level.widening_of(level) == ""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({}, {"commands": [["pytest", "-q"]]}, "lets a model run pytest -q unasked"),
        ({"tools": ["noop"]}, {"tools": ["noop", "read_file"]}, "lets a model call read_file unasked"),
        ({"ask": [["git", "push"]]}, {}, "lets a model do git push unasked, which was asked about"),
        ({"tools": ["noop"]}, {"ask": ["*"]}, ""),
    ],
)
def test_what_a_change_lets_more_is_said_in_words(old, new, words):
    assert Unasked.of(new).widening_of(Unasked.of(old)) == words


def test_what_is_read_is_kept_as_it_is_with_each_entry_once():
    said = {"ask": ["write_*", ["git", "..."]], "commands": [["make", "test"], ("make", "test")], "tools": []}
    assert read_unasked(said) == {"commands": [["make", "test"]], "ask": ["write_*", ["git", "..."]]}
    assert read_unasked(DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [
        ([], (), "must be an object"),
        ({"comands": []}, ("comands",), "there are commands, tools, ask"),
        ({"tools": "read_file"}, ("tools",), "must be a list"),
        ({"tools": [3]}, ("tools", 0), "must be a text"),
        ({"tools": ["command"]}, ("tools", 0), "let run by `commands`"),
        ({"tools": ["x"] * (MAX_ENTRIES + 1)}, ("tools",), "are allowed"),
        ({"commands": ["pytest -q"]}, ("commands", 0), "argument list"),
        ({"commands": [["make"], []]}, ("commands", 1), "argument list"),
        ({"commands": [["make"] * (MAX_WORDS + 1)]}, ("commands", 0), "words"),
        ({"commands": [["make", ""]]}, ("commands", 0), "not empty"),
        ({"commands": [["x", "...", "y"]]}, ("commands", 0), "may only be the last"),
        ({"commands": [["*", "x"]]}, ("commands", 0), "program must be written out"),
        ({"commands": [["..."]]}, ("commands", 0), "program must be written out"),
        ({"commands": [["sh", "-c", "make test"]]}, ("commands", 0), "a line for a shell"),
        ({"commands": [["env", "bash", "-lc", "ls"]]}, ("commands", 0), "a line for a shell"),
        ({"commands": [["sh", "*"]]}, ("commands", 0), "runs other programs"),
        ({"commands": [["env", "..."]]}, ("commands", 0), "runs other programs"),
        ({"commands": [["timeout", "5", "pytest", "*"]]}, ("commands", 0), "runs other programs"),
        ({"commands": [["find", "..."]]}, ("commands", 0), "runs other programs"),
        ({"commands": [["awk", "*"]]}, ("commands", 0), "runs other programs"),
        ({"commands": [["python", "-c", "*"]]}, ("commands", 0), "is given code"),
        ({"commands": [["node", "-e", "..."]]}, ("commands", 0), "is given code"),
        ({"commands": [["python3.12", "-m", "*"]]}, ("commands", 0), "which module"),
        ({"ask": [[]]}, ("ask", 0), "argument list"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(said, path, words):
    with pytest.raises(UnaskedRejected, match=words) as refused:
        read_unasked(said)
    assert refused.value.path == path
