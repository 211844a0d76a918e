"""Constellations in other dialects: what they become, what is refused where, and that what is exported comes back the same."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constellations.errors import PlanRejected
from constellations.plan import plan as plans
from constellations.plan.dialects import NAMES, ToldStates, read_constellation, write_document
from constellations.plan.dialects.parts import constellation
from constellations.plan.dialects.parts.shell import line_words
from constellations.plan.documents import MAX_JSON_BYTES
from constellations.plan.tasks import IN_WORDS

DOCUMENTS = Path(__file__).parent / "dialects"
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def tools(more_tools):
    """What these tests call, beside what there is."""
    more_tools("a", "execute_command", "set_edit_text")


def document(name: str) -> dict:
    return json.loads((DOCUMENTS / f"{name}.json").read_text())


def problems(written, dialect="") -> list[tuple[int | None, str, str]]:
    with pytest.raises(PlanRejected) as refused:
        read_constellation(written, dialect)
    return [(each["line"], each["key"], each["message"]) for each in refused.value.problems]


def problem(written, dialect="") -> tuple[int | None, str, str]:
    found = problems(written, dialect)
    assert len(found) == 1, found
    return found[0]


def galaxy(task=None, **rest) -> dict:
    """A document of Galaxy's with one task that runs `make`, and `task` besides."""
    whole = {"task_id": "a", "actions": [{"function": "execute_command", "arguments": {"command": "make"}}], **(task or {})}
    return {"constellation_id": "c", "tasks": [whole], **rest}


def lines(*dependencies) -> dict:
    """Two tasks of Galaxy's and what is between them."""
    tasks = [galaxy({"task_id": name})["tasks"][0] for name in ("a", "b")]
    return {"tasks": tasks, "dependencies": [{"from_task_id": "a", "to_task_id": "b", **each} for each in dependencies]}


def seed(*actions, **task) -> dict:
    return {"tasks": [{"task_id": "a", "actions": list(actions), **task}]}


def task_of(written, dialect="") -> dict:
    (row,) = read_constellation(written, dialect).tasks
    return row


def edge_of(written) -> dict:
    (row,) = read_constellation(written, "galaxy").dependencies
    return row


# Documents as other programs write them


def test_the_seeds_workflow_becomes_a_plan():
    plan = read_constellation((DOCUMENTS / "seed.json").read_text())
    fetch, train, _, deploy = plan.tasks
    assert (plan.dialect, plan.name) == ("seed", "mnist")
    assert (fetch["tool"], fetch["wanted_device"]) == ("command", "laptop")
    assert fetch["arguments"] == {"argv": ["python", "fetch.py", "--dataset", "mnist"]}
    assert [step["tool"] for step in train["phases"][0]["steps"]] == ["write_file", "command"]
    assert (train["tool"], train["priority"], train["tips"]) == ("steps", 2, ["Watch the loss.", "Keep the checkpoints."])
    assert deploy["arguments"] == {"argv": ["make", "deploy"]}
    assert [row["type"] for row in plan.dependencies] == ["SUCCESS_ONLY", "SUCCESS_ONLY", "CONDITIONAL"]
    assert plan.dependencies[2]["condition"] == "accuracy > 0.95"


def test_what_galaxy_writes_of_itself_becomes_a_plan():
    plan = read_constellation((DOCUMENTS / "galaxy.json").read_text())
    log, report, clean = plan.tasks
    assert (plan.dialect, plan.name) == ("galaxy", "Collect and report logs")
    assert (log["wanted_device"], log["device_type"], log["priority"]) == ("linux_agent_1", "linux", 2)
    assert (log["timeout"], log["max_attempts"]) == (120.0, 3)
    assert log["arguments"] == {"argv": ["tail", "-n", "100", "/var/log/syslog"]}
    steps = report["phases"][0]["steps"]
    assert steps[0]["arguments"] == {"argv": ["sh", "-c", "echo report > report.txt"]}
    assert (steps[1]["tool"], steps[1]["arguments"]) == ("set_edit_text", {"text": "done"})
    assert (report["device_type"], report["tips"]) == ("windows", ["Expected output: a text file"])
    assert clean["priority"] == 0
    first, second = plan.dependencies
    assert (first["dependency_id"], first["type"]) == ("line-1", "SUCCESS_ONLY")
    assert (first["condition"], first["description"]) == ("", "Proceed only if the log could be read.")
    assert (second["from"], second["to"], second["type"]) == ("task-2", "task-3", "UNCONDITIONAL")


def test_a_plan_of_ours_is_read_as_it_is():
    text = "name: one\ntasks:\n  - {task_id: a, command: make}\n  - {task_id: b, tool: noop, after: a}\n"
    plan, imported = plans.parse_plan(text), read_constellation(text)
    assert imported.dialect == "orrery"
    assert (imported.name, imported.tasks, imported.dependencies) == (plan.name, plan.tasks, plan.dependencies)


@pytest.mark.parametrize("name", ["seed", "galaxy"])
def test_a_document_is_read_alike_from_text_and_from_a_value(name):
    assert read_constellation(document(name)) == read_constellation(json.dumps(document(name)))


def test_tasks_in_words_alone_are_kept_and_do_nothing():
    plan = read_constellation((DOCUMENTS / "seed_in_words.json").read_text())
    assert [(row["name"], row["tool"], row["arguments"]) for row in plan.tasks] == [
        (name, IN_WORDS, {}) for name in ("download_mnist", "train_cnn", "evaluate", "deploy")
    ]


def test_a_condition_in_prose_is_refused_beside_a_task_in_words():
    (prose,) = problems((DOCUMENTS / "galaxy_prose.json").read_text())
    assert prose[:2] == (24, "constellation.dependencies[0].condition_description")
    assert prose[2].startswith("t1 > t2 is conditional, and its condition is prose; give an expression over the result of t1")


# Which dialect it is


@pytest.mark.parametrize(
    ("written", "dialect"),
    [
        ({"tasks": [{"task_id": "a", "tool": "noop"}]}, "orrery"),
        ({"tasks": [{"task_id": "a", "tool": "noop"}], "states": {"state": "READY"}}, "orrery"),
        (seed({"tool": "noop"}), "seed"),
        (galaxy(), "galaxy"),
        (lines({}), "galaxy"),
        ({"tasks": {"a": {"actions": [{"function": "noop"}]}}}, "galaxy"),
    ],
)
def test_a_dialect_is_told_by_its_keys(written, dialect):
    assert read_constellation(written).dialect == dialect


def test_keys_of_several_dialects_are_not_guessed_about():
    text = '{"tasks": [{"task_id": "a",\n "name": "x", "device": "laptop"}]}'
    assert problem(text) == (None, "", "its keys are those of orrery or seed; say which dialect it is")
    mixed = {"tasks": [{"task_id": "a", "command": "make", "target_device_id": "laptop"}]}
    message = (
        "its keys are of several dialects: tasks[0].command is orrery, tasks[0].target_device_id is galaxy; say which it is"
    )
    assert problem(mixed) == (None, "", message)


def test_a_dialect_that_is_named_is_not_told_by_keys():
    plain = {"tasks": [{"task_id": "a", "name": "x", "device": "laptop"}]}
    assert task_of(plain, "seed")["tool"] == IN_WORDS
    assert problem(plain, "orrery")[2].startswith("a task needs a command, a tool or steps")


def test_an_unknown_dialect_is_refused():
    assert problem(galaxy(), "galxy") == (None, "dialect", "there is no dialect galxy; did you mean galaxy?")


# What is refused, and where


@pytest.mark.parametrize(
    ("task", "key", "message"),
    [
        ({"target_device": "x"}, "target_device", "there is no key target_device here; did you mean target_device_id?"),
        ({"priority": 5}, "priority", "is 5; it must be from 1 (LOW) to 4 (CRITICAL)"),
        ({"priority": 0}, "priority", "is 0; it must be from 1 (LOW) to 4 (CRITICAL)"),
        ({"priority": "urgent"}, "priority", "must be one of LOW, MEDIUM, HIGH, CRITICAL, not the text 'urgent'"),
        ({"priority": True}, "priority", "must be one of LOW, MEDIUM, HIGH, CRITICAL or a number from 1, not true"),
        ({"status": "done"}, "status", "must be one of"),
        ({"device_type": "toaster"}, "device_type", "must be one of windows, macos, linux"),
        ({"retry_count": -1}, "retry_count", "is -1; it must be from 0 to 99"),
        ({"timeout": 0}, "timeout", "is 0; it must be above 0"),
        ({"target_device_id": 7}, "target_device_id", "must be text, not the number 7"),
        ({"task_data": {"path": "x"}}, "task_data.path", "there is no key path here; there are actions, orrery"),
        ({"task_data": []}, "task_data", "must be an object (key: value), not a list"),
        ({"task_data": {"orrery": 1}}, "task_data.orrery", "must be an object"),
        ({"task_data": {"orrery": {"dedline": 5}}}, "task_data.orrery.dedline", "there is no key dedline here"),
        ({"task_data": {"actions": [{"function": "noop"}]}}, "actions", "a task has its actions in one place"),
        ({"description": "x", "task_description": "y"}, "task_description", "are the same thing, and differ here"),
        ({"actions": [{"arguments": {}}]}, "actions[0]", "an action needs a function"),
        ({"actions": [{"function": "noop", "parameters": {}}]}, "actions[0].parameters", "there is no key parameters here"),
        ({"actions": [{"function": 5}]}, "actions[0].function", "must be text, not the number 5"),
        ({"actions": [{"function": "noop", "arguments": [1]}]}, "actions[0].arguments", "must be an object"),
        ({"actions": "make"}, "actions", "must be a list, not the text 'make'"),
        ({"actions": [{"function": "a"}, {"function": ""}]}, "actions[1].function", "is empty"),
        ({"dependencies": ["nobody"]}, "dependencies", "there is no task nobody"),
    ],
)  # fmt: skip
def test_what_galaxy_would_pass_over_is_refused_with_its_key(task, key, message):
    _, found, said = problem(galaxy(task), "galaxy")
    assert found.removeprefix("tasks[0]").removeprefix(".") == key
    assert message in said


def test_lines_of_text_are_named():
    text = json.dumps(galaxy({"priority": 9, "tipps": []}, stat="x"), indent=1)
    found = problems(text)
    numbered = [next(n for n, row in enumerate(text.splitlines(), 1) if key in row) for key in ("priority", "tipps", "stat")]
    assert sorted(line for line, _, _ in found) == sorted(numbered)


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ({"to_task_id": None}, "", "a dependency needs `to_task_id`"),
        ({"to_task_id": "c"}, "", "there is no task c"),
        ({"dependency_type": "sometimes"}, "dependency_type", "must be one of"),
        ({"dependency_type": "conditional"}, "condition_description", "a > b is conditional and has no condition"),
        ({"dependency_type": "CONDITIONAL", "condition_description": "when it is done"}, "condition_description", "is prose"),
        ({"condition_description": 5}, "condition_description", "must be text, not the number 5"),
        ({"condition": "x > 1"}, "condition", "there is no key condition here; did you mean condition_description?"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_galaxys_words(line, key, message):
    _, found, said = problem(lines(line), "galaxy")
    assert found.removeprefix("dependencies[0]").removeprefix(".") == key
    assert message in said


def test_a_key_that_is_not_its_parts_id_is_refused():
    written = {"tasks": {"a": galaxy({"task_id": "b"})["tasks"][0]}}
    assert problem(written)[1:] == ("tasks.a.task_id", "is b here and a in its key")


@pytest.mark.parametrize(("written", "key"), [({"tasks": 5}, "tasks"), ({"tasks": []}, "tasks"), ({"tasks": [5]}, "tasks[0]")])
def test_a_constellation_without_tasks_is_refused(written, key):
    assert key in [found for _, found, _ in problems({"constellation_id": "c", **written})]


@pytest.mark.parametrize("written", [5, [], None, "", "tasks: [", b"\xff", {"constellation": 5}, {"a": float("nan")}])
def test_what_is_no_document_is_refused(written):
    assert problems(written)


def test_the_edits_of_an_answer_are_not_passed_over():
    answer = {**document("seed"), "actions": [{"tool": "remove_task", "parameters": {"task_id": "task_004"}}]}
    said = "what edits a constellation is not imported with one; give each alone, the edit to the constellation it is of"
    assert problem(answer)[1:] == ("actions", said)
    assert problem({**document("seed"), "thoughts": ""})[1] == "thoughts"


def test_a_document_has_at_most_as_many_bytes_as_an_export():
    large = galaxy({"description": "x" * MAX_JSON_BYTES})
    assert "10,000,000 are allowed" in problem(large)[2]
    assert "10,000,000 are allowed" in problem(json.dumps(large))[2]


def test_what_an_agent_calls_failed_is_not_carried_out():
    text = (DOCUMENTS / "seed.json").read_text().replace("CONTINUE", "FAIL")
    line, key, message = problem(text)
    assert (line, key) == (3, "status")
    carried = "the agent says FAIL: what it gives is not to be carried out"
    assert message == f"{carried}; to have it all the same, give what it holds without this key"
    assert read_constellation(json.loads(text)["constellation"], "seed").name == "mnist"


def test_an_answer_may_hold_its_constellation_as_text():
    held = json.dumps(document("seed")["constellation"], indent=1)
    assert read_constellation({"thought": "", "constellation": held}, "seed") == read_constellation(document("seed"), "seed")
    text = json.dumps({"thought": "", "constellation": held.replace("high", "urgent")}, indent=1)
    assert problem(text)[:2] == (3, "constellation.tasks[1].priority")
    assert problem('{"status": "CONTINUE",\n "constellation": "{,}"}')[0] == 2


def test_an_answer_that_holds_nothing_says_so():
    assert "there is nothing to import" in problem({"thought": "All done.", "status": "FINISH", "result": {"completed": 5}})[2]


# Code fences


FENCED = "Here is the plan you asked for:\n\n```json\n{}\n```\n\nDo you want me to go on?\n"


@pytest.mark.parametrize(
    "around",
    [FENCED, "```\n{}\n```", "~~~~ JSON\n{}\n~~~~", "\ufeff```json\r\n{}\r\n```\r\n", "1. this:\n  ```json\n{}\n  ```"],
)
@pytest.mark.parametrize("encoded", [False, True])
def test_a_document_in_a_code_fence_is_read(around, encoded):
    text = around.replace("{}", (DOCUMENTS / "seed.json").read_text().rstrip())
    assert read_constellation(text.encode() if encoded else text) == read_constellation(document("seed"))


def test_yaml_in_a_code_fence_is_read():
    assert [
        row["task_id"] for row in read_constellation("Yes:\n```yaml\ntasks:\n  - {task_id: a, tool: noop}\n```\n").tasks
    ] == ["a"]


def test_lines_within_a_code_fence_are_those_of_the_whole_text():
    text = FENCED.replace("{}", json.dumps(galaxy({"priority": 9}), indent=1))
    line, key, _ = problem(text)
    assert (line, key) == (text[: text.index("priority")].count("\n") + 1, "tasks[0].priority")


def test_code_fences_within_a_document_are_left_alone():
    plan = "tasks:\n  - task_id: a\n    tool: noop\n    description: |\n      ```json\n      {}\n      ```\n"
    assert task_of(plan)["description"] == "```json\n{}\n```\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("```json\n{}\n```\nor\n```\n{}\n```", 5, "there are 2 code blocks of JSON or YAML; give one"),
        ("Sure:\n```json\n{", 2, "the code block that begins here does not end: the answer was cut off"),
        ("```python\nprint()\n```", 1, "the code block holds python; give JSON or YAML"),
        ("Sure:\n```json\n{,}\n```", 3, "it is not JSON: expecting property name enclosed in double quotes at column 2"),
    ],
)
def test_a_code_fence_that_holds_no_document_says_why(text, line, message):
    assert problem(text) == (line, "", message)


# Recipes


RECIPES = {
    "laptop": {
        "train": {
            "command": ["python", "train.py", "--epochs={epochs}", "{model}"],
            "parameters": {"model": {}, "epochs": {"type": "integer", "default": 30}},
        },
        "broken": {"command": []},
    }
}  # fmt: skip


def recipe(tool: str, device: str = "laptop", **parameters):
    return read_constellation(seed({"tool": tool, "parameters": parameters}, device=device), "seed", RECIPES)


def test_an_action_may_name_a_recipe_of_its_device():
    (row,) = recipe("train", model="m.bin", epochs=3).tasks
    assert (row["tool"], row["arguments"]) == ("command", {"argv": ["python", "train.py", "--epochs=3", "m.bin"]})
    with pytest.raises(PlanRejected, match="there is no tool train"):
        recipe("train", device="other", model="m.bin")


@pytest.mark.parametrize(
    ("tool", "parameters", "key", "message"),
    [
        ("train", {}, "parameters", "train needs model: train model=... epochs=30"),
        ("train", {"model": "m", "epoch": 3}, "parameters.epoch", "train has no parameter epoch; did you mean epochs?"),
        ("train", {"model": "m", "epochs": 1.5}, "parameters.epochs", "must be a whole number, not '1.5'"),
        ("train", {"model": "-m"}, "parameters.model", "'-m' would be read as an option, because it begins with -"),
        ("broken", {}, "parameters", "the recipe broken of laptop is broken: its profile must be corrected"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said_where_it_is_named(tool, parameters, key, message):
    with pytest.raises(PlanRejected) as refused:
        recipe(tool, **parameters)
    assert [(each["key"], each["message"]) for each in refused.value.problems] == [(f"tasks[0].actions[0].{key}", message)]


# What is said one way here and another way there


def test_a_command_of_galaxys_may_say_how_long_and_where():
    command = {"function": "execute_command", "arguments": {"command": "make", "timeout": 60, "cwd": "my src"}}
    row = task_of(galaxy({"actions": [command]}))
    assert (row["tool"], row["timeout"]) == ("command", 60)
    assert row["arguments"] == {"argv": ["sh", "-c", "cd 'my src' && make"]}
    assert task_of(galaxy({"actions": [command], "timeout": 5}))["timeout"] == 5
    two = task_of(galaxy({"actions": [command, {"function": "noop"}]}))["phases"][0]["steps"]
    assert (two[0]["tool"], two[0]["timeout"]) == ("command", 60)
    command["arguments"]["timeout"] = -1
    assert problem(galaxy({"actions": [command]}))[1] == "tasks[0].actions[0].arguments.timeout"


@pytest.mark.parametrize(("written", "place"), [(1, 0), (4, 3), ("LOW", 0), ("critical", 3), ("High", 2), (None, 1)])
def test_priorities_are_numbers_from_one_or_names(written, place):
    assert task_of(galaxy({"priority": written}))["priority"] == place


def test_a_dependency_without_a_type_is_unconditional_in_galaxy_and_success_only_in_the_seed():
    assert edge_of(lines({}))["type"] == "UNCONDITIONAL"
    pair = [seed({"tool": "noop"}, task_id=name)["tasks"][0] for name in ("a", "b")]
    (row,) = read_constellation({"tasks": pair, "dependencies": [{"from": "a", "to": "b"}]}, "seed").dependencies
    assert row["type"] == "SUCCESS_ONLY"
    (row,) = read_constellation(
        {"tasks": pair, "dependencies": [{"from": "a", "to": "b", "condition": "x > 1"}]}, "seed"
    ).dependencies
    assert (row["type"], row["condition"]) == ("CONDITIONAL", "x > 1")


def seed_line(**line):
    pair = [{"task_id": name, "actions": [{"tool": "noop"}]} for name in "ab"]
    return read_constellation({"tasks": pair, "dependencies": [{"from": "a", "to": "b", **line}]}, "seed").dependencies[0]


@pytest.mark.parametrize("prose", ["done", "when it is done", "5", "true", "'ready'"])
def test_prose_of_any_length_describes_a_line_that_has_no_condition(prose):
    row = seed_line(type="SUCCESS_ONLY", condition=prose)
    assert (row["type"], row["condition"], row["description"]) == ("SUCCESS_ONLY", "", prose)


@pytest.mark.parametrize("text", ["x > 1", "len(x)", "not done", "x.ready", "results['a']"])
def test_what_compares_or_calculates_is_no_prose_and_needs_a_line_that_has_a_condition(text):
    with pytest.raises(PlanRejected, match="only a CONDITIONAL dependency has a condition; this one is SUCCESS_ONLY"):
        seed_line(type="SUCCESS_ONLY", condition=text)


def test_a_word_is_a_condition_where_there_is_one():
    for line in ({"type": "CONDITIONAL"}, {}):
        assert seed_line(**line, condition="done")["condition"] == "done"


def test_a_condition_that_can_be_evaluated_is_one():
    row = edge_of(lines({"dependency_type": "conditional", "condition_description": "accuracy > 0.9"}))
    assert (row["type"], row["condition"], row["description"]) == ("CONDITIONAL", "accuracy > 0.9", "")


def test_prose_stays_a_description_beside_an_expression_of_ours():
    prose = {"dependency_type": "conditional", "condition_description": "when it is good enough"}
    row = edge_of(lines({**prose, "metadata": {"orrery": {"condition": "accuracy > 0.9"}}}))
    assert (row["condition"], row["description"]) == ("accuracy > 0.9", "when it is good enough")


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("make test", ["make", "test"]),
        ("echo 'two words'", ["echo", "two words"]),
        ('echo "$HOME"', None),
        ("ls *.txt", None),
        ("cd src", None),
        ("RATE=1 make", None),
        ("make && make install", None),
        ("echo 'half", None),
    ],
)
def test_a_command_line_needs_a_shell_only_where_a_shell_would_do_something(line, argv):
    assert line_words(line) == (argv or ["sh", "-c", line])
    assert task_of(seed({"tool": "run_shell", "parameters": {"bash_command": line}}))["arguments"] == {"argv": line_words(line)}


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("argv", [["sh", "-c", "a > b"], ["sh", "-c", "make"], ["sh", "-c", ""], ["cd", "x"], ["A=1", "b"]])
def test_a_command_of_a_shell_and_what_only_looks_like_one_are_written_and_read_again(dialect, argv):
    plan = read_constellation({"tasks": [{"task_id": "a", "command": argv}]})
    assert plan.tasks[0]["arguments"] == {"argv": argv}
    written = write_document(plan.tasks, [], [], dialect)
    assert read_constellation(written, dialect).tasks == plan.tasks
    if dialect == "orrery":
        line = {"command": "a > b", "shell": True}
        assert (written["tasks"] == [{"task_id": "a", **line}]) is (argv[-1] == "a > b")
    if dialect == "galaxy" and argv[-1] == "a > b":
        action = {"function": "execute_command", "arguments": {"command": "a > b"}}
        assert written["tasks"]["a"]["task_data"]["actions"] == [action]


def test_a_tool_that_is_not_exactly_ours_keeps_its_name():
    arguments = {"command": "make", "user": "root"}
    row = task_of(seed({"tool": "execute_command", "parameters": arguments}))
    assert (row["tool"], row["arguments"]) == ("execute_command", arguments)


def test_an_extension_has_the_say_about_what_a_task_does():
    row = task_of(galaxy({"task_data": {"orrery": {"steps": [{"ask": "Which?"}], "deadline": 60}}}))
    assert (row["tool"], row["deadline"]) == ("steps", 60)
    assert row["phases"][0]["steps"][0]["question"] == "Which?"


# How far it has come


STATES = ToldStates("CANCELLED", {"a": {"state": "COMPLETED", "reason": "", "result": {"x": 1}, "error": "", "attempt": 2}})


def test_states_are_told_in_the_dialects_words_and_read_past():
    plan = read_constellation({"tasks": [{"task_id": "a", "tool": "noop"}, {"task_id": "b", "tool": "noop"}]})
    written = {name: write_document(plan.tasks, plan.dependencies, [], name, with_states=STATES) for name in NAMES}
    assert written["orrery"]["states"]["tasks"] == {"a": {"state": "COMPLETED", "result": {"x": 1}, "attempt": 2}}
    assert written["orrery"]["states"]["state"] == written["seed"]["state"] == "CANCELLED"
    assert written["galaxy"]["state"] == "failed"
    assert written["seed"]["tasks"][0]["status"] == "COMPLETED"
    galaxys = written["galaxy"]["tasks"]["a"]
    assert (galaxys["status"], galaxys["result"], galaxys["current_retry"]) == ("completed", {"x": 1}, 1)
    assert [read_constellation(each, name).tasks for name, each in written.items()] == [plan.tasks] * 3


def test_an_unknown_dialect_is_not_written():
    with pytest.raises(ValueError, match="there is no dialect klingon"):
        write_document([], [], [], "klingon")


# There and back


NAME = st.text("abcdefgxyz_", min_size=1, max_size=8).map(lambda text: f"k{text}")
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
FULL = PROSE.filter(bool)
SECONDS = st.integers(1, 1000) | st.floats(0.5, 1000)
ARGV = st.lists(PROSE | st.sampled_from(["make", "a b", "$HOME", "X=1", "cd", "*"]), min_size=1, max_size=4).filter(
    lambda argv: bool(argv[0])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | PROSE,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PROSE, inner, max_size=2),
    max_leaves=4,
)
CALL = st.one_of(
    st.fixed_dictionaries({"command": ARGV}),
    st.fixed_dictionaries(
        {"tool": st.sampled_from(["noop", "write_file", "execute_command"])},
        optional={"arguments": st.dictionaries(st.sampled_from(["command", "path", "argv"]), JSON, max_size=2)},
    ),
)
CONDITION = st.sampled_from(["accuracy > 0.95", "failed == 0 and passed", "result['x'] in [1, 2]"])
SAVE = {"save": NAME, "if": CONDITION}
OPTIONS = {
    "kind": st.sampled_from(["tool", "test", "poll"]), "expect": st.fixed_dictionaries({}, optional={"contains": PROSE}),
    "timeout": SECONDS, "tries": st.integers(1, 9), "every": SECONDS, "on_failure": st.sampled_from(["fail", "continue"]),
    "recover": st.lists(CALL, max_size=2), "confirm": st.booleans(), "writes": NAME, **SAVE,
}  # fmt: skip


def with_options(calls, optional):
    return st.builds(lambda call, more: {**call, **more}, calls, st.fixed_dictionaries({}, optional=optional))


PLAIN_STEP = (
    CALL
    | with_options(CALL, OPTIONS)
    | st.fixed_dictionaries({"say": FULL}, optional={"if": CONDITION})
    | st.fixed_dictionaries({"ask": FULL}, optional={"options": st.lists(FULL, max_size=2), "timeout": SECONDS, **SAVE})
    | st.fixed_dictionaries({"observe": st.just(True)}, optional=SAVE)
    | st.fixed_dictionaries({"wait": SECONDS}, optional=SAVE)
    | st.fixed_dictionaries({"wait": st.fixed_dictionaries({"for": NAME}, optional={"timeout": SECONDS})}, optional=SAVE)
)
STEPS = st.lists(
    PLAIN_STEP
    | st.fixed_dictionaries(
        {"delegate": st.fixed_dictionaries({"name": NAME, "steps": st.lists(PLAIN_STEP, min_size=1, max_size=2)})},
        optional=SAVE,
    ),
    min_size=1,
    max_size=3,
)
PHASE = st.fixed_dictionaries({"description": FULL, "steps": STEPS}, optional={"expected_duration": SECONDS})
DOING = (
    CALL
    | st.fixed_dictionaries({"steps": STEPS | st.lists(CALL, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"phases": st.lists(PHASE, min_size=1, max_size=2)})
)
TASK_OPTIONS = {
    "name": PROSE, "description": PROSE, "tips": st.lists(PROSE, max_size=2), "device": NAME,
    "device_type": st.sampled_from(["linux", "Linux", "gpu", "web"]), "capabilities": st.lists(NAME, max_size=2),
    "priority": st.sampled_from(["LOW", "MEDIUM", "HIGH", "CRITICAL"]), "timeout": SECONDS, "deadline": SECONDS,
    "max_attempts": st.integers(1, 100), "backoff": SECONDS, "confirm": st.booleans(),
    "policies": st.lists(st.fixed_dictionaries({"tool": NAME, "decision": st.sampled_from(["ask", "deny"])}), max_size=2),
    "progress": st.fixed_dictionaries({}, optional={"stuck_threshold": st.integers(1, 9)}),
    "on_lost": st.sampled_from(["retry", "fail", "ask"]),
}  # fmt: skip
EDGE = st.fixed_dictionaries({}, optional={"dependency_id": NAME, "description": PROSE}) | st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["SUCCESS_ONLY", "COMPLETION_ONLY", "UNCONDITIONAL"])}),
    st.fixed_dictionaries({"type": st.sampled_from(["SUCCESS_ONLY", "UNCONDITIONAL"]), "description": CONDITION | PROSE}),
    st.fixed_dictionaries({"type": st.just("CONDITIONAL"), "condition": CONDITION}, optional={"description": PROSE}),
)
RULE = st.fixed_dictionaries(
    {
        "when": st.fixed_dictionaries(
            {"event": st.sampled_from(["task_failed", "task_ended"])}, optional={"condition": CONDITION}
        ),
        "edit": st.just([{"remove_task": {"task_id": "t0"}}]),
    },
    optional={"reason": PROSE, "times": st.integers(1, 9)},
)


@st.composite
def plan_documents(draw):
    """Plans with all that plans can say; what happens not to be one is left out."""
    found = [
        {"task_id": f"t{n}", **task}
        for n, task in enumerate(draw(st.lists(with_options(DOING, TASK_OPTIONS), min_size=1, max_size=4)))
    ]
    pairs = [(a["task_id"], b["task_id"]) for n, a in enumerate(found) for b in found[n + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = [{**draw(EDGE), "from": a, "to": b} for a, b in chosen]
    return {"name": draw(PROSE), "tasks": found, "dependencies": edges, "replan": draw(st.lists(RULE, max_size=2))}


@pytest.mark.parametrize("dialect", NAMES)
@given(value=plan_documents())
@settings(max_examples=100, deadline=None)
def test_what_is_exported_is_imported_again_the_same(dialect, value):
    plan, findings = plans.read_value(value)
    if findings:  # two names alike, an argv that is none
        return
    written = write_document(plan.tasks, plan.dependencies, plan.rules, dialect, plan.name)
    again = read_constellation(json.dumps(written), dialect)
    assert (again.name, again.tasks, again.dependencies, again.rules) == (plan.name, plan.tasks, plan.dependencies, plan.rules)
    assert read_constellation(written).dialect == dialect


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("name", ["seed", "galaxy"])
def test_documents_of_others_are_the_same_plan_in_every_dialect(dialect, name):
    plan = read_constellation(document(name))
    again = read_constellation(json.dumps(write_document(plan.tasks, plan.dependencies, plan.rules, dialect, plan.name)))
    assert (again.dialect, again.tasks, again.dependencies) == (dialect, plan.tasks, plan.dependencies)


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_our_examples_come_back_from_every_dialect(path, dialect):
    plan = plans.parse_plan(path.read_text())
    again = read_constellation(json.dumps(write_document(plan.tasks, plan.dependencies, plan.rules, dialect, plan.name)))
    assert (again.dialect, again.name, again.tasks) == (dialect, plan.name, plan.tasks)
    assert (again.dependencies, again.rules) == (plan.dependencies, plan.rules)


def test_what_both_can_say_needs_no_extension():
    for name in ("seed", "galaxy"):
        plan = read_constellation(document(name))
        assert "orrery" not in json.dumps(write_document(plan.tasks, plan.dependencies, plan.rules, name, plan.name))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = [
    "task_id", "name", "description", "task_description", "tips", "target_device_id", "device", "priority", "status",
    "task_data", "actions", "dependencies", "dependents", "orrery", "expected_output_type", "from", "to", "type", "condition",
    "line_id", "from_task_id", "to_task_id", "dependency_type", "condition_description", "metadata",
]  # fmt: skip
PARTS = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6), max_size=3) | VALUES
ACTIONS = st.lists(
    st.dictionaries(st.sampled_from(["function", "arguments", "tool", "parameters"]), VALUES, max_size=3), max_size=3
)


def assert_said(found: list[dict]) -> None:
    assert found
    assert all(each["message"] for each in found)


@given(dialect=st.sampled_from(["", *NAMES]), tasks=PARTS, dependencies=PARTS, actions=ACTIONS, rest=VALUES, wrap=st.booleans())
def test_any_value_is_read_or_refused_with_a_message(dialect, tasks, dependencies, actions, rest, wrap):
    doing = [{"task_id": "x", "actions": actions, "task_data": rest}, *(tasks if isinstance(tasks, list) else [])]
    value = {"tasks": doing, "dependencies": dependencies, "metadata": rest, "name": rest}
    for written in (value, {"tasks": tasks}, rest, {"constellation": value, "thought": rest}):
        try:
            read_constellation(written if wrap else json.dumps(written), dialect)
        except PlanRejected as refused:
            assert_said(refused.problems)


# Numbers, and tasks that are not there


def test_results_that_are_read_past_may_hold_any_number():
    plan = {"tasks": [{"task_id": "a", "tool": "noop"}]}
    assert read_constellation({**plan, "states": {"tasks": {"a": {"result": {"perplexity": 1e25, "count": 10**30}}}}}).tasks
    assert read_constellation(json.dumps(galaxy({"result": 1e300}))).tasks
    large = galaxy({"timeout": 2**70})
    out_of_range = "the number is out of range; put it in quotes if it is text"
    assert ("tasks[0].timeout", out_of_range) in [(key, message) for _, key, message in problems(large)]


@pytest.mark.parametrize("expected", [{"a": 1}, ["text"], 5, True])
def test_an_expected_output_that_is_no_text_is_refused(expected):
    assert problem(galaxy({"expected_output_type": expected}))[1] == "tasks[0].expected_output_type"


def test_an_expected_output_is_a_tip():
    assert task_of(galaxy({"expected_output_type": "a table"}))["tips"] == ["Expected output: a table"]


@pytest.mark.parametrize("dialect", NAMES)
def test_rules_about_tasks_that_have_gone_are_written_and_read_again(dialect):
    when = {"event": "task_failed", "task": ["gone", "a"], "condition": "results['lost'] == 1"}
    rule = {
        "name": "mend",
        "when": when,
        "times": 1,
        "reason": "",
        "edit": [{"op": "remove_task", "parameters": {"task_id": "a"}}],
    }
    made = read_constellation(
        {"tasks": [{"task_id": "a", "tool": "noop"}], "replan": [rule], "absent": ["gone", "lost", "unused"]}
    )
    document = write_document(made.tasks, made.dependencies, made.rules, dialect)
    again = read_constellation(json.dumps(document), dialect)
    assert (again.tasks, again.rules) == (made.tasks, made.rules)
    assert write_document(again.tasks, again.dependencies, again.rules, dialect) == document
    assert "unused" not in json.dumps(document)


@pytest.mark.parametrize("dialect", NAMES)
def test_rules_that_copy_a_task_that_has_gone_or_end_the_run_are_written_and_read_again(dialect):
    copy = {"op": "add_task", "parameters": {"task_id": "b", "copy": "gone", "not_device": ["{device}"]}}
    when = {"event": "task_failed", "task": ["a"], "condition": "error.kind == 'timeout'"}
    does = [{"edit": [copy]}, {"edit": [], "finish": True}, {"edit": [], "fail": "no good"}, {"edit": [], "restart": True}]
    rules = [{"name": f"r{n}", "when": when, "times": 1, "reason": "", **deed} for n, deed in enumerate(does)]
    made = read_constellation(
        {"tasks": [{"task_id": "a", "tool": "noop", "not_device": ["pi"]}], "replan": rules, "absent": ["gone"]}
    )
    assert made.rules == rules
    document = write_document(made.tasks, made.dependencies, made.rules, dialect)
    again = read_constellation(json.dumps(document), dialect)
    assert (again.tasks, again.rules) == (made.tasks, rules)


@pytest.mark.parametrize("dialect", ["seed", "galaxy"])
def test_too_many_tasks_are_one_problem(dialect, monkeypatch):
    monkeypatch.setitem(constellation.LIMITS, "tasks", 2)
    many = {"tasks": [{}] * 3, "dependencies": []}
    assert ("tasks", "has 3 items; 2 are allowed") in [(key, message) for _, key, message in problems(many, dialect)]
