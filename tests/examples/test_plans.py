"""The example plans: read, judged, and carried out by the real engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agents.models import Approval, Event, PhaseRecord
from agents.services.approvals import approval_decide
from agents.streams import statements
from constellations import conditions
from constellations.editor import editor
from constellations.graph import Graph
from constellations.plan import plan as plans
from project.demo.demo import DEVICES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
TOOLS = {"command", "write_file", "edit_file", "read_file"}


@pytest.fixture(autouse=True)
def behind_walls(settings):
    """As an installation has them."""
    settings.CONFINEMENT = "auto"


def plan_of(name: str) -> plans.Plan:
    path = EXAMPLES / name
    return plans.parse_plan(path.read_bytes(), path.name)


def calls(steps: list[dict]) -> list[dict]:
    """All calls of steps, also of those who are delegated to and of those that recover, in order."""
    found = []
    for step in steps:
        found += [step] if step["do"] == "call" else []
        found += calls(step.get("steps", [])) + calls(step.get("recover", []))
    return found


def calls_of(task: dict) -> list[dict]:
    return [call for phase in task["phases"] for call in calls(phase["steps"])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_is_a_plan_for_the_devices_of_the_demo(path):
    plan = plan_of(path.name)
    operation = {"build_constellation": {"tasks": plan.tasks, "dependencies": plan.dependencies}}
    empty = editor.Snapshot(version=1, state="CREATED", tasks={}, dependencies={}, graph=Graph())
    assert editor.apply_operations(empty, [operation], DEVICES).added_tasks == plan.tasks


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_calls_in_steps_are_of_tools_that_every_device_has(path):
    assert {call["tool"] for task in plan_of(path.name).tasks for call in calls_of(task)} <= TOOLS


def test_the_programs_of_the_phases_do_what_their_steps_expect(tmp_path):
    """The calls one after the other, by hand."""
    (task,) = plan_of("phases.yaml").tasks
    assert len(task["phases"]) == 3
    for call in calls_of(task):
        arguments = call["arguments"]
        path = tmp_path / arguments.get("path", "")
        if call["tool"] == "write_file":
            path.write_text(arguments["content"])
        elif call["tool"] == "edit_file":
            assert arguments["old"] in path.read_text()
            path.write_text(path.read_text().replace(arguments["old"], arguments["new"]))
        elif call["tool"] == "command":
            program, *rest = arguments["argv"]
            assert program == "python"
            ended = subprocess.run([sys.executable, "-B", *rest], cwd=tmp_path, check=False, capture_output=True, text=True)
            assert (ended.returncode != 0) == call["expect"].get("fails", False), ended.stderr
            if "result" in call["expect"]:
                assert conditions.evaluate_condition(call["expect"]["result"], json.loads(ended.stdout), {})
    assert ended.stdout == '{"longest": "planets"}\n'


def test_the_release_asks_for_everything_that_can_be_asked_for():
    release, announce = plan_of("approvals.yaml").tasks
    assert release["confirm"]
    assert [policy["decision"] for policy in release["policies"]] == ["ask", "deny"]
    assert [step["save"] for step in release["phases"][0]["steps"] if step["do"] == "ask"] == ["audience"]
    assert [call["tool"] for call in calls_of(announce) if call["confirm"]] == ["edit_file"]


def test_of_two_that_are_stuck_one_has_a_way_out():
    recovers, loops, _ = plan_of("stuck.yaml").tasks
    ways_out = [
        [len(step["recover"]) for step in task["phases"][0]["steps"] if step["tool"] == "edit_file"]
        for task in (recovers, loops)
    ]
    assert ways_out == [[2], [0] * 7]


def carried_out(engine, name: str):
    return engine.carry_out((EXAMPLES / name).read_text())


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_phases_are_done_and_counted(engine, device):
    found = carried_out(engine, "phases.yaml")
    assert found.state == "COMPLETED"
    result = found.tasks.get().result
    assert (result["counted"], result["longest"]) == ({"words": 13, "different": 9}, {"longest": "planets"})
    records = PhaseRecord.objects.order_by("number")
    assert [(row.outcome, row.blockers) for row in records] == [("success", [])] * 3
    assert [test["passed"] for test in records[1].tests] == [True]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_of_two_stuck_agents_one_recovers_and_one_is_halted(engine, device):
    found = carried_out(engine, "stuck.yaml")
    assert found.state == "PARTIALLY_FAILED"
    states = {task.task_id: (task.state, task.reason) for task in found.tasks.all()}
    assert states["recovers"] == ("COMPLETED", "")
    assert states["loops"] == ("FAILED", "stuck:same_target_error")
    assert Event.objects.filter(type="stuck").count() == 2


WAITS = "SELECT count(*) FROM agents_approval WHERE state = 'waiting'"
OPEN = "SELECT count(*) FROM agents_inboxitem WHERE state <> 'done'"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_approvals_are_asked_for_one_after_the_other(engine, device):
    def counted(statement: str) -> int:
        return statements.raw_cursor().execute(statement).fetchone()[0]

    engine.submit((EXAMPLES / "approvals.yaml").read_text())
    asked = []
    while counted(OPEN):
        engine.run(lambda: counted(WAITS) or not counted(OPEN))
        for approval in Approval.objects.filter(state="waiting"):
            asked.append(approval.kind)
            approval_decide(approval.pk, "approve", by="user:1", answer="testers" if approval.kind == "question" else None)
    assert asked == ["task", "question", "tool", "tool"]
