"""Steps, phases, policies and settings of a plan: what they become, and how what is wrong with them is said."""

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constellations.errors import PlanRejected
from constellations.plan.keys.fields import MAX_PHASES
from constellations.plan.keys.guards import MAX_PATTERN, MAX_POLICIES
from constellations.plan.keys.step_keys import DEFAULTS, MAX_STEPS
from constellations.plan.plan import parse_plan
from constellations.services.plans import read_plan

CALL = {"do": "call", **DEFAULTS["call"]}

NO_PROGRAM = "names no program: give one and its arguments, as in [make, test]"


@pytest.fixture(autouse=True)
def tools(more_tools):
    """What these tests call, beside what there is."""
    more_tools("x", "y", "z", "anything")


def task(fields: str) -> dict:
    """The one task of a plan, with `fields` beside its id."""
    (row,) = parse_plan(f"tasks:\n  - task_id: a\n{_indented(fields)}").tasks
    return row


def steps(written: str) -> list[dict]:
    """The steps that a task with `steps` in normal form has."""
    (phase,) = task(f"steps:\n{dedent(written)}")["phases"]
    assert (phase["description"], phase["expected_duration"]) == ("", None)
    return phase["steps"]


def problems(fields: str) -> list[tuple[int | None, str, str]]:
    """Lines from that of the task's id, keys below the task, messages."""
    with pytest.raises(PlanRejected) as refused:
        task(fields)
    said = refused.value.problems
    return [(p["line"] and p["line"] - 2, p["key"].removeprefix("tasks[0]").removeprefix("."), p["message"]) for p in said]


def problem(fields: str) -> tuple[str, str]:
    found = problems(fields)
    assert len(found) == 1, found
    return found[0][1:]


def step_problem(written: str) -> tuple[str, str]:
    """Key below the one step, and message."""
    key, message = problem(f"steps:\n- {written}")
    return key.removeprefix("steps[0]").removeprefix("."), message


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in dedent(text).strip("\n").splitlines())


# What steps become


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("command: make test", {**CALL, "tool": "command", "arguments": {"argv": ["make", "test"]}}),
        ("command: [echo, two words, 3]", {**CALL, "tool": "command", "arguments": {"argv": ["echo", "two words", "3"]}}),
        (
            "{tool: write_file, arguments: {path: a.txt, content: x}}",
            {**CALL, "tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}},
        ),
        ("{tool: command, arguments: {argv: ls -l}}", {**CALL, "tool": "command", "arguments": {"argv": ["ls", "-l"]}}),
        ("tool: anything", {**CALL, "tool": "anything"}),
        ("say: hello", {"do": "say", "text": "hello", "if": ""}),
        ("{say: hello, if: passed > 3}", {"do": "say", "text": "hello", "if": "passed > 3"}),
        ("ask: Which?", {"do": "ask", "question": "Which?", "options": [], "timeout": 60.0, "save": "", "if": ""}),
        (
            "{ask: Which?, options: [one, two], timeout: 5, save: which}",
            {"do": "ask", "question": "Which?", "options": ["one", "two"], "timeout": 5, "save": "which", "if": ""},
        ),
        ("observe: true", {"do": "observe", "save": "", "if": ""}),
        ("{observe: true, save: seen, if: not done}", {"do": "observe", "save": "seen", "if": "not done"}),
        ("wait: 5", {"do": "wait", "seconds": 5, "for": "", "timeout": 60.0, "save": "", "if": ""}),
        ("wait: {seconds: 0.5}", {"do": "wait", "seconds": 0.5, "for": "", "timeout": 60.0, "save": "", "if": ""}),
        (
            "{wait: {for: ci, timeout: 3600}, save: told}",
            {"do": "wait", "seconds": None, "for": "ci", "timeout": 3600, "save": "told", "if": ""},
        ),
        (
            "{delegate: {name: writer, steps: [{say: x}]}, save: text, on_failure: continue}",
            {
                "do": "delegate", "name": "writer", "steps": [{"do": "say", "text": "x", "if": ""}], "save": "text",
                "app": "", "visual": True, "device": "", "platform": "", "device_type": "", "capabilities": [], "on_lost": "",
                "on_failure": "continue", "if": "", "instruction": "",
            },
        ),
        (
            "{delegate: {name: smith, device: coder, instruction: Mend it.}}",
            {
                "do": "delegate", "name": "smith", "steps": [], "save": "", "app": "", "visual": True, "device": "coder",
                "platform": "", "device_type": "", "capabilities": [], "on_lost": "", "on_failure": "fail", "if": "",
                "instruction": "Mend it.",
            },
        ),
    ],
)  # fmt: skip
def test_a_step_has_every_key_of_its_normal_form(written, normal):
    (step,) = steps(f"- {written}")
    assert step == normal


def test_every_key_of_a_call_is_read():
    (step,) = steps("""
        - command: make test
          kind: test
          expect: {exit_code: 0, contains: ok, result: failed == 0, fails: false}
          timeout: 30
          tries: 1000
          every: 0.5
          on_failure: continue
          recover:
            - command: make clean
            - {tool: read_file, arguments: {path: x}, timeout: 5}
          save: tests
          writes: out/report.txt
          outputs: [out/*.txt]
          confirm: true
          if: count > 3
        """)
    assert step == {
        "do": "call",
        "tool": "command",
        "arguments": {"argv": ["make", "test"]},
        "kind": "test",
        "expect": {"exit_code": 0, "contains": "ok", "result": "failed == 0", "fails": False},
        "timeout": 30,
        "tries": 1000,
        "every": 0.5,
        "on_failure": "continue",
        "recover": [
            {**CALL, "tool": "command", "arguments": {"argv": ["make", "clean"]}},
            {**CALL, "tool": "read_file", "arguments": {"path": "x"}, "timeout": 5},
        ],
        "save": "tests",
        "writes": "out/report.txt",
        "outputs": ["out/*.txt"],
        "confirm": True,
        "if": "count > 3",
    }


def test_a_task_in_steps_has_the_tool_steps_and_one_phase_without_a_name():
    row = task("steps: [{say: x}]")
    assert (row["tool"], row["arguments"], row["confirm"]) == ("steps", {}, False)
    assert row["phases"] == [
        {"description": "", "expected_duration": None, "steps": [{"do": "say", "text": "x", "if": ""}]},
    ]


def test_phases_have_a_description_an_expected_duration_and_steps():
    row = task("""
        phases:
          - description: Prepare
            expected_duration: 30
            steps: [{say: one}, {say: two}]
          - description: Work
            steps: [{say: three}]
        """)
    assert [(phase["description"], phase["expected_duration"]) for phase in row["phases"]] == [("Prepare", 30), ("Work", None)]
    assert [[step["text"] for step in phase["steps"]] for phase in row["phases"]] == [["one", "two"], ["three"]]


def test_defaults_are_nobodys_to_change():
    first, second = steps("- tool: x\n- tool: y\n")
    first["arguments"]["x"] = first["expect"]["fails"] = True
    first["recover"].append({})
    assert second == {**CALL, "tool": "y"}


@pytest.mark.parametrize("work", ["tool: noop", "command: ls", "steps: [{say: x}]", "phases: [{steps: [{say: x}]}]"])
def test_every_task_may_have_a_gate_policies_and_settings(work):
    row = task(f"{work}\nconfirm: true\npolicies: [{{decision: ask}}]\nprogress: {{enable: false}}")
    assert (row["confirm"], len(row["policies"]), row["progress"]) == (True, 1, {"enable": False})


@pytest.mark.django_db
def test_the_planner_takes_plans_with_gates_and_phases():
    plan = "tasks: [{task_id: a, confirm: true, phases: [{description: One, steps: [{say: x}]}]}]"
    assert read_plan({"plan": plan}).tasks == parse_plan(plan).tasks


def test_a_field_without_a_value_has_its_default():
    (step,) = steps("- {tool: x, command: null, timeout: null, expect: null, recover: null}")
    assert step == {**CALL, "tool": "x"}


# Where a problem is


def test_a_bad_key_deep_inside_is_located_there():
    assert problems("""
        phases:
          - description: One
            steps: [{say: x}]
          - description: Two
            steps:
              - say: x
              - observe: true
              - wait: 5
              - command: make test
                recover:
                  - command: make clean
                    expct: {exit_code: 0}
        """) == [(12, "phases[1].steps[3].recover[0].expct", "there is no key expct here; did you mean expect?")]


def test_all_problems_of_a_task_are_found_at_once():
    assert problems("""
        steps:
          - say: x
            save: y
          - command: make
            tries: 0
            expect:
              exit_cod: 0
              result: x >
          - delegate:
              name: writer
              stps: []
              steps:
                - ask: Which?
                  timeout: soon
        """) == [
        (3, "steps[0].save", "there is no key save here; there are if, say"),
        (5, "steps[1].tries", "is 0; it must be from 1 to 1,000"),
        (7, "steps[1].expect.exit_cod", "there is no key exit_cod here; did you mean exit_code?"),
        (8, "steps[1].expect.result", "column 4: the condition is not understood: invalid syntax"),
        (11, "steps[2].delegate.stps", "there is no key stps here; did you mean steps?"),
        (14, "steps[2].delegate.steps[0].timeout", "must be a number of seconds, not the text 'soon'"),
    ]


def test_steps_in_a_rules_edit_are_checked_where_they_are_written():
    with pytest.raises(PlanRejected) as refused:
        parse_plan(
            dedent("""
            tasks: [{task_id: a, tool: noop}]
            replan:
              - when: {event: task_failed}
                edit:
                  - add_task:
                      task_id: b
                      steps:
                        - say: x
                        - command: ls
                          savee: listing
            """)
        )
    (only,) = refused.value.problems
    assert (only["line"], only["key"]) == (11, "replan[0].edit[0].add_task.steps[1].savee")


KINDS = "command, tool, say, ask, observe, wait, delegate"


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        ("make test", "", f"a step is an object with one of {KINDS}, not the text 'make test'"),
        ("{if: x > 1}", "", f"a step has one of {KINDS}; this one has none"),
        ("{}", "", f"a step has one of {KINDS}; this one has none"),
        ("{say: x, ask: y}", "", "a step does one thing, and here are say, ask"),
        ("{command: x, tool: y, say: z}", "", "a step does one thing, and here are command, tool, say"),
        ("{comand: x}", "comand", "there is no step comand; did you mean command?"),
        ("{command: ls, arguments: {}}", "arguments", "a step has a command or a tool, not both: arguments beside command"),
        ("command: ''", "command", NO_PROGRAM),
        ("command: [ls, true]", "command[1]", "must be text, not true; put it in quotes"),
        ("tool: ''", "tool", "is empty: give the step a command or a tool"),
        ("{tool: command, arguments: {argv: []}}", "arguments.argv", NO_PROGRAM),
        ("{tool: x, arguments: [1]}", "arguments", "must be an object (key: value), not a list"),
        ("{tool: x, kind: tests}", "kind", "must be one of tool, test, poll, not the text 'tests'; did you mean test?"),
        ("{tool: x, timeout: 0}", "timeout", "is 0; it must be above 0 and at most 31,536,000"),
        ("{tool: x, tries: 1001}", "tries", "is 1001; it must be from 1 to 1,000"),
        ("{tool: x, every: -1}", "every", "is -1; it must be at least 0 and at most 31,536,000"),
        ("{tool: x, on_failure: go}", "on_failure", "must be one of fail, continue, not the text 'go'"),
        ("{tool: x, save: build-log}", "save",
         "'build-log' is not a name that a condition can read: letters, digits and _ make one"),
        ("{tool: x, save: results}", "save", "results means something else in conditions; take another name"),
        ("{tool: x, writes: /etc/passwd}", "writes", "'/etc/passwd' does not lead to a place inside the workspace"),
        ("{tool: x, writes: a/../../b}", "writes", "'a/../../b' does not lead to a place inside the workspace"),
        ("{tool: x, confirm: 1}", "confirm", "must be true or false, not the number 1"),
        ("{tool: x, if: foo(x)}", "if", "column 1: there is no function foo; there are len, min, max, abs, round"),
        ("{tool: x, if: results.b.x}", "if", "it reads the result of the task b; a step knows only its own task"),
        ("{tool: x, expect: 0}", "expect", "must be an object (key: value), not the number 0"),
        ("{tool: x, expect: {exit_code: 256}}", "expect.exit_code", "is 256; it must be from -255 to 255"),
        ("{tool: x, expect: {fails: 1}}", "expect.fails", "must be true or false, not the number 1"),
        ("{tool: x, recover: [{say: x}]}", "recover[0]", "only calls recover: a command or a tool"),
        ("{tool: x, recover: {tool: y}}", "recover", "must be a list, not an object; write each item behind a dash"),
        ("{tool: x, recover: [{tool: y, recover: [{tool: z}]}]}", "recover[0].recover",
         "a call that recovers has no recover of its own"),
        ("say: ''", "say", "is empty"),
        ("say: 3", "say", "must be text, not the number 3; put it in quotes"),
        ("{say: x, text: y}", "text", "there is no key text here; there are if, say"),
        ("{ask: x, options: [1]}", "options[0]", "must be text, not the number 1; put it in quotes"),
        ("{ask: x, options: ['']}", "options[0]", "is empty"),
        (f"{{ask: x, options: [{'y,' * 101}]}}", "options", "has 101 items; 100 are allowed"),
        ("observe: false", "observe", "false observes nothing; leave the step out"),
        ("observe: all", "observe", "must be true or false, not the text 'all'"),
        ("wait: soon", "wait", "must be a number of seconds, not the text 'soon'"),
        ("wait: -1", "wait", "is -1; it must be at least 0 and at most 31,536,000"),
        ("wait: {}", "wait", "a wait has either `seconds` or `for`"),
        ("wait: {seconds: 5, for: ci}", "wait", "a wait has either `seconds` or `for`"),
        ("wait: {seconds: 5, timeout: 3}", "wait.timeout", "only a wait for a call-back (`for`) has a timeout"),
        ("{wait: {for: ci}, timeout: 3}", "timeout", "there is no key timeout here; there are if, save, wait"),
        ("wait: {for: a b}", "wait.for", "'a b' is not an id: letters, digits and _ - . : / make one"),
        ("wait: {fro: ci}", "wait.fro", "there is no key fro here; did you mean for?"),
        ("delegate: {steps: [{say: x}]}", "delegate", "`name` is missing"),
        ("delegate: {name: x}", "delegate", "a delegate has either `steps` or an `instruction`"),
        ("delegate: {name: x, device: coder, instruction: y, steps: [{say: x}]}", "delegate",
         "a delegate has either `steps` or an `instruction`"),
        ("delegate: {name: x, device: coder, instruction: ''}", "delegate",
         "a delegate has either `steps` or an `instruction`"),
        ("delegate: {name: x, device: coder, instruction: [y]}", "delegate.instruction", "must be text, not a list"),
        ("delegate: {name: x, instruction: y}", "delegate.instruction",
         "is for a coding agent, and none is asked for: say which by `device`, `device_type` or `capabilities`"),
        ("delegate: {name: x, device: coder, app: shop, instruction: y}", "delegate.app",
         "is for steps: a coding agent, which an instruction is for, is held to no app"),
        ("delegate: {name: x, steps: []}", "delegate.steps", "is empty"),
        ("delegate: writer", "delegate", "must be an object (key: value), not the text 'writer'"),
        ("{do: sy, text: x}", "do",
         "must be one of call, say, ask, observe, wait, delegate, not the text 'sy'; did you mean say?"),
        ("do: say", "", "`text` is missing"),
        ("do: call", "", "`tool` is missing"),
        ("{do: say, say: x}", "say", "there is no key say here; there are do, if, text"),
        ('say: "a\\0b"', "say", "text may not hold the character NUL"),
    ],
)  # fmt: skip
def test_a_step_says_what_is_wrong_with_it(written, key, message):
    assert step_problem(written) == (key, message)


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("phases: [Prepare]", "phases[0]", "a phase needs steps"),
        ("phases: [{description: Prepare}]", "phases[0]", "a phase needs steps"),
        ("phases: [{description: x, steps: []}]", "phases[0].steps", "is empty"),
        ("phases: [{steps: [{say: x}]}, {description: b, steps: [{say: x}]}]", "phases[0]",
         "a phase needs a description where there are several"),
        ("phases: [{description: x, steps: [{say: x}], expected: 3}]", "phases[0].expected",
         "there is no key expected here; did you mean expected_duration?"),
        ("phases: [3]", "phases[0]", "must be an object (key: value), not the number 3"),
        ("phases: {}", "phases", "must be a list, not an object; write each item behind a dash"),
        ("phases: []", "", "a task needs a command, a tool or steps; one in words alone needs a language model"),
        ("steps: []", "steps", "is empty"),
        ("steps: make test", "steps", "must be a list, not the text 'make test'; put it in brackets: [make test]"),
        ("steps: [{say: x}]\nphases: [{steps: [{say: x}]}]", "phases", "a task has steps or phases, not both"),
        ("steps: [{say: x}]\ncommand: ls", "command",
         "a task has steps or a command or tool, not both: command beside steps"),
        ("steps: [{say: x}]\ntool: noop", "tool", "a task has steps or a command or tool, not both: tool beside steps"),
        ("phases: [{steps: [{say: x}]}]\narguments: {x: 1}", "arguments",
         "a task has phases or a command or tool, not both: arguments beside phases"),
        ("tool: steps", "tool", "the tool steps is for a task in steps, and this one has none"),
    ],
)  # fmt: skip
def test_a_task_is_in_steps_or_in_phases_or_plain(fields, key, message):
    assert problem(fields) == (key, message)


# Limits


def nested(depth: int) -> str:
    """A step that is delegated `depth` times."""
    return "{say: x}" if not depth else f"{{delegate: {{name: x, steps: [{nested(depth - 1)}]}}}}"


def test_agents_delegate_three_deep():
    (step,) = steps(f"- {nested(3)}")
    assert step["steps"][0]["steps"][0]["steps"] == [{"do": "say", "text": "x", "if": ""}]
    assert step_problem(nested(4)) == (
        "delegate.steps[0].delegate.steps[0].delegate.steps[0].delegate.steps",
        "agents would delegate 4 deep; 3 are allowed",
    )


def rejected(value: dict) -> tuple[str, str]:
    with pytest.raises(PlanRejected) as refused:
        parse_plan(json.dumps({"tasks": [{"task_id": "a", **value}]}))
    (only,) = refused.value.problems
    return only["key"], only["message"]


def test_the_steps_of_a_task_are_counted_wherever_they_are():
    said = {"say": "x"}
    inner = [said] * 500
    recovering = {"tool": "x", "recover": [{"tool": "y"}] * 498}
    phases = [
        {"description": "one", "steps": [{"delegate": {"name": "x", "steps": inner}}, recovering]},
        {"description": "two", "steps": [said] * 1000},
    ]
    parse_plan(json.dumps({"tasks": [{"task_id": "a", "phases": phases}]}))
    phases.append({"description": "three", "steps": [said] * 3})
    phases.append({"description": "four", "steps": [said]})
    assert rejected({"phases": phases}) == (
        "tasks[0].phases[2].steps[0]",
        "is one step too many; 2,000 are allowed in a task",
    )
    assert rejected({"steps": [said] * (MAX_STEPS + 1)}) == ("tasks[0].steps", "has 2,001 items; 2,000 are allowed")


def test_a_task_has_at_most_a_hundred_phases():
    phases = [{"description": "x", "steps": [{"say": "x"}]}] * (MAX_PHASES + 1)
    assert rejected({"phases": phases}) == ("tasks[0].phases", "has 101 items; 100 are allowed")


# Policies and settings


def test_a_policy_has_a_normal_form():
    assert task("tool: noop\npolicies: [{decision: ask}, {tool: write_*, pattern: '\\.env$', decision: deny}]")["policies"] == [
        {"tool": "*", "pattern": "", "decision": "ask"},
        {"tool": "write_*", "pattern": "\\.env$", "decision": "deny"},
    ]


def test_settings_are_kept_as_they_are_written():
    written = "progress: {enable: false, stuck_threshold: 0, test_commands: ['^check\\b'], poll_tools: [peek]}"
    assert task(f"tool: noop\n{written}")["progress"] == {
        "enable": False,
        "stuck_threshold": 0,
        "test_commands": ["^check\\b"],
        "poll_tools": ["peek"],
    }


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("policies: [{tool: x}]", "policies[0]", "a policy needs a decision: one of allow, ask, deny"),
        ("policies: [{decision: alow}]", "policies[0].decision",
         "must be one of allow, ask, deny, not the text 'alow'; did you mean allow?"),
        ("policies: [{decision: ask, patern: x}]", "policies[0].patern", "there is no key patern here; did you mean pattern?"),
        ("policies: [{decision: ask, tool: ''}]", "policies[0].tool", "is empty; * is any tool"),
        ("policies: [{decision: ask, pattern: '(a'}]", "policies[0].pattern",
         "it is no regular expression: missing ): (a"),
        ("policies: [{decision: ask, pattern: '(?=a)b'}]", "policies[0].pattern",
         "it is no regular expression: invalid perl operator: (?="),
        (f"policies: [{{decision: ask, pattern: {'a' * (MAX_PATTERN + 1)}}}]", "policies[0].pattern",
         "has 501 characters; 500 are allowed"),
        (f"policies: [{'{decision: ask},' * (MAX_POLICIES + 1)}]", "policies", "has 51 items; 50 are allowed"),
        ("policies: ask", "policies", "must be a list, not the text 'ask'; put it in brackets: [ask]"),
        ("policies: [ask]", "policies[0]", "must be an object (key: value), not the text 'ask'"),
        ("progress: {stuck_treshold: 3}", "progress.stuck_treshold",
         "there is no key stuck_treshold here; did you mean stuck_threshold?"),
        ("progress: {stuck_threshold: -1}", "progress.stuck_threshold", "stuck_threshold must be a whole number from 0"),
        ("progress: {stuck_threshold: 1.5}", "progress.stuck_threshold", "stuck_threshold must be a whole number from 0"),
        ("progress: {steer_budget: 1000000}", "progress.steer_budget", "is 1000000; it must be at most 100,000"),
        ("progress: {enable: 1}", "progress.enable", "enable must be true or false"),
        ("progress: {poll_tools: 3}", "progress.poll_tools", "must be a list, not the number 3"),
        ("progress: {poll_commands: ['(']}", "progress.poll_commands[0]",
         "it is no regular expression: missing ): ("),
        ("progress: patient", "progress", "must be an object (key: value), not the text 'patient'"),
    ],
)  # fmt: skip
def test_policies_and_settings_say_what_is_wrong_with_them(fields, key, message):
    assert problem(f"tool: noop\n{fields}") == (key, message)


# Any value


KEYS = sorted({"do", "if", *(key for row in DEFAULTS.values() for key in row), "command", "say", "ask", "observe", "delegate"})
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
STEPS = st.recursive(
    st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3), max_size=3),
    lambda inner: st.lists(
        st.fixed_dictionaries(
            {"tool": st.just("x")}, optional={"recover": inner, "expect": inner | st.just({}), "save": VALUES}
        )
        | st.fixed_dictionaries({"delegate": st.fixed_dictionaries({"name": st.just("x"), "steps": inner})})
        | st.fixed_dictionaries({"wait": inner | VALUES}),
        max_size=3,
    ),
    max_leaves=8,
)


@given(STEPS, st.lists(VALUES | st.dictionaries(st.sampled_from(("description", "steps")), VALUES | STEPS), max_size=2))
def test_any_steps_are_refused_with_a_message_or_read_the_same_again(steps, phases):
    written = {"task_id": "a", **({"phases": phases} if phases else {"steps": steps})}
    assert_read_or_refused(written)
    for step in steps:
        assert_read_or_refused({"task_id": "a", "steps": [step]})


def assert_read_or_refused(written: dict) -> None:
    try:
        plan = parse_plan(json.dumps({"tasks": [written]}))
    except PlanRejected as refused:
        assert_said(refused.problems)
    else:
        assert parse_plan(json.dumps({"tasks": plan.tasks})).tasks == plan.tasks


def assert_said(problems: list[dict]) -> None:
    assert problems
    assert all(problem["message"] for problem in problems)
