"""Plan files: what they become, and how what is wrong with one is said."""

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.catalogue import TOOLS
from constellations.errors import PlanRejected
from constellations.plan.documents import MAX_BYTES, MAX_DEPTH
from constellations.plan.fitting import NO_MIND
from constellations.plan.keys.calls import NEEDS_DOING
from constellations.plan.operations import MAX_TASKS
from constellations.plan.plan import MAX_PROBLEMS, TASK_DEFAULTS, Plan, absent_tasks, parse_plan
from constellations.plan.tasks import DEPENDENCY_DEFAULTS

NOOP = "tasks:\n  - {task_id: a, tool: noop}\n"

NO_PROGRAM = "names no program: give one and its arguments, as in [make, test]"


def plan(text: str) -> Plan:
    return parse_plan(dedent(text))


@pytest.fixture(autouse=True)
def tools(more_tools):
    """What these tests call, beside what there is."""
    more_tools("x", "http")


def problems(text: str | bytes) -> list[tuple[int | None, str, str]]:
    with pytest.raises(PlanRejected) as refused:
        parse_plan(dedent(text) if isinstance(text, str) else text)
    assert all(set(problem) == {"line", "key", "message"} for problem in refused.value.problems)
    return [(problem["line"], problem["key"], problem["message"]) for problem in refused.value.problems]


def problem(text: str | bytes) -> tuple[int | None, str, str]:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def task_problem(fields: str) -> tuple[str, str]:
    """Key and message about one task with `fields` beside its id."""
    _, key, message = problem(f"tasks:\n  - {{task_id: a, {fields}}}\n")
    return key.removeprefix("tasks[0]").removeprefix("."), message


# What plans become


def test_a_task_has_every_key_of_the_normal_form():
    (task,) = plan("tasks: [{task_id: a, tool: noop}]").tasks
    assert task == {**TASK_DEFAULTS, "task_id": "a", "name": "a", "tool": "noop"}


def test_every_field_of_a_task_is_read():
    _, task = plan("""
        name: digits
        tasks:
          - {task_id: fetch, tool: noop}
          - task_id: train
            after: [fetch]
            name: Train the model
            description: Softmax regression.
            tips: [small steps, few of them]
            device: gpu_server
            device_type: gpu
            capabilities: [train]
            not_device: [laptop, laptop, ""]
            labels: [gpu, team.red]
            command: [python, train.py, --epochs, 30, --rate, 0.5]
            priority: CRITICAL
            timeout: 60
            deadline: 600.5
            max_attempts: 3
            backoff: 0
            confirm: true
            policies: [{tool: command, pattern: rm -rf, decision: deny}]
            progress: {stuck_threshold: 5}
            on_lost: ask
            model: careful
            result_schema: {type: object}
            unasked: {}
            inputs: {in/a.csv: "fetch#a.csv", b: "#b"}
            outputs: [model.bin, "logs/**/*.txt"]
        """).tasks
    assert task == {
        "task_id": "train",
        "name": "Train the model",
        "description": "Softmax regression.",
        "tips": ["small steps", "few of them"],
        "wanted_device": "gpu_server",
        "device_type": "gpu",
        "capabilities": ["train"],
        "not_device": ["laptop"],
        "labels": ["gpu", "team.red"],
        "tool": "command",
        "arguments": {"argv": ["python", "train.py", "--epochs", "30", "--rate", "0.5"]},
        "priority": 3,
        "timeout": 60,
        "deadline": 600.5,
        "max_attempts": 3,
        "backoff": 0,
        "confirm": True,
        "phases": [],
        "policies": [{"tool": "command", "pattern": "rm -rf", "decision": "deny"}],
        "progress": {"stuck_threshold": 5},
        "on_lost": "ask",
        "model": "careful",
        "result_schema": {"type": "object"},
        "unasked": {},
        "inputs": {"in/a.csv": "fetch#a.csv", "b": "#b"},
        "outputs": ["model.bin", "logs/**/*.txt"],
        "replaces": "",
    }


def test_a_command_in_one_line_is_split_as_a_shell_would():
    (task,) = plan("""
        tasks:
          - {task_id: a, command: 'echo "two words" it\\; ls'}
        """).tasks
    assert task["arguments"] == {"argv": ["echo", "two words", "it;", "ls"]}


SHELLS = "means something to a shell, and no shell reads a command that is given as a text"
WAYS = "give an argument list to have it as it stands, or `shell: true` beside it to have `sh -c` run it"


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("echo x > f", "`>`"), ("make && make install", "`&`"), ("ls | wc -l", "`|`"), ("make; ls", "`;`"),
        ("echo $HOME", "`$`"), ("ls *.py", "`*`"), ("echo `id`", "a backquote"), ("cd src", "`cd`"), ("A=1 make", "`A=`"),
    ],
)  # fmt: skip
def test_a_line_of_which_a_shell_would_understand_more_is_refused_with_both_ways_out(written, named):
    for what, key in (
        ({"command": written}, "command"),
        ({"tool": "command", "arguments": {"argv": written}}, "arguments.argv"),
        ({"steps": [{"command": written}]}, "steps[0].command"),
        ({"steps": [{"command": ["make"], "recover": [{"command": written}]}]}, "steps[0].recover[0].command"),
        ({"steps": [{"delegate": {"name": "x", "steps": [{"command": written}]}}]}, "steps[0].delegate.steps[0].command"),
    ):
        _, where, message = problem(json.dumps({"tasks": [{"task_id": "a", **what}]}, indent=1))
        assert (where, message) == (f"tasks[0].{key}", f"{named} {SHELLS}: {WAYS}")


def test_a_rule_may_not_add_what_is_refused_in_a_plan():
    add = {"add_task": {"task_id": "b", "command": "echo {task} > f"}}
    rule = {"when": {"event": "task_failed"}, "edit": [add]}
    _, where, message = problem(json.dumps({"tasks": [{"task_id": "a", "tool": "noop"}], "replan": [rule]}))
    assert (where, message) == ("replan[0].edit[0].add_task.command", f"`>` {SHELLS}: {WAYS}")


def test_a_shell_runs_a_line_where_a_plan_says_so():
    line = {"command": "echo $HOME > f && ls", "shell": True}
    (task,) = parse_plan(json.dumps({"tasks": [{"task_id": "a", **line}]})).tasks
    assert (task["tool"], task["arguments"]) == ("command", {"argv": ["sh", "-c", "echo $HOME > f && ls"]})
    (task,) = parse_plan(json.dumps({"tasks": [{"task_id": "a", "steps": [line]}]})).tasks
    assert task["phases"][0]["steps"][0]["arguments"] == {"argv": ["sh", "-c", "echo $HOME > f && ls"]}


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        (
            "command: [make], shell: true", "command",
            "is an argument list, which no shell reads: leave shell: true out, or give the command as a text",
        ),
        ("command: ' ', shell: true", "command", "is empty, and so there is nothing for a shell to run"),
        ("tool: noop, shell: true", "shell", "shell: true is said of a command that is a text, and there is none beside it"),
        ("command: make, shell: sh", "shell", "must be true or false, not the text 'sh'"),
        ("steps: [{say: x}], shell: true", "shell", "a task has steps or a command or tool, not both: shell beside steps"),
        ("steps: [{say: x, shell: true}]", "steps[0].shell", "there is no key shell here; there are if, say"),
    ],
)  # fmt: skip
def test_a_shell_is_only_for_a_command_that_is_a_text(written, key, message):
    assert task_problem(written) == (key, message)


def test_a_field_without_a_value_has_its_default():
    (task,) = plan("""
        tasks:
          - task_id: a
            tool: noop
            name:
            tips:
            priority: null
        """).tasks
    assert (task["name"], task["tips"], task["priority"]) == ("a", [], 1)


def test_defaults_are_nobodys_to_change():
    first, second = plan("tasks: [{task_id: a, tool: noop}, {task_id: b, tool: noop}]").tasks
    first["tips"].append("x")
    first["arguments"]["x"] = 1
    assert second["tips"] == TASK_DEFAULTS["tips"] == []
    assert second["arguments"] == TASK_DEFAULTS["arguments"] == {}


def test_dependencies_have_defaults_and_after_is_short_for_them():
    read = plan("""
        tasks:
          - {task_id: a, tool: noop}
          - {task_id: b, tool: noop, after: a}
          - {task_id: c, tool: noop, after: [a, b]}
          - {task_id: d, tool: noop}
        dependencies:
          - {from: c, to: d, condition: accuracy > 0.95, description: only if good, dependency_id: gate}
          - {from: a, to: d, type: UNCONDITIONAL}
        """)
    assert [(row["dependency_id"], row["type"]) for row in read.dependencies] == [
        ("a>b", "SUCCESS_ONLY"),
        ("a>c", "SUCCESS_ONLY"),
        ("b>c", "SUCCESS_ONLY"),
        ("gate", "CONDITIONAL"),
        ("a>d", "UNCONDITIONAL"),
    ]
    assert read.dependencies[0] == {**DEPENDENCY_DEFAULTS, "dependency_id": "a>b", "from": "a", "to": "b"}
    assert read.dependencies[3]["condition"] == "accuracy > 0.95"
    assert read.dependencies[3]["description"] == "only if good"


RULES = """
    tasks:
      - {task_id: evaluate, tool: noop}
    replan:
      - name: retrain
        when: {event: task_completed, task: evaluate, condition: accuracy <= 0.95}
        times: 2
        reason: too low
        edit:
          - add_task: {task_id: again, tool: noop}
          - {op: remove_task, parameters: {task_id: deploy}}
      - when: {event: task_ended}
        edit: [{remove_task: {task_id: again}}]
      - when: {event: task_failed, task: [again, evaluate]}
        edit: [{remove_task: {task_id: again}}]
"""


def test_rules_have_a_normal_form():
    retrain, any_end, several = plan(RULES).rules
    assert retrain == {
        "name": "retrain",
        "when": {"event": "task_completed", "task": ["evaluate"], "condition": "accuracy <= 0.95"},
        "times": 2,
        "reason": "too low",
        "edit": [
            {"op": "add_task", "parameters": {"task_id": "again", "tool": "noop"}},
            {"op": "remove_task", "parameters": {"task_id": "deploy"}},
        ],
    }
    assert (any_end["name"], any_end["when"]["task"], any_end["times"]) == ("rule 2", [], 1)
    assert several["when"]["task"] == ["again", "evaluate"]


def test_json_and_yaml_of_the_same_plan_are_the_same_plan():
    import yaml

    value = yaml.safe_load(dedent(RULES))
    assert parse_plan(json.dumps(value)) == plan(RULES)
    assert parse_plan(json.dumps(value, indent="\t").encode()) == plan(RULES)


def test_words_that_other_yaml_readers_change_stay_text():
    (task,) = plan("tasks: [{task_id: 2026-01-01, tool: noop, tips: [yes, 12:30, 007, no, on]}]").tasks
    assert (task["task_id"], task["tips"]) == ("2026-01-01", ["yes", "12:30", "007", "no", "on"])


def test_a_byte_order_mark_is_not_part_of_the_text():
    assert parse_plan(b"\xef\xbb\xbf" + NOOP.encode()).tasks == parse_plan(NOOP).tasks


def test_arguments_of_a_tool_are_kept_as_they_are():
    (task,) = plan("tasks: [{task_id: a, tool: http, arguments: {url: x, headers: {a: [1, 2.5, null, true]}}}]").tasks
    assert task["arguments"] == {"url": "x", "headers": {"a": [1, 2.5, None, True]}}


# How a problem is said


def test_an_unknown_key_names_its_line_and_the_nearest_key():
    assert problem("""
        tasks:
          - task_id: a
            tool: noop
            priorty: HIGH
        """) == (5, "tasks[0].priorty", "there is no key priorty here; did you mean priority?")


def test_all_problems_are_found_at_once_and_in_order_of_lines():
    found = problems("""
        nam: digits
        tasks:
          - task_id: a
            tool: noop
            timeout: soon
          - task_id: b
            command: [ls]
            tool: noop
            after: [c]
        dependencies:
          - {from: a, to: b, condition: "accuracy >"}
        """)
    assert found == [
        (2, "nam", "there is no key nam here; did you mean name?"),
        (6, "tasks[0].timeout", "must be a number of seconds, not the text 'soon'"),
        (9, "tasks[1].tool", "a task has a command or a tool, not both: tool beside command"),
        (10, "tasks[1].after[0]", "there is no task c; there are a, b"),
        (12, "dependencies[0].condition", "column 11: the condition is not understood: invalid syntax"),
    ]


def test_the_message_begins_with_the_source_the_line_and_the_key():
    with pytest.raises(PlanRejected) as refused:
        parse_plan("tasks:\n  - {task_id: a, tool: noop, x: 1, y: 2, z: 3, u: 4}\n", source="digits.yaml")
    assert str(refused.value).startswith("digits.yaml: line 2, tasks[0].x: there is no key x here")
    assert str(refused.value).endswith("; and 1 more")
    assert refused.value.code == "plan_rejected"


def test_a_cycle_is_named_as_a_path_at_its_last_dependency():
    assert problem("""
        tasks:
          - {task_id: a, tool: noop, after: c}
          - {task_id: b, tool: noop, after: a}
          - {task_id: c, tool: noop}
        dependencies:
          - {from: b, to: c}
        """) == (7, "dependencies[0]", "the tasks would wait for each other: a > b > c > a; take one of these dependencies out")


def test_lines_of_json_are_named_too():
    text = json.dumps({"tasks": [{"task_id": "a", "tool": "noop", "confirm": "yes"}]}, indent=2)
    assert problem(text) == (6, "tasks[0].confirm", "must be true or false, not the text 'yes'; write true, without quotes")


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("tool: noop, name: 3", "name", "must be text, not the number 3; put it in quotes"),
        ("tool: noop, name: true", "name", "must be text, not true; put it in quotes"),
        ("tool: noop, name: [x]", "name", "must be text, not a list"),
        ("tool: noop, description: {}", "description", "must be text, not an object"),
        (f"tool: noop, name: {'x' * 201}", "name", "has 201 characters; 200 are allowed"),
        ("tool: noop, tips: x", "tips", "must be a list, not the text 'x'; put it in brackets: [x]"),
        ("tool: noop, tips: [x, 2]", "tips[1]", "must be text, not the number 2; put it in quotes"),
        (f"tool: noop, tips: [{'x,' * 101}]", "tips", "has 101 items; 100 are allowed"),
        (
            "tool: noop, priority: high",
            "priority",
            "must be one of LOW, MEDIUM, HIGH, CRITICAL, not the text 'high'; did you mean HIGH?",
        ),
        ("tool: noop, priority: 7", "priority", "must be one of LOW, MEDIUM, HIGH, CRITICAL, not the number 7"),
        ("tool: noop, timeout: 0", "timeout", "is 0; it must be above 0 and at most 31,536,000"),
        ("tool: noop, timeout: 1e9", "timeout", "is 1000000000.0; it must be above 0 and at most 31,536,000"),
        ("tool: noop, deadline: true", "deadline", "must be a number of seconds, not true"),
        ("tool: noop, backoff: -1", "backoff", "is -1; it must be at least 0 and at most 31,536,000"),
        ("tool: noop, max_attempts: 0", "max_attempts", "is 0; it must be from 1 to 100"),
        ("tool: noop, max_attempts: 1.5", "max_attempts", "must be a whole number, not the number 1.5"),
        ("tool: noop, confirm: 1", "confirm", "must be true or false, not the number 1"),
        ("tool: noop, on_lost: retri", "on_lost", "must be one of retry, fail, ask, not the text 'retri'; did you mean retry?"),
        ("tool: noop, arguments: [1]", "arguments", "must be an object (key: value), not a list"),
        ("tool: ''", "tool", "is empty: give the task a command or a tool"),
        ("tool: noop, wanted_device: y", "wanted_device", "there is no key wanted_device here; did you mean device?"),
        ("tool: noop, device: x, not_device: [y, x]", "not_device", "the task is to run on x, and here it must not"),
        ("command: []", "command", NO_PROGRAM),
        ("command: ''", "command", NO_PROGRAM),
        ("command: ['', x]", "command", NO_PROGRAM),
        ('command: "a \'b"', "command", "cannot be split into words: no closing quotation; close it"),
        ("command: [ls, true]", "command[1]", "must be text, not true; put it in quotes"),
        ("command: [ls, [x]]", "command[1]", "must be text, not a list"),
        ("command: {run: ls}", "command", "must be a list of words or a text, not an object"),
        ("command: ls, arguments: {}", "arguments", "a task has a command or a tool, not both: arguments beside command"),
        ("tool: command, arguments: {}", "arguments.argv", NO_PROGRAM),
        ("tool: command, arguments: {argv: [1, null]}", "arguments.argv[1]", "must be text, not nothing"),
        ("name: x", "", f"{NEEDS_DOING}, and {NO_MIND}"),
        ("tool: noop, after: [a b]", "after[0]", "'a b' is not an id: letters, digits and _ - . : / make one"),
        ("tool: noop, after: {a: b}", "after", "must be a list, not an object; write each item behind a dash"),
        ("tool: noop, after: a", "after[0]", "a would wait for itself: take it out"),
        ('tool: noop, name: "a\\0b"', "name", "text may not hold the character NUL"),
        ("tool: noop, arguments: {result: 1e999}", "arguments.result", "inf is not a number that JSON knows"),
    ],
)
def test_a_field_of_a_task_says_what_it_takes(fields, key, message):
    found = task_problem(fields)
    assert found == (key + found[0].removeprefix(key) if key == "after[0]" else key, message)


@pytest.mark.parametrize(
    ("task", "key", "message"),
    [
        ("{tool: noop}", "tasks[0]", "a task needs a task_id"),
        ("{task_id: '', tool: noop}", "tasks[0].task_id", "is empty"),
        ("{task_id: 7, tool: noop}", "tasks[0].task_id", "must be text, not the number 7; put it in quotes"),
        ("{task_id: a>b, tool: noop}", "tasks[0].task_id", "'a>b' is not an id: letters, digits and _ - . : / make one"),
        (f"{{task_id: {'a' * 121}, tool: noop}}", "tasks[0].task_id", "has 121 characters; 120 are allowed"),
        (
            "just words",
            "tasks[0]",
            "a task is an object with a task_id and a command, a tool or steps, not the text 'just words'",
        ),
    ],
)
def test_a_task_has_an_id(task, key, message):
    assert problem(f"tasks:\n  - {task}\n") == (2, key, message)


def test_an_id_is_there_once():
    assert problem("""
        tasks:
          - {task_id: a, tool: noop}
          - {task_id: a, tool: noop}
        """) == (4, "tasks[1].task_id", "there is a task a already, tasks[0]: give one of them another id")


@pytest.mark.parametrize(
    ("dependency", "key", "message"),
    [
        (
            "{from: a, to: b, type: SUCCESS}",
            ".type",
            "must be one of UNCONDITIONAL, COMPLETION_ONLY, SUCCESS_ONLY, CONDITIONAL, not the text 'SUCCESS'; did "
            "you mean SUCCESS_ONLY?",
        ),
        ("{from: a, to: b, type: CONDITIONAL}", "", "a CONDITIONAL dependency needs a condition"),
        (
            "{from: a, to: b, type: SUCCESS_ONLY, condition: x > 1}",
            ".condition",
            "only a CONDITIONAL dependency has a condition; this one is SUCCESS_ONLY",
        ),
        (
            "{from: a, to: b, condition: foo(x)}",
            ".condition",
            "column 1: there is no function foo; there are len, min, max, abs, round",
        ),
        ("{from: a, to: b, condition: 3}", ".condition", "must be text, not the number 3; put it in quotes"),
        (
            "{from: a, to: b, condition: \"results['train'].x > 1\"}",
            ".condition",
            "it reads the result of train, and there is no such task; there are a, b",
        ),
        ("{from: a}", "", "a dependency needs `to`"),
        ("{to: a}", "", "a dependency needs `from`"),
        ("{from: a, to: a}", "", "a would wait for itself: take it out"),
        ("{from: evaluat, to: b}", "", "there is no task evaluat; there are a, b"),
        (
            "{from: a, to: b, when: x}",
            ".when",
            "there is no key when here; there are condition, dependency_id, description, from, to, type",
        ),
        ("a > b", "", "a dependency is an object with `from` and `to`, not the text 'a > b'"),
    ],
)
def test_a_dependency_says_what_is_wrong_with_it(dependency, key, message):
    text = f"tasks: [{{task_id: a, tool: noop}}, {{task_id: b, tool: noop}}]\ndependencies:\n  - {dependency}\n"
    assert problem(text) == (3, f"dependencies[0]{key}", message)


def test_two_tasks_depend_on_each_other_once():
    assert problems("""
        tasks: [{task_id: a, tool: noop}, {task_id: b, tool: noop, after: a}, {task_id: c, tool: noop}]
        dependencies:
          - {from: a, to: b}
          - {from: a, to: c, dependency_id: x}
          - {from: b, to: c, dependency_id: x}
        """) == [
        (4, "dependencies[0]", "b waits for a already"),
        (6, "dependencies[2]", "there is a dependency x already"),
    ]


@pytest.mark.parametrize(
    ("rule", "key", "message"),
    [
        (
            "{when: {event: task_done}, edit: [{remove_task: {task_id: a}}]}",
            ".when.event",
            "must be one of task_completed, task_failed, task_skipped, condition_failed, task_ended, not the text "
            "'task_done'; did you mean task_ended?",
        ),
        (
            "{edit: [{remove_task: {task_id: a}}]}",
            ".when",
            "a rule needs an event: one of task_completed, task_failed, task_skipped, condition_failed, task_ended",
        ),
        (
            "{when: {event: task_ended, if: x}, edit: [{remove_task: {task_id: a}}]}",
            ".when.if",
            "there is no key if here; there are condition, event, task",
        ),
        (
            "{when: {event: task_ended, task: b}, edit: [{remove_task: {task_id: a}}]}",
            ".when.task",
            "there is no task b; there is a",
        ),
        (
            "{when: {event: task_ended, condition: 'x >'}, edit: [{remove_task: {task_id: a}}]}",
            ".when.condition",
            "column 4: the condition is not understood: invalid syntax",
        ),
        (
            "{when: {event: task_ended, condition: results.q.x}, edit: [{remove_task: {task_id: a}}]}",
            ".when.condition",
            "it reads the result of q, and there is no such task; there is a",
        ),
        (
            "{when: {event: task_ended}, edit: []}",
            ".edit",
            "a rule needs something to do: operations to apply (edit), or finish, fail or restart",
        ),
        (
            "{when: {event: task_ended}}",
            ".edit",
            "a rule needs something to do: operations to apply (edit), or finish, fail or restart",
        ),
        (
            "{when: {event: task_ended}, edit: {remove_task: {task_id: a}}}",
            ".edit",
            "must be a list, not an object; write each item behind a dash",
        ),
        (
            "{when: {event: task_ended}, times: 0, edit: [{remove_task: {task_id: a}}]}",
            ".times",
            "is 0; it must be from 1 to 1,000",
        ),
        (
            "{when: {event: task_ended}, edit: [{remove_tasks: {task_id: a}}]}",
            ".edit[0]",
            "there is no operation remove_tasks; did you mean remove_task?",
        ),
        (
            "{when: {event: task_ended}, edit: [remove_task]}",
            ".edit[0]",
            "an operation is an object (name: parameters), not the text 'remove_task'",
        ),
        (
            "{when: {event: task_ended}, edit: [{remove_task: {}, add_task: {}}]}",
            ".edit[0]",
            "an operation is one key with its parameters; this one has 2 keys: write one operation for each",
        ),
        ("{when: {event: task_ended}, edit: [{remove_task: {}}]}", ".edit[0].remove_task", "which task? task_id is missing"),
        (
            "{when: {event: task_ended}, edit: [{add_task: {task_id: b, tol: noop}}]}",
            ".edit[0].add_task.tol",
            "there is no key tol here; did you mean tool?",
        ),
        (
            "{when: {event: task_ended}, edit: [{op: remove_task, parameters: {task_id: a}, x: 1}]}",
            ".edit[0].x",
            "there is no key x beside op and parameters: put it into parameters",
        ),
        (
            "{when: {event: task_ended}, edit: [{add_dependency: {from: a, to: b, condition: 'x >'}}]}",
            ".edit[0].add_dependency.condition",
            "column 4: the condition is not understood: invalid syntax",
        ),
        (
            "{when: {event: task_ended, task: a}, edit: [{remove_task: {task_id: 'the {task}'}}]}",
            ".edit[0].remove_task.task_id",
            "'the a' is not an id: letters, digits and _ - . : / make one",
        ),
        (
            "{when: {event: task_ended}, edit: [{add_dependency: {from: a, to: '{tasks}'}}]}",
            ".edit[0].add_dependency.to",
            "'{tasks}' is not an id: letters, digits and _ - . : / make one",
        ),
        ("{when: {event: task_failed}, finish: false}", ".finish", "false does nothing; leave it out"),
        ("{when: {event: task_failed}, restart: 1}", ".restart", "must be true or false, not the number 1"),
        ("{when: {event: task_failed}, fail: ''}", ".fail", "is empty; it says why the run is called a failure"),
        (
            "{when: {event: task_failed}, finish: true, fail: no good}",
            ".fail",
            "a rule does one thing, and here are finish and fail; make a rule of each",
        ),
        (
            "{when: {event: task_failed, condition: error.kint == 'timeout'}, finish: true}",
            ".when.condition",
            "an error has no kint; did you mean kind?",
        ),
        (
            """{when: {event: task_failed, condition: "error.kind in ['lost', 'timout']"}, finish: true}""",
            ".when.condition",
            "there is no kind of error 'timout'; did you mean timeout?",
        ),
        *(
            (
                f"""{{when: {{event: task_failed, condition: "{condition}"}}, finish: true}}""",
                ".when.condition",
                "`error` by itself is no text; write error.kind or error.text",
            )
            for condition in (
                "error == 'timeout'",
                "'disk full' in error",
                "error in ['lost']",
                "not error",
                "error.kind == 'lost' or error",
            )
        ),
        (
            """{when: {event: task_failed, condition: "error['kint'] == 'timeout'"}, finish: true}""",
            ".when.condition",
            "an error has no kint; did you mean kind?",
        ),
        (
            """{when: {event: task_failed, condition: "error['kind'] == 'timout'"}, finish: true}""",
            ".when.condition",
            "there is no kind of error 'timout'; did you mean timeout?",
        ),
        (
            "{when: {event: task_failed}, edit: [{add_task: {task_id: b, copy: '{task}', tol: noop}}]}",
            ".edit[0].add_task.tol",
            "there is no key tol here; did you mean tool?",
        ),
        (
            "{when: {event: task_failed}, edit: [{add_task: {copy: '{task}'}}]}",
            ".edit[0].add_task",
            "which task? task_id is missing",
        ),
        (
            "{when: {event: task_failed, task: a}, edit: [{add_task: {task_id: b, copy: aa}}]}",
            ".edit[0].add_task.copy",
            "there is no task aa; did you mean a?",
        ),
        ("3", "", "must be an object (key: value), not the number 3"),
    ],
)
def test_a_rule_says_what_is_wrong_with_it(rule, key, message):
    assert problem(f"{NOOP}replan:\n  - {rule}\n") == (4, f"replan[0]{key}", message)


@pytest.mark.parametrize("event", ["task_completed", "task_ended"])
def test_a_rule_may_compare_what_a_result_calls_error(event):
    assert len(plan(f"{NOOP}replan:\n  - {{when: {{event: {event}, condition: error < 0.1}}, finish: true}}\n").rules) == 1


def test_a_rule_may_answer_to_a_task_that_another_rule_adds():
    assert len(plan(RULES).rules) == 3


@pytest.mark.parametrize("tasks", ["", ", task: [a, b]"])
def test_a_rule_may_answer_to_what_another_adds_for_each_task(tasks):
    text = f"""
        tasks: [{{task_id: a, tool: noop}}, {{task_id: b, tool: noop}}]
        replan:
          - when: {{event: task_failed{tasks}}}
            edit: [{{add_task: {{task_id: "look_{{task}}", tool: noop}}}}]
          - when: {{event: task_completed, task: [look_a, look_b]}}
            edit: [{{remove_task: {{task_id: b}}}}]
        """
    written = plan(text).rules[0]["edit"]
    assert written == [{"op": "add_task", "parameters": {"task_id": "look_{task}", "tool": "noop"}}]
    strange = text.replace("look_b]", "look_c]")
    assert problem(strange) == (6, "replan[1].when.task", "there is no task look_c; did you mean look_b?")


def test_the_longest_task_must_fit_into_an_id():
    rule = "{when: {event: task_ended, task: [a, b]}, edit: [{add_task: {task_id: 'x_{task}', tool: noop}}]}"
    tasks = f"tasks:\n  - {{task_id: a, tool: noop}}\n  - {{task_id: {'b' * 120}, tool: noop}}\n"
    found = problem(f"{tasks}replan:\n  - {rule}\n".replace("[a, b]", f"[a, {'b' * 120}]"))
    assert found == (5, "replan[0].edit[0].add_task.task_id", "has 122 characters; 120 are allowed")


def test_rules_are_told_apart_by_their_names():
    rule = "{name: x, when: {event: task_ended}, edit: [{remove_task: {task_id: a}}]}"
    assert problem(f"{NOOP}replan:\n  - {rule}\n  - {rule}\n") == (5, "replan[1].name", "there is a rule called x already")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the plan is empty: give it a list of tasks"),
        ("# nothing\n", 1, "the plan is empty: give it a list of tasks"),
        (
            "train the model",
            1,
            "a plan is an object with a list of tasks, not the text 'train the model'; what is said in words is a request",
        ),
        ("- a", 1, "a plan is an object with a list of tasks, not a list"),
        (b"name: \xff", 1, "the text is not UTF-8: byte 7 is 0xff"),
        ("tasks: [", 2, "it is not YAML: while parsing a flow node, did not find expected node content"),
        (
            "tasks:\n\t- a",
            2,
            "it is not YAML: while scanning for the next token, found character that cannot start any token; "
            "indent with spaces, not with tabs; put text that begins with @ or a backquote in quotes",
        ),
        (
            "a: b: c",
            1,
            "it is not YAML: mapping values are not allowed in this context; "
            "a colon and a space make a key: the line before lacks one, or this text its quotes",
        ),
        ("a: \x01", 1, "it is not YAML: control characters are not allowed"),
        ('{"tasks": [}', 1, "it is not JSON: expecting value at column 12"),
        ('{"tasks": NaN}', None, "NaN is not a number that JSON knows"),
        ('{"tasks": 1' + "0" * 5000 + "}", None, "a number has more than 4300 digits"),
        (NOOP + "---\n" + NOOP, 3, "a second document begins (---); a plan is one"),
        ("tasks: &x\n  - *x\n", 1, "anchors and aliases (&x, *x) are not read; write it out"),
        ("name: *x\n", 1, "anchors and aliases (&x, *x) are not read; write it out"),
        ("name: !!python/object/apply:os.system [ls]", 1, "tags are not read: !!python/object/apply:os.system"),
        ("name: !!str 3", 1, "tags are not read: !!str"),
        ("? [a]\n: b", 1, "a key is text, not an object or a list"),
        ("tasks: " + "[" * 400_000, 1, "nested more than 20 deep"),
        ("{" + '"a": {' * 100_000, 1, "nested more than 20 deep"),
        ("- " * 400_000, 1, "nested more than 20 deep"),
        ("#" * (MAX_BYTES + 1), None, "the text has 1,000,001 bytes; 1,000,000 are allowed, and 10,000,000 of JSON"),
        (b"#" * (MAX_BYTES + 1), None, "the text has 1,000,001 bytes; 1,000,000 are allowed, and 10,000,000 of JSON"),
        (
            "#" + "\u00e9" * (MAX_BYTES // 2),
            None,
            "the text has 1,000,001 bytes; 1,000,000 are allowed, and 10,000,000 of JSON",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(text, line, message):
    assert problem(text) == (line, "", message)


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor():
    bomb = "a: &a [x,x]\n" + "".join(
        f"{after}: &{after} [*{key},*{key}]\n" for key, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert problem(bomb) == (1, "", "anchors and aliases (&a, *a) are not read; write it out")


def test_a_key_that_is_there_twice_is_a_problem():
    message = "the key tool is there twice, again in line 4"
    assert problem("tasks:\n  - task_id: a\n    tool: noop\n    tool: http\n") == (3, "tasks[0].tool", message)
    assert problem('{"tasks": [{"task_id": "a",\n "tool": "noop",\n\n "tool": "http"}]}') == (2, "tasks[0].tool", message)


def test_half_a_character_is_refused_though_json_can_write_it():
    assert problem('{"tasks": [{"task_id": "a", "tool": "noop",\n "name": "\\ud800"}]}') == (
        None,
        "tasks[0].name",
        "text may not hold half a character (a lone surrogate)",
    )


def test_a_tools_arguments_may_not_be_nested_without_end():
    deep = "[" * (MAX_DEPTH - 3) + "]" * (MAX_DEPTH - 3)
    text = json.dumps({"tasks": [{"task_id": "a", "tool": "x", "arguments": {"a": json.loads(deep)}}]})
    (line, key, message) = problem(text)
    assert (line, message) == (1, "nested more than 20 deep")
    assert key.startswith("tasks[0].arguments.a[0][0]")


def test_what_a_task_is_made_of_may_be_nested_no_deeper_than_an_edit_could_say_it():
    deep = "[" * (MAX_DEPTH - 4) + "]" * (MAX_DEPTH - 4)
    text = json.dumps({"tasks": [{"task_id": "a", "tool": "x", "arguments": {"a": json.loads(deep)}}]})
    assert problem(text)[1:] == (f"tasks[0].arguments.a{'[0]' * (MAX_DEPTH - 5)}", "nested more than 20 deep")
    assert parse_plan(text.replace(deep, deep[1:-1])).tasks


@pytest.mark.parametrize("tasks", ["[]", "null"])
def test_a_plan_has_a_task(tasks):
    assert problem(f"name: x\ntasks: {tasks}\n") == (2, "tasks", "a plan needs at least one task")
    assert problem("name: x\n") == (1, "tasks", "a plan needs at least one task")


def test_a_plan_has_at_most_ten_thousand_tasks():
    tasks = [{"task_id": f"t{number}", "tool": "noop"} for number in range(MAX_TASKS + 1)]
    assert problem(json.dumps({"tasks": tasks})) == (1, "tasks", "has 20,001 items; 20,000 are allowed")
    assert len(parse_plan(json.dumps({"tasks": tasks[:-1]})).tasks) == MAX_TASKS


def test_thousands_of_problems_end_with_that_there_are_more():
    tasks = [{"task_id": f"t{number}", "tool": "noop", "after": [f"missing{number}"]} for number in range(5000)]
    found = problems(json.dumps({"tasks": tasks}))
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == (None, "", "and more: the first 1,000 problems are shown")


def test_one_object_of_thousands_of_unknown_keys_is_answered_briefly():
    fields = "".join(f"    key{number}: 1\n" for number in range(20_000))
    assert len(problems(f"tasks:\n  - task_id: a\n    tool: noop\n{fields}")) == 20


def assert_said(problems: list[dict]) -> None:
    assert problems
    assert all(problem["message"] for problem in problems)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = sorted({*TASK_DEFAULTS, "device", "command", "after", "steps"})


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6), max_size=4), VALUES, VALUES)
def test_any_value_in_a_plan_is_read_or_refused_with_a_message(tasks, dependencies, replan):
    text = json.dumps({"tasks": tasks, "dependencies": dependencies, "replan": replan})
    try:
        parse_plan(text)
    except PlanRejected as refused:
        assert_said(refused.problems)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(text):
    with pytest.raises(PlanRejected):
        parse_plan(text)


# Numbers


BIG = 2**63


@pytest.mark.parametrize("number", [BIG, -BIG - 1, 2**64, 10**400, 1e25])
@pytest.mark.parametrize(
    ("part", "key"),
    [
        ({"tasks": [{"task_id": "a", "tool": "noop", "arguments": {"result": [0]}}]}, "tasks[0].arguments.result[0]"),
        (
            {"tasks": [{"task_id": "a", "steps": [{"tool": "noop", "arguments": {"result": 0}}]}]},
            "tasks[0].steps[0].arguments.result",
        ),
        (
            {
                "tasks": [{"task_id": "a", "tool": "noop"}],
                "replan": [
                    {
                        "when": {"event": "task_ended"},
                        "edit": [{"add_task": {"task_id": "b", "tool": "noop", "arguments": {"result": 0}}}],
                    }
                ],
            },
            "replan[0].edit[0].add_task.arguments.result",
        ),
    ],
)
def test_a_number_that_no_event_can_hold_is_refused_when_the_plan_is_read(part, key, number):
    text = json.dumps(part).replace(" 0}", f" {number}}}").replace("[0]}", f"[{number}]}}")
    assert problem(text) == (1, key, "the number is out of range; put it in quotes if it is text")


def test_numbers_of_64_bits_are_kept_as_they_are():
    kept = {"result": [BIG - 1, -BIG, 0, 1e18, -0.5, 1e-300]}
    (task,) = parse_plan(json.dumps({"tasks": [{"task_id": "a", "tool": "noop", "arguments": kept}]})).tasks
    assert task["arguments"] == kept


@pytest.mark.parametrize("key", ["timeout", "deadline", "backoff", "max_attempts", "priority"])
def test_a_number_beyond_all_measure_is_refused_and_breaks_nothing(key):
    found = problems(json.dumps({"tasks": [{"task_id": "a", "tool": "noop", key: 10**400}]}))
    assert {where for _, where, _ in found} == {f"tasks[0].{key}"}
    assert any(f"1{'0' * 39}..." in message for _, _, message in found)
    assert problems(f"tasks: [{{task_id: a, tool: noop, {key}: {10**299}}}]")


@pytest.mark.parametrize(
    "step", [{"wait": 10**400}, {"wait": {"for": "x", "timeout": 10**400}}, {"tool": "x", "every": 10**400}]
)
def test_a_step_takes_no_time_beyond_all_measure(step):
    assert any(
        "1" + "0" * 39 in message for _, _, message in problems(json.dumps({"tasks": [{"task_id": "a", "steps": [step]}]}))
    )


def test_a_priority_is_a_word_or_its_place_among_them():
    tasks = [{"task_id": f"t{place}", "tool": "noop", "priority": place} for place in range(4)]
    words = [{**task, "priority": word} for task, word in zip(tasks, ("LOW", "MEDIUM", "HIGH", "CRITICAL"), strict=True)]
    assert parse_plan(json.dumps({"tasks": tasks})).tasks == parse_plan(json.dumps({"tasks": words})).tasks


# Tasks that are not there


ABSENT = """
    tasks: [{task_id: a, tool: noop}, {task_id: b, tool: noop}]
    replan:
      - when: {event: task_failed, task: [a, later], condition: "results['lost'] > 1"}
        edit: [{remove_task: {task_id: b}}]
"""


def test_rules_may_name_tasks_that_are_said_to_be_absent():
    assert [key for _, key, _ in problems(ABSENT)] == ["replan[0].when.task", "replan[0].when.condition"]
    found = parse_plan(f"{dedent(ABSENT)}absent: [later, lost, unused]\n")
    assert found.rules[0]["when"]["task"] == ["a", "later"]
    assert absent_tasks(found) == ["later", "lost"]
    assert problem("absent: [5]\n" + NOOP)[1:] == ("absent[0]", "must be text, not the number 5; put it in quotes")


def test_a_dependency_reads_no_task_that_is_absent():
    text = (
        f"{NOOP}  - {{task_id: b, tool: noop}}\ndependencies: [{{from: a, to: b, condition: \"results['x']\"}}]\nabsent: [x]\n"
    )
    assert problem(text)[1] == "dependencies[0].condition"


def test_json_may_be_larger_than_yaml():
    """JSON is read up to the size of an export; beyond YAML's no lines are told."""
    tasks = [{"task_id": f"t{number}", "tool": "noop", "description": "x" * 1_000} for number in range(1_000)]
    assert len(parse_plan(json.dumps({"tasks": tasks})).tasks) == 1_000
    assert problem(json.dumps({"tasks": [*tasks, {"task_id": "t0", "tool": "noop"}]}, indent=1)) == (
        None, "tasks[1000].task_id", "there is a task t0 already, tasks[0]: give one of them another id",
    )  # fmt: skip


# Devices


DEVICES = {"laptop": {"type": "", "capabilities": ["gpu"]}}


def test_every_device_that_is_not_there_is_named_with_its_line():
    text = """
        tasks:
          - task_id: a
            device: labtop
            tool: noop
          - {task_id: b, device: laptop, tool: noop}
          - task_id: c
            tool: noop
            capabilities: [gpu, train]
          - task_id: d
            tool: nop
            device: server
        replan:
          - when: {event: task_failed, task: a}
            edit:
              - add_task: {task_id: "{task}_again", device: cloud, tool: noop}
              - update_task:
                  task_id: b
                  device_type: phone
              - op: build_constellation
                parameters:
                  clear: false
                  tasks: [{task_id: e, tool: x, device: "{device}"}, {task_id: f, tool: x, device: q}]
        """
    there = "there are laptop"
    with pytest.raises(PlanRejected) as refused:
        parse_plan(dedent(text), devices=DEVICES)
    found = [(each["line"], each["key"], each["message"]) for each in refused.value.problems]
    assert found == [
        (4, "tasks[0].device", f"there is no device labtop; {there}"),
        (9, "tasks[2].capabilities", "no device has the capability train; the capabilities there are: gpu"),
        (11, "tasks[3].tool", f"there is no tool nop; there are {', '.join(sorted(TOOLS))}; did you mean noop?"),
        (12, "tasks[3].device", f"there is no device server; {there}"),
    ]  # fmt: skip
    better = (
        text.replace("labtop", "laptop").replace("gpu, train", "gpu").replace("nop\n", "noop\n").replace("server", "laptop")
    )
    with pytest.raises(PlanRejected) as refused:
        parse_plan(dedent(better), devices=DEVICES)
    found = [(each["line"], each["key"], each["message"]) for each in refused.value.problems]
    assert found == [
        (16, "replan[0].edit[0].add_task.device", f"there is no device cloud; {there}"),
        (19, "replan[0].edit[1].update_task.device_type", "no device has the type phone, or any type"),
        (23, "replan[0].edit[2].parameters.tasks[1].device", f"there is no device q; {there}"),
    ]


def test_devices_of_copies_in_rules_are_looked_for_and_rules_that_end_the_run_ask_for_none():
    text = """
        tasks: [{task_id: a, tool: noop}]
        replan:
          - {name: stop, when: {event: task_failed}, fail: broken}
          - name: again
            when: {event: task_failed, task: a}
            edit:
              - add_task: {task_id: b, copy: a, device: cloud}
              - add_task: {task_id: c, copy: a, not_device: ["{device}", pi]}
              - add_task: {task_id: d, copy: a, device: null, not_device: "{device}"}
        """
    with pytest.raises(PlanRejected) as refused:
        parse_plan(dedent(text), devices={"laptop": {"type": "pc", "capabilities": []}})
    assert [(each["line"], each["key"], each["message"]) for each in refused.value.problems] == [
        (8, "replan[1].edit[0].add_task.device", "there is no device cloud; there are laptop"),
        (9, "replan[1].edit[1].add_task.not_device", "there is no device pi; there are laptop"),
    ]
