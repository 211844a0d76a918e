"""A session recorded and replayed: the same run without starting anything, and the first decision that differs."""

import copy
import io

import pytest
from django.core.management import CommandError, call_command

from agents.models import Approval, Evidence, Output, Session
from agents.services.approvals import approval_decide
from agents.services.sessions import session_create
from constellations.models import Attempt
from project.management.commands.replay import describe_difference
from project.replay.comparing import Difference, first_difference
from project.replay.playing import play_recording
from project.replay.recorder import record_session
from project.replay.recording import RecordingRejected, read_recording, write_recording
from tests.constellations.runs.test_run import query

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

STEPS = [
    {"command": ["sh", "-c", "echo one >> said; echo '{\"n\": 1}'"]},
    {"command": ["sh", "-c", "echo again >> said; exit 1"], "on_failure": "continue"},
]
MEASURED = {"result": {"accuracy": 0.9}}
PLAN = {
    "tasks": [
        {"task_id": "work", "device": "laptop", "steps": STEPS},
        {"task_id": "measure", "device": "laptop", "tool": "noop", "arguments": MEASURED, "after": ["work"]},
        {"task_id": "deploy", "device": "laptop", "command": ["touch", "deployed"]},
    ],
    "dependencies": [{"from": "measure", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}],
    "replan": [{
        "name": "more", "when": {"event": "task_completed", "task": "measure"},
        "edit": [{"add_task": {"task_id": "extra", "device": "laptop", "command": ["sh", "-c", "echo extra >> said"]}}],
    }],
}  # fmt: skip


@pytest.fixture
def recorded(engine, device):
    """The recording of a run, as it is read from its file."""
    found = engine.carry_out(PLAN)
    return read_recording(write_recording(record_session(found.session_id)))


def workspace(state_dir) -> str:
    return (state_dir / "workspaces" / "laptop" / "said").read_text()


def test_a_replay_decides_the_same_and_starts_nothing(recorded, state_dir):
    before, printed = workspace(state_dir), Output.objects.count()
    assert before == "one\nagain\nextra\n"
    again = play_recording(recorded)
    assert first_difference(recorded.content["decisions"], again["recording"]["decisions"]) is None
    assert len(recorded.content["decisions"]) == len(again["recording"]["decisions"]) == 10
    assert (workspace(state_dir), Output.objects.count()) == (before, printed)
    assert Evidence.objects.filter(tool="command", success=False).count() == 2, "it failed in the replay as it had"


def changed(recorded, change) -> object:
    """The recording with something else in it."""
    content = copy.deepcopy(recorded.content)
    change(content)
    return type(recorded)(recorded.script, content)


def test_another_result_of_a_tool_is_another_decision_from_there_on(recorded):
    def reach_the_threshold(content) -> None:
        (measured,) = (each for each in content["results"] if each["tool"] == "noop")
        measured["result"]["accuracy"] = 0.99

    again = play_recording(changed(recorded, reach_the_threshold))
    found = first_difference(recorded.content["decisions"], again["recording"]["decisions"])
    assert (found.who[:2], found.step) == ((1, "deploy"), 1), "the task that was skipped, or its agent"
    ends = [
        each["what"] for each in again["recording"]["decisions"] if each["of"]["task"] == "deploy" and each["kind"] == "task"
    ]
    assert ends == ["FAILED"]
    error = Attempt.objects.get(task__task_id="deploy").error
    assert "the recording has no more result of command" in error


def test_what_a_person_decided_is_decided_again(engine, device, operator):
    ask = {"ask": "Which way?", "options": ["left", "right"], "save": "way"}
    plan = {"tasks": [{"task_id": "a", "device": "laptop", "steps": [ask, {"command": ["true"]}]}]}
    session, _ = engine.submit(plan)
    engine.run(until=lambda: query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'"))
    approval_decide(Approval.objects.get().pk, "approve", answer="right", by=f"user:{operator.pk}")
    engine.run()
    recorded = read_recording(write_recording(record_session(session.pk)))
    again = play_recording(recorded)
    assert first_difference(recorded.content["decisions"], again["recording"]["decisions"]) is None
    assert list(Approval.objects.values_list("state", "answer")) == [("approved", "right")] * 2


def test_the_first_difference_is_the_earliest_of_all_agents():
    def decision(at: float, agent: str, what: str) -> dict:
        return {"of": {"request": 1, "task": "t", "agent": agent}, "at": at, "kind": "call", "what": what}

    before = [decision(1, "a", "x"), decision(2, "b", "y"), decision(3, "a", "z")]
    shuffled = [decision(7, "b", "y"), decision(8, "a", "x"), decision(9, "a", "z")]
    assert first_difference(before, shuffled) is None, "interleaving and times say nothing"
    found = first_difference(before, [decision(1, "a", "x"), decision(2, "b", "other")])
    assert (found.who[2], found.step, found.was["what"], found.now["what"]) == ("b", 1, "y", "other")
    found = first_difference(before, [*shuffled, decision(10, "c", "more")])
    assert (found.who[2], found.was, found.now["what"]) == ("c", None, "more")


@pytest.mark.parametrize(("text", "message"), [
    ("answers: []", "KeyError: 'recording'"), ("- 1", "no recording"), ("answers: []\nrecording: {version: 7}", "must be 1"),
    ("answers: [{sey: x}]\nrecording: {version: 1}", "sey: known are"), ("answers: []\nrecording: {version: 1}", "devices"),
])  # fmt: skip
def test_what_is_no_recording_says_why(text, message):
    with pytest.raises(RecordingRejected, match=message):
        read_recording(text)


def test_a_session_that_is_not_there_or_was_asked_for_nothing_has_no_recording(operator):
    with pytest.raises(RecordingRejected, match="no session 7"):
        record_session(7)
    with pytest.raises(RecordingRejected, match="asked for nothing"):
        record_session(session_create(operator, by="system").pk)


def test_secrets_are_in_no_recording(engine, device):
    key = "ghp_" + "a1" * 18
    steps = [{"command": ["sh", "-c", f"echo {key}"]}, {"tool": "write_file", "arguments": {"path": "f", "content": key}}]
    found = engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "steps": steps}]})
    text = write_recording(record_session(found.session_id))
    assert key not in text
    assert first_difference(
        read_recording(text).content["decisions"], play_recording(read_recording(text))["recording"]["decisions"]
    ) is None  # fmt: skip


@pytest.mark.live
def test_the_commands_write_a_file_and_replay_it_in_an_installation_that_is_thrown_away(engine, device, tmp_path):
    found = engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "command": ["echo", "one"]}]})
    file = tmp_path / "recording.yaml"
    file.write_text(run_command("model_record", str(found.session_id)))
    rows = Session.objects.count()
    assert run_command("replay", str(file)) == "the same 3 decisions\n"
    assert Session.objects.count() == rows
    file.write_text(file.read_text().replace("what: completed", "what: failed"))
    with pytest.raises(SystemExit, match="1"):
        run_command("replay", str(file))
    with pytest.raises(CommandError, match="no model profile fast as a row; there are: none"):
        run_command("replay", str(file), "--profile", "fast")


def test_a_difference_says_who_what_was_and_what_is():
    was = {"kind": "call", "what": {"tool": "noop", "arguments": {}}}
    assert describe_difference(Difference((1, "t", "worker"), 2, was, None)) == (
        'agent worker, task t, request 1, step 2:\n  was: call {"arguments": {}, "tool": "noop"}\n  is:  nothing more'
    )


def run_command(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()
