"""Tasks in words, carried out by a coding agent: a program that speaks the protocol, the real engine, rows and machines."""

from __future__ import annotations

import json

import pytest

from agents.devices.host import instance_name
from agents.devices.processes import attempts_at_work
from agents.engine.bodies.deltas import forget_left_deltas
from agents.gates import approvals
from agents.models import Agent, Approval, Device, Event, Evidence, Loop, ModelDelta, Output, Transition
from agents.services import policies, sessions
from constellations.models import Attempt, Task
from tests.agents.coding.conftest import Act, carry_out, conduct, decision, errand, kill_agents, make_coder
from tests.constellations.runs.attempts.test_crews import found

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified", "coder")]
SAYS_SOMETHING = found("agents_output", "1 = 1")
FAILS = ["ls", "nothing-of-that-name"]


def states() -> list[str]:
    """What the agent's loop has been through."""
    agent = Agent.objects.get(platform="acp")
    loop = Loop.objects.get(agent=agent)
    rows = Transition.objects.filter(machine="tool_loop", subject_id=loop.pk).order_by("id")
    return [row.to_state for row in rows]


def nobody_left() -> bool:
    """No process of the agent is there any more."""
    return not attempts_at_work(instance_name())


def test_its_words_stream_its_plan_is_told_and_its_last_words_are_the_result(engine):
    plan = [{"content": "look", "status": "in_progress", "priority": "high"}]
    task = carry_out(engine, {"think": "hm"}, {"plan": plan}, {"say": "All of it is done."})
    assert (task.state, task.error) == ("COMPLETED", "")
    assert task.result == {"said": "All of it is done.", "stop": "end_turn", "calls": 0, "denied": 0}
    assert "".join(Output.objects.values_list("text", flat=True)) == "All of it is done.\n"
    planned = Event.objects.get(type="agent_planned").data
    assert (planned["done"], planned["of"], planned["now"]) == (0, 1, "look")
    assert Agent.objects.get(platform="acp").plan == [{"content": "look", "status": "in_progress"}]
    assert Event.objects.get(type="agent_thought").data["text"] == "hm"
    assert Evidence.objects.get(kind="message").arguments == {"text": "All of it is done."}


def test_its_newest_plan_is_kept_with_its_agent(engine):
    entries = [{"content": "look", "status": status, "priority": "high"} for status in ("in_progress", "completed")]
    todos = {"toolCallId": "t", "title": "todo", "kind": "think", "status": "completed", "rawInput": {"todos": entries}}
    carry_out(engine, {"plan": entries[:1]}, {"update": {"sessionUpdate": "tool_call", **todos}}, {"say": "Done."})
    statuses = [entry["status"] for entry in Agent.objects.get(platform="acp").plan]
    assert statuses == ["in_progress", "completed"]  # a list of things to do is a plan, too


def test_its_words_and_thoughts_are_deltas_while_it_says_them_and_gone_with_its_end(engine, state_dir):
    steps = [{"think": "Hm."}, {"say": "I look around."}, {"until": "go"}, {"say": "Done."}]
    said: dict[str, str] = {}

    def take() -> None:
        for row in ModelDelta.objects.order_by("pk"):
            assert (row.call_id, row.offset) == (Evidence.objects.get(tool="instruction").pk, len(said.get(row.kind, "")))
            said[row.kind] = said.get(row.kind, "") + row.text
        (state_dir / "workspaces" / "coder" / "go").touch()

    engine.submit({"tasks": [errand(*steps)]})
    whole = found("agents_modeldelta", "kind = 'text' AND \"offset\" + length(text) >= 14")
    conduct(engine, Act(whole, take))
    assert said["thinking"].strip() == "Hm."
    assert said["text"].strip() == "I look around."
    assert "".join(Output.objects.order_by("offset").values_list("text", flat=True)) == "I look around.Done.\n"
    forget_left_deltas()
    assert not ModelDelta.objects.exists()


def test_what_it_asks_leave_for_waits_in_the_inbox_and_is_done_once_it_is_granted(engine, state_dir):
    place = state_dir / "workspaces" / "coder"

    def look(asked: Approval) -> None:
        assert (asked.kind, asked.action["tool"], asked.action["arguments"]) == ("tool", "command", {"argv": ["touch", "made"]})
        about = asked.action["about"]
        assert (about["call"], about["kind"], about["title"], about["cwd"]) == ("run", "execute", "touch made", str(place))
        assert not (place / "made").exists()
        agent = Agent.objects.get(platform="acp")
        assert (agent.state, Loop.objects.get(agent=agent).state) == ("PENDING", "AwaitingPermission")
        assert Attempt.objects.get().holds_slot  # its process lives, and so it keeps its slot

    engine.submit({"tasks": [errand({"run": ["touch", "made"]}, {"say": "Made."})]})
    conduct(engine, decision(look=look))
    assert Task.objects.get().state == "COMPLETED"
    assert (place / "made").exists()
    row = Evidence.objects.get(tool="command")
    assert (row.success, row.exit_code, row.target) == (True, 0, "touch made")
    assert Approval.objects.get().used_at is not None
    assert states()[-6:] == ["AwaitingPermission", "ExecutingTool", "ProgressCheck", "StreamingResponse", "ProgressCheck",
                             "StreamingResponse", "Idle"][-6:]  # fmt: skip


def test_what_is_refused_is_not_done_and_an_agent_that_ends_then_has_failed(engine, state_dir):
    engine.submit({"tasks": [errand({"run": ["touch", "made"]}, {"say": "After all."})]})
    conduct(engine, decision("reject", reason="not now"))
    task = Task.objects.get()
    assert (task.state, task.error) == ("FAILED", "the agent ended its turn after it was refused something")
    assert not (state_dir / "workspaces" / "coder" / "made").exists()
    assert Evidence.objects.get(tool="command").error_kind == "denied"


def test_leave_that_nobody_gives_in_time_ends_the_task_and_the_agent(engine, monkeypatch):
    monkeypatch.setattr(approvals, "APPROVAL_S", 0.2)
    engine.submit({"tasks": [errand({"run": ["touch", "made"]})]})
    conduct(engine)
    assert (Approval.objects.get().state, Task.objects.get().state) == ("expired", "FAILED")
    assert "nobody answered in time" in Task.objects.get().error
    assert nobody_left()


def test_policies_answer_at_once_where_they_say_something(engine, state_dir, admin_user):
    rule = {"tool": "command", "pattern": "^rm", "decision": "deny", "note": "nothing is deleted"}
    policies.policy_create(by=f"user:{admin_user.pk}", **rule)
    unasked = {"commands": [["touch", "*"]]}
    steps = [{"run": ["touch", "made"], "id": "a"}, {"run": ["rm", "made"], "id": "b"}]
    task = carry_out(engine, *steps, unasked=unasked)
    assert task.state == "FAILED"  # it was refused something
    assert (state_dir / "workspaces" / "coder" / "made").exists()
    assert Event.objects.get(type="leave_given").data["target"] == "touch made"
    assert Event.objects.get(type="leave_refused").data["reason"] == "nothing is deleted"
    assert not Approval.objects.exists()


def test_an_approval_is_good_for_the_call_it_was_asked_for_and_no_other(engine):
    engine.submit({"tasks": [errand({"run": ["touch", "a"], "id": "1"}, {"run": ["touch", "a"], "id": "2"})]})
    conduct(engine, decision(), decision())
    assert Task.objects.get().state == "COMPLETED"
    first, second = Approval.objects.order_by("id")
    assert first.digest != second.digest


def test_a_call_cannot_be_changed_by_who_approves_it(engine):
    engine.submit({"tasks": [errand({"run": ["touch", "a"]})]})
    conduct(engine, decision(arguments={"argv": ["touch", "b"]}))
    assert Task.objects.get().state == "FAILED"
    assert Evidence.objects.get(tool="command").success is False


def test_what_it_does_without_asking_is_a_violation_and_ends_it(engine):
    task = carry_out(engine, {"run": ["true"], "unasked": True}, {"say": "never"}, max_attempts=3)
    assert (task.state, task.reason) == ("FAILED", "violation")
    assert task.error == "violation: it did without asking: execute 'true'"
    assert Event.objects.get(type="violation").data["title"] == "true"
    assert Attempt.objects.count() == 1


def test_another_command_than_the_one_it_asked_leave_for_is_a_violation(engine):
    asked = {"toolCallId": "x", "title": "touch a", "kind": "execute", "rawInput": {"command": "touch a"}}
    done = {**asked, "sessionUpdate": "tool_call_update", "status": "completed", "rawInput": {"command": "rm -rf /"}}
    engine.submit({"tasks": [errand({"ask": asked}, {"update": done})]})
    conduct(engine, decision())
    assert "it did something else than it asked leave for" in Task.objects.get().error


def test_what_stands_in_meta_is_not_what_is_asked_for(engine):
    call = {"toolCallId": "x", "title": "rm -rf /", "kind": "execute", "rawInput": {"command": "rm -rf /"}}
    engine.submit({"tasks": [errand({"ask": call, "params": {"_meta": {"toolCall": {"title": "ls"}, "tool_call": {}}}})]})
    conduct(engine, decision("reject"))
    assert Approval.objects.get().action["arguments"] == {"argv": ["rm", "-rf", "/"]}


def test_an_option_that_stays_is_never_chosen_and_where_there_is_no_other_nothing_is_allowed(engine, state_dir):
    call = {"toolCallId": "x", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
    only = [{"optionId": "for-ever", "kind": "allow_always", "name": "Always"}]
    carry_out(engine, {"ask": call, "options": only}, unasked={"commands": [["ls"]]})
    kept = next((state_dir / "agents" / "coder").glob("*/home/answers")).read_text()
    assert json.loads(kept) == {"outcome": {"outcome": "cancelled"}}
    assert Event.objects.get(type="leave_refused").data["reason"] == "it offers no way to allow this once"


def test_a_command_that_failed_has_failed_though_the_agent_calls_it_completed(engine):
    carry_out(engine, {"run": FAILS}, unasked={"commands": [FAILS]})
    row = Evidence.objects.get(tool="command")
    assert (row.success, row.exit_code) == (False, 2)


def test_a_file_it_changes_is_told_by_its_content(engine, state_dir):
    place = state_dir / "workspaces" / "coder"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("alpha")
    engine.submit({"tasks": [errand({"write": "a.txt", "text": "beta"})]})
    conduct(engine, decision())
    row = Evidence.objects.get(tool="edit_file")
    assert (place / "a.txt").read_text() == "beta"
    assert row.target == "a.txt"
    assert row.before
    assert row.outcome
    assert row.before != row.outcome


def test_one_that_goes_round_in_circles_is_told_so_by_its_next_prompt(engine, state_dir):
    runs = [{"run": FAILS, "id": f"c{number}"} for number in range(3)]
    unasked = {"commands": [FAILS]}
    task = carry_out(engine, *runs, {"sleep": 60}, unasked=unasked)
    assert task.state == "COMPLETED"
    assert "I was told: You go round in circles" in task.result["said"]
    assert "ErrorRecovery" in states()
    assert Event.objects.filter(type="stuck").count() == 1


def test_a_hint_is_its_next_prompt(engine, state_dir):
    def hint() -> None:
        agent = Agent.objects.get(platform="acp")
        sessions.request_submit(agent.session_id, "go_on", "", {"agent": agent.pk, "text": "Be quick."}, by="user:1")
        (state_dir / "workspaces" / "coder" / "go").touch()

    engine.submit({"tasks": [errand({"say": "One."}, {"until": "go"}, {"sleep": 0.5})]})
    conduct(engine, Act(SAYS_SOMETHING, hint))
    assert Task.objects.get().result["said"] == "I was told: Be quick."


@pytest.mark.parametrize("on_lost", ["fail", "ask", "retry"])
def test_an_agent_that_is_killed_is_lost_and_the_task_says_what_follows(engine, on_lost, state_dir):
    place = state_dir / "workspaces" / "coder"
    engine.submit({"tasks": [errand({"say": "Hello."}, {"until": "go"}, {"say": "Done."}, on_lost=on_lost)]})

    def kill() -> None:
        kill_agents()
        (place / "go").touch()

    conduct(engine, Act(SAYS_SOMETHING, kill), *([decision(answer="give up")] if on_lost == "ask" else []))
    tries = [row.error_kind for row in evidence_of_instruction()]
    assert tries == (["lost", ""] if on_lost == "retry" else ["lost"])
    assert nobody_left()
    task = Task.objects.get()
    if on_lost != "retry":
        assert (task.state, task.reason) == ("FAILED", "lost")
        return
    assert (task.state, task.result["said"]) == ("COMPLETED", "Hello.Done.")
    assert (place / "loaded").read_text() == "session-1"
    assert not Evidence.objects.filter(target__contains="from before").exists()  # of what it knows is no evidence
    resumed = evidence_of_instruction()[1].arguments["prompt"]
    assert "You were broken off" in resumed


def evidence_of_instruction() -> list[Evidence]:
    return list(Evidence.objects.filter(tool="instruction").order_by("id"))


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"raw": "no json at all"}, "what is not JSON"),
        ({"raw": "[1, 2]"}, "list in the place of an object"),
        ({"noise": 9_000_000}, "message of more than 8,000,000 bytes"),
        ({"fail": "no such model"}, "no such model"),
        ({"stop": "tired"}, "stop_reason"),
    ],
)
def test_one_that_does_not_keep_to_the_protocol_is_in_error(engine, step, says):
    task = carry_out(engine, step)
    assert task.state == "FAILED"
    assert says in task.error.replace("stopReason", "stop_reason")
    assert Agent.objects.get(platform="acp").state == "ERROR"


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "max_turn_requests"])
def test_a_turn_that_ended_for_want_of_something_is_a_failure(engine, stop):
    task = carry_out(engine, {"stop": stop})
    assert (task.state, Agent.objects.get(platform="acp").state) == ("FAILED", "FAIL")


def test_updates_that_are_not_known_are_passed_over_and_its_standard_error_makes_nobody_wait(engine):
    strange = [{"update": {"sessionUpdate": "mood", "mood": "good"}}, {"update": {"sessionUpdate": "plan", "entries": 5}}]
    task = carry_out(engine, *strange, {"stderr": 500_000}, {"say": "Well."})
    assert (task.state, task.result["said"]) == ("COMPLETED", "Well.")


def test_another_version_of_the_protocol_is_no_agent_of_ours(engine):
    made = make_coder("old", env={"AGENT_VERSION": "2"})
    engine.run(found("agents_device", f"id = {made.pk} AND reason != ''"))
    assert Device.objects.get(name="old").state == "disconnected"
    assert Device.objects.get(name="old").reason == "the agent speaks version 2 of the protocol, not 1"


def test_a_cancel_cancels_it_and_nothing_of_it_is_left(engine):
    def cancel() -> None:
        session = Task.objects.get().constellation.session_id
        sessions.request_submit(session, "cancel", "", {"reason": "changed my mind"}, by="user:1")

    engine.submit({"tasks": [errand({"say": "I begin."}, {"sleep": 600})]})
    conduct(engine, Act(SAYS_SOMETHING, cancel))
    assert Task.objects.get().state == "CANCELLED"
    assert nobody_left()
