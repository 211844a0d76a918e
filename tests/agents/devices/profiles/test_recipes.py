"""Recipes of a device's profile: what may be written, and how values take the places of parameters."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.profiles.profile import DeviceRejected
from agents.devices.profiles.recipes import read_recipe, recipe_problems
from agents.models import Device, Event
from agents.services.devices import device_change, device_create
from tests.agents.conftest import Rest

TRAIN = {
    "command": ["python", "train.py", "--out", "{model}", "--log={model}-{epochs}.txt", "{{model}}", "{}", '{"a": 1}'],
    "parameters": {"model": {}, "epochs": {"default": 30, "type": "integer", "description": "Passes."}},
    "description": "Train a classifier.",
}
KEYS = st.sampled_from(["command", "parameters", "type", "default", "description", "a"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def recipe(command, **parameters):
    found = read_recipe("do", {"command": command, "parameters": parameters})
    assert found is not None
    return found


def test_a_value_takes_its_parameters_place_as_a_whole_word_or_a_part_of_one():
    argv = read_recipe("train", TRAIN).argv({"model": "m 1"})
    assert argv == ["python", "train.py", "--out", "m 1", "--log=m 1-30.txt", "{model}", "{}", '{"a": 1}']


def test_a_parameter_without_a_default_is_missing_until_it_is_given():
    train = read_recipe("train", TRAIN)
    assert train.missing({}) == ["model"]
    assert train.missing({"model": "m"}) == []
    assert train.usage() == "train model=... epochs=30"


def test_a_text_of_plain_words_is_a_command_like_its_list():
    assert recipe("make --to={a} 'b c'", a={}) == recipe(["make", "--to={a}", "b c"], a={})


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
def test_what_a_shell_is_given_as_a_value_is_never_read_as_a_part_of_its_line(value):
    command = "printf '%s|%s' {a} x{b}y; echo {{a}}"
    written = {"command": command, "shell": True, "parameters": {"a": {}, "b": {"default": "B"}}}
    argv = read_recipe("do", written).argv({"a": value})
    assert argv == ["sh", "-c", 'printf \'%s|%s\' "${1}" x"${2}"y; echo {a}', "do", value, "B"]
    done = subprocess.run(argv, capture_output=True, check=True)
    assert done.stdout == f"{value}|xBy{{a}}\n".encode()


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_value_makes_more_words_or_is_looked_at_again(left, right):
    argv = recipe(["do", "{a}", "x{b}y{a}"], a={}, b={}).argv({"a": left, "b": right})
    assert argv == ["do", left, f"x{right}y{left}"]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", ["3", "-3", "030"], ["", "3.0", "three", "3 ", "1_0", "9" * 19, "٣"]),
        ("number", ["3", "-.5", "1e-4", "2."], ["", "nan", "inf", "0x1", "1e999", ".", "1,5"]),
        ("boolean", ["true", "false"], ["", "True", "1", "yes"]),
        ("string", ["", "a b", "$(x)", "3"], ["-rf", "--help", "a\0b"]),
    ],
)
def test_a_value_must_be_of_its_parameters_type(kind, good, bad):
    parameter = recipe(["do", "{a}"], a={"type": kind}).parameters["a"]
    assert [value for value in good if parameter.problem(value)] == []
    assert [value for value in bad if not parameter.problem(value)] == []


def test_a_text_may_begin_with_a_dash_where_it_cannot_be_an_option():
    assert recipe(["do", "--to={a}"], a={}).parameters["a"].problem("-x") == ""


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        ([], "", "recipes are an object"),
        ({"two words": TRAIN}, "two words", "begins with a letter"),
        ({"a": "echo"}, "a", "an object with a command, not text"),
        ({"a": {}}, "a.command", "a list of 1 to 200 words, or one text, not nothing"),
        ({"a": {"command": 3}}, "a.command", "a list of 1 to 200 words, or one text, not a number"),
        ({"a": {"command": " "}}, "a.command", "is empty"),
        (
            {"a": {"command": "echo hi > f"}},
            "a.command",
            "`>` means something to a shell, and no shell reads a command that is given as a text: give a list of words to "
            'have it as it stands, or `"shell": true` beside it to have `sh -c` run it',
        ),
        ({"a": {"command": "echo 'hi"}}, "a.command", "cannot be split into words: no closing quotation; close it"),
        ({"a": {"command": "{x} hi", "parameters": {"x": {}}}}, "a.command[0]", "program itself"),
        ({"a": {"command": "echo {x}"}}, "a.command[1]", "no parameter x; to have the braces themselves, write {{x}}"),
        ({"a": {"command": "echo {x} > f", "shell": True}}, "a.command", "no parameter x; to have the braces themselves"),
        ({"a": {"command": "ls > f", "shell": True, "parameters": {"x": {}}}}, "a.command", "x stands nowhere"),
        (
            {"a": {"command": "echo '{x}' > f", "shell": True, "parameters": {"x": {}}}},
            "a.command",
            "{x} stands in quotes or behind a $: write it without them, it is one word whatever its value",
        ),
        (
            {"a": {"command": "echo ${x}", "shell": True, "parameters": {"x": {}}}},
            "a.command",
            "stands in quotes or behind a $",
        ),
        ({"a": {"command": ["echo"], "shell": True}}, "a.shell", "of a command that is one text, and this one is not"),
        ({"a": {"command": "echo", "shell": "sh"}}, "a.shell", "must be true or false, not text"),
        ({"a": {"command": []}}, "a.command", "1 to 200"),
        ({"a": {"command": ["echo", 3]}}, "a.command[1]", "must be text, not a number"),
        ({"a": {"command": ["echo", "x\0"]}}, "a.command[1]", "NUL"),
        ({"a": {"command": ["echo", "x" * 4001]}}, "a.command[1]", "4000 are allowed"),
        ({"a": {"command": ["{x}"], "parameters": {"x": {}}}}, "a.command[0]", "program itself"),
        ({"a": {"command": ["echo", "{x}"]}}, "a.command[1]", "no parameter x; to have the braces themselves, write {{x}}"),
        ({"a": {"command": ["echo"], "parameters": {"x": {}}}}, "a.command", "x stands nowhere"),
        ({"a": {"command": ["echo"], "comand": 1}}, "a.comand", "known are command, shell, parameters, description"),
        ({"a": {"command": ["echo"], "parameters": []}}, "a.parameters", "not a list"),
        ({"a": {"command": ["echo", "{x}"], "parameters": {"x": "text"}}}, "a.parameters.x", "not text"),
        ({"a": {"command": ["echo", "{x}"], "parameters": {"x": {"typ": "integer"}}}}, "a.parameters.x.typ", "no such key"),
        ({"a": {"command": ["echo", "{x}"], "parameters": {"x": {"type": "int"}}}}, "a.parameters.x.type", "string, integer"),
        (
            {"a": {"command": ["echo", "{x}"], "parameters": {"x": {"type": "integer", "default": "3"}}}},
            "a.parameters.x.default",
            "must be a whole number, not text: 3",
        ),
        (
            {"a": {"command": ["echo", "{x}"], "parameters": {"x": {"type": "integer", "default": True}}}},
            "a.parameters.x.default",
            "must be a whole number",
        ),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said_with_its_place(written, key, message):
    (problem,) = recipe_problems(written)
    assert problem["key"] == key
    assert message in problem["message"]


def test_every_problem_is_found():
    written = {"a": {"command": [1, 2], "parameters": {"x": {"type": "int"}}}, "b": TRAIN, "c": {}}
    assert [each["key"] for each in recipe_problems(written)] == [
        "a.parameters.x.type",
        "a.command[0]",
        "a.command[1]",
        "c.command",
    ]


@given(JSON, JSON)
def test_anything_is_a_recipe_or_has_problems(name, written):
    wrong = recipe_problems({"do": written})
    assert (read_recipe("do", written) is None) == bool(wrong)
    assert isinstance(recipe_problems(name), list)


@pytest.mark.django_db
def test_a_device_with_a_broken_recipe_is_not_made_and_not_changed():
    broken = {"train": {"command": ["python", "{model}"]}}
    with pytest.raises(DeviceRejected, match=r"recipes\.train\.command\[1\]: there is no parameter model") as refused:
        device_create("laptop", recipes=broken, by="system")
    assert refused.value.problems[0]["key"] == "recipes.train.command[1]"
    assert not Device.objects.exists()

    device = device_create("laptop", recipes={"train": TRAIN}, by="system")
    events = Event.objects.count()
    with pytest.raises(DeviceRejected):
        device_change(device.pk, recipes=broken, by="system")
    assert Event.objects.count() == events
    assert Device.objects.get().recipes == {"train": TRAIN}


@pytest.mark.django_db
def test_over_rest_a_broken_recipe_is_a_problem_beside_the_other_fields(admin_user):
    body = {"name": "laptop", "recipes": {"train": {"command": [], "parameter": {}}}, "max_concurrent": 0}
    answer = Rest(admin_user).post("/api/devices/", body)
    assert answer.status_code == 400
    assert {each["key"] for each in answer.json()["problems"]} == {
        "recipes.train.command", "recipes.train.parameter", "max_concurrent",
    }  # fmt: skip
    assert Rest(admin_user).post("/api/devices/", {"name": "laptop", "recipes": {"train": TRAIN}}).status_code == 201
