"""Twenty-four mistakes of somebody's first day, over REST: each answer is a sentence that says what to do, with line and key.

`mended` is what somebody writes who does as the sentence says: it is accepted.
"""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest

from agents.models import InboxItem, Session
from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Edit
from constellations.plan.fitting import NO_MIND
from constellations.plan.keys.calls import NEEDS_DOING
from tests.agents.conftest import Rest
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

SHELL = (
    "means something to a shell, and no shell reads a command that is given as a text: give an argument list to have it as it "
    "stands, or `shell: true` beside it to have `sh -c` run it"
)
TOOLS = "there are command, edit_file, noop, observe, read_file, write_file"


@pytest.fixture
def rest(operator):
    device_create("laptop", by="system")
    device_create("server", capabilities=["gpu"], by="system")
    return Rest(operator)


PLANS: dict[str, tuple[str, str, list[tuple[int | None, str]], str]] = {
    "indents with tabs": (
        "tasks:\n\t- task_id: build\n\t  command: [make]\n",
        "plan: line 2: it is not YAML: while scanning for the next token, found character that cannot start any token; "
        "indent with spaces, not with tabs; put text that begins with @ or a backquote in quotes",
        [(2, "")],
        "tasks:\n  - task_id: build\n    command: [make]\n",
    ),
    "forgets a colon": (
        "tasks:\n  - task_id build\n    command: [make]\n",
        "plan: line 3: it is not YAML: mapping values are not allowed in this context; a colon and a space make a key: the "
        "line before lacks one, or this text its quotes",
        [(3, "")],
        "tasks:\n  - task_id: build\n    command: [make]\n",
    ),
    "writes tasks by name": (
        "tasks:\n  build: {command: [make]}\n",
        "plan: line 1, tasks: must be a list, not an object; write each item behind a dash",
        [(1, "tasks")],
        "tasks:\n  - {task_id: build, command: [make]}\n",
    ),
    "sends words as a plan": (
        "build my project",
        "plan: line 1: a plan is an object with a list of tasks, not the text 'build my project'; what is said in words is a "
        "request",
        [(1, "")],
        "tasks: [{task_id: build, command: [make]}]",
    ),
    "says in a task only what it is about": (
        "tasks:\n  - task_id: build\n    description: Build the project.\n",
        f"plan: line 2, tasks[0]: {NEEDS_DOING}, and {NO_MIND}",
        [(2, "tasks[0]")],
        "tasks:\n  - task_id: build\n    description: Build the project.\n    command: [make]\n",
    ),
    "uses the words of other programs": (
        """
        tasks:
          - {id: build, run: make}
          - {task_id: test, command: make test, depends_on: build, retries: 3}
        """,
        "plan: line 3, tasks[0].id: there is no key id here; did you mean task_id?; line 3, tasks[0].run: there is no key run "
        "here; did you mean command?; line 3, tasks[0]: a task needs a task_id; and 2 more",
        [(3, "tasks[0].id"), (3, "tasks[0].run"), (3, "tasks[0]"), (4, "tasks[1].depends_on"), (4, "tasks[1].retries")],
        """
        tasks:
          - {task_id: build, command: make}
          - {task_id: test, command: make test, after: build, max_attempts: 3}
        """,
    ),
    "copies a task and forgets its id": (
        "tasks:\n  - {task_id: build, command: [make]}\n  - {task_id: build, command: [make, test]}\n",
        "plan: line 3, tasks[1].task_id: there is a task build already, tasks[0]: give one of them another id",
        [(3, "tasks[1].task_id")],
        "tasks:\n  - {task_id: build, command: [make]}\n  - {task_id: test, command: [make, test]}\n",
    ),
    "redirects output": (
        "tasks:\n  - task_id: report\n    command: echo done > report.txt\n",
        f"plan: line 3, tasks[0].command: `>` {SHELL}",
        [(3, "tasks[0].command")],
        "tasks:\n  - task_id: report\n    command: echo done > report.txt\n    shell: true\n",
    ),
    "writes two commands into one": (
        "tasks:\n  - task_id: build\n    command: |\n      make\n      make install\n",
        f"plan: line 3, tasks[0].command: a line end {SHELL}",
        [(3, "tasks[0].command")],
        "tasks:\n  - task_id: build\n    shell: true\n    command: |\n      make\n      make install\n",
    ),
    "calls a shell as a tool": (
        "tasks:\n  - task_id: list\n    tool: bash\n    arguments: {command: ls}\n",
        f"plan: line 3, tasks[0].tool: there is no tool bash; {TOOLS}; did you mean command?",
        [(3, "tasks[0].tool")],
        "tasks:\n  - task_id: list\n    tool: command\n    arguments: {argv: [ls]}\n",
    ),
    "guesses an argument": (
        "tasks:\n  - task_id: look\n    steps:\n      - tool: read_file\n        arguments: {file: notes.txt}\n",
        "plan: line 5, tasks[0].steps[0].arguments.file: read_file takes no file; it takes path, offset, limit; did you mean "
        "path?; line 5, tasks[0].steps[0].arguments: read_file needs path",
        [(5, "tasks[0].steps[0].arguments.file"), (5, "tasks[0].steps[0].arguments")],
        "tasks:\n  - task_id: look\n    steps:\n      - tool: read_file\n        arguments: {path: notes.txt}\n",
    ),
    "gives a time with its unit": (
        "tasks:\n  - task_id: build\n    command: [make]\n    timeout: 5m\n",
        "plan: line 4, tasks[0].timeout: must be a number of seconds, not the text '5m'",
        [(4, "tasks[0].timeout")],
        "tasks:\n  - task_id: build\n    command: [make]\n    timeout: 300\n",
    ),
    "names devices that are not there": (
        """
        tasks:
          - task_id: build
            device: labtop
            command: [make]
          - task_id: train
            command: [python, train.py]
            capabilities: [tpu]
        replan:
          - when: {event: task_failed, task: build}
            edit: [{add_task: {task_id: again, device: cloud, command: [make]}}]
        """,
        "plan: line 4, tasks[0].device: there is no device labtop; there are laptop, server; line 8, tasks[1].capabilities: no "
        "device has the capability tpu; the capabilities there are: gpu",
        [(4, "tasks[0].device"), (8, "tasks[1].capabilities")],
        """
        tasks:
          - task_id: build
            device: laptop
            command: [make]
          - task_id: train
            command: [python, train.py]
            capabilities: [gpu]
        """,
    ),
    "lets tasks wait for each other": (
        "tasks:\n  - {task_id: build, command: [make], after: [test]}\n  - {task_id: test, command: [ls], after: [build]}\n",
        "plan: line 3, tasks[1].after[0]: the tasks would wait for each other: build > test > build; take one of these "
        "dependencies out",
        [(3, "tasks[1].after[0]")],
        "tasks:\n  - {task_id: build, command: [make]}\n  - {task_id: test, command: [ls], after: [build]}\n",
    ),
    "copies the code block around a plan": (
        "```yaml\ntasks: [{task_id: build, command: [make]}]\n```\n",
        "plan: line 1: the ``` lines are no part of a plan: leave them out",
        [(1, "")],
        "tasks: [{task_id: build, command: [make]}]\n",
    ),
    "says where a command runs, and in which surroundings": (
        "tasks:\n  - task_id: build\n    command: make\n    cwd: src\n    env: {X: 1}\n    shell: yes\n",
        "plan: line 4, tasks[0].cwd: there is no key cwd here; put it into the command, a text with `shell: true` beside it: "
        "`cd src && make`; line 5, tasks[0].env: there is no key env here; put it into the command, a text with `shell: true` "
        "beside it: `X=1 make`; line 6, tasks[0].shell: must be true or false, not the text 'yes'; write true, without quotes",
        [(4, "tasks[0].cwd"), (5, "tasks[0].env"), (6, "tasks[0].shell")],
        "tasks:\n  - task_id: build\n    command: cd src && X=1 make\n    shell: true\n",
    ),
    "puts a condition into a task and policies beside the tasks": (
        """
        tasks:
          - {task_id: a, command: [a]}
          - {task_id: b, arguments: {path: notes.txt}, condition: x > 5}
        policies: [{decision: ask}]
        """,
        "plan: line 4, tasks[1].condition: there is no key condition here; a condition belongs to a dependency: {from: ..., "
        "to: ..., condition: ...} in `dependencies`, or add_dependency; line 4, tasks[1].arguments: name the tool that takes "
        "these arguments, beside them as `tool`; line 5, policies: there is no key policies here; policies stand in a task",
        [(4, "tasks[1].condition"), (4, "tasks[1].arguments"), (5, "policies")],
        """
        tasks:
          - {task_id: a, command: [a], policies: [{decision: ask}]}
          - {task_id: b, tool: read_file, arguments: {path: notes.txt}}
        dependencies: [{from: a, to: b, condition: x > 5}]
        """,
    ),
    "writes conditions as in other languages": (
        """
        tasks: [{task_id: a, command: [a]}, {task_id: b, command: [b]}, {task_id: c, command: [c]}]
        dependencies:
          - {from: a, to: b, condition: "status = 'ok'"}
          - {from: a, to: c, condition: failed == 0 && passed > 5}
          - b -> c
        """,
        "plan: line 4, dependencies[0].condition: column 8: the condition is not understood: invalid syntax; to compare, write "
        "==; line 5, dependencies[1].condition: column 14: the condition is not understood: invalid syntax; write and, or, "
        "not; line 6, dependencies[2]: a dependency is an object with `from` and `to`, not the text 'b -> c'",
        [(4, "dependencies[0].condition"), (5, "dependencies[1].condition"), (6, "dependencies[2]")],
        """
        tasks: [{task_id: a, command: [a]}, {task_id: b, command: [b]}, {task_id: c, command: [c]}]
        dependencies:
          - {from: a, to: b, condition: "status == 'ok'"}
          - {from: a, to: c, condition: failed == 0 and passed > 5}
          - {from: b, to: c}
        """,
    ),
}
"""What is written, the answer, its lines and keys, what is accepted."""

EDITS: dict[str, tuple[Any, str, str, Any]] = {
    "guesses the name of an operation": (
        {"delete_task": {"task_id": "b"}}, "", "there is no operation delete_task; did you mean remove_task?",
        {"remove_task": {"task_id": "b"}},
    ),
    "gives an old task something to wait for": (
        {"update_task": {"task_id": "b", "after": ["a"]}}, "after",
        "after is for new tasks; add_dependency makes one that is there wait for another",
        {"add_dependency": {"from": "a", "to": "b"}},
    ),
    "calls parameters otherwise": (
        {"op": "remove_task", "args": {"task_id": "b"}}, "args",
        "there is no key args beside op and parameters: call it parameters",
        {"op": "remove_task", "parameters": {"task_id": "b"}},
    ),
    "pipes": ({"add_task": {"task_id": "c", "command": "ls | wc -l"}}, "command", f"`|` {SHELL}",
              {"add_task": {"task_id": "c", "command": "ls | wc -l", "shell": True}}),
}  # fmt: skip
"""An operation, the field and the sentence, what is accepted."""

GALAXY = """
{"constellation_id": "c", "name": "logs", "tasks": {
  "t1": {"name": "Read", "target_device_id": "phone",
         "task_data": {"actions": [{"function": "execute_command", "arguments": {"command": "tail app.log > last"}}]}},
  "t2": {"name": "Tell", "target_device_id": "tablet",
         "task_data": {"actions": [{"function": "noop", "arguments": {}}]}}}}
"""
IMPORTS: dict[str, tuple[str, str, list[tuple[int | None, str]], str]] = {
    "takes along a tool of the other program": (
        GALAXY.replace("noop", "click_input").replace("phone", "laptop").replace("tablet", "laptop"),
        f"galaxy document: line 6, tasks.t2.task_data.actions[0].function: there is no tool click_input; {TOOLS}",
        [(6, "tasks.t2.task_data.actions[0].function")],
        GALAXY.replace("phone", "laptop").replace("tablet", "laptop"),
    ),
    "takes along devices that are not here": (
        GALAXY,
        "galaxy document: line 3, tasks.t1.target_device_id: there is no device phone; there are laptop, server; line 5, "
        "tasks.t2.target_device_id: there is no device tablet; there are laptop, server",
        [(3, "tasks.t1.target_device_id"), (5, "tasks.t2.target_device_id")],
        GALAXY.replace("phone", "laptop").replace("tablet", "server"),
    ),
}


def test_there_are_twenty_four():
    assert len(PLANS) + len(EDITS) + len(IMPORTS) == 24


@pytest.mark.parametrize("mistake", PLANS)
def test_a_first_plan(rest, mistake):
    written, sentence, places, mended = PLANS[mistake]
    found = rest.post("/api/sessions/", {"plan": dedent(written)})
    assert (found.status_code, found.json()["code"], found.json()["detail"]) == (400, "plan_rejected", sentence)
    assert [(each.get("line"), each["key"]) for each in found.json()["problems"]] == places
    assert (Session.objects.count(), InboxItem.objects.count()) == (0, 0)
    assert rest.post("/api/sessions/", {"plan": dedent(mended)}).status_code == 201


@pytest.mark.parametrize("mistake", EDITS)
def test_a_first_edit(rest, operator, mistake):
    operation, field, sentence, mended = EDITS[mistake]
    session = sessions.session_create(operator, by="system")
    path = f"/api/constellations/{plant(session, noop('a'), noop('b')).pk}"
    for end in ("edits", "preview"):
        found = rest.post(f"{path}/{end}/", {"operations": [operation]})
        assert (found.status_code, found.json()["code"]) == (400, "edit_refused")
        (problem,) = found.json()["problems"]
        assert (problem["operation"], problem["field"], problem["message"]) == (1, field, sentence)
    assert not Edit.objects.exists()
    assert rest.post(f"{path}/edits/", {"operations": [mended]}).status_code == 201


@pytest.mark.parametrize("mistake", IMPORTS)
def test_a_first_import(rest, operator, mistake):
    written, sentence, places, mended = IMPORTS[mistake]
    session = sessions.session_create(operator, by="system")
    for path in (f"/api/sessions/{session.pk}/import/", "/api/import/check"):
        found = rest.post(path, {"document": written})
        assert (found.status_code, found.json()["code"], found.json()["detail"]) == (400, "plan_rejected", sentence)
        assert [(each.get("line"), each["key"]) for each in found.json()["problems"]] == places
    assert not InboxItem.objects.exists()
    assert rest.post(f"/api/sessions/{session.pk}/import/", {"document": mended}).status_code == 202
    plan = json.loads(InboxItem.objects.get().payload["plan"])
    assert plan["tasks"][0] == {
        "task_id": "t1", "name": "Read", "device": "laptop", "command": "tail app.log > last", "shell": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"tasks": [{"task_id": "a", "command": ["ls"]}]}, "a plan is a text; put the JSON into a string"),
        ("", "a plan is a YAML or JSON text with a list of tasks, as `tasks: [{task_id: a, command: [ls]}]`"),
    ],
)
def test_a_plan_that_is_no_text(rest, operator, plan, sentence):
    session = sessions.session_create(operator, by="system")
    for path in ("/api/sessions/", f"/api/sessions/{session.pk}/interactions/"):
        found = rest.post(path, {"plan": plan})
        assert (found.status_code, found.json()["problems"]) == (400, [{"key": "plan", "message": sentence}])


def test_a_task_that_waits_for_one_that_the_same_edit_adds_later(rest, operator):
    made = plant(sessions.session_create(operator, by="system"), noop("a"))
    y, z = {"add_task": {"task_id": "y", "tool": "noop"}}, {"add_task": {"task_id": "z", "tool": "noop", "after": ["y"]}}
    found = rest.post(f"/api/constellations/{made.pk}/edits/", {"operations": [z, y]})
    (problem,) = found.json()["problems"]
    assert (problem["operation"], problem["message"]) == (1, "there is no task y yet: put operation 2 before this one")
    assert rest.post(f"/api/constellations/{made.pk}/edits/", {"operations": [y, z]}).status_code == 201


@pytest.mark.parametrize("path", ["/api/agents/", "/api/approvals/", "/api/constellations/", "/api/tasks/"])
def test_a_state_that_there_is_not(rest, path):
    found = rest.get(path, state="nonsense")
    assert found.status_code == 400
    (problem,) = found.json()["problems"]
    assert problem["message"].startswith("there is no nonsense here; there are ")
