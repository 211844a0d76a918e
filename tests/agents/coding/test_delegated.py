"""Parts that an agent with a model delegates in words to a coding agent, which works beside it on a device of its own."""

from __future__ import annotations

import json
import re

import pytest

from agents.devices.host import instance_name
from agents.devices.processes import attempts_at_work
from agents.models import Agent, Approval, Event, Evidence, ModelCall
from agents.services.devices import device_change
from constellations.errors import PlanRejected
from constellations.models import Attempt, Task
from tests.agents.coding.conftest import WAITING, Act, conduct, decision, kill_agents
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.constellations.runs.attempts.test_crews import found, steps
from tests.constellations.runs.attempts.test_minds import after, call, model, words  # noqa: F401  a fixture, too
from tests.slots_told import SlotsTold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified", "coder", "device")]


@pytest.fixture(autouse=True)
def reached(engine, coder) -> None:
    """The coding agent has been tried, as a while after a runner's start; a host is not told of one that is not there yet."""
    engine.run(found("agents_device", f"id = {coder.pk} AND state = 'connected'"))


def part(*wanted: dict, **more) -> dict:
    """A call of the model that has the scripted agent make these steps."""
    return call("delegate", **{"name": "smith", "device": "coder", "instruction": "DO: " + json.dumps(wanted), **more})


def instructions() -> list[Evidence]:
    return list(Evidence.objects.filter(tool="instruction").order_by("id"))


def test_a_part_in_words_is_its_errand_and_what_it_says_goes_back_to_its_host(engine, model):  # noqa: F811
    model(
        after("Look after", call("save", key="colour", value="green")),
        after("saved", part({"say": "It is forged."})),
        after("It is forged.", call("finish", result="done")),
    )
    task = engine.carry_out({"tasks": [words(result_schema={"type": "string"}, tips=["Only for the host."])]}).tasks.get()
    assert (task.state, task.result) == ("COMPLETED", "done")
    assert '"coder"' in str(ModelCall.objects.order_by("id").first().added)  # it is told that there is one
    smith = Agent.objects.get(platform="acp")
    assert (smith.name, smith.state, smith.parent.platform) == ("smith on coder for work on laptop", "FINISH", "shell")
    prompt = instructions()[0].arguments["prompt"]
    assert "green" in prompt
    assert "Only for the host." not in prompt
    assert "JSON Schema" not in prompt  # what the task is to give is its host's to say


def test_its_slot_is_its_devices_and_its_leave_is_asked_of_a_person(engine, model, device, state_dir):  # noqa: F811
    device_change(device.pk, max_concurrent=1, by="system")
    model(after("Look after", part({"run": ["touch", "made"]}, {"say": "Made."})), after("Made.", call("finish", result=1)))
    engine.submit({"tasks": [words()]})

    def look(asked: Approval) -> None:
        assert (asked.action["about"]["device"], asked.agent.platform) == ("coder", "acp")
        assert Attempt.objects.get().slot_device.name == "coder"
        device.refresh_from_db()
        assert device.used == 0

    conduct(engine, decision(look=look))
    assert Task.objects.get().state == "COMPLETED"
    assert (state_dir / "workspaces" / "coder" / "made").exists()
    told = SlotsTold()
    assert max(told.of_devices.values()) == 1
    assert not told.left


def test_one_that_does_something_unasked_fails_the_whole_task(engine, model):  # noqa: F811
    model(
        after("Look after", part({"run": ["true"], "unasked": True})),
        call("finish", result="all the same"),
    )
    task = engine.carry_out({"tasks": [words(max_attempts=3)]}).tasks.get()
    assert (task.state, task.reason) == ("FAILED", "violation")
    assert Event.objects.get(type="violation").data["title"] == "true"
    assert Attempt.objects.count() == 1


def test_one_that_is_killed_is_lost_and_its_host_goes_on(engine, model, state_dir):  # noqa: F811
    model(
        after("Look after", part({"say": "Hello."}, {"until": "go"})),
        after("the agent has ended", call("finish", result="without it")),
    )
    engine.submit({"tasks": [words()]})
    conduct(engine, Act(found("agents_output", "1 = 1"), kill_agents))
    assert Task.objects.get().result == "without it"
    assert [row.error_kind for row in instructions()] == ["lost"]
    assert not attempts_at_work(instance_name())


def test_the_next_runner_finds_whom_it_was_delegated_to_and_begins_the_errand_again(engine, model, state_dir):  # noqa: F811
    made = part({"run": ["touch", "made"]}, {"say": "Made."}, on_lost="retry")
    model(after("Look after", made), after("Made.", call("finish", result=1)))
    engine.submit({"tasks": [words()]})
    engine.run(WAITING)  # the runner ends, and with it the program
    ended = found("agents_evidence", "tool = 'instruction' AND ended_at IS NOT NULL")
    conduct(engine, Act(ended, lambda: None), decision())
    assert Task.objects.get().state == "COMPLETED"
    assert (state_dir / "workspaces" / "coder" / "made").exists()
    assert [row.success for row in instructions()][-1] is True
    assert Agent.objects.filter(platform="acp").count() == 1


def test_an_errand_that_failed_is_not_gone_on_with_by_the_next(engine, model, state_dir):  # noqa: F811
    model(
        after("Look after", part({"stop": "refusal"})),
        after("refused to go on", part({"say": "Now it went well."})),
        after("Now it went well.", call("finish", result="done")),
    )
    assert engine.carry_out({"tasks": [words()]}).tasks.get().result == "done"
    assert not (state_dir / "workspaces" / "coder" / "loaded").exists()
    assert [row.success for row in instructions()] == [False, True]


def test_it_is_held_to_no_app_and_so_nobody_delegates_one_to_it(engine, model):  # noqa: F811
    model(after("Look after", part({"say": "no"}, app="shop")), after("is held to no app", call("finish", result="alone")))
    assert engine.carry_out({"tasks": [words()]}).tasks.get().result == "alone"
    assert not instructions()


# A plan that says the instruction itself


def told(*wanted: dict, on_failure: str = "fail", **more) -> dict:
    """A step that has the scripted agent make these steps."""
    said = {"name": "smith", "device": "coder", "instruction": "DO: " + json.dumps(wanted), **more}
    return {"delegate": said, "save": "report", "on_failure": on_failure}


GREEN = {"command": ["echo", "green"], "save": "colour"}


@pytest.mark.parametrize("where", [{"device": "coder"}, {"device": "", "capabilities": ["forging"]}])
def test_a_plan_tells_a_coding_agent_what_to_do_and_goes_on_with_what_it_says(engine, coder, where):
    device_change(coder.pk, capabilities=["forging"], by="system")
    task = engine.carry_out(
        {"tasks": [steps(GREEN, told({"say": "It is forged."}, **where), tips=["Only for the host."])]}
    ).tasks.get()
    assert (task.state, task.result["report"]["said"]) == ("COMPLETED", "It is forged.")
    smith = Agent.objects.get(platform="acp")
    assert (smith.name, smith.state, smith.parent.platform) == ("smith on coder for work on laptop", "FINISH", "shell")
    prompt = instructions()[0].arguments["prompt"]
    assert "green" in prompt
    assert "Only for the host." not in prompt
    assert not ModelCall.objects.exists()


def test_what_it_wants_to_run_is_asked_of_a_person_whoever_wrote_its_instruction(engine, state_dir):
    engine.submit({"tasks": [steps(told({"run": ["touch", "made"]}, {"say": "Made."}))]})
    conduct(engine, decision(look=lambda asked: asked.action["about"]["device"] == "coder"))
    assert Task.objects.get().state == "COMPLETED"
    assert (state_dir / "workspaces" / "coder" / "made").exists()
    assert Approval.objects.count() == 1


def test_where_it_fails_the_plan_says_what_follows(engine):
    task = engine.carry_out({"tasks": [steps(told({"stop": "refusal"}, on_failure="continue"), GREEN)]}).tasks.get()
    assert (task.state, list(task.result)) == ("COMPLETED", ["colour"])
    assert [row.success for row in instructions()] == [False]


def test_a_violation_of_its_fails_the_task_whatever_the_plan_says(engine):
    unasked = told({"run": ["true"], "unasked": True}, on_failure="continue")
    task = engine.carry_out({"tasks": [steps(unasked, GREEN, max_attempts=3)]}).tasks.get()
    assert (task.state, task.reason, Attempt.objects.count()) == ("FAILED", "violation", 1)


def test_the_next_runner_goes_on_with_an_instruction_of_the_plan(engine, state_dir):
    engine.submit({"tasks": [steps(told({"run": ["touch", "made"]}, {"say": "Made."}, on_lost="retry"))]})
    engine.run(WAITING)
    ended = found("agents_evidence", "tool = 'instruction' AND ended_at IS NOT NULL")
    conduct(engine, Act(ended, lambda: None), decision())
    assert (Task.objects.get().state, Task.objects.get().result["report"]["said"]) == ("COMPLETED", "Made.")
    assert [row.success for row in instructions()][-1] is True


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"device": "laptop"}, "laptop is no coding agent: it is given steps, and no instruction"),
        ({"device": "nobody"}, "there is no device nobody; there are coder, laptop"),
        ({"device": "", "device_type": "forge"}, "no coding agent has what is asked for; there are coder"),
    ],
)
def test_an_instruction_for_what_is_no_coding_agent_is_refused_with_the_plan(engine, where, said):
    with pytest.raises(PlanRejected, match=re.escape(said)) as refused:
        engine.submit({"tasks": [steps(told({"say": "x"}, **where))]})
    assert "tasks[0].steps[0].delegate" in str(refused.value)


def test_steps_are_refused_with_the_plan(engine):
    delegated = {"delegate": {"name": "smith", "device": "coder", "steps": [{"command": ["true"]}]}}
    said = "coder is a coding agent: it carries out tasks in words, and no steps"
    with pytest.raises(PlanRejected, match=re.escape(said)):
        engine.submit({"tasks": [steps(delegated)]})
