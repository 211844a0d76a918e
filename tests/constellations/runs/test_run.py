"""Interactions carried out by the real engine: order, conditions, replanning, retries, slots, commands."""

import pytest

from agents.models import Actor, Agent, Event, InboxItem, SlotRequest, Transition
from agents.services.devices import device_drain, device_undrain
from agents.services.policies import policy_create
from agents.services.sessions import request_submit
from constellations.errors import PlanRejected
from constellations.models import Attempt, Constellation, Edit, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def noop(task_id: str, result=None, **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "tool": "noop", "arguments": {"result": result}, **more}


def command(task_id: str, *argv: str, **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "command": list(argv), **more}


def states(constellation: Constellation) -> dict[str, str]:
    return dict(constellation.tasks.values_list("task_id", "state"))


def test_a_plan_runs_to_its_end_and_the_actor_is_idle_again(engine, device):
    found = engine.carry_out({"name": "two", "tasks": [noop("a"), noop("b", after=["a"])]})
    assert found.state == "COMPLETED"
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}
    assert found.result["completed"] == 2
    assert found.interaction.outcome == "completed"
    assert Actor.objects.get(session=found.session).state == "idle"
    assert Agent.objects.filter(machine="device_agent", state="FINISH").count() == 2
    assert Agent.objects.get(machine="constellation_agent").state == "FINISH"


def test_a_line_that_needs_a_shell_is_run_by_one_or_not_at_all(engine, device, state_dir):
    line = {"task_id": "a", "device": "laptop", "command": "echo one > f && cat f"}
    with pytest.raises(PlanRejected, match=r"tasks\[0\]\.command: `>` means something"):
        engine.submit({"tasks": [line]})
    assert not InboxItem.objects.exists()
    found = engine.carry_out({"tasks": [{**line, "shell": True}]})
    assert found.state == "COMPLETED"
    assert (state_dir / "workspaces" / "laptop" / "f").read_text() == "one\n"


def test_a_shell_is_not_let_pass_because_a_policy_allows_its_first_word(engine, device, state_dir):
    for order, (pattern, decision) in enumerate((("echo", "allow"), ("", "deny"))):
        policy_create(order=order, tool="command", pattern=pattern, decision=decision, by="system")
    line = {"task_id": "shell", "device": "laptop", "command": "echo x; touch f", "shell": True}
    found = engine.carry_out({"tasks": [line, command("words", "echo", "x")]})
    assert states(found) == {"shell": "FAILED", "words": "COMPLETED"}
    assert not (state_dir / "workspaces" / "laptop" / "f").exists()


def test_a_dependent_starts_after_its_upstream_has_ended(engine, device):
    found = engine.carry_out({"tasks": [noop("a"), noop("b", after=["a"]), noop("c", after=["b"])]})
    times = {a.task.task_id: (a.started_at, a.ended_at) for a in Attempt.objects.select_related("task")}
    assert times["a"][1] <= times["b"][0]
    assert times["b"][1] <= times["c"][0]
    assert found.state == "COMPLETED"


def test_a_false_condition_skips_everything_behind_it_in_one_event(engine, device):
    plan = {
        "tasks": [noop("train", {"accuracy": 0.9}), noop("deploy"), noop("announce", after=["deploy"])],
        "dependencies": [{"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}],
    }
    found = engine.carry_out(plan)
    assert states(found) == {"train": "COMPLETED", "deploy": "CANCELLED", "announce": "CANCELLED"}
    assert "accuracy > 0.95" in Task.objects.get(task_id="deploy").reason
    assert Event.objects.filter(type="tasks_skipped").count() == 1
    assert found.state == "COMPLETED"


def test_a_condition_on_a_name_that_is_missing_says_so(engine, device):
    plan = {
        "tasks": [noop("train", {"loss": 1}), noop("deploy")],
        "dependencies": [{"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}],
    }
    engine.carry_out(plan)
    reason = Task.objects.get(task_id="deploy").reason
    assert "condition unknown" in reason
    assert "accuracy" in reason


def test_a_failure_skips_what_needed_success_and_starts_what_did_not(engine, device):
    plan = {
        "tasks": [command("a", "false"), noop("needs_success"), noop("cleanup")],
        "dependencies": [
            {"from": "a", "to": "needs_success"},
            {"from": "a", "to": "cleanup", "type": "COMPLETION_ONLY"},
        ],
    }
    found = engine.carry_out(plan)
    assert states(found) == {"a": "FAILED", "needs_success": "CANCELLED", "cleanup": "COMPLETED"}
    assert found.state == "PARTIALLY_FAILED"
    assert found.interaction.outcome == "partially_failed"


def test_a_constellation_in_which_nothing_completes_has_failed(engine, device):
    found = engine.carry_out({"tasks": [command("a", "false")]})
    assert (found.state, found.interaction.outcome) == ("FAILED", "failed")
    assert Agent.objects.get(machine="constellation_agent").state == "FAIL"
    assert Actor.objects.get().state == "idle"


def test_a_commands_json_line_is_its_result_and_its_output_is_kept(engine, device):
    found = engine.carry_out({"tasks": [command("a", "sh", "-c", "echo working; echo '{\"n\": 3}'")]})
    assert found.tasks.get().result == {"n": 3}
    from agents.models import Output

    text = "".join(Output.objects.values_list("text", flat=True))
    assert text.startswith("working\n")
    told = dict(Event.objects.filter(type__startswith="output").values_list("type", "data"))
    assert told["output_ended"]["characters"] == len(text)
    assert told["output_started"]["attempt_id"] == Attempt.objects.get().pk


def test_failed_attempts_are_repeated_and_kept(engine, device):
    found = engine.carry_out({"tasks": [command("a", "false", max_attempts=3, backoff=0.01)]})
    attempts = Attempt.objects.order_by("number").values_list("number", "outcome", "exit_code")
    assert list(attempts) == [(1, "failed", 1), (2, "failed", 1), (3, "failed", 1)]
    assert states(found) == {"a": "FAILED"}


def test_a_command_that_takes_too_long_is_a_timeout(engine, device):
    found = engine.carry_out({"tasks": [command("a", "sleep", "60", timeout=0.2)]})
    assert found.tasks.get().state == "FAILED"
    assert Attempt.objects.get().outcome == "timeout"


def test_a_replan_rule_edits_the_running_graph_once(engine, device):
    plan = {
        "tasks": [noop("evaluate", {"accuracy": 0.9}), noop("deploy")],
        "dependencies": [{"from": "evaluate", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}],
        "replan": [
            {
                "name": "retrain",
                "when": {"event": "task_completed", "task": "evaluate", "condition": "accuracy <= 0.95"},
                "edit": [
                    {"add_task": noop("retrain", {"accuracy": 0.97})},
                    {"add_task": noop("deploy_again")},
                    {"add_dependency": {"from": "evaluate", "to": "retrain"}},
                    {
                        "add_dependency": {
                            "from": "retrain", "to": "deploy_again", "type": "CONDITIONAL", "condition": "accuracy > 0.95",
                        }
                    },
                    {"remove_task": {"task_id": "deploy"}},
                ],
            }
        ],
    }  # fmt: skip
    found = engine.carry_out(plan)
    assert states(found) == {"evaluate": "COMPLETED", "retrain": "COMPLETED", "deploy_again": "COMPLETED"}
    edit = Edit.objects.get()
    assert (edit.author, edit.based_on, edit.version, found.version) == ("planner", 1, 2, 2)
    assert Transition.objects.filter(machine="constellation_agent", event="edited").count() == 1


def test_a_rule_that_fired_in_one_constellation_fires_in_the_next_one_too(engine, device):
    rule = {"name": "more", "when": {"event": "task_completed", "task": "a"}, "edit": [{"add_task": noop("b")}]}
    for _ in range(2):
        found = engine.carry_out({"tasks": [noop("a")], "replan": [rule]})
        assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}


def test_no_more_tasks_run_at_once_than_the_device_has_slots(engine, device):
    engine.carry_out({"tasks": [command(f"t{n}", "sleep", "0.05") for n in range(12)]})
    marks = []
    for attempt in Attempt.objects.all():
        marks += [(attempt.started_at, 1), (attempt.ended_at, -1)]
    running, most = 0, 0
    for _, change in sorted(marks):
        running += change
        most = max(most, running)
    assert most == 4


def test_sessions_share_a_full_device_and_leave_no_queue_behind(engine, device):
    sessions = [engine.submit({"tasks": [command(f"t{n}", "sleep", "0.02") for n in range(8)]})[0] for _ in range(3)]
    engine.run()
    assert Constellation.objects.filter(session__in=sessions, state="COMPLETED").count() == 3
    assert SlotRequest.objects.count() == 0
    device.refresh_from_db()
    assert (device.used, device.queued) == (0, 0)


def test_a_device_that_comes_up_during_the_run_gets_the_task_that_waits_for_it(engine, device):
    device_drain(device.pk, by="user:1")
    engine.submit({"tasks": [noop("a")]})
    seen = []

    def bring_up_when_it_waits() -> bool:
        if not seen and query("SELECT count(*) FROM constellations_task WHERE state = 'PENDING'"):
            seen.append(1)
            in_thread(device_undrain, device.pk, by="user:1")
        return bool(seen) and inbox_rests()

    engine.run(until=bring_up_when_it_waits)
    assert Task.objects.get().state == "COMPLETED"


def test_a_device_that_drains_tells_the_sessions_with_work_on_it_and_lets_the_work_end(engine, device):
    session, item = engine.submit({"tasks": [command("a", "sleep", "0.2")]})
    seen = []

    def drain_when_running() -> bool:
        if not seen and something_runs():
            seen.append(1)
            in_thread(device_drain, device.pk, by="user:1")
        return bool(seen) and inbox_rests()

    engine.run(until=drain_when_running)
    told = Event.objects.get(stream=session.pk, type="device_state_changed")
    assert (told.data["from_state"], told.data["to_state"], told.by) == ("connected", "draining", "user:1")
    item.refresh_from_db()
    assert item.outcome == "completed"


def test_a_second_interaction_waits_its_turn_in_the_same_actor(engine, device):
    session, first = engine.submit({"tasks": [command("a", "sleep", "0.1")]})
    _, second = engine.submit({"tasks": [noop("b")]}, session)
    engine.run()
    first.refresh_from_db(), second.refresh_from_db()
    assert (first.outcome, second.outcome) == ("completed", "completed")
    assert first.ended_at <= second.started_at
    assert Actor.objects.filter(session=session).count() == 1


def test_cancel_kills_what_runs_and_ends_everything(engine, device, operator):
    session, item = engine.submit({"tasks": [command("a", "sleep", "600"), noop("b", after=["a"])]})
    sent = []

    def cancel_when_running() -> bool:
        if not sent and something_runs():
            sent.append(1)
            cancel(session)
        return bool(sent) and inbox_rests()

    engine.run(until=cancel_when_running)
    item.refresh_from_db()
    assert item.outcome == "cancelled"
    assert set(Task.objects.values_list("state", flat=True)) == {"CANCELLED"}
    assert Constellation.objects.get().state == "CANCELLED"
    assert Actor.objects.get().state == "cancelled"
    assert Attempt.objects.get().outcome == "cancelled"


def test_a_new_interaction_after_the_end_starts_another_actor(engine, device):
    session, _ = engine.submit({"tasks": [noop("a")]})
    engine.run()
    request_submit(session.pk, "cancel", "", {"reason": "enough"}, by="user:1")
    engine.run()
    assert Actor.objects.get().state == "cancelled"
    engine.carry_out({"tasks": [noop("b")]}, session)
    assert list(Actor.objects.order_by("epoch").values_list("epoch", "state")) == [(1, "cancelled"), (2, "idle")]


def test_pause_lets_the_command_in_flight_end_and_resume_goes_on(engine, device):
    session, item = engine.submit({"tasks": [command("a", "sleep", "0.2"), noop("b", after=["a"])]})
    sent = []

    def pause_when_running() -> bool:
        if not sent and something_runs():
            sent.append(1)
            in_thread(request_submit, session.pk, "pause", "p1", {"reason": "look"}, by="user:1")
        return bool(sent) and actor_state() == "paused"

    engine.run(until=pause_when_running)
    assert dict(Task.objects.values_list("task_id", "state")) == {"a": "COMPLETED", "b": "PENDING"}
    request_submit(session.pk, "resume", "r1", {}, by="user:1")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"
    events = list(Transition.objects.filter(machine="actor").values_list("event", flat=True))
    assert events == ["Spawned", "ProcessInteraction", "Pause", "Resume", "ProcessInteraction", "InteractionComplete"]


def test_an_immediate_pause_cuts_the_command_off_and_resume_makes_it_again(engine, device):
    session, item = engine.submit({"tasks": [command("a", "sh", "-c", "test -e again || (touch again; sleep 600)")]})
    sent = []

    def pause_when_running() -> bool:
        if not sent and something_runs():
            sent.append(1)
            in_thread(request_submit, session.pk, "pause", "p1", {"mode": "immediate"}, by="user:1")
        return bool(sent) and actor_state() == "paused"

    engine.run(until=pause_when_running)
    assert Task.objects.get().state == "PENDING"
    request_submit(session.pk, "resume", "r1", {}, by="user:1")
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, Task.objects.get().state) == ("completed", "COMPLETED")
    assert list(Attempt.objects.order_by("number").values_list("outcome", flat=True)) == ["cancelled", "completed"]


def test_a_task_added_by_a_rule_has_its_deadline(engine, device):
    rule = {
        "name": "more",
        "when": {"event": "task_completed", "task": "a"},
        "edit": [{"add_task": command("b", "sleep", "600", deadline=0.3)}],
    }
    found = engine.carry_out({"tasks": [noop("a")], "replan": [rule]})
    assert states(found) == {"a": "COMPLETED", "b": "FAILED"}
    assert "deadline" in Task.objects.get(task_id="b").reason


def test_the_same_client_id_is_one_interaction(engine, device):
    session, item = engine.submit({"tasks": [noop("a")]})
    again, created = request_submit(session.pk, "interaction", item.client_id, item.payload, by=item.by)
    assert (again.pk, created) == (item.pk, False)
    assert InboxItem.objects.count() == 1


def something_runs() -> bool:
    return query("SELECT count(*) FROM constellations_attempt WHERE outcome = ''") > 0


def inbox_rests() -> bool:
    return query("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')") == 0


def actor_state() -> str:
    return query("SELECT state FROM agents_actor")


def query(statement: str):
    from agents.streams import statements

    cursor = statements.raw_cursor()
    cursor.execute(statement)
    row = cursor.fetchone()
    return row[0] if row else None


def in_thread(function, *arguments, **named):
    """As another process would: on a connection of its own."""
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connections

    with ThreadPoolExecutor(1) as pool:
        pool.submit(function, *arguments, **named).result()
        pool.submit(connections.close_all).result()


def cancel(session) -> None:
    in_thread(request_submit, session.pk, "cancel", "c1", {"reason": "changed my mind"}, by="user:1")
