"""The schemas of the editor's tools say what the readers take: the same keys, and, of a usual size, nothing they refuse."""

from __future__ import annotations

import keyword
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.plan import operations, schemas, steps, tasks
from constellations.plan.keys import guards, step_keys
from constellations.plan.keys.fields import NAMING
from constellations.plan.keys.json_schema import ref
from constellations.plan.schemas import TOOLS, unknown_editor_tool_text
from constellations.plan.values import Misfit

CHECK = jsonschema.Draft202012Validator
CONDITIONS = st.sampled_from(["accuracy > 0.95", "ok and not failed", "result['a'] in [1, 2]", ""])
COMMANDS = st.sampled_from(["", "^git push", r"\bmake\b"])
BY_KEY = {
    "condition": CONDITIONS, "if": CONDITIONS, "result": CONDITIONS,
    "pattern": COMMANDS, "test_commands": COMMANDS, "poll_commands": COMMANDS,
    "labels": st.sampled_from(["gpu", "team.red", "a_b-c"]),
    "outputs": st.sampled_from(["a.csv", "out/*.txt", "**/x"]),
    "writes": st.sampled_from(["", "a.py", "src/b.py"]),
    "save": st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,9}", fullmatch=True).filter(
        lambda text: not keyword.iskeyword(text) and text not in ("result", "results")
    ),
    "commands": st.sampled_from(["make", "test"]),
}  # fmt: skip
"""Text whose form no JSON Schema says: the description does."""
PARTS = {"task": tasks.ADD_READERS, "dependency": tasks.DEPENDENCY_READERS}
USUAL = 20
"""Characters of a text, and how far a number is above the least: limits are said by the readers alone."""


def values_of(schema: dict[str, Any], key: str = "") -> st.SearchStrategy:
    """Whatever fits a schema, in the words that the schemas here use, of a usual size."""
    if "$ref" in schema:
        return st.deferred(lambda: SAMPLES[schema["$ref"].rsplit("/", 1)[1]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of(*(BY_TYPE[kind](schema, key) for kind in kinds))


def _text(schema, key):
    if key in BY_KEY:
        return BY_KEY[key]
    if "pattern" in schema:
        form = st.from_regex(schema["pattern"].removeprefix("^").removesuffix("$"), fullmatch=True)
        return form.filter(lambda text: len(text) <= USUAL)
    return st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=USUAL)


def _number(schema, key):
    exclusive = "exclusiveMinimum" in schema
    low = schema["exclusiveMinimum"] if exclusive else schema["minimum"]
    return st.floats(low, low + USUAL, exclude_min=exclusive, allow_nan=False)


def _whole(schema, key):
    low = schema.get("minimum", -USUAL)
    return st.integers(low, low + 2 * USUAL)


def _list(schema, key):
    return st.lists(values_of(schema["items"], key), min_size=1, max_size=3)


def _object(schema, key):
    if key == "inputs":
        return st.dictionaries(st.sampled_from(["a.csv", "in/b"]), st.sampled_from(["make#a.csv", "#b"]), max_size=2)
    if "properties" not in schema:
        return st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(), max_size=2)
    needed = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: values_of(each, name) for name, each in schema["properties"].items() if name in needed},
        optional={name: values_of(each, name) for name, each in schema["properties"].items() if name not in needed},
    )


BY_TYPE = {
    "string": _text, "number": _number, "array": _list, "object": _object, "boolean": lambda schema, key: st.booleans(),
    "integer": _whole, "null": lambda schema, key: st.none(),
}  # fmt: skip
CALL = {"command": ["make", "test"]}
STEP_SAMPLES = st.sampled_from(
    [
        CALL, {"command": "a | b", "shell": True}, {"say": "hello"}, {"ask": "Which?", "options": ["a"]},
        {"observe": True}, {"wait": 5}, {"wait": {"for": "upload"}}, {"delegate": {"name": "other", "steps": [CALL]}},
        {**CALL, "tries": 3, "every": 1.5, "recover": [CALL], "expect": {"exit_code": 0}},
    ]
)  # fmt: skip
SAMPLES = {
    "step": STEP_SAMPLES,
    "phase": st.fixed_dictionaries({"description": st.just("part"), "steps": st.lists(STEP_SAMPLES, min_size=1, max_size=2)}),
    "policy": values_of(guards.POLICY_SCHEMA),
    "task": st.fixed_dictionaries({"task_id": st.sampled_from(["a", "b"]), "tool": st.just("noop")}),
    "dependency": st.fixed_dictionaries({"from": st.just("a"), "to": st.just("b")}),
}
DOING = ("not_device", "command", "shell", "tool", "arguments", "phases", "steps")
"""Keys of a task that go together, or exclude one another."""
FREE = {key: schema for key, schema in schemas.TASK_KEYS.items() if key not in DOING}
TASKS = values_of({"type": "object", "properties": FREE, "required": ["task_id"]})

KEYS = {
    "build_constellation": {"tasks", "dependencies", "clear"},
    "add_task": set(tasks.COPY_READERS),
    "remove_task": {"task_id"},
    "update_task": set(tasks.TASK_READERS),
    "add_dependency": set(tasks.DEPENDENCY_READERS),
    "remove_dependency": set(NAMING),
    "update_dependency": set(tasks.DEPENDENCY_READERS),
}


def test_the_short_parts_of_a_task_are_those_that_building_spells_out():
    spelt, short = schemas.DEFS["task"]["properties"], TOOLS["add_task"].parameters["properties"]
    assert {key for key in spelt if spelt[key] != schemas.bare_keys(short)[key]} == set(schemas.SHORT)
    assert all(key in TOOLS["add_task"].description for key in schemas.SHORT)


def test_there_is_a_tool_for_each_operation_that_the_editor_reads():
    assert set(TOOLS) == set(operations.READERS) == set(KEYS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_has_exactly_the_keys_that_the_readers_take(name):
    schema = TOOLS[name].parameters
    CHECK.check_schema(schema)
    assert set(schema["properties"]) == KEYS[name]
    assert schema["additionalProperties"] is False
    strange = operations.read_operation({"op": name, "parameters": {"colour": 1}})
    assert any("there is no key colour" in message for _, message in strange.findings)


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_schema_refers_to_is_in_it(name):
    def referred(value):
        if isinstance(value, dict):
            yield from ([value["$ref"]] if "$ref" in value else [])
            value = list(value.values())
        for inner in value if isinstance(value, list) else ():
            yield from referred(inner)

    schema = TOOLS[name].parameters
    assert {each.rsplit("/", 1)[1] for each in referred(schema)} == set(schema.get("$defs", {}))


def test_the_parts_of_a_task_have_the_keys_of_their_readers():
    step = schemas.DEFS["step"]["properties"]
    assert set(guards.POLICY_SCHEMA["properties"]) == set(guards.POLICY_READERS)
    assert set(guards.PROGRESS_SCHEMA["properties"]) == set(guards.SETTING_READERS)
    assert set(schemas.DEFS["phase"]["properties"]) == set(steps.PHASE_READERS)
    assert set(step) == {key for readers in step_keys.WRITTEN.values() for key in readers}
    assert set(step["expect"]["properties"]) == set(step_keys.EXPECTED)
    assert set(step["delegate"]["properties"]) == set(step_keys.INNER["delegate"])
    assert set(step["wait"]["properties"]) == set(step_keys.INNER["wait"])


@pytest.mark.parametrize("part", PARTS)
@given(data=st.data())
def test_each_value_that_fits_its_schema_is_taken_by_its_reader(part, data):
    schema, readers = schemas.DEFS[part], PARTS[part]
    key = data.draw(st.sampled_from(sorted(schema["properties"])))
    value = data.draw(values_of(schema["properties"][key], key))
    CHECK({**schema["properties"][key], "$defs": schemas.DEFS}).validate(value)
    try:
        readers[key](value)
    except Misfit as misfit:
        pytest.fail(f"{key}: {value!r} fits its schema, and its reader says it {misfit}")


@given(TASKS, SAMPLES["phase"], STEP_SAMPLES, st.sampled_from(["command", "tool", "steps", "phases"]))
def test_a_task_that_fits_and_says_what_to_do_is_understood(fields, phase, step, how):
    does = {"command": ["make"], "tool": "noop", "steps": [step], "phases": [phase]}[how]
    task = {**fields, how: does}
    CHECK(TOOLS["add_task"].parameters).validate(task)
    CHECK(TOOLS["build_constellation"].parameters).validate({"tasks": [task]})
    assert operations.read_operation({"op": "add_task", "parameters": task}).findings == []
    CHECK(TOOLS["update_task"].parameters).validate(task)
    assert operations.read_operation({"op": "update_task", "parameters": task}).findings == []


@given(STEP_SAMPLES)
def test_a_step_that_is_written_as_the_docs_say_fits_its_schema(step):
    CHECK({**ref("step"), "$defs": schemas.DEFS}).validate(step)


@pytest.mark.parametrize("name", ["update_task", "update_dependency"])
def test_null_sets_the_default_again(name):
    schema = TOOLS[name].parameters
    which = {"task_id": "a"} if name == "update_task" else {"from": "a", "to": "b"}
    for key in set(schema["properties"]) - set(which) - {"dependency_id", *operations.DOING}:
        given_null = {**which, key: None}
        CHECK(schema).validate(given_null)
        read = operations.read_operation({"op": name, "parameters": given_null})
        assert read.findings == []


@pytest.mark.parametrize("key", operations.DOING)
def test_there_is_no_default_for_what_a_task_does(key):
    given_null = {"task_id": "a", key: None}
    assert not CHECK(TOOLS["update_task"].parameters).is_valid(given_null)
    assert [path for path, _ in operations.read_operation({"op": "update_task", "parameters": given_null}).findings] == [(key,)]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("build_constellation", {"dependencies": [{"from": "a", "to": "b"}], "clear": False}),
        ("build_constellation", {"tasks": [{"task_id": "a", "tool": "noop"}], "dependencies": [], "clear": False}),
        ("remove_task", {"task_id": "a"}),
        ("add_dependency", {"from": "a", "to": "b", "condition": "accuracy > 0.9"}),
        ("remove_dependency", {"dependency_id": "a>b"}),
        ("update_dependency", {"from": "a", "to": "b", "type": "COMPLETION_ONLY"}),
    ],
)
def test_an_example_of_each_tool_fits_and_is_understood(name, parameters):
    CHECK(TOOLS[name].parameters).validate(parameters)
    assert operations.read_operation({"op": name, "parameters": parameters}).findings == []


def test_a_tool_that_there_is_not_is_told_with_the_nearest_one():
    assert unknown_editor_tool_text("add_tsk") == "there is no tool add_tsk; did you mean add_task?"
