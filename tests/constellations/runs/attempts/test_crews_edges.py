"""What crews do at the edges: refusals, restarts, policies that change meanwhile, devices that are full, short or gone."""

import threading
import time
from itertools import count

import pytest
from django.db import connections

from agents.crews.script import DELEGATIONS
from agents.engine.sessions import Sessions
from agents.models import Agent, Approval, Event, Evidence, Loop, Output, PhaseRecord, Transition
from agents.reads.agents import agents_below
from agents.services import policies, sessions
from agents.services.approvals import approval_decide
from agents.services.devices import device_bring_back, device_change, device_take_offline
from agents.streams import statements
from agents.streams.door import door
from constellations.errors import PlanRejected
from constellations.models import Attempt, Task
from tests.conftest import TestRunner
from tests.reliability.cluster import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def sh(script: str, **more) -> dict:
    return {"command": ["sh", "-c", script], **more}


def steps(*wanted: dict, task_id: str = "work", **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "steps": list(wanted), **more}


def plain(script: str, task_id: str = "work", **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "command": ["sh", "-c", script], **more}


def found(table: str, where: str):
    return lambda: statements.raw_cursor().execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0] > 0


WAITING = found("agents_approval", "state = 'waiting'")
PAUSED = found("agents_actor", "state = 'paused'")
GIVEN_BACK = found("agents_lease", "runner_id IS NULL")


def test_a_call_that_a_policy_denies_fails_its_plain_task(engine, device, state_dir):
    policies.policy_create(tool="command", decision="deny", note="no shells", by="user:1")
    task = engine.carry_out({"tasks": [plain("touch done")]}).tasks.get()
    assert task.state == "FAILED"
    assert "no shells" in task.error
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()


def test_a_call_that_a_person_refuses_fails_its_plain_task(engine, device, state_dir):
    policies.policy_create(tool="command", decision="ask", by="user:1")
    engine.submit({"tasks": [plain("touch done")]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "reject", by="user:1", reason="not today")
    engine.run()
    task = Task.objects.get()
    assert task.state == "FAILED"
    assert "not today" in task.error
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()


def test_a_question_that_is_refused_fails_the_step_and_is_not_asked_again(engine, device):
    engine.submit({"tasks": [steps({"ask": "which way?", "options": ["left"]})]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "reject", by="user:1", reason="neither")
    engine.run()
    assert (Task.objects.get().state, Task.objects.get().error) == ("FAILED", "neither")
    assert Agent.objects.get(machine="device_agent").state == "FAIL"
    assert Approval.objects.count() == 1


def test_a_call_is_not_made_when_nobody_can_say_whether_it_is_wanted(engine, device, state_dir):
    task = engine.carry_out({"tasks": [steps(sh("touch done", **{"if": "nowhere > 3"}))]}).tasks.get()
    assert task.state == "FAILED"
    assert "nowhere" in task.error
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()


def test_looking_for_a_file_that_comes_later_goes_on_as_often_as_the_step_says(engine, device):
    look = {"tool": "read_file", "arguments": {"path": "late"}, "tries": 8, "progress": {}}
    look.pop("progress")
    plan = {"tasks": [steps(look, progress={"stuck_threshold": 0}, task_id="look")]}
    engine.carry_out(plan)
    assert Evidence.objects.filter(tool="read_file").count() == 8


def apart(work) -> None:
    """Do in another thread, as another process would, what may not be done inside the engine's loop."""
    failures = []

    def do():
        try:
            work()
        except Exception as error:
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=do)
    thread.start()
    thread.join()
    assert not failures, failures


def run_with(condition, work, end=None) -> int:
    """Run to the end (or to `end`), and do `work` when the condition first holds; how often the engine's loop went round."""
    todo, rounds = [work], count(1)

    def until() -> bool:
        next(rounds)
        if todo and condition():
            apart(todo.pop())
        return not todo and (end or runner._all_rest)()

    runner = TestRunner(until)
    runner.run()
    assert not runner.gave_up, "the engine did not come to rest"
    return next(rounds)


def break_off(condition) -> None:
    """Run until the condition holds, and interrupt what runs then: its outcome is lost."""
    runner = TestRunner(lambda: condition() and (runner.stop() is None))
    runner.run()
    assert not runner.gave_up


def nothing() -> None:
    pass


FEW = 600
"""Rounds of the engine's loop in the few seconds of a test, with a look every 50 ms; a loop that spins makes many thousands."""


def test_a_refused_call_is_not_made_although_its_policy_is_gone_by_then(engine, device, state_dir, monkeypatch):
    monkeypatch.setattr("agents.engine.runner.DEVICES_S", 0.0)  # policies are looked at before every turn
    policy = policies.policy_create(tool="command", decision="ask", by="user:1")
    engine.submit({"tasks": [plain("touch done")]})

    def change_and_refuse():
        policies.policy_delete(policy.pk, by="user:1")
        approval_decide(Approval.objects.get().pk, "reject", by="user:1")

    run_with(WAITING, change_and_refuse)
    assert Task.objects.get().state == "FAILED"
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()


def test_whoever_takes_over_still_asks_what_was_asked_although_its_policy_is_gone(engine, device, state_dir):
    policy = policies.policy_create(tool="command", decision="ask", by="user:1")
    engine.submit({"tasks": [plain("touch done")]})
    engine.run(WAITING)
    policies.policy_delete(policy.pk, by="user:1")
    approval_decide(Approval.objects.get().pk, "reject", by="user:1")
    engine.run()
    assert (Task.objects.get().state, Attempt.objects.count()) == ("FAILED", 1)
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()


def test_a_plain_call_under_way_stays_one_when_a_policy_comes_and_its_runner_goes(engine, device, state_dir):
    engine.submit({"tasks": [plain("sleep 20", on_lost="fail")]})
    break_off(found("constellations_attempt", "outcome = ''"))
    policies.policy_create(tool="command", decision="ask", by="user:1")
    engine.run()
    assert (Task.objects.get().state, Attempt.objects.get().outcome) == ("FAILED", "lost")
    assert not Loop.objects.exists()


def test_who_waits_for_a_slot_does_not_keep_the_engine_busy(engine, device):
    device_change(device.pk, max_concurrent=1, by="user:1")
    engine.submit({"tasks": [steps({"wait": 0.2}, sh("echo on")), plain("sleep 2", task_id="long")]})
    rounds = run_with(found("constellations_attempt", "NOT holds_slot"), nothing)
    assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}
    assert rounds < FEW


def test_a_phase_that_takes_long_while_its_agent_waits_is_told_of_and_keeps_nobody_busy(engine, device):
    phase = {"description": "wait", "expected_duration": 0.2, "steps": [{"wait": 1.5}]}
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", "phases": [phase]}]})
    assert run_with(found("agents_phaserecord", "id > 0"), nothing) < FEW
    record = PhaseRecord.objects.get()
    assert record.outcome == "completed_with_issues"
    assert "more than twice" in record.blockers[0]
    assert [event.data["factor"] for event in Event.objects.filter(type="phase_overdue").order_by("id")] == [1, 2]


def test_an_agent_that_was_short_of_memory_goes_on_after_everybody_has_let_go_of_it(engine, device, monkeypatch):
    monkeypatch.setattr("agents.engine.environment.READ_S", 0.1)
    monkeypatch.setattr("constellations.runs.run.READ_S", 1.5)
    device_change(device.pk, limits={"pause_memory_percent": 0.001, "pause_hold_s": 0}, by="user:1")
    engine.submit({"tasks": [steps(sh("echo 1"), sh("echo 2"))]})
    paused = found("agents_loop", "state = 'ResourcePaused'")
    run_with(lambda: paused() and GIVEN_BACK(), lambda: device_change(device.pk, limits={}, by="user:1"))
    assert Task.objects.get().state == "COMPLETED"
    assert list(Transition.objects.filter(event__startswith="resources").order_by("id").values_list("event", flat=True)) == [
        "resources_low", "resources_ok",
    ]  # fmt: skip


def test_limits_of_a_device_that_make_no_sense_end_nobody(engine, device):
    with door(device.pk, "user:1") as opened:  # as an older version may have left it
        opened.turn.record("device_changed", set={"device": {str(device.pk): {"limits": {"pause_memory_percent": "much"}}}})
    assert engine.carry_out({"tasks": [steps(sh("echo on"))]}).state == "COMPLETED"


def test_what_nobody_waits_for_any_more_is_withdrawn_when_everything_is_cancelled(engine, device):
    session, _ = engine.submit({"tasks": [plain("sleep 20", on_lost="ask")]})
    break_off(found("constellations_attempt", "outcome = ''"))
    engine.run(WAITING)
    sessions.request_submit(session.pk, "cancel", "c", {"reason": "enough"}, by="user:1")
    engine.run()
    assert Approval.objects.get().state == "withdrawn"


def test_a_call_with_leave_that_was_lost_is_asked_for_anew(engine, device):
    policies.policy_create(tool="command", decision="ask", by="user:1")
    engine.submit({"tasks": [plain("sleep 20")]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    break_off(found("agents_evidence", "ended_at IS NULL"))
    engine.run(WAITING)
    assert list(Attempt.objects.order_by("id").values_list("outcome", flat=True)) == ["lost", ""]
    assert list(Approval.objects.order_by("id").values_list("state", flat=True)) == ["approved", "waiting"]


def test_a_lost_call_behind_a_gate_is_not_repeated_without_asking(engine, device):
    engine.submit({"tasks": [steps(sh("sleep 20"), confirm=True)]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    break_off(found("agents_evidence", "ended_at IS NULL AND tool = 'command'"))
    engine.run(WAITING)
    approval_decide(Approval.objects.get(state="waiting").pk, "approve", by="user:1", answer="give up")
    engine.run()
    assert (Task.objects.get().state, Task.objects.get().reason) == ("FAILED", "lost")
    assert Evidence.objects.filter(tool="command").count() == 1


def test_a_lost_call_of_a_task_that_must_not_be_repeated_ends_the_task(engine, device):
    engine.submit({"tasks": [steps(sh("sleep 20"), on_lost="fail", max_attempts=3)]})
    break_off(found("agents_evidence", "ended_at IS NULL"))
    engine.run()
    assert (Task.objects.get().state, Attempt.objects.get().outcome) == ("FAILED", "lost")


def test_an_old_answer_does_not_decide_about_a_new_fault(engine, device):
    """The call ends while the runner ends: what follows from it is left to the next one."""
    late = {"tool": "read_file", "arguments": {"path": "nowhere"}}
    engine.submit({"tasks": [steps({"ask": "go?"}, sh("sleep 0.5"), late)]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "approve", by="user:1", answer="try again")
    engine.run(found("agents_evidence", "tool = 'read_file'"))
    engine.run(WAITING)
    assert list(Approval.objects.order_by("id").values_list("state", flat=True)) == ["approved", "waiting"]


def test_what_an_app_agent_brings_does_not_hold_all_that_was_known_before(engine, device):
    children = [{"delegate": {"name": f"child {n}", "steps": [sh(f"echo {n}")]}, "save": f"n{n}"} for n in range(20)]
    assert engine.carry_out({"tasks": [steps(*children)]}).tasks.get().result == {f"n{n}": n for n in range(20)}


def test_an_answer_that_does_not_fit_on_the_blackboard_fails_its_step(engine, device):
    engine.submit({"tasks": [steps({"wait": {"for": "a", "timeout": 60}, "save": "a"}, {"wait": {"for": "b"}, "save": "b"})]})
    for _ in "ab":
        engine.run(WAITING)
        approval_decide(Approval.objects.get(state="waiting").pk, "approve", by="user:1", answer="x" * 40_000)
    engine.run()
    task = Task.objects.get()
    assert task.state == "FAILED"
    assert "does not fit on the blackboard" in task.error


def test_a_look_that_ends_while_its_runner_ends_is_recorded(engine, device):
    engine.submit({"tasks": [steps({"observe": True}, sh("echo on"))]})
    engine.run(found("agents_agent", "state = 'SCREENSHOT'"))
    assert Evidence.objects.get().ended_at is not None
    engine.run()
    assert (Task.objects.get().state, Evidence.objects.filter(kind="observe").count()) == ("COMPLETED", 1)


def test_many_agents_that_talk_much_leave_turns_to_others(engine, device, monkeypatch):
    device_change(device.pk, max_concurrent=20, by="user:1")
    sizes = []
    written = Sessions._written
    monkeypatch.setattr(Sessions, "_written", lambda self, batch: sizes.append(len(batch.events)) or written(self, batch))
    talk = [{"say": f"thought {n}"} for n in range(40)]
    assert engine.carry_out({"tasks": [steps(*talk, task_id=f"work{n}") for n in range(20)]}).state == "COMPLETED"
    assert max(sizes) < 600


def test_a_deadline_ends_who_waits_for_a_person(engine, device):
    engine.carry_out({"tasks": [steps({"ask": "go?"}, deadline=0.5)]})
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "deadline")
    assert Approval.objects.get().state == "withdrawn"
    assert (Agent.objects.get(machine="device_agent").state, Loop.objects.get().state) == ("FAIL", "Halted")


def test_a_cancel_ends_who_waits_at_the_gate(engine, device):
    session, _ = engine.submit({"tasks": [plain("echo on", confirm=True)]})
    engine.run(WAITING)
    sessions.request_submit(session.pk, "cancel", "c", {"reason": "enough"}, by="user:1")
    engine.run()
    device.refresh_from_db()
    assert (Task.objects.get().state, Approval.objects.get().state, device.used) == ("CANCELLED", "withdrawn", 0)


def test_the_time_of_a_task_in_steps_is_that_of_all_its_calls(engine, device):
    engine.carry_out({"tasks": [steps(sh("sleep 0.4"), sh("sleep 20"), timeout=1)]})
    assert (Task.objects.get().state, Attempt.objects.get().outcome) == ("FAILED", "timeout")
    assert Evidence.objects.last().error_kind == "interrupted"


def test_a_wait_counts_for_no_time_out(engine, device):
    assert engine.carry_out({"tasks": [steps({"wait": 1}, sh("echo on"), timeout=0.7)]}).state == "COMPLETED"
    assert Attempt.objects.get().ran_s < 0.7


def test_a_wait_that_ended_while_its_actor_was_paused_is_over_when_it_goes_on(engine, device):
    session, _ = engine.submit({"tasks": [steps({"wait": 0.3}, sh("echo on"))]})
    engine.run(found("constellations_attempt", "NOT holds_slot"))
    sessions.request_submit(session.pk, "pause", "p", {}, by="user:1")
    engine.run(PAUSED)
    until(lambda: time.time() > Loop.objects.get().position["until"], "the wait is over")
    assert Agent.objects.get(machine="device_agent").state == "PENDING"
    sessions.request_submit(session.pk, "resume", "r", {}, by="user:1")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"


def test_a_call_that_a_pause_cut_off_is_made_again(engine, device, state_dir):
    session, _ = engine.submit({"tasks": [steps(sh("test -f seen || { touch seen; sleep 20; }"))]})
    pause = ("pause", "p", {"mode": "immediate"})

    def cut_off():
        until((state_dir / "workspaces" / "laptop" / "seen").exists, "the call is under way")
        sessions.request_submit(session.pk, *pause, by="user:1")

    run_with(found("agents_evidence", "id > 0"), cut_off, PAUSED)
    sessions.request_submit(session.pk, "resume", "r", {}, by="user:1")
    engine.run()
    assert (Task.objects.get().state, Attempt.objects.count()) == ("COMPLETED", 1)
    assert list(Evidence.objects.order_by("id").values_list("error_kind", flat=True)) == ["interrupted", ""]


@pytest.mark.parametrize(
    "step",
    [
        {"delegate": {"name": "child", "steps": [sh("touch done")]}},
        {"tool": "read_file", "arguments": {"path": "nowhere"}, "tries": 9, "recover": [sh("touch done")]},
        sh("touch done", tries=3),
        sh("touch done", confirm=True),
    ],
    ids=["delegated", "recovering", "tried again", "confirmed"],
)
def test_no_way_leads_around_a_policy(engine, device, state_dir, step):
    policies.policy_create(tool="command", decision="deny", by="user:1")
    engine.carry_out({"tasks": [steps(step)]})
    assert Task.objects.get().state == "FAILED"
    assert not (state_dir / "workspaces" / "laptop" / "done").exists()
    assert not Approval.objects.exists()


def test_leave_for_one_call_is_no_leave_for_the_next(engine, device):
    engine.submit({"tasks": [steps(sh("exit 1", confirm=True, tries=2))]})
    for asked in (1, 2):
        engine.run(WAITING)
        assert Approval.objects.count() == asked
        approval_decide(Approval.objects.get(state="waiting").pk, "approve", by="user:1")
    engine.run()
    assert Task.objects.get().state == "FAILED"


def test_what_an_approver_changed_is_what_is_done_and_a_policy_still_counts(engine, device):
    policies.policy_create(tool="command", pattern="rm", decision="deny", by="user:1")
    for words, state in ((["echo", "7"], "COMPLETED"), (["rm", "x"], "FAILED")):
        engine.submit({"tasks": [plain("echo 1", confirm=True)]})
        engine.run(WAITING)
        asked = Approval.objects.get(state="waiting")
        approval_decide(asked.pk, "approve", by="user:1", digest=asked.digest, arguments={"argv": words})
        engine.run()
        assert Task.objects.last().state == state
    assert list(Evidence.objects.filter(tool="command").order_by("id").values_list("arguments", flat=True)) == [
        {"argv": ["echo", "7"]}, {"argv": ["rm", "x"]},
    ]  # fmt: skip


def test_the_next_attempt_asks_at_the_gate_again(engine, device):
    engine.submit({"tasks": [plain("exit 1", confirm=True, max_attempts=2, backoff=0.1)]})
    for _ in range(2):
        engine.run(WAITING)
        approval_decide(Approval.objects.get(state="waiting").pk, "approve", by="user:1")
    engine.run()
    assert (Attempt.objects.count(), Approval.objects.count(), Task.objects.get().state) == (2, 2, "FAILED")


def test_what_was_approved_while_the_device_was_full_goes_on_when_it_is_not(engine, device):
    device_change(device.pk, max_concurrent=1, by="user:1")
    engine.submit({"tasks": [plain("echo on", confirm=True)]})
    engine.run(WAITING)
    engine.submit({"tasks": [plain("sleep 2", task_id="long")]})
    running = found("constellations_task", "task_id = 'long' AND state = 'RUNNING'")
    asked = Approval.objects.get()
    assert run_with(running, lambda: approval_decide(asked.pk, "approve", by="user:1")) < FEW
    assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}


def test_who_waits_on_a_device_that_goes_away_goes_on_when_it_is_back(engine, device):
    engine.submit({"tasks": [steps({"wait": 1}, sh("echo on"))]})
    gone = lambda: device_take_offline(device.pk, by="user:1")  # noqa: E731
    back = lambda: device_bring_back(device.pk, by="user:1")  # noqa: E731
    wants = found("agents_lease", "runner_id IS NULL AND wake_at IS NULL")
    run_with(found("constellations_attempt", "NOT holds_slot"), gone, wants)
    assert run_with(GIVEN_BACK, back) < FEW
    assert Task.objects.get().state == "COMPLETED"


def test_a_person_lets_an_agent_go_on_and_nobody_forgets_it(engine, device):
    again = [sh("echo 'old text not found' >&2; exit 1", on_failure="continue"), {"wait": 0.1}]
    session, _ = engine.submit({"tasks": [steps(*again * 5)]})

    def go_on():
        said = Event.objects.filter(type="stuck").get().data
        payload = {"agent": said["agent_id"], "identity": said["identity"]}
        sessions.request_submit(session.pk, "go_on", "g", payload, by="user:1")

    run_with(found("agents_event", "type = 'stuck'"), go_on)
    assert (Evidence.objects.filter(kind="tool").count(), Task.objects.get().state) == (6, "COMPLETED")
    assert Event.objects.filter(type="stuck").count() == 1
    assert len(Task.objects.get().accepted) == 1


def test_agents_delegate_as_deep_as_plans_allow(engine, device):
    """And the same number bounds what a page shows of them."""
    step = sh("echo 7", save="n")
    for level in range(DELEGATIONS):
        step = {"delegate": {"name": f"level {DELEGATIONS - level}", "steps": [step]}}
    assert engine.carry_out({"tasks": [steps(step)]}).tasks.get().result == {"n": 7}
    agents = list(Agent.objects.filter(machine="device_agent").order_by("id"))
    assert [agent.state for agent in agents] == ["FINISH"] * (1 + DELEGATIONS)
    assert agents_below(agents[0].pk) == [agent.pk for agent in agents[1:]]
    with pytest.raises(PlanRejected, match=f"agents would delegate {DELEGATIONS + 1} deep; {DELEGATIONS} are allowed"):
        engine.submit({"tasks": [steps({"delegate": {"name": "one more", "steps": [step]}})]})


def test_what_several_calls_print_is_one_text_without_gaps(engine, device):
    engine.carry_out({"tasks": [steps(*(sh(f"printf {letter * 3}") for letter in "abc"), sh("true"), sh("printf d"))]})
    rows = list(Output.objects.order_by("offset").values_list("offset", "text"))
    assert "".join(text for _, text in rows) == "aaabbbcccd"
    assert [offset for offset, _ in rows] == [sum(len(text) for _, text in rows[:at]) for at in range(len(rows))]
