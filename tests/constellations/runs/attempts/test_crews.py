"""Tasks in steps, gates and policies, carried out by the real engine: device agents and their tool loops from row to row."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.engine import runner
from agents.engine.hosted import set_device
from agents.models import Agent, Approval, Event, Evidence, Loop, PhaseRecord, Transition
from agents.services import policies, sessions
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.streams import statements
from constellations.models import Attempt, Task
from constellations.reads.why import explain_task
from project.environment import progress_of
from tests.constellations.runs.test_run import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def sh(script: str, **more) -> dict:
    return {"command": ["sh", "-c", script], **more}


def steps(*wanted: dict, task_id: str = "work", **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "steps": list(wanted), **more}


def found(table: str, where: str):
    """Asks, from inside the engine's loop, whether there is such a row."""
    return lambda: statements.raw_cursor().execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0] > 0


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
    assert first.blockers[0].startswith("step 1 (command sh -c 'exit 1'): exit code 1")
    assert [test["passed"] for test in second.tests] == [True]


def test_a_phase_that_fails_names_the_step_that_stood_in_its_way(engine, device):
    phases = [
        {"description": "try", "steps": [sh("echo ok"), sh("echo no disk >&2; exit 4")]},
        {"description": "finish", "steps": [sh("echo done")]},
    ]
    engine.carry_out({"tasks": [{"task_id": "work", "device": "laptop", "phases": phases}]})
    record = PhaseRecord.objects.get()
    assert (record.outcome, len(record.blockers)) == ("completed_with_issues", 1)
    assert record.blockers[0].startswith("step 2 (command sh -c 'echo no disk >&2; exit 4'): exit code 4")


@pytest.mark.parametrize(
    ("step", "more", "says"),
    [
        (sh("sleep 600"), {"timeout": 0.3}, "step 1 (command sh -c 'sleep 600'): stopped after 0.3 s"),
        ({"ask": "Which one?", "timeout": 0.1}, {}, "step 1 (ask Which one?): nobody answered in time: Which one?"),
        (
            {"delegate": {"name": "reviewer", "steps": [sh("exit 3")]}}, {},
            "step 1 (delegate reviewer): exit code 3",
        ),
    ],
)  # fmt: skip
def test_so_does_one_that_ends_in_another_way(engine, device, step, more, says):
    phases = [{"description": "try", "steps": [step]}, {"description": "finish", "steps": [sh("echo done")]}]
    engine.carry_out({"tasks": [{"task_id": "work", "device": "laptop", "phases": phases, **more}]})
    assert [each[: len(says)] for each in PhaseRecord.objects.get().blockers] == [says]


def test_an_installation_says_when_its_agents_are_stuck_and_a_task_says_better(engine, device, settings):
    settings.PROGRESS = {"stuck_threshold": 5}
    again = [sh("exit 1", on_failure="continue")] * 9
    engine.carry_out({"tasks": [steps(*again)]})
    assert Evidence.objects.filter(kind="tool", verdict__isnull=False).order_by("id").first().number == 5
    found = engine.carry_out({"tasks": [steps(*again, progress={"stuck_threshold": 3})]})
    hits = Evidence.objects.filter(kind="tool", verdict__isnull=False, loop__agent__session=found.session)
    assert hits.order_by("id").first().number == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting property name"),
        ("[1]", "must be an object"),
        ('{"stuck_treshold": 3}', "stuck_treshold: "),
        ('{"stuck_threshold": "3"}', "stuck_threshold must be a whole number from 0"),
        ('{"test_commands": 3}', "test_commands: must be a list"),
        ('{"test_commands": ["("]}', "test_commands[0]: "),
    ],
)
def test_settings_of_progress_that_make_no_sense_are_named_when_the_installation_starts(monkeypatch, text, says):
    monkeypatch.setenv("ORRERY_PROGRESS", text)
    with pytest.raises(ImproperlyConfigured, match=r"^ORRERY_PROGRESS must be JSON such as") as refused:
        progress_of("ORRERY_PROGRESS")
    assert says in str(refused.value)


def test_the_same_error_three_times_is_steered_and_the_fourth_time_halted(engine, device):
    again = sh("echo 'old text not found' >&2; exit 1", on_failure="continue")
    found = engine.carry_out({"tasks": [steps(*[again] * 9)]})
    task = found.tasks.get()
    assert task.state == "FAILED"
    assert task.reason.startswith("stuck:same_")
    assert Loop.objects.get().state == "Halted"
    assert Agent.objects.get(machine="device_agent").state == "FAIL"
    why = explain_task(task)
    assert (why["kind"], why["fields"]["since"]["row"], why["fields"]["action"]) == ("stuck", 5, "halt")
    assert "its agent was stuck since row 5" in why["text"]
    assert [way["way"] for way in why["fields"]["ways"]] == ["change", "elsewhere", "patience"]
    assert "ErrorRecovery" in states_of("tool_loop")
    stuck = [event.data for event in Event.objects.filter(type="stuck")]
    assert [(one["action"], one["first"]) for one in stuck] == [("steer", True)]
    assert Attempt.objects.count() == 1


def test_a_step_runs_as_often_as_its_tries_say_and_the_last_one_says_that_they_are_used_up(engine, device):
    found = engine.carry_out({"tasks": [steps(sh("echo 'old text not found' >&2; exit 1", tries=12))]})
    task = found.tasks.get()
    assert (task.state, task.reason, Attempt.objects.count()) == ("FAILED", "failed", 1)
    assert task.error.startswith("tried 12 of 12 times; the last error: exit code 1: old text not found")
    rows = list(Evidence.objects.order_by("number"))
    assert [(row.number, row.ordered) for row in rows] == [(n, n > 1) for n in range(1, 13)]
    assert [row.verdict for row in rows[:-1]] == [None] * 11
    verdict = rows[-1].verdict
    assert (verdict["rule"], verdict["action"], verdict["rows"]) == ("tries_used_up", "fail", list(range(1, 13)))
    assert "was tried 12 of 12 times; the last error: “exit code 1: old text not found" in verdict["sentence"]
    assert Loop.objects.get().state == "Idle"
    assert not Event.objects.filter(type="stuck").exists()


def test_steps_that_are_tried_again_count_once_each_as_the_agents_own(engine, device):
    again = sh("echo 'old text not found' >&2; exit 1", tries=4, on_failure="continue")
    engine.carry_out({"tasks": [steps(*[again] * 9)]})
    assert Task.objects.get().reason.startswith("stuck:same_")
    told = Event.objects.get(type="stuck").data
    assert told["rows"] == [1, 5, 9]
    followed = [row.verdict["action"] for row in Evidence.objects.filter(verdict__isnull=False).order_by("number")]
    assert followed == ["continue", "continue", "steer", "continue", "continue", "continue", "halt"]


def test_a_step_that_has_recovered_makes_all_its_tries_before_it_gives_up(engine, device):
    step = sh("echo 'old text not found' >&2; exit 1", tries=5, recover=[sh("true")])
    found = engine.carry_out({"tasks": [steps(step)]})
    assert found.tasks.get().reason == "failed"
    assert Evidence.objects.filter(kind="nudge").count() == 1
    assert Evidence.objects.filter(kind="tool", success=False).count() == 3 + 5
    assert Evidence.objects.order_by("number").last().verdict["rule"] == "tries_used_up"


def test_tries_that_policies_deny_are_used_up_too(engine, device):
    denied = sh("true", tries=4)
    engine.carry_out({"tasks": [steps(denied, policies=[{"tool": "command", "decision": "deny"}])]})
    assert list(Evidence.objects.order_by("number").values_list("ordered", flat=True)) == [False, True, True, True]
    assert Evidence.objects.order_by("number").last().verdict["rule"] == "tries_used_up"


def test_a_step_that_went_well_is_not_made_again_because_it_looked_like_a_loop(engine, device):
    engine.carry_out({"tasks": [steps(*[sh("echo same") for _ in range(5)])]})
    assert Task.objects.get().state == "COMPLETED"
    assert Evidence.objects.filter(kind="tool").count() == 5
    assert Event.objects.filter(type="stuck").count() == 1


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
    engine.submit(
        {"tasks": [{"task_id": "wipe", "device": "laptop", "command": "touch x", "confirm": True, "max_attempts": 3}]}
    )
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "reject", by="user:1", reason="not today")
    engine.run()
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "rejected")
    assert "not today" in task.error


def test_a_cancel_and_a_new_request_in_one_breath_end_one_actor_and_begin_the_next(engine, device, monkeypatch):
    monkeypatch.setattr(runner, "DRAIN_S", 0.1)
    session, _ = engine.submit({"tasks": [steps(sh("sleep 30"))]})
    engine.run(found("agents_evidence", "id > 0"))
    sessions.request_submit(session.pk, "cancel", "c", {"reason": "enough"}, by="user:1")
    engine.submit({"tasks": [steps(sh("echo 1"))]}, session)
    engine.run()
    assert list(session.actors.order_by("epoch").values_list("state", flat=True)) == ["cancelled", "idle"]
    assert list(Task.objects.order_by("id").values_list("state", flat=True)) == ["CANCELLED", "COMPLETED"]
    assert Loop.objects.order_by("id").first().state == "Halted"


def test_paused_in_the_middle_of_a_call_it_goes_on_after_it(engine, device):
    session, _ = engine.submit({"tasks": [steps(sh("sleep 0.3; echo 1"), sh("echo 2"), sh("echo 3"))]})
    engine.run(found("agents_evidence", "id > 0"))
    sessions.request_submit(session.pk, "pause", "p", {}, by="user:1")
    engine.run(found("agents_actor", "state = 'paused'"))
    device.refresh_from_db()
    assert device.used == 0
    assert explain_task(Task.objects.get())["text"].startswith("its session is paused")
    sessions.request_submit(session.pk, "resume", "r", {}, by="user:1")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    assert Attempt.objects.count() == 1


# --- permissions


def test_what_a_policy_denies_is_not_done_and_goes_back_as_a_failure(engine, device, tmp_path):
    policies.policy_create(by="user:1", tool="command", pattern="^touch", decision="deny", note="nothing is touched here")
    mark = tmp_path / "mark"
    engine.carry_out({"tasks": [steps({"command": ["touch", str(mark)], "on_failure": "continue"}, sh("echo on"))]})
    assert not mark.exists()
    assert Task.objects.get().state == "COMPLETED"
    denied = Evidence.objects.get(error_kind="denied")
    assert "nothing is touched here" in denied.raw_error
    assert Transition.objects.filter(machine="tool_loop", event="tool_denied").count() == 1


def test_a_plain_task_that_a_policy_denies_fails_without_being_run(engine, device, tmp_path):
    policies.policy_create(by="user:1", tool="command", pattern="^touch", decision="deny")
    mark = tmp_path / "mark"
    engine.carry_out({"tasks": [{"task_id": "t", "device": "laptop", "command": ["touch", str(mark)]}]})
    assert (Task.objects.get().state, mark.exists()) == ("FAILED", False)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_what_a_policy_asks_about_waits_for_a_person(engine, device, decision):
    policies.policy_create(by="user:1", tool="command", pattern="^touch", decision="ask")
    touch = {"command": "touch mark", "on_failure": "continue"}
    engine.submit({"tasks": [steps(touch, sh("test -e mark", on_failure="continue"))]})
    engine.run(WAITING)
    assert Loop.objects.get().state == "AwaitingPermission"
    assert Agent.objects.get(machine="device_agent").state == "PENDING"
    approval_decide(Approval.objects.get().pk, decision, by="user:1", reason="as you wish")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    last = Evidence.objects.filter(kind="tool").last()
    assert last.success is (decision == "approve")
    told = {"approve": "approved", "reject": "denied"}[decision]
    assert Transition.objects.filter(machine="tool_loop", from_state="AwaitingPermission").get().event == told


def test_an_approver_may_change_the_call_and_then_just_that_is_done(engine, device):
    engine.submit({"tasks": [steps({"command": "echo wiped", "confirm": True}, sh("echo on"))]})
    engine.run(WAITING)
    approval = Approval.objects.get()
    approval_decide(approval.pk, "approve", by="user:1", arguments={"argv": ["echo", "kept"]})
    engine.run()
    assert Evidence.objects.filter(kind="tool").first().arguments == {"argv": ["echo", "kept"]}


def test_a_critical_policy_puts_a_gate_before_the_whole_task(engine, device):
    policies.policy_create(by="user:1", tool="command", pattern="wipe", decision="ask", critical=True)
    engine.submit({"tasks": [steps(sh("echo first"), sh("echo wipe"))]})
    engine.run(WAITING)
    approval = Approval.objects.get()
    assert (approval.kind, Agent.objects.get(machine="device_agent").state) == ("task", "CONFIRM")
    assert [step["arguments"]["argv"][-1] for step in approval.action["phases"][0]["steps"]] == ["echo first", "echo wipe"]
    approval_decide(approval.pk, "approve", by="user:1")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    assert Approval.objects.count() == 1


def test_a_gate_that_nobody_opens_in_time_fails_the_task(engine, device, monkeypatch):
    monkeypatch.setattr("agents.gates.approvals.APPROVAL_S", 0.2)
    engine.submit({"tasks": [{"task_id": "t", "device": "laptop", "command": "echo", "confirm": True, "max_attempts": 2}]})
    engine.run()
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "expired")
    assert Approval.objects.get().state == "expired"
    assert Agent.objects.get(machine="device_agent").state == "FAIL"


def test_a_cancelled_task_withdraws_what_it_asked_for(engine, device):
    session, _ = engine.submit({"tasks": [{"task_id": "t", "device": "laptop", "command": "echo", "confirm": True}]})
    engine.run(WAITING)
    sessions.request_submit(session.pk, "cancel", "c", {}, by="user:1")
    engine.run()
    assert Approval.objects.get().state == "withdrawn"
    device.refresh_from_db()
    assert device.used == 0


# --- questions, call-backs, time


def test_a_question_is_answered_from_its_options_and_lies_on_the_blackboard(engine, device):
    ask = {"ask": "Which one?", "options": ["red", "green"], "save": "colour", "timeout": 60}
    engine.submit({"tasks": [steps(ask, sh("echo $ORRERY_BLACKBOARD", **{"if": "colour == 'green'"}))]})
    engine.run(WAITING)
    approval = Approval.objects.get()
    assert (approval.kind, approval.title) == ("question", "Which one?")
    approval_decide(approval.pk, "approve", by="user:1", answer="green")
    engine.run()
    assert Task.objects.get().result == {"colour": "green"}
    assert list(Evidence.objects.values_list("kind", flat=True)) == ["user", "tool"]


def test_a_question_that_nobody_answers_fails_the_agent(engine, device):
    engine.carry_out({"tasks": [steps({"ask": "Which one?", "timeout": 0.2})]})
    assert Agent.objects.get(machine="device_agent").state == "FAIL"
    assert Transition.objects.filter(machine="device_agent", event="timeout").count() == 1
    assert "Which one?" in Task.objects.get().error


def test_time_for_waiting_does_not_count_as_time_for_running(engine, device):
    engine.carry_out({"tasks": [steps({"wait": 0.6}, sh("echo on"), timeout=0.5)]})
    assert Task.objects.get().state == "COMPLETED"
    assert Attempt.objects.get().ran_s < 0.5


def test_a_task_in_steps_that_runs_for_too_long_is_stopped(engine, device):
    engine.carry_out({"tasks": [steps(sh("sleep 0.2"), sh("sleep 30"), timeout=0.5)]})
    assert Attempt.objects.get().outcome == "timeout"
    assert Agent.objects.get(machine="device_agent").state == "FAIL"
    assert Loop.objects.get().state == "Halted"


# --- faults, stuck, resources


def test_a_call_that_runs_out_of_time_gets_more_of_it(engine, device):
    engine.carry_out({"tasks": [steps(sh("sleep 0.5", timeout=0.3))]})
    assert Task.objects.get().state == "COMPLETED"
    assert list(Evidence.objects.values_list("error_kind", flat=True)) == ["timeout", ""]
    assert Transition.objects.filter(machine="tool_loop", event="retry").count() == 1


def test_for_what_is_missing_a_person_is_asked(engine, device):
    engine.submit({"tasks": [steps({"command": "no-such-program"}, sh("echo on"))]})
    engine.run(WAITING)
    approval = Approval.objects.get()
    assert "no-such-program" in approval.title
    approval_decide(approval.pk, "approve", by="user:1", answer="skip it")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    assert Transition.objects.filter(machine="tool_loop", event="check").count() == 1


def test_the_loss_of_a_device_agents_platform_is_an_error_and_no_failure(engine, transactional_db):
    set_device(device_create("screen", by="system").pk, "device_changed", platform="desktop")  # of a release that had such
    engine.carry_out({"tasks": [{**steps(sh("echo")), "device": "screen"}]})
    agent = Agent.objects.get(machine="device_agent")
    there = "there are acp, browser, mcp, shell"
    assert (agent.state, agent.reason) == ("ERROR", f"there are no agents for the platform desktop; {there}")
    assert Task.objects.get().state == "FAILED"


def test_a_bug_in_an_agent_ends_that_agent_in_error_and_nothing_else(engine, device, monkeypatch):
    from agents.crews import strategies

    def broken(member, turn, now):
        if member.assignment.title == "bad":
            raise RuntimeError("a bug")
        return True

    monkeypatch.setitem(strategies.PIPES, "shell", {**strategies.SHELL, "DATA_COLLECTION": (broken,)})
    engine.carry_out({"tasks": [steps(sh("echo"), task_id="good"), steps(sh("echo"), task_id="bad")]})
    assert dict(Task.objects.values_list("task_id", "state")) == {"good": "COMPLETED", "bad": "FAILED"}
    assert Agent.objects.get(state="ERROR").reason == "RuntimeError: a bug"


def test_go_on_anyway_accepts_a_loop_for_this_task(engine, device):
    again = [sh("echo 'not found' >&2; exit 1", on_failure="continue"), {"wait": 0.05}]
    session, _ = engine.submit({"tasks": [steps(*again * 12)]})
    engine.run(found("agents_event", "type = 'stuck'"))
    told = Event.objects.get(type="stuck").data
    why = explain_task(Task.objects.get())
    assert (why["kind"], why["fields"]["identity"], why["fields"]["ways"][0]["way"]) == ("stuck", told["identity"], "go_on")
    sessions.request_submit(
        session.pk, "go_on", "g", {"agent": told["agent_id"], "identity": told["identity"]}, by="user:1"
    )  # fmt: skip
    engine.run()
    task = Task.objects.get()
    assert task.accepted == [told["identity"]]
    assert Evidence.objects.filter(kind="accept").count() == 1
    assert Evidence.objects.filter(kind="tool").count() > 4


def test_an_agent_pauses_while_its_device_is_short_of_memory(engine, device, monkeypatch):
    from agents.devices.readings import Reading

    readings = iter([50.0, 99.0, 99.0, 99.0, 99.0])
    clock = iter(range(0, 1000, 40))
    monkeypatch.setattr("agents.engine.environment.READ_S", 0.0)
    monkeypatch.setattr("agents.engine.runner.DEVICES_S", 0.1)
    monkeypatch.setattr(
        "agents.engine.environment.take_reading",
        lambda workspace, before: Reading(next(readings, 60.0), 10.0, None, float(next(clock))),
    )
    engine.submit({"tasks": [steps(*[sh(f"sleep 0.15; echo {n}") for n in range(6)])]})
    seen = []

    def until() -> bool:
        if not seen and found("agents_loop", "state = 'ResourcePaused'")():
            in_thread(lambda: seen.append(explain_task(Task.objects.get())))
        return found("agents_inboxitem", "outcome <> ''")()

    engine.run(until)
    assert Task.objects.get().state == "COMPLETED"
    assert (seen[0]["kind"], seen[0]["fields"]["device"]) == ("resources", "laptop")
    assert seen[0]["text"].startswith("its agent waits until laptop is ready again: memory 99.0%")
    moves = Transition.objects.filter(machine="tool_loop")
    low = moves.get(event="resources_low")
    assert "memory 99.0%" in low.reason
    assert moves.get(event="resources_ok").to_state == low.from_state


def test_every_state_of_the_tool_loop_but_halted_and_paused_is_entered_by_one_plan(engine, device):
    policies.policy_create(by="user:1", tool="command", pattern="^true", decision="ask")
    phases = [
        {"description": "ask", "steps": [{"command": "true"}]},
        {"description": "recover", "steps": [sh("test -e x || exit 1", tries=9, recover=[sh("touch x")])]},
    ]
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", "phases": phases}]})
    engine.run(WAITING)
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    engine.run()
    assert set(states_of("tool_loop")) == {
        "PhaseTransition", "ProcessingPrompt", "StreamingResponse", "AwaitingPermission", "ExecutingTool", "ProgressCheck",
        "ErrorRecovery", "Idle",
    }  # fmt: skip


# --- the seeds' own cases


def test_ten_phases_with_a_thousand_productive_calls_finish_without_an_alarm(engine, device):
    call = {"tool": "write_file"}
    phases = [
        {
            "description": f"Refactor package {phase}",
            "steps": [
                *(
                    {**call, "arguments": {"path": f"pkg{phase}/file{n}.go", "content": f"package {phase}-{n}"}}
                    for n in range(99)
                ),
                {"command": "true", "kind": "test"},
            ],
        }
        for phase in range(10)
    ]
    engine.carry_out({"tasks": [{"task_id": "refactor", "device": "laptop", "phases": phases}]})
    assert Task.objects.get().state == "COMPLETED"
    assert Evidence.objects.filter(kind__in=("tool", "test")).count() == 1000
    assert not Event.objects.filter(type="stuck").exists()
    records = PhaseRecord.objects.order_by("number")
    assert [(row.number, row.outcome, len(row.files_changed)) for row in records] == [(n, "success", 99) for n in range(1, 11)]
    assert Event.objects.filter(type="progress").count() == 100


def test_flipping_a_file_back_and_forth_is_an_oscillation(engine, device):
    def write(content: str) -> dict:
        return {"tool": "write_file", "arguments": {"path": "a.txt", "content": content}}

    engine.carry_out({"tasks": [steps(*[write("AB"[n % 2]) for n in range(16)])]})
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "stuck:oscillation")


def test_saying_the_same_again_and_again_is_a_loop(engine, device):
    engine.carry_out({"tasks": [steps(*[{"say": "I will fix it now."} for _ in range(9)])]})
    task = Task.objects.get()
    assert task.state == "FAILED"
    assert task.reason.startswith("stuck:")
    assert "message" in task.reason
