"""The Command Dispatcher: commands as one change set, on a constellation by its id and on a live graph."""

import json
import subprocess
import sys

import pytest
from django.conf import settings

from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.door import door
from agents.streams.verify import verify_database
from constellations.errors import EditRefused, NoSuchConstellation
from constellations.live.kept import read_graph
from constellations.models import Constellation, Edit
from constellations.plan.operations import READERS
from constellations.services import dispatcher
from constellations.services.dispatcher import EXAMPLE, InTurn, commands_of, execute_commands, list_tools, operations_of
from constellations.services.gates.keeping import watched_now
from tests.constellations.planting import noop, plant, states

pytestmark = pytest.mark.django_db
LINT = {"tool": "add_task", "parameters": {"task_id": "lint", "tool": "noop", "after": ["fetch"]}}
GATE = {"tool": "add_dependency", "parameters": {"from": "lint", "to": "train"}}


@pytest.fixture
def digits(operator) -> Constellation:
    device_create("laptop", by="system")
    session = sessions.session_create(operator, "mine", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]))


def refusal(*commands, target=1) -> EditRefused:
    with pytest.raises(EditRefused) as refused:
        execute_commands(list(commands), target, author="user:1")
    return refused.value


def test_the_tools_that_are_listed_are_those_that_are_carried_out():
    tools = list_tools()
    assert [tool.name for tool in tools] == list(READERS)
    assert all(tool.description and tool.parameters["type"] == "object" for tool in tools)


def test_commands_on_a_constellation_are_one_edit(digits):
    done = execute_commands([LINT, GATE], digits.pk, author="token:k", reason="tidy", edit_id="e1", full=True)
    assert (done.changed, done.version, done.edit_id) == (True, 2, "e1")
    assert [entry["change"] for entry in done.diff] == ["added"] * 3
    row = Edit.objects.get(pk=done.edit)
    assert (row.author, row.reason) == ("token:k", "tidy")
    assert row.operations == [{"op": each["tool"], "parameters": each["parameters"]} for each in (LINT, GATE)]
    assert done.constellation is not None
    assert [task["task_id"] for task in done.constellation["tasks"]] == ["fetch", "train", "lint"]
    again = execute_commands([LINT, GATE], digits.pk, author="token:k", edit_id="e1")
    assert (again.changed, again.edit, again.constellation) == (False, done.edit, None)
    assert list(verify_database()) == []


def test_commands_that_change_nothing_are_no_edit(digits):
    same = {"tool": "update_task", "parameters": {"task_id": "fetch", "max_attempts": 1}}
    done = execute_commands([same], digits.pk, author="user:1")
    assert (done.edit, done.changed, done.version, done.diff) == (None, False, 1, [])


def test_all_or_nothing(digits):
    error = refusal(LINT, {"tool": "add_dependency", "parameters": {"from": "lint", "to": "trian"}}, target=digits.pk)
    assert str(error) == "operation 2 (add_dependency), to: there is no task trian; did you mean train?"
    assert "lint" not in states(digits)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ({"tool": "add_tsk"}, "operation 1 (add_tsk): there is no tool add_tsk; did you mean add_task?"),
        ({"tool": 5}, f"operation 1: which tool? It is the number 5; an operation is like {EXAMPLE}"),
        ({}, f"operation 1: which tool? It is nothing; an operation is like {EXAMPLE}"),
        ("add_task", "operation 1: a command is an object (tool, parameters), not the text 'add_task'"),
        ({**LINT, "params": {}}, "operation 1 (add_task), params: there is no key params beside the tool and its parameters"),
    ],
)
def test_what_is_no_command_is_refused_before_anything_is_read(command, says):
    assert str(refusal(command)) == says


def test_every_command_that_is_none_is_told():
    error = refusal({"tool": "a"}, LINT, {"tool": "b"})
    assert [problem["operation"] for problem in error.problems] == [1, 3]
    with pytest.raises(EditRefused, match="commands are a list, not an object"):
        execute_commands({}, 1, author="user:1")  # type: ignore[arg-type]


def test_a_constellation_that_is_not_there_is_told(digits):
    with pytest.raises(NoSuchConstellation):
        execute_commands([LINT], digits.pk + 10_000, author="user:1")


def test_operations_and_commands_are_the_same_in_other_words():
    operations = [{"op": "remove_task", "parameters": {"task_id": "a"}}, {"op": "add_task"}]
    assert operations_of(commands_of(operations)) == [operations[0], {"op": "add_task", "parameters": {}}]
    for written in ({"remove_task": {"task_id": "a"}}, {"function": "remove_task", "arguments": {"task_id": "a"}}):
        assert operations_of(commands_of([written])) == operations[:1]


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (
            {"op": "add_task", "tool": "remove_task", "parameters": {}},
            "operation 2 (add_task), tool: there is no key tool beside op and parameters: put it into parameters",
        ),
        (
            {"op": "remove_task", "colour": 1},
            "operation 2 (remove_task), colour: there is no key colour beside op and parameters: put it into parameters",
        ),
        ({}, "operation 2: an operation is one key with its parameters; this one has 0 keys: write one operation for each"),
        (7, "operation 2: an operation is an object (name: parameters), not the number 7"),
    ],
)
def test_what_is_no_operation_is_told_in_the_words_of_operations(operation, says):
    with pytest.raises(EditRefused) as refused:
        commands_of([{"op": "remove_task"}, operation])
    assert str(refused.value) == says


def test_a_live_graph_is_edited_in_its_owners_turn(digits):
    with door(digits.session_id, "agent:1") as opened:
        live = read_graph(digits.pk)
        done = execute_commands([LINT, GATE], InTurn(live, opened.turn, watched_now()), author="planner", edit_id="rule:r:1")
        assert (done.version, live.nodes["train"].unmet) == (2, 2)
    row = Edit.objects.get(pk=done.edit)
    assert (row.author, row.edit_id, row.version, row.diff) == ("planner", "rule:r:1", 2, done.diff)
    assert states(digits)["lint"] == "WAITING_DEPENDENCY"
    assert list(verify_database()) == []


def test_a_live_graph_stays_as_it_was_where_commands_are_refused(digits):
    with door(digits.session_id, "agent:1") as opened:
        live = read_graph(digits.pk)
        with pytest.raises(EditRefused):
            execute_commands([LINT, {"tool": "add_tsk"}], InTurn(live, opened.turn, watched_now()), author="planner")
        assert (opened.turn.events, "lint" in live.nodes) == ([], False)


RULES = {
    "tasks": [noop("measure"), noop("deploy", after=["measure"])],
    "replan": [
        {
            "name": "again", "when": {"event": "task_completed", "task": "measure"}, "reason": "not good enough",
            "edit": [{"add_task": {"task_id": "retrain", "tool": "noop", "after": ["measure"], "deadline": 900}}],
        }
    ],
}  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_the_planners_rules_go_through_the_dispatcher(engine, device, monkeypatch, verified):
    seen = []
    carry_out = dispatcher.execute_commands

    def watched(commands, target, **said):
        seen.append((commands, type(target)))
        return carry_out(commands, target, **said)

    monkeypatch.setattr("constellations.runs.replanning.execute_commands", watched)
    constellation = engine.carry_out(RULES)
    names = {tool.name for tool in list_tools()}
    ((commands, kind),) = seen
    assert (kind, {command["tool"] for command in commands} <= names) == (InTurn, True)
    assert constellation.edits.get().author == "planner"
    assert states(constellation) == {"measure": "COMPLETED", "deploy": "COMPLETED", "retrain": "COMPLETED"}


def test_a_runner_and_a_web_process_import_nothing_of_mcp():
    """`import mcp` takes 0.9 s: whoever is not asked for it does not pay for it."""
    code = (
        "import json, sys, django; django.setup()\n"
        "import project.asgi, constellations.runs.run, constellations.services.dispatcher, agents.engine.runner\n"
        "print(json.dumps([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'pydantic')]))"
    )
    env = {"DJANGO_SETTINGS_MODULE": "project.settings", "ORRERY_STATE_DIR": str(settings.STATE_DIR), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
