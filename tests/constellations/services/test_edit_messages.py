"""Every message of the editor is asserted word for word, as a person reads it.

Most are in the tables of the modules' own tests (TABLES, STORED_TABLES); here are those that no table has. Two guards look for
more: a text in the editor's modules that is in no asserted message, and one in a line that no case reaches, each is named.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.errors import AgentsError
from agents.services import sessions
from agents.services.devices import device_create
from constellations import conditions
from constellations.editor.inverse import inverse_operations
from constellations.errors import EditGiven
from constellations.live import live
from constellations.plan.fitting import NO_MIND, KnownDevices, missing_mind, unknown_device, why_none_fits
from constellations.plan.keys.calls import INSTRUCTION, NEEDS_DOING
from constellations.plan.operations import MAX_TASKS
from constellations.plan.plan import parse_plan
from constellations.runs import rules
from constellations.services import edits
from constellations.services.edits import edit_apply
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest
from tests.constellations.api import test_edits as test_edit_api
from tests.constellations.conditions import test_conditions
from tests.constellations.editor import test_editor
from tests.constellations.editor.test_editor import (
    add,
    after,
    dependency_row,
    digits,
    edit,
    link,
    refusal,
    snapshot_of,
    task_row,
)
from tests.constellations.plan import test_plan, test_steps
from tests.constellations.planting import noop, plant
from tests.constellations.services import test_edits

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[3] / "constellations"
PURE = (
    "editor/editor", "editor/draft", "editor/apply", "editor/commuting", "editor/inverse", "editor/replacing",
    "plan/operations", "plan/tasks", "plan/keys/calls", "plan/steps", "plan/keys/step_keys", "plan/keys/guards",
    "plan/documents", "plan/values", "plan/plan", "plan/fitting", "runs/rules", "graph", "conditions/parsing",
    "conditions/operators", "conditions/evaluation",
)  # fmt: skip
"""Modules of the editor that need no database."""
STORED = ("services/edits", "services/undo", "services/preview", "api/edit_views", "errors")

TABLES = (
    test_editor.test_a_refusal_names_the_operation_the_field_and_the_reason,
    test_editor.test_removing_what_never_was_is_refused_with_the_nearest_name,
    test_editor.test_an_edit_is_a_bounded_list_of_operations,
    test_editor.test_an_update_leaves_no_task_half_in_steps,
    test_plan.test_a_field_of_a_task_says_what_it_takes,
    test_plan.test_a_task_has_an_id,
    test_plan.test_a_dependency_says_what_is_wrong_with_it,
    test_plan.test_a_shell_is_only_for_a_command_that_is_a_text,
    test_plan.test_a_rule_says_what_is_wrong_with_it,
    test_plan.test_what_cannot_be_read_is_refused,
    test_steps.test_a_step_says_what_is_wrong_with_it,
    test_steps.test_a_task_is_in_steps_or_in_phases_or_plain,
    test_steps.test_policies_and_settings_say_what_is_wrong_with_them,
    test_conditions.test_it_is_refused_when_it_is_written,
    test_conditions.test_what_cannot_be_said_is_neither_true_nor_false,
    test_conditions.test_a_missing_name_says_what_the_result_is,
)
"""Tests with a table of what is written and of the message that follows, each a function without fixtures."""
STORED_TABLES = (
    test_edits.test_what_an_edit_says_of_itself_is_checked,
    test_edits.test_an_undo_takes_nothing_from_others,
    test_edit_api.test_a_request_that_makes_no_sense_says_why,
)
MESSAGE = ("message", "said", "detail")
"""What the tables call the message."""


@pytest.fixture(autouse=True)
def tools(more_tools):
    """What the tables of other modules call, beside what there is."""
    more_tools("anything", "http", "x", "y", "z")


# Messages that no table has


DEVICE = {"type": "", "capabilities": [], "state": "connected"}
ELSEWHERE = {"name": "other", "platform": "browser", "steps": [{"tool": "noop"}]}


def refused(*written: Any, tasks: tuple[dict, ...] = (), dependencies: tuple[dict, ...] = (), devices=None, **more: Any) -> str:
    """What an edit of `tasks` (left out: fetch > train > evaluate > deploy) is refused with."""
    return str(refusal(snapshot_of(list(tasks), list(dependencies), **more) if tasks else digits(), *written, devices=devices))


REPLACING = "operation 1 (add_task), replaces"


def replaced(task_id: str, state: str = "WAITING_DEPENDENCY") -> str:
    """What adding x in the place of a task is refused with."""
    return refused(add("x", replaces=task_id), tasks=(task_row("a", state),))


def arguments(value: Any) -> str:
    return refused(("update_task", {"task_id": "train", "arguments": value}))


def rejected(plan: Any, devices=None) -> str:
    """What a plan is rejected with, where `devices` are known."""
    with pytest.raises(AgentsError) as error:
        parse_plan(plan if isinstance(plan, str) else json.dumps(plan), devices=devices)
    return str(error.value)


def delegating(devices, **whom: Any) -> str:
    """What a plan is rejected with that tells `whom` to do something in words."""
    step = {"delegate": {"name": "other", "instruction": "Make the test pass.", **whom}}
    return rejected({"tasks": [{"task_id": "x", "steps": [step]}]}, devices)


TIED = "; ".join(f"the dependency x>n{number} was tied to x since" for number in range(20))


def taken_back(*others: tuple[str, dict]) -> str:
    """What taking back an added task is refused with after others' edits."""
    made = edit(digits(), add("x"))
    there = after(digits(), made)
    for operation in others:
        there = after(there, edit(there, operation))
    with pytest.raises(AgentsError) as error:
        inverse_operations(made.before, made.after, there)
    return str(error.value)


def condition(text: str, result: Any = None, **results: Any) -> str:
    with pytest.raises(AgentsError) as error:
        conditions.evaluate_condition(text, result, results)
    return str(error.value)


def devices_with(*minds: str) -> KnownDevices:
    """No devices, and these minds."""
    known = KnownDevices()
    known.minds = frozenset(minds)
    return known


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def fired(condition: str) -> tuple[str, list[str]]:
    """The reason that a rule gives by default, and the notes on its condition."""
    when = {"event": "task_ended", "task": [], "condition": condition}
    ended = [{"task_id": "a", "state": "FAILED", "reason": "failed", "result": {"n": 1}}]
    found, notes = rules.match_rules([{"name": "mend", "when": when, "edit": []}], {}, ended, {})
    return "".join(firing.reason for firing in found), notes


NOOP = {"task_id": "a", "tool": "noop"}
SERVERS = {
    "pi": {"kind": "local", "type": "", "capabilities": [], "tools": []},
    "git": {"kind": "mcp", "type": "", "capabilities": [], "tools": [{"name": "git.log", "arguments": {}}]},
    "hg": {"kind": "mcp", "type": "", "capabilities": [], "tools": [{"name": "hg.log", "arguments": {}}]},
    "coder": {"kind": "acp", "type": "", "capabilities": [], "tools": []},
}
"""Devices by name, with the tools of servers."""


def stepped(*steps: dict) -> tuple[str, dict]:
    """An operation that adds a task in steps."""
    return "add_task", {"task_id": "x", "steps": list(steps)}


ANYWHERE = {"tool": "noop", "arguments": {}, "phases": [], "device_type": "", "capabilities": [], "not_device": []}
SKIPPED = (task_row("a", "SKIPPED"), task_row("b", "RUNNING"))
"""A skipped task has ended, so what waited for its end, however it ended, may run by now."""
LONG = "y" * 41
MANY = tuple(task_row(f"t{number:02}") for number in range(13))

CASES: list[tuple[Callable[[], Any], Any]] = [
    (lambda: str(refusal(digits(), add("x", device="gpu"), devices={})),
     "operation 1 (add_task), device: there is no device gpu; there are no devices"),
    (lambda: why_none_fits({**ANYWHERE, "not_device": []}), "no device is there"),
    (lambda: why_none_fits({**ANYWHERE, "tool": "git.log"}), "no device has the tools git.log"),
    (lambda: str(refusal(digits(), add("x", tool="git.log", device="pi"), devices=SERVERS)),
     "operation 1 (add_task), tool: pi does not offer git.log; git does"),
    (lambda: str(refusal(digits(), stepped({"tool": "git.log"}, {"tool": "hg.log"}), devices=SERVERS)),
     "operation 1 (add_task), steps: a task works on one device, and no device offers git.log, hg.log together; "
     "make several tasks of it"),
    (lambda: str(refusal(digits(), stepped({"tool": "git.log"}, {"command": "true"}), devices=SERVERS)),
     "operation 1 (add_task), steps[1].tool: git is a tool server, which has no tool command; "
     "give it to a task on another device"),
    (lambda: str(refusal(digits(), add("x", device="coder"), devices=SERVERS)),
     "operation 1 (add_task), device: coder is a coding agent: it carries out tasks in words, and no noop"),
    (lambda: refused(add("x"), tasks=(task_row("a"),), state="CANCELLED"),
     "the constellation was cancelled; nothing in it changes any more"),
    (lambda: refused(("update_task", {"task_id": "a", "arguments": {"x": 1}}), tasks=(task_row("a", tool=""),)),
     "operation 1 (update_task), arguments: a is in words alone, and has no arguments; "
     "give them with a tool, or give it a command"),
    (lambda: refused(("update_task", {"task_id": "a", "arguments": {"x": 1}}), tasks=(task_row("a", tool=INSTRUCTION),)),
     "operation 1 (update_task), arguments: a is in words, and has no arguments"),
    (lambda: rejected({"tasks": [{"task_id": "a", "tool": INSTRUCTION, "arguments": {"x": 1}}]}),
     "plan: line 1, tasks[0].arguments: a task in words has no arguments; its words are in its name and description; "
     f"line 1, tasks[0]: {NEEDS_DOING}, and {NO_MIND}"),
    (lambda: unknown_device({"wanted_device": "coder", "not_device": [], "tool": "noop"}, {"coder": {"kind": "acp"}}),
     ("device", "coder is a coding agent: it carries out tasks in words, and no noop")),
    (lambda: missing_mind({"tool": INSTRUCTION, "model": "wise"}, devices_with("", "quick")),
     ("model", "there is no model profile wise; there is quick")),
    (lambda: refused(add("x", inputs=["train#model"])),
     "x is to get an output of train and does not wait for it: make train one of its dependencies"),
    (lambda: refused(add("x", inputs=["trian#model"])),
     "x is to get an output of trian, and there is no such task"),
    (lambda: refused(("remove_dependency", {"dependency_id": "a>b"}), tasks=(task_row("a"), task_row("b", inputs={"m": "a#m"})),
                     dependencies=(dependency_row("a>b", type="UNCONDITIONAL"),)),
     "b is to get an output of a and does not wait for it: make a one of its dependencies"),
    (lambda: refused(("remove_task", {"task_id": "a"}), tasks=(task_row("a"),)),
     "nothing would be left; a constellation has at least one task"),
    (lambda: refused(("update_task", {"task_id": "a", "device": "laptop"}), tasks=(task_row("a", not_device=["laptop"]),)),
     "operation 1 (update_task), device: a is to run on laptop, and not_device says that it must not"),
    (lambda: refused(("remove_task", {"task_id": "a"}), tasks=SKIPPED,
                     dependencies=(dependency_row("a>b", type="UNCONDITIONAL"),)),
     "operation 1 (remove_task), task_id: a cannot go: b waited for it, and b already runs"),
    (lambda: refused(("remove_task", {"task_id": "a"}), tasks=(task_row("a", attempt=1),)),
     "operation 1 (remove_task), task_id: a cannot go: it has been tried once, and that stays on record"),
    (lambda: refused(("remove_task", {"task_id": "a"}), tasks=(task_row("a", attempt=3),)),
     "operation 1 (remove_task), task_id: a cannot go: it has been tried 3 times, and that stays on record"),
    (lambda: refused(("remove_dependency", {"dependency_id": "fetch>train"}),
                     link("fetch>deploy", dependency_id="fetch>train")),
     "operation 2 (add_dependency), dependency_id: fetch>train was the dependency from fetch to train; "
     "give this one an id of its own"),
    (lambda: refused(("build_constellation", {"clear": False, "tasks": [noop(f"t{n}") for n in range(MAX_TASKS)]}), add("x")),
     "operation 2 (add_task): one edit adds at most 20,000 tasks"),
    (lambda: refused(*[add(f"x{number}", timeot=1) for number in range(5)]),
     "operation 1 (add_task), timeot: there is no key timeot here; did you mean timeout?; "
     "operation 2 (add_task), timeot: there is no key timeot here; did you mean timeout?; "
     "operation 3 (add_task), timeot: there is no key timeot here; did you mean timeout?; and 2 more"),
    (lambda: refused(add("z", after=["y"]), add("y")),
     "operation 1 (add_task), after[0]: there is no task y yet: put operation 2 before this one"),
    (lambda: rejected({"tasks": [NOOP], "policies": []}),
     "plan: line 1, policies: there is no key policies here; policies stand in a task"),
    (lambda: rejected({"tasks": [NOOP], "progress": {}}),
     "plan: line 1, progress: there is no key progress here; progress stands in a task"),
    (lambda: rejected("```yaml\ntasks: [{task_id: a, tool: noop}]\n```"),
     "plan: line 1: the ``` lines are no part of a plan: leave them out"),
    (lambda: refused(add("x", device_type="android"), devices={"pi": DEVICE}),
     "operation 1 (add_task), device_type: no device has the type android, or any type"),
    (lambda: refused(add("x", capabilities=["fly"]), devices={"pi": DEVICE}),
     "operation 1 (add_task), capabilities: no device has the capability fly, or any capability"),
    (lambda: rejected({"tasks": [{"task_id": "x", "steps": [{"delegate": ELSEWHERE}]}]}, {"pi": DEVICE}),
     "plan: line 1, tasks[0].steps[0].delegate.platform: no device has the platform browser"),
    (lambda: delegating(SERVERS, device="pi"),
     "plan: line 1, tasks[0].steps[0].delegate.instruction: pi is no coding agent: it is given steps, and no instruction"),
    (lambda: delegating({"pi": DEVICE}, device_type="forge"),
     "plan: line 1, tasks[0].steps[0].delegate.instruction: no coding agent has what is asked for; there are none"),
    (lambda: refused(add("x", device_type="android"), devices={f"d{n}": DEVICE | {"type": f"t{n:02}"} for n in range(22)}),
     f"operation 1 (add_task), device_type: no device has the type android; the types there are: "
     f"{', '.join(f't{n:02}' for n in range(20))} and 2 more"),
    (lambda: refused(add("x", confirm="yes")),
     "operation 1 (add_task), confirm: must be true or false, not the text 'yes'; write true, without quotes"),
    (lambda: refused(("update_task", {"task_id": "q"}), tasks=MANY),
     "operation 1 (update_task), task_id: there is no task q; there are t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, "
     "t11 ..."),
    (lambda: refused({}),
     "operation 1: an operation is one key with its parameters; this one has 0 keys: write one operation for each"),
    (lambda: arguments({5: 1}), "operation 1 (update_task), arguments: the key 5 is not text"),
    (lambda: arguments({"a\0": 1}), "operation 1 (update_task), arguments: in a key: text may not hold the character NUL"),
    (lambda: arguments({"a": {"b"}}), "operation 1 (update_task), arguments.a: set is not a value that JSON knows"),
    (lambda: arguments({"a": "\ud800"}),
     "operation 1 (update_task), arguments.a: text may not hold half a character (a lone surrogate)"),
    (lambda: arguments({"a": "\N{BULLET}" * 8}),
     "operation 1 (update_task), arguments.a: text may not hold what is shown in the place of a secret: write the name of the "
     "secret, or the text itself"),
    (lambda: arguments({"n": 1 << 63}),
     "operation 1 (update_task), arguments.n: the number is out of range; put it in quotes if it is text"),
    (lambda: str(EditGiven()), "document: this is an edit of a constellation, and no constellation: apply it to one, "
     "with POST /api/constellations/{id}/import/ or constellation_import --constellation"),
    (lambda: rejected("[" * 1_000_001), "plan: nested more than 20 deep"),
    (lambda: rejected("#" * 10_000_001), "plan: the text has 10,000,001 bytes; 10,000,000 are allowed"),
    (lambda: refused(("remove_task", {"task_id": "c"}), tasks=tuple(map(task_row, "abc")),
                     dependencies=(dependency_row("a>b", type="CONDITIONAL", condition="results['c'] == 1"),)),
     "c cannot go: the condition of a>b reads its result"),
    (lambda: arguments({"a": nested(1, 18)}),
     f"operation 1 (update_task), arguments.a{'[0]' * 17}: nested more than 20 deep"),
    (lambda: refused(("update_task", {"task_id": "train", "timeout": LONG})),
     f"operation 1 (update_task), timeout: must be a number of seconds, not the text '{LONG[1:]}...'"),
    (lambda: rejected({"tasks": [NOOP, NOOP]}),
     "plan: line 1, tasks[1].task_id: there is a task a already, tasks[0]: give one of them another id"),
    (lambda: rejected({"tasks": [NOOP | {"after": "b"}, NOOP | {"task_id": "b", "after": "a"}]}),
     "plan: line 1, tasks[1].after[0]: the tasks would wait for each other: a > b > a; take one of these dependencies out"),
    (lambda: rejected({"tasks": [{"task_id": "a", "command": "a | b"}]}),
     "plan: line 1, tasks[0].command: `|` means something to a shell, and no shell reads a command that is given as a text: "
     "give an argument list to have it as it stands, or `shell: true` beside it to have `sh -c` run it"),
    (lambda: rejected("tasks: [{task_id: a, command: [a: b]}]"),
     "plan: line 1, tasks[0].command[0]: must be text, not an object; put a word that has a colon in quotes"),
    (lambda: rejected("tasks:\n- task_id: a\n tool: noop"),
     "plan: line 3: it is not YAML: while parsing a block mapping, did not find expected key; "
     "the keys of one item stand in one column, and so do the dashes of a list"),
    (lambda: rejected("tasks:\n  - task_id: a\n   tool: noop"),
     "plan: line 3: it is not YAML: while parsing a block collection, did not find expected '-' indicator; "
     "the keys of one item stand in one column, and so do the dashes of a list"),
    (lambda: rejected("tasks: [{task_id: a, tool: noop]"),
     "plan: line 1: it is not YAML: while parsing a flow mapping, did not find expected ',' or '}'; "
     "a bracket is not closed, or a text in brackets needs quotes"),
    (lambda: condition("a && b"), "column 4: the condition is not understood: invalid syntax; write and, or, not"),
    (lambda: rejected({"tasks": [NOOP, noop("b", after="a")], "dependencies": [{"from": "a", "to": "b"}]}),
     "plan: line 1, dependencies[0]: b waits for a already"),
    (lambda: rejected({"tasks": [NOOP, noop("b"), noop("c")], "dependencies": [
        {"from": "a", "to": "b", "dependency_id": "x"}, {"from": "b", "to": "c", "dependency_id": "x"}]}),
     "plan: line 1, dependencies[1]: there is a dependency x already"),
    (lambda: rejected({"tasks": [NOOP], "replan": [
        {"name": "x", "when": {"event": "task_ended"}, "edit": [{"remove_task": {"task_id": "a"}}]}] * 2}),
     "plan: line 1, replan[1].name: there is a rule called x already"),
    (lambda: rejected({"name": "x"}), "plan: line 1, tasks: a plan needs at least one task"),
    (lambda: rejected({"tasks": [noop(f"t{n}", after=f"m{n}") for n in range(1001)]}).split("; ")[-1], "and 998 more"),
    (lambda: test_plan.problems(json.dumps({"tasks": [noop(f"t{n}", after=f"m{n}") for n in range(1001)]}))[-1][-1],
     "and more: the first 1,000 problems are shown"),
    (lambda: rejected("tasks:\n  - {task_id: a,\n     tool: noop, tool: http}\n"),
     "plan: line 3, tasks[0].tool: the key tool is there twice, again in line 3"),
    (lambda: rejected('{"a": 1, "a": "\\ud83d\\ude00"}'), "plan: the key a is there twice"),
    (lambda: rejected({"tasks": [{"task_id": "a", "phases": [
        {"description": "one", "steps": [{"say": "x"}] * 2000}, {"description": "two", "steps": [{"say": "x"}]}]}]}),
     "plan: line 1, tasks[0].phases[1].steps[0]: is one step too many; 2,000 are allowed in a task"),
    (lambda: rejected(f"tasks: [{{task_id: a, steps: [{test_steps.nested(4)}]}}]"),
     "plan: line 1, tasks[0].steps[0].delegate.steps[0].delegate.steps[0].delegate.steps[0].delegate.steps: "
     "agents would delegate 4 deep; 3 are allowed"),
    (lambda: refused(("update_task", {"task_id": "a", "timeout": 1}), tasks=(task_row("a", "FAILED"),)),
     "operation 1 (update_task), task_id: a has ended (FAILED); "
     "retry it in the same request as these operations, or add a task that replaces it"),
    (lambda: replaced("a"), f"{REPLACING}: a is WAITING_DEPENDENCY; update it"),
    (lambda: replaced("a", "COMPLETED"), f"{REPLACING}: a is COMPLETED; only what has FAILED or was cancelled is replaced"),
    (lambda: replaced("a", "SKIPPED"),
     f"{REPLACING}: a was skipped and may still change; update it, or what decided that it was skipped"),
    (lambda: replaced("x"), f"{REPLACING}: x cannot replace itself"),
    (lambda: refused(add("y"), add("x", replaces="y"), tasks=(task_row("a"),)),
     "operation 2 (add_task), replaces: y is new itself; write it as it is to be"),
    (lambda: refused(add("x", replaces="a"), tasks=(task_row("a", "FAILED"), task_row("b", replaces="a"))),
     f"{REPLACING}: a was replaced by b already; replace that one, when it has failed"),
    (lambda: refused(("update_task", {"task_id": "a", "replaces": "b"}), tasks=tuple(map(task_row, "ab"))),
     "operation 1 (update_task), replaces: replaces is for new tasks, which then take over what waits for the old one; "
     "a is there already"),
    (lambda: refused(("remove_task", {"task_id": "a"}), tasks=(task_row("a"), task_row("b", replaces="a"))),
     "a cannot go: b replaces it"),
    (lambda: refused(add(LONG, replaces="a"), tasks=(task_row("a", "FAILED"), task_row("b", "COMPLETED"), task_row("c")),
                     dependencies=(dependency_row("b>c", type="CONDITIONAL", condition=f"results['a'] == '{'x' * 480}'"),)),
     "the condition of b>c would have 538 characters with the names of replacements; 500 are allowed"),
    (lambda: rejected({"tasks": [NOOP | {"replaces": "b"}]}),
     "plan: line 1, tasks[0].replaces: replaces is for a task that an edit adds in the place of one that has FAILED or was "
     "cancelled; when a plan begins nothing has: leave it out"),
    (lambda: taken_back(("update_task", {"task_id": "x", "timeout": 1})), "cannot undo: the task x was changed again since"),
    (lambda: taken_back(link("x>deploy")), "cannot undo: the dependency x>deploy was tied to x since"),
    (lambda: taken_back(*(add(f"n{number}", after=["x"]) for number in range(22))), f"cannot undo: {TIED}; and 2 more"),
    (lambda: condition(5), "a condition is text, not a number"),
    (lambda: condition("result == results['x']", nested(1, 100_000), x=nested(2, 100_000)),
     "`result == results['x']` compares values that are nested too deeply"),
    (lambda: fired(""), ("mend: a is FAILED", [])),
    (lambda: fired("m > 1"), ("", ["rule mend after a: `m` is missing: the result has n"])),
]  # fmt: skip
"""Something that is written, and what is said about it, place and all."""


@pytest.mark.parametrize(("say", "message"), CASES, ids=[str(message)[:60] for _, message in CASES])
def test_it_is_said_word_for_word(say, message):
    assert say() == message


# Messages about edits that are stored


@pytest.fixture
def constellation(operator):
    """fetch > train > evaluate > deploy, of which nothing has started."""
    device_create("laptop", by="system")
    names = ["fetch", "train", "evaluate", "deploy"]
    tasks = [noop(name, after=names[max(number - 1, 0) : number]) for number, name in enumerate(names)]
    return plant(sessions.session_create(operator, "mine", by="system"), *tasks)


def made(constellation, *operations: dict, based_on: int | None = None) -> None:
    edit_apply(constellation.pk, operations, author="user:1", based_on=based_on, edit_id=f"e{len(operations)}")


def overtaken(constellation) -> None:
    """An edit that misses one of seven tasks."""
    made(constellation, *[{"add_task": noop(f"x{number}")} for number in range(7)])
    made(constellation, *[{"add_task": noop(f"x{number}", timeout=1)} for number in range(6)], based_on=1)


def long_overtaken(constellation) -> None:
    made(constellation, {"add_task": noop("x")})
    made(constellation, {"add_task": noop("y")}, {"add_task": noop("z")})
    made(constellation, *[{"add_task": noop(f"x{number}")} for number in range(3)], based_on=1)


def undone_since(constellation) -> None:
    made(constellation, {"add_task": noop("x")})
    edit_apply(constellation.pk, [{"update_task": {"task_id": "x", "timeout": 1}}], author="user:1")
    edit_undo(constellation.pk, "e1", "user:1")


def crowded(constellation) -> None:
    made(constellation, *[{"add_task": noop(f"x{number}")} for number in range(51)])


def ended(constellation, state: str = "FAILED") -> None:
    constellation.state = state
    constellation.name = ""
    constellation.save()
    made(constellation, {"add_task": noop("x")})


def taken(constellation) -> None:
    made(constellation, {"add_task": noop("x")})
    made(constellation, {"add_task": noop("y")})


def ungated(it) -> None:
    made(it, {"add_task": noop("x", confirm=True)})
    edit_apply(it.pk, [{"update_task": {"task_id": "x", "confirm": False}}], author="planner")


STALE = "the edit was made on version 1, and version {} is the newest: "
STORED_CASES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda it: edit_apply(5, [{"add_task": NOOP}], author="user:1"), "there is no constellation 5"),
    (overtaken, STALE.format(2) + "user:1 changed x0, x1, x2, x3, x4, ... (version 2)"),
    (long_overtaken, STALE.format(3) + "there were more than 1 edits since; read the newest version"),
    (taken, "edit e1 was another one (by user:1, version 2): give this one an edit_id of its own"),
    (lambda it: edit_undo(it.pk, "nobody", "user:1"), "constellation {} has no edit nobody"),
    (undone_since, "cannot undo: the task x was changed again since"),
    (crowded, "limit reached: edits add at most 50 tasks in one interaction, 0 so far"),
    (ungated, "the edit takes the gate of x away; that takes somebody who may approve it and has no part in it"),
    (ended, "constellation {} has ended (FAILED); work is added to it by reopening it"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("do", "message"), STORED_CASES, ids=[message[-60:] for _, message in STORED_CASES])
def test_it_is_said_word_for_word_of_what_is_stored(constellation, monkeypatch, do, message):
    monkeypatch.setattr(edits, "REBASED_OVER", 1)
    monkeypatch.setattr(live, "ADDED", 50)
    with pytest.raises(AgentsError) as error:
        do(constellation)
    assert str(error.value) == message.format(constellation.pk)


@pytest.mark.django_db
def test_an_undo_and_a_redo_say_what_they_take_back(constellation):
    made(constellation, {"add_task": noop("x")})
    undone, _ = edit_undo(constellation.pk, "e1", "user:1", undo_id="u1")
    redone, _ = edit_undo(constellation.pk, "u1", "user:1")
    assert (undone.reason, redone.reason) == REASONS


REASONS = ("undo of e1", "redo of u1: undo of e1")


@pytest.mark.django_db
def test_the_list_of_edits_takes_texts_of_some_length(constellation, operator):
    answer = Rest(operator).get(f"/api/constellations/{constellation.pk}/edits/?author={'x' * 81}")
    assert (answer.status_code, answer.json()["detail"]) == (400, TOO_LONG)


TOO_LONG = "author: must be text of at most 80 characters"


# That there are no others


def test_every_text_of_the_editor_is_in_a_message_that_is_asserted():
    asserted = [text for test in (*TABLES, *STORED_TABLES) for row in rows(test) for text in texts(row)]
    asserted += [text for _, message in (*CASES, *STORED_CASES) for text in flat(message)] + [*REASONS, TOO_LONG]
    lost = [
        f"{module}.py, line {line}: {shown}"
        for module in (*PURE, *STORED)
        for line, shown, pattern in messages_in(module)
        if not any(pattern.search(text) for text in asserted)
    ]
    assert lost == []


def test_every_line_with_a_message_is_reached_by_a_case():
    reached = lines_reached(PURE, carry_out_all)
    lost = [
        f"{module}.py, line {line}: {shown}"
        for module in PURE
        for line, shown, _ in messages_in(module, inside_functions=True)
        if line not in reached[module]
    ]
    assert lost == []


def carry_out_all() -> None:
    for test in TABLES:
        for row in rows(test):
            test(**row)
    for say, message in CASES:
        assert say() == message


def rows(test: Callable) -> list[dict[str, Any]]:
    """The table of a test: what it is called with."""
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    return [dict(zip(mark.args[0], row, strict=True)) for row in mark.args[1]]


def texts(row: dict[str, Any]) -> list[str]:
    return [row[name] for name in MESSAGE if name in row]


def flat(message: Any) -> list[str]:
    return [message] if isinstance(message, str) else [text for part in message for text in flat(part)]


def messages_in(module: str, inside_functions: bool = False) -> Iterator[tuple[int, str, re.Pattern]]:
    """Texts with a space in a module: line, text ({} where something is put in), what a message looks like that has it."""
    tree = ast.parse((ROOT / f"{module}.py").read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if inside_functions else [tree]
    found = {node for function in functions for node in texts_under(function)}
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        pieces = [part.value if isinstance(part, ast.Constant) else None for part in parts]
        if re.search("[a-z].* | .*[a-z]", "".join(piece or "" for piece in pieces)):
            pattern = "".join(".*" if piece is None else re.escape(piece) for piece in pieces)
            yield node.lineno, "".join("{}" if piece is None else piece for piece in pieces), re.compile(pattern, re.DOTALL)


def texts_under(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Not those that stand by themselves (docstrings), that are parts of others, or that nobody is told."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.JoinedStr) or (isinstance(inner, ast.Constant) and isinstance(inner.value, str)):
            yield inner
        elif not is_silent(inner):
            yield from texts_under(inner)


def is_silent(node: ast.AST) -> bool:
    """A docstring, the description of an address's parameter, an error that only a mistake of the program's own raises."""
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name) and node.exc.func.id == "AssertionError"
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.keyword) and node.arg in ("description", "about"))


def lines_reached(modules: tuple[str, ...], do: Callable[[], None]) -> dict[str, set[int]]:
    """The lines of these modules that run while `do` does."""
    names = {str(ROOT / f"{module}.py"): module for module in modules}
    reached: dict[str, set[int]] = {module: set() for module in modules}

    def called(frame: Any, event: str, argument: Any) -> Any:
        module = names.get(frame.f_code.co_filename)
        return None if module is None else watching(reached[module])

    def watching(lines: set[int]) -> Any:
        def watch(frame: Any, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return watch

        return watch

    before = sys.gettrace()
    sys.settrace(called)
    try:
        do()
    finally:
        sys.settrace(before)
    return reached
