"""Tasks in steps, gates and policies, carried out by the real engine: device agents and their tool loops from row to row."""

import pytest

from agents import services, storage
from agents.models import Agent, Approval, Event, Evidence, Loop, PhaseRecord, Transition
from constellations.models import Attempt, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def sh(script: str, **more) -> dict:
    return {"command": ["sh", "-c", script], **more}


def steps(*wanted: dict, task_id: str = "work", **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "steps": list(wanted), **more}


def found(table: str, where: str):
    """Asks, from inside the engine's loop, whether there is such a row."""
    return lambda: storage.cursor().execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0] > 0


WAITING = found("agents_approval", "state = 'waiting'")


def states_of(machine: str) -> list[str]:
    return list(Transition.objects.filter(machine=machine).order_by("id").values_list("to_state", flat=True))


def test_steps_run_one_after_the_other_and_the_task_is_completed(engine, device):
    found = engine.carry_out({"tasks": [steps(sh("echo 1"), {"say": "half way"}, sh("echo '{\"n\": 2}'"))]})
    task = found.tasks.get()
    assert (found.state, task.state, task.result) == ("COMPLETED", "COMPLETED", {"n": 2})
    assert Agent.objects.get(machine="device_agent").state == "FINISH"
    assert Loop.objects.get().state == "Idle"
    assert list(Evidence.objects.values_list("kind", "success")) == [("tool", True), ("message", True), ("tool", True)]
    assert Transition.objects.filter(machine="device_agent", event="step").count() == 3


def test_a_step_that_fails_fails_its_task(engine, device):
    found = engine.carry_out({"tasks": [steps(sh("echo no such luck >&2; exit 3"), sh("echo never"))]})
    task = found.tasks.get()
    assert task.state == "FAILED"
    assert "no such luck" in task.error
    assert Evidence.objects.count() == 1


def test_a_failure_that_may_be_passed_over_blocks_its_phase(engine, device):
    phases = [
        {"description": "try", "steps": [sh("exit 1", on_failure="continue"), sh("echo ok")]},
        {"description": "finish", "steps": [sh("echo done", kind="test")]},
    ]
    found = engine.carry_out({"tasks": [{"task_id": "work", "device": "laptop", "phases": phases}]})
    assert found.tasks.get().state == "COMPLETED"
    first, second = PhaseRecord.objects.order_by("number")
    assert (first.outcome, second.outcome) == ("completed_with_issues", "success")
    assert "exit code 1" in first.blockers[0]
    assert [test["passed"] for test in second.tests] == [True]


def test_the_same_error_three_times_is_steered_and_the_fourth_time_halted(engine, device):
    found = engine.carry_out({"tasks": [steps(sh("echo 'old text not found' >&2; exit 1", tries=50))]})
    task = found.tasks.get()
    assert task.state == "FAILED"
    assert task.reason.startswith("stuck:same_")
    assert Loop.objects.get().state == "Halted"
    assert Agent.objects.get(machine="device_agent").state == "FAIL"
    assert "ErrorRecovery" in states_of("tool_loop")
    stuck = [event.data for event in Event.objects.filter(type="stuck")]
    assert [(one["action"], one["first"]) for one in stuck] == [("steer", True)]
    assert Attempt.objects.count() == 1


def test_a_detour_gets_a_stuck_agent_going_again(engine, device):
    step = sh("test -f fixed || { echo 'old text not found' >&2; exit 1; }", tries=50, recover=[sh("touch fixed")])
    found = engine.carry_out({"tasks": [steps(step, sh("echo on"))]})
    assert found.tasks.get().state == "COMPLETED"
    assert Evidence.objects.filter(kind="nudge").count() == 1


def test_what_was_saved_is_on_the_blackboard_and_in_the_result(engine, device):
    found = engine.carry_out(
        {
            "tasks": [
                steps(
                    sh("echo '{\"n\": 3}'", save="counted"),
                    sh("echo skipped", **{"if": "counted.n > 5"}),
                    sh("echo $ORRERY_BLACKBOARD", **{"if": "counted.n == 3"}, save="seen"),
                )
            ]
        }
    )
    assert found.tasks.get().result["counted"] == {"n": 3}
    assert Evidence.objects.count() == 2


def test_a_wait_holds_no_slot(engine, device):
    engine.submit({"tasks": [steps({"wait": 0.3}, sh("echo on"))]})
    engine.run(found("constellations_attempt", "NOT holds_slot"))
    device.refresh_from_db()
    assert (device.used, Agent.objects.get(machine="device_agent").state) == (0, "PENDING")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"


def test_an_app_agent_works_for_its_host_and_shares_its_blackboard(engine, device):
    child = {"delegate": {"name": "counter", "steps": [sh("echo 7", save="n")]}, "save": "child"}
    found = engine.carry_out({"tasks": [steps(child, sh("echo 8", **{"if": "n == 7"}, save="m"))]})
    assert found.tasks.get().result["m"] == 8
    host, app = Agent.objects.filter(machine="device_agent").order_by("id")
    assert (app.parent_id, host.state, app.state) == (host.pk, "FINISH", "FINISH")
    assert "delegated" in Transition.objects.filter(subject_id=host.pk, to_state="PENDING").values_list("reason", flat=True)


def test_a_plain_task_with_a_gate_waits_for_a_person_and_then_does_exactly_that(engine, device):
    from agents.approvals import approval_decide

    plan = {"tasks": [{"task_id": "wipe", "device": "laptop", "command": "echo wiped", "confirm": True}]}
    engine.submit(plan)
    engine.run(WAITING)
    approval = Approval.objects.get()
    assert approval.action == {"tool": "command", "arguments": {"argv": ["echo", "wiped"]}}
    assert approval.observed["system"]
    assert Agent.objects.get(machine="device_agent").state == "CONFIRM"
    device.refresh_from_db()
    assert device.used == 0
    approval_decide(approval.pk, "approve", by="user:1", digest=approval.digest)
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    approval.refresh_from_db()
    assert approval.used_at is not None


def test_a_rejected_task_fails_and_is_not_tried_again(engine, device):
    from agents.approvals import approval_decide

    engine.submit(
        {"tasks": [{"task_id": "wipe", "device": "laptop", "command": "touch x", "confirm": True, "max_attempts": 3}]}
    )
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "reject", by="user:1", reason="not today")
    engine.run()
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "rejected")
    assert "not today" in task.error


def test_a_cancel_and_a_new_request_in_one_breath_end_one_actor_and_begin_the_next(engine, device):
    session, _ = engine.submit({"tasks": [steps(sh("sleep 30"))]})
    engine.run(found("agents_evidence", "id > 0"))
    services.command_submit(session.pk, "cancel", "c", {"reason": "enough"}, by="user:1")
    engine.submit({"tasks": [steps(sh("echo 1"))]}, session)
    engine.run()
    assert list(session.actors.order_by("epoch").values_list("state", flat=True)) == ["cancelled", "idle"]
    assert list(Task.objects.order_by("id").values_list("state", flat=True)) == ["CANCELLED", "COMPLETED"]
    assert Loop.objects.order_by("id").first().state == "Halted"


def test_paused_in_the_middle_of_a_call_it_goes_on_after_it(engine, device):
    session, _ = engine.submit({"tasks": [steps(sh("sleep 0.3; echo 1"), sh("echo 2"), sh("echo 3"))]})
    engine.run(found("agents_evidence", "id > 0"))
    services.command_submit(session.pk, "pause", "p", {}, by="user:1")
    engine.run(found("agents_actor", "state = 'paused'"))
    device.refresh_from_db()
    assert device.used == 0
    services.command_submit(session.pk, "resume", "r", {}, by="user:1")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    assert Attempt.objects.count() == 1
