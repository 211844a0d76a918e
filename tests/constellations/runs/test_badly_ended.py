"""What ended without being wanted is no success: past a deadline, lost and not repeated, behind a condition nobody can read."""

import pytest

from agents.engine import runner
from agents.gates import approvals
from agents.models import Agent, Approval, Event, Loop
from agents.services.approvals import approval_decide
from agents.services.devices import device_create, device_drain, device_take_offline
from constellations.errors import NotRetried
from constellations.models import Attempt, Constellation
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import constellation_reopen, constellation_retry
from project.demo.demo import EXIT_CODES
from tests.constellations.runs.attempts.test_crews import WAITING, found, steps
from tests.constellations.runs.test_run import command, noop, something_runs, states
from tests.constellations.services.test_live_edits import edited_while_it_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def ended(constellation: Constellation) -> tuple[str, str, int]:
    """How the run ended: its state, the outcome of its interaction, the exit code of a command that follows it."""
    constellation.refresh_from_db()
    outcome = constellation.interaction.outcome
    return constellation.state, outcome, EXIT_CODES.get(outcome, 1)


def told_of(event: str, task: str = "a") -> dict:
    """A rule that adds a task when its event comes."""
    return {"name": "told", "when": {"event": event, "task": task}, "edit": [{"add_task": noop("answer")}]}


# Deadlines


def test_a_task_that_runs_past_its_deadline_has_failed_and_so_has_the_run(engine, device):
    tasks = [command("a", "sleep", "600", deadline=0.3), noop("b", after=["a"])]
    made = engine.carry_out({"tasks": tasks})
    assert ended(made) == ("FAILED", "failed", 1)
    assert states(made) == {"a": "FAILED", "b": "CANCELLED"}
    task, attempt = made.tasks.get(task_id="a"), Attempt.objects.get()
    assert (task.reason, task.error) == ("deadline", "its deadline of 0.3 s has passed")
    assert (attempt.outcome, attempt.error, attempt.ended_at) == ("timeout", task.error, task.ended_at)
    agent = Agent.objects.get(machine="device_agent")
    assert (agent.state, agent.reason) == ("FAIL", "deadline")
    assert made.result["summary"] == "0 of 2 tasks completed, 1 failed, 1 cancelled or skipped"
    device.refresh_from_db()
    assert device.used == 0


@pytest.mark.parametrize(
    ("holds_up", "state"), [({"device": "pi"}, "PENDING"), ({"after": ["slow"]}, "WAITING_DEPENDENCY")], ids=["device", "task"]
)
def test_a_task_that_waits_past_its_deadline_has_failed(engine, device, holds_up, state):
    device_take_offline(device_create("pi", by="system").pk, by="system")
    tasks = [command("slow", "sleep", "0.8"), {**noop("a", deadline=0.3), **holds_up}]
    made = engine.carry_out({"tasks": tasks})
    assert ended(made) == ("PARTIALLY_FAILED", "partially_failed", 3)
    assert states(made) == {"slow": "COMPLETED", "a": "FAILED"}
    told = Event.objects.get(type="state_changed", data__event="deadline")
    assert (told.data["from_state"], told.data["reason"]) == (state, "deadline")


def test_a_deadline_ends_an_agent_that_waits_for_a_person_as_a_failure(engine, device):
    made = engine.carry_out({"tasks": [steps({"ask": "go?"}, deadline=0.5)]})
    assert (made.state, Attempt.objects.get().outcome, Approval.objects.get().state) == ("FAILED", "timeout", "withdrawn")
    agent = Agent.objects.get(machine="device_agent")
    assert (agent.state, agent.reason, Loop.objects.get().state) == ("FAIL", "deadline", "Halted")


def test_rules_for_failures_answer_to_a_deadline_and_retry_finds_it(engine, device):
    made = engine.carry_out({"tasks": [command("a", "sleep", "600", deadline=0.3)], "replan": [told_of("task_failed")]})
    assert states(made) == {"a": "FAILED", "answer": "COMPLETED"}
    device_drain(device.pk, by="system")
    assert constellation_retry(made.pk, None, by="user:1").tasks == ["a"]


# Lost attempts


@pytest.fixture
def lost(engine, device, monkeypatch):
    """A task whose attempt was lost, and that waits for a person's word."""
    monkeypatch.setattr(runner, "DRAIN_S", 0.1)

    def make(**plan) -> Constellation:
        engine.submit({"tasks": [command("a", "sleep", "600", on_lost="ask"), noop("b", after=["a"])], **plan})
        engine.run(until=something_runs)
        engine.run(until=WAITING)
        assert Approval.objects.get().kind == "lost"
        return Constellation.objects.get()

    return make


def test_a_lost_attempt_that_a_person_does_not_want_repeated_has_failed(engine, lost):
    made = lost(replan=[told_of("task_failed")])
    approval_decide(Approval.objects.get().pk, "reject", by="user:1")
    engine.run()
    assert ended(made) == ("PARTIALLY_FAILED", "partially_failed", 3)
    assert states(made) == {"a": "FAILED", "b": "CANCELLED", "answer": "COMPLETED"}
    task = made.tasks.get(task_id="a")
    assert (task.reason, Attempt.objects.get(task=task).outcome) == ("lost", "lost")
    assert task.error == "its runner was told to stop; another attempt was not allowed"
    assert Event.objects.get(type="state_changed", data__event="rejected").by == "user:1"


def test_a_lost_attempt_about_which_nobody_decides_has_failed(engine, lost, monkeypatch):
    monkeypatch.setattr(approvals, "APPROVAL_S", 0.5)
    made = lost()
    engine.run()
    assert ended(made) == ("FAILED", "failed", 1)
    assert (Approval.objects.get().state, made.tasks.get(task_id="a").reason) == ("expired", "lost")
    assert constellation_retry(made.pk, None, by="user:1").tasks == ["a"]


def test_a_lost_attempt_is_still_asked_about_after_an_edit_has_made_its_task_wait(engine, lost):
    made = lost()
    edit_apply(made.pk, [{"add_task": noop("first")}, {"add_dependency": {"from": "first", "to": "a"}}], author="user:1")
    engine.run(until=found("constellations_task", "task_id = 'first' AND state = 'COMPLETED'"))
    assert Approval.objects.get().state == "waiting"
    approval_decide(Approval.objects.get().pk, "reject", by="user:1")
    engine.run()
    assert states(made) == {"first": "COMPLETED", "a": "FAILED", "b": "CANCELLED"}


# What was ended on purpose


def test_what_a_false_condition_skipped_counts_as_done(engine, device):
    line = {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}
    made = engine.carry_out({"tasks": [noop("train", {"accuracy": 0.9}), noop("deploy")], "dependencies": [line]})
    assert ended(made) == ("COMPLETED", "completed", 0)
    assert not made.tasks.filter(condition_failed=True).exists()


# Conditions that cannot be evaluated


def misspelt(**plan) -> dict:
    """Deployed where the accuracy is high enough, but for a slip of the pen; something waits for that, too."""
    line = {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "acuracy > 0.95"}
    tasks = [noop("train", {"accuracy": 0.97}), noop("deploy"), noop("announce", after=["deploy"])]
    return {"tasks": tasks, "dependencies": [line], **plan}


MENDED = {"update_dependency": {"dependency_id": "train>deploy", "condition": "accuracy > 0.95"}}


def test_a_run_whose_condition_cannot_be_evaluated_is_no_success(engine, device):
    made = engine.carry_out(misspelt())
    assert ended(made) == ("PARTIALLY_FAILED", "partially_failed", 3)
    assert states(made) == {"train": "COMPLETED", "deploy": "CANCELLED", "announce": "CANCELLED"}
    assert dict(made.tasks.values_list("task_id", "condition_failed")) == {"train": False, "deploy": True, "announce": True}
    assert [row["task_id"] for row in made.result["condition_failed"]] == ["deploy", "announce"]
    assert (
        "condition that could not be evaluated skipped deploy (train>deploy condition unknown: `acuracy`"
        in (made.result["summary"])
    )


def test_what_is_added_behind_such_a_task_counts_the_same(engine, device):
    line = {"from": "a", "to": "b", "type": "CONDITIONAL", "condition": "n > 1"}
    made = engine.carry_out({"tasks": [noop("a"), noop("b"), noop("c", after=["b"])], "dependencies": [line]})
    assert made.state == "PARTIALLY_FAILED"
    item, _ = constellation_reopen(made.pk, operations=[{"add_task": noop("d", after=["c"])}], by="user:1")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "partially_failed"
    assert made.tasks.get(task_id="d").condition_failed


def test_the_planner_is_told_that_a_condition_failed_and_may_mend_it(engine, device):
    rule = {"name": "mend", "when": {"event": "condition_failed", "task": "deploy"}, "edit": [MENDED]}
    made = engine.carry_out(misspelt(replan=[rule]))
    assert ended(made) == ("COMPLETED", "completed", 0)
    assert set(states(made).values()) == {"COMPLETED"}
    assert made.fired == {"mend": 1}
    assert not made.tasks.filter(condition_failed=True).exists()


def test_a_rule_for_conditions_that_fail_does_not_answer_to_one_that_is_false(engine, device):
    line = {"from": "a", "to": "b", "type": "CONDITIONAL", "condition": "n > 1"}
    plan = {"tasks": [noop("a", {"n": 1}), noop("b")], "dependencies": [line]}
    made = engine.carry_out({**plan, "replan": [told_of("condition_failed", "b")]})
    assert (made.state, made.fired) == ("COMPLETED", {})


def test_a_mended_condition_revives_what_it_skipped_while_the_run_goes_on(engine, device):
    plan = misspelt()
    plan["tasks"].append(command("slow", "sleep", "0.5"))

    def mend(made):
        edit_apply(made, [MENDED], author="user:1")

    made = edited_while_it_runs(engine, plan, mend)
    assert ended(made) == ("COMPLETED", "completed", 0)
    assert set(states(made).values()) == {"COMPLETED"}


def test_a_mended_condition_revives_what_it_skipped_after_the_run_has_ended(engine, device):
    made = engine.carry_out(misspelt())
    item, _ = constellation_reopen(made.pk, operations=[MENDED], by="user:1")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"
    made.refresh_from_db()
    assert (made.state, set(states(made).values())) == ("COMPLETED", {"COMPLETED"})
    assert made.result["summary"] == "3 of 3 tasks completed, 0 failed, 0 cancelled or skipped"


@pytest.mark.parametrize(
    ("condition", "state", "reason"),
    [
        ("accuracy > 0.99", "COMPLETED", "skipped: train>deploy condition is false: accuracy > 0.99"),
        (
            "acc > 0.95",
            "PARTIALLY_FAILED",
            "skipped: train>deploy condition unknown: `acc` is missing: the result has accuracy",
        ),
    ],
)
def test_a_condition_that_is_mended_and_does_not_hold_either_says_why_now(engine, device, condition, state, reason):
    made = engine.carry_out(misspelt())
    operations = [{"update_dependency": {"dependency_id": "train>deploy", "condition": condition}}, {"add_task": noop("more")}]
    constellation_reopen(made.pk, operations=operations, by="user:1")
    engine.run()
    made.refresh_from_db()
    assert (made.state, made.tasks.get(task_id="deploy").reason) == (state, reason)
    assert states(made) == {"train": "COMPLETED", "deploy": "CANCELLED", "announce": "CANCELLED", "more": "COMPLETED"}
    failed = state != "COMPLETED"
    assert made.tasks.get(task_id="announce").condition_failed is failed


def test_what_a_condition_skipped_is_not_retried_but_its_condition_is_named(engine, device):
    made = engine.carry_out(misspelt())
    with pytest.raises(NotRetried, match=r"deploy was skipped: train>deploy condition unknown: .*; mend the condition"):
        constellation_retry(made.pk, ["deploy"], by="user:1")


@pytest.mark.parametrize("first", ["train", "check"])
def test_which_end_comes_first_makes_no_difference(engine, device, first):
    lines = [
        {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "acuracy > 0.95"},
        {"from": "check", "to": "deploy", "type": "CONDITIONAL", "condition": "n > 5"},
    ]
    other = {"train": "check", "check": "train"}[first]
    tasks = [noop("train", {"accuracy": 0.97}), noop("check", {"n": 1}), noop("deploy"), noop("announce", after=["deploy"])]
    order = {"from": first, "to": other, "type": "SUCCESS_ONLY"}
    made = engine.carry_out(
        {"tasks": tasks, "dependencies": [*lines, order], "replan": [told_of("condition_failed", "deploy")]}
    )
    assert ended(made) == ("PARTIALLY_FAILED", "partially_failed", 3)
    deploy = made.tasks.get(task_id="deploy")
    assert deploy.condition_failed
    assert deploy.reason.startswith("skipped: train>deploy condition unknown: `acuracy`")
    assert made.tasks.get(task_id="announce").condition_failed
    assert len(made.fired) == 1


def test_what_is_revived_after_its_deadline_has_all_the_time_there_is(engine, device):
    line = {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "acuracy > 0.95"}
    tasks = [noop("train", {"accuracy": 0.97}), noop("deploy", deadline=0.4), command("slow", "sleep", "0.6")]
    made = engine.carry_out({"tasks": tasks, "dependencies": [line]})
    item, _ = constellation_reopen(made.pk, operations=[MENDED], by="user:1")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"
    deploy = made.tasks.get(task_id="deploy")
    assert (deploy.state, deploy.deadline) == ("COMPLETED", None)


def test_what_waited_for_a_task_that_is_retried_late_does_not_fail_by_its_deadline(engine, device):
    tasks = [command("a", "false"), noop("b", after=["a"], deadline=0.4), command("slow", "sleep", "0.6")]
    made = engine.carry_out({"tasks": tasks})
    mend = {"update_task": {"task_id": "a", "command": ["true"]}}
    constellation_reopen(made.pk, operations=[mend], retry=["a"], by="user:1")
    engine.run()
    assert states(made) == {"a": "COMPLETED", "b": "COMPLETED", "slow": "COMPLETED"}
