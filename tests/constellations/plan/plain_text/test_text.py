"""Requests in plain text: the plans that they are, and what is said about those that are none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import PayloadRejected
from agents.models import Event, InboxItem
from agents.services import sessions
from agents.services.devices import device_change
from constellations.errors import PlanRejected
from constellations.models import Constellation
from constellations.plan import plan
from constellations.plan.plain_text import text as plain_text
from constellations.services.plans import read_plan
from project.demo.demo import demo_devices
from tests.agents.conftest import Rest

SAY = {"command": ["echo", "{text}"], "parameters": {"text": {}}}
TRAIN = {
    "command": ["python", "train.py", "--out={model}", "{epochs}"],
    "parameters": {"model": {"default": "model-1"}, "epochs": {"default": 30, "type": "integer"}},
}
FETCH = {"command": ["python", "fetch.py"]}
PROFILES = {
    "laptop": {"fetch": FETCH, "say": SAY, "broken": {"command": "echo >"}},
    "gpu_server": {"train": TRAIN, "fetch": FETCH},
    "prod.example": {},
}


def parse(text: str, profiles=PROFILES) -> plan.Plan:
    return plain_text.parse_text(text, profiles)


def commands(text: str) -> list[list[str]]:
    return [task["arguments"]["argv"] for task in parse(text).tasks]


def problems(text: str) -> list[dict]:
    with pytest.raises(PlanRejected) as refused:
        parse(text)
    assert all(set(problem) == {"line", "key", "column", "message"} for problem in refused.value.problems)
    return refused.value.problems


def problem(text: str) -> dict:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


# What requests become


def test_a_clause_is_a_task_as_a_plan_file_would_have_it():
    (task,) = parse("Fetch the digits on laptop.").tasks
    written = {
        "task_id": "task_001", "name": "fetch", "description": "Fetch the digits on laptop", "device": "laptop",
        "command": ["python", "fetch.py"],
    }  # fmt: skip
    assert [task] == plan.parse_plan(json.dumps({"tasks": [written]})).tasks


def test_clauses_wait_for_each_others_success_in_order_or_for_a_condition():
    found = parse("fetch on laptop, train on gpu_server, say text=done on laptop if accuracy > 0.95")
    ends = [(each["from"], each["to"], each["type"], each["condition"]) for each in found.dependencies]
    assert ends == [
        ("task_001", "task_002", "SUCCESS_ONLY", ""),
        ("task_002", "task_003", "CONDITIONAL", "accuracy > 0.95"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "fetch on laptop, train on gpu_server",
        "fetch on laptop; train on gpu_server;",
        "fetch on laptop\n\ntrain on gpu_server\r\n",
        "fetch on laptop then train on gpu_server",
        "Fetch it on laptop, AND THEN train on gpu_server.",
        "- fetch on the laptop\n- train on the gpu_server",
        "1. fetch on laptop.\n2) train on gpu_server.",
    ],
)
def test_commas_semicolons_lines_and_then_part_clauses(text):
    assert [(task["name"], task["wanted_device"]) for task in parse(text).tasks] == [
        ("fetch", "laptop"),
        ("train", "gpu_server"),
    ]


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("`echo a, 'b; then' c` on laptop", ["echo", "a,", "b; then", "c"]),
        ("run `echo 'a  b' '$(c)' '|' d` on laptop", ["echo", "a  b", "$(c)", "|", "d"]),
        ("run `sh -c 'a | b > c'` on laptop", ["sh", "-c", "a | b > c"]),
        ("say text='a, then b' on laptop", ["echo", "a, then b"]),
        ("say (text=hello, loudly) on laptop", ["echo", "hello"]),
        ("`echo on mars if it rains` on laptop", ["echo", "on", "mars", "if", "it", "rains"]),
        ("the students' say text=x on laptop", ["echo", "x"]),
    ],
)
def test_what_is_in_backquotes_quotes_and_brackets_parts_nothing(text, argv):
    assert commands(text) == [argv]


def test_a_condition_may_hold_commas_in_brackets_and_read_earlier_results():
    condition = "n in (1, 2) and results['task_001']['a, b'] == 'x; y'"
    assert parse(f"fetch on laptop; fetch on laptop if {condition}.").dependencies[0]["condition"] == condition


def test_parameters_stand_before_or_behind_the_device():
    text = "train model=m on gpu_server with epochs=3, train on gpu_server"
    assert [argv[2:] for argv in commands(text)] == [["--out=m", "3"], ["--out=model-1", "30"]]


def test_the_device_is_named_behind_the_last_on():
    (task,) = parse("train on the digits on gpu_server").tasks
    assert task["wanted_device"] == "gpu_server"
    assert parse("`ls` on prod.example.").tasks[0]["wanted_device"] == "prod.example"


def test_a_tasks_name_is_its_recipe_or_the_beginning_of_its_command():
    first, second = parse(f"TRAIN it on gpu_server, `echo {'x' * 100}` on laptop").tasks
    assert first["name"] == "train"
    assert second["name"].startswith("echo xxx")
    assert len(second["name"]) == plain_text.MAX_TASK_NAME


# What has no place in a command


@pytest.mark.parametrize("value", ["a; rm -rf /", "$(id)", "`id`", "a b c", "{epochs}", "x' 'y", "a\\", "a && b | c > d"])
def test_a_value_is_one_word_whatever_is_in_it(value):
    (argv,) = commands(f'say text="{value}" on laptop')
    assert argv == ["echo", value]


@pytest.mark.parametrize("value", ["--help", "'-rf /'"])
def test_a_value_does_not_become_an_option(value):
    assert "would be read as an option" in problem(f"say text={value} on laptop")["message"]


def test_a_value_without_quotes_ends_where_the_clause_does():
    assert [each["key"] for each in problems("say on laptop text=a; rm -rf / on laptop")] == ["clause 2"]


# What is refused


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("make coffee on laptop", 1, "recipes of laptop: broken, fetch, say; a command stands in backquotes; free text needs"),
        ("make coffee on prod.example", 1, "there are no recipes of prod.example"),
        ("fetch the digits", 1, "does not say where: write what on device; devices: gpu_server, laptop, prod.example"),
        ("fetch on mars", 10, "there is no device mars; devices: gpu_server, laptop, prod.example"),
        ("train and fetch on gpu_server", 1, "names 2 recipes, train, fetch"),
        ("fetch and `ls` on laptop", 11, "names the recipe fetch beside a command"),
        ("`ls` and `id` on laptop", 10, "a second command in backquotes"),
        ("`ls` all=1 on laptop", 6, "a command in backquotes takes no parameters: all"),
        (
            "`echo x > f` on laptop",
            1,
            "the command `>` means something to a shell, and no shell reads a command that is given as a text: "
            "quote what is meant as it stands, or have a shell run it: `sh -c '...'`",
        ),
        ("`` on laptop", 1, "names no program: give one and its arguments, as in [make, test]"),
        ("`echo 'a` on laptop", 1, "cannot be split into words: no closing quotation; close it"),
        ("run `ls on laptop", 5, "the backquote is never closed"),
        ("fetch (it on laptop", 7, "the ( is never closed"),
        ("say on laptop", 1, "say needs text=..."),
        ("train modl=a on gpu_server", 7, "train has no parameter modl; parameters of train: epochs, model"),
        ("train epochs=many on gpu_server", 7, "epochs must be a whole number, not 'many'"),
        ("train epochs=1 epochs=2 on gpu_server", 16, "epochs is given twice"),
        ("broken on laptop", 1, "the recipe broken of laptop is broken"),
        ("fetch on laptop and train on gpu_server", 10, "names two devices, laptop and gpu_server"),
        ("fetch on the laptop and train on gpu_server", 14, "names two devices, laptop and gpu_server"),
        ("fetch on laptop if n > 1", 20, "the first clause follows nothing"),
        ("fetch on laptop, fetch on laptop if", 36, "the condition is empty"),
        ("fetch on laptop, fetch on laptop if n >", 40, "the condition is not understood"),
        ("fetch on laptop, fetch on laptop if n > 1 + f(2)", 45, "there is no function f"),
        ("fetch on laptop, fetch on laptop if results.task_002", 37, "reads the result of task_002, and no clause before"),
        ("", 1, "the request is empty"),
        (" ,;\n then ", 1, "the request is empty"),
        ("fetch\0 on laptop", 1, "NUL"),
        ("x" * 10_001, 1, "10,001 characters; 10,000 are allowed"),
        ("fetch on laptop," * 101, 1, "101 clauses; 100 are allowed"),
    ],
)
def test_what_is_wrong_is_said_with_its_column_and_what_is_allowed(text, column, message):
    found = problem(text)
    assert found["column"] == column
    assert message in found["message"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("train 30 epochs on gpu_server", "30"),
        ("train model-2 on gpu_server", "model-2"),
        ("train epochs = 3 on gpu_server", "="),
        ("train --fast on gpu_server", "--fast"),
        ("don't fetch on laptop", "don't"),
        ("fetch without delay on laptop", "without"),
        ("fetch on laptop unless it rains", "unless"),
        ("fetch on laptop quickly", "quickly"),
    ],
)
def test_words_that_would_change_what_is_done_are_not_passed_over(text, word):
    assert f"`{word}`" in problems(text)[0]["message"]


def test_a_condition_stands_behind_its_device():
    found = problems("fetch on laptop, if accuracy > 0.9 then train on gpu_server")
    assert [(each["key"], each["message"]) for each in found] == [
        ("clause 2", "a condition stands behind the device: what on device if condition")
    ]


def test_every_problem_is_found_with_its_line_and_clause():
    found = problems("fetch on laptop,\n  dance on laptop;\ntrain a=1 b=2 on gpu_server, fetch on mars")
    assert [(each["line"], each["key"], each["column"]) for each in found] == [
        (2, "clause 2", 3),
        (3, "clause 3", 7),
        (3, "clause 3", 11),
        (3, "clause 4", 39),
    ]


def test_the_errors_line_names_line_column_and_clause():
    with pytest.raises(PlanRejected, match="request: line 1, column 10, clause 1: there is no device mars"):
        parse("fetch on mars")


FRAGMENTS = st.sampled_from(
    [
        *(
            "fetch",
            "train",
            "say",
            "on laptop",
            "on gpu_server",
            "on mars",
            " ",
            ",",
            ";",
            "\n",
            "then",
            "and then",
            "if",
            "`",
            "'",
        ),
        *(
            '"',
            "(",
            ")",
            "[",
            "epochs=3",
            "text=",
            "=",
            "accuracy > 0.9",
            "results['task_001']",
            "`ls -l`",
            "\0",
            "\ud800",
            ".",
            "1. ",
        ),
    ]
)


@given(st.text(max_size=80) | st.lists(FRAGMENTS, max_size=25).map(" ".join) | st.lists(FRAGMENTS, max_size=25).map("".join))
def test_any_text_is_a_plan_or_refused(text):
    try:
        found = parse(text)
    except PlanRejected:
        return
    assert len(found.dependencies) == len(found.tasks) - 1
    again = plan.parse_plan(json.dumps({"tasks": [_as_written(task) for task in found.tasks]}))
    assert again.tasks == found.tasks


def _as_written(task: dict) -> dict:
    return {
        "task_id": task["task_id"], "name": task["name"], "description": task["description"],
        "device": task["wanted_device"], "command": task["arguments"]["argv"],
    }  # fmt: skip


# From the request to its end


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, by=f"user:{operator.pk}")


REPORT = {
    "command": ["sh", "-c", 'printf \'{"accuracy": %s, "said": "%s"}\' "$1" "$2"', "report", "{accuracy}", "{said}"],
    "parameters": {"accuracy": {"type": "number"}, "said": {"default": "well"}},
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_a_request_with_a_command_and_a_recipe_runs_to_its_end(engine, device, session):
    device_change(device.pk, recipes={"report": REPORT}, by="system")
    text = "run `echo '{\"n\": 1}'` on laptop, report accuracy=0.97 on laptop if n == 1, `true` on laptop if accuracy > 0.98"
    item, _ = sessions.request_submit(session.pk, "interaction", "", {"request": text}, by="system")
    engine.run()
    found = Constellation.objects.get(interaction=item)
    assert found.state == "COMPLETED"
    assert list(found.tasks.order_by("task_id").values_list("task_id", "state", "result")) == [
        ("task_001", "COMPLETED", {"n": 1}),
        ("task_002", "COMPLETED", {"accuracy": 0.97, "said": "well"}),
        ("task_003", "CANCELLED", None),
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_the_examples_devices_carry_out_the_examples_sentence(engine, session):
    demo_devices()
    text = (
        "fetch the digits on laptop, train model=model-1 epochs=30 on gpu_server, evaluate model=model-1 on test_server, "
        "deploy model=model-1 on prod_server if accuracy > 0.95"
    )
    sessions.request_submit(session.pk, "interaction", "", {"request": text}, by="system")
    engine.run()
    tasks = {task.name: task for task in Constellation.objects.get().tasks.all()}
    assert list(sorted(tasks)) == ["deploy", "evaluate", "fetch", "train"]
    assert tasks["evaluate"].state == "COMPLETED"
    deployed = tasks["evaluate"].result["accuracy"] > 0.95
    assert tasks["deploy"].state == ("COMPLETED" if deployed else "CANCELLED")


@pytest.mark.django_db(transaction=True)
def test_over_rest_a_request_in_plain_text_is_accepted_or_refused_before_anything_is_written(engine, device, session, operator):
    path = f"/api/sessions/{session.pk}/interactions/"
    events = Event.objects.count()
    refused = Rest(operator).post(path, {"request": "`true` on laptop,\nmake me a coffee on laptop"})
    assert (refused.status_code, refused.json()["code"]) == (400, "plan_rejected")
    (found,) = refused.json()["problems"]
    assert (found["line"], found["key"], found["column"]) == (2, "clause 2", 1)
    assert "language model" in found["message"]
    assert (Event.objects.count(), InboxItem.objects.count()) == (events, 0)

    assert Rest(operator).post(path, {"request": "`true` on laptop"}).status_code == 202
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"


@pytest.mark.django_db
def test_a_payload_without_plan_and_request_is_refused():
    with pytest.raises(PayloadRejected):
        read_plan({"request": None})
