"""What replan rules do beside edits, and by them, in runs of the real engine: ends, restarts, errors, copies, other devices."""

import json

import pytest

from agents.models import Agent, Event, Transition
from agents.services import sessions
from agents.services.devices import device_create
from constellations import limits
from constellations.errors import PlanRejected
from constellations.models import Attempt, Constellation, Edit, Task
from constellations.plan.plan import parse_plan
from constellations.reads.exports import export_document
from constellations.services import lifecycle
from constellations.services.edits import edit_apply, find_edit
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest
from tests.constellations.admin.admin_client import Staff
from tests.constellations.planting import plant
from tests.constellations.runs.test_run import command, in_thread, noop, query, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"


def rule(event: str, task="", condition: str = "", **does) -> dict:
    when = {"event": event, **({"task": task} if task else {}), **({"condition": condition} if condition else {})}
    return {"name": "r", "when": when, **does}


def agent_state() -> str:
    return Agent.objects.get(machine="constellation_agent").state


# Ends


def test_a_rule_ends_a_run_well_and_what_is_open_is_cancelled_with_its_reason(engine, device):
    plan = {
        "tasks": [noop("quick", {"found": True}), command("thorough", "sleep", "60"), noop("report", after=["thorough"])],
        "replan": [rule("task_completed", "quick", "found", finish=True, reason="It was found.")],
    }
    found = engine.carry_out(plan)
    assert (found.state, found.reason, agent_state()) == ("COMPLETED", "It was found.", "FINISH")
    assert states(found) == {"quick": "COMPLETED", "thorough": "CANCELLED", "report": "CANCELLED"}
    reasons = dict(found.tasks.values_list("task_id", "reason"))
    assert (reasons["thorough"], reasons["report"]) == ("cancelled: It was found.", "cancelled: It was found.")
    assert found.interaction.outcome == "completed"
    assert found.interaction.result["summary"] == ("1 of 3 tasks completed, 0 failed, 2 cancelled or skipped; It was found.")
    assert not Attempt.objects.filter(outcome="").exists()
    device.refresh_from_db()
    assert device.used == 0


def test_a_rule_that_ends_a_run_well_hides_no_failure(engine, device):
    plan = {
        "tasks": [noop("a"), command("b", "false", after=["a"]), command("c", "sleep", "60")],
        "replan": [rule("task_failed", finish=True)],
    }
    found = engine.carry_out(plan)
    assert (found.state, found.interaction.outcome, agent_state()) == ("PARTIALLY_FAILED", "partially_failed", "FINISH")


def test_a_rule_ends_a_run_badly_though_much_of_it_completed(engine, device):
    plan = {
        "tasks": [noop("check", {"errors": 7}), command("b", "sleep", "60"), noop("c", after=["b"])],
        "replan": [rule("task_completed", "check", "errors > 5", fail="{task} has found too many errors")],
    }
    found = engine.carry_out(plan)
    assert (found.state, found.reason, agent_state()) == ("FAILED", "check has found too many errors", "FAIL")
    assert states(found) == {"check": "COMPLETED", "b": "CANCELLED", "c": "CANCELLED"}
    assert found.interaction.outcome == "failed"
    assert found.interaction.result["summary"].endswith("; check has found too many errors")
    moves = Transition.objects.filter(machine="constellation_agent").order_by("seq", "id").values_list("event", "reason")
    assert list(moves)[-2:] == [("edited", "r"), ("failed", "check has found too many errors")]
    assert lifecycle.constellation_retry(found.pk, ["b"], by=BY).interaction is not None


def test_a_rule_ends_a_run_that_is_paused(engine, device):
    plan = {"tasks": [command("a", "sleep", "0.4"), noop("b", after=["a"])], "replan": [rule("task_ended", "a", fail="enough")]}
    _, item = engine.submit(plan)
    engine.run(paused_before_the_end())
    found = Constellation.objects.get(interaction=item)
    assert (found.state, states(found)) == ("FAILED", {"a": "COMPLETED", "b": "CANCELLED"})


FIRST = "SELECT min(id) FROM constellations_constellation"


def paused_before_the_end():
    """Pauses the first constellation when a task of it runs; is true when its interaction has ended."""
    done = []

    def until() -> bool:
        if not done and query("SELECT count(*) FROM constellations_attempt WHERE outcome = ''"):
            in_thread(lambda key: done.append(lifecycle.constellation_pause(key, by=BY)), query(FIRST))
        return bool(done) and query("SELECT count(*) FROM agents_inboxitem WHERE state = 'done'") == 1

    return until


# Restarts


def once(path) -> list[str]:
    return ["sh", "-c", f"test -e {path} || {{ touch {path}; exit 3; }}"]


def test_a_rule_begins_the_run_once_more(engine, device, state_dir):
    plan = {
        "tasks": [noop("a"), {"task_id": "b", "device": "laptop", "command": once(state_dir / "mark"), "after": ["a"]}],
        "replan": [rule("task_failed", "b", restart=True, reason="Try all of it again.")],
    }
    _, item = engine.submit(plan)
    engine.run()
    first, second = Constellation.objects.filter(interaction=item).order_by("id")
    assert (first.state, first.reason, second.state, second.replaces) == ("CANCELLED", "restarted", "COMPLETED", first)
    assert (first.fired, second.fired) == ({"r": 1}, {"r": 1})
    restarts = Transition.objects.filter(machine="constellation_agent", event="restart").values_list("reason", flat=True)
    assert list(restarts) == ["Try all of it again."]
    item.refresh_from_db()
    assert item.outcome == "completed"


def test_a_rule_restarts_its_times_over_all_beginnings(engine, device):
    plan = {"tasks": [command("a", "false")], "replan": [rule("task_failed", restart=True, times=2)]}
    _, item = engine.submit(plan)
    engine.run()
    made = Constellation.objects.filter(interaction=item).order_by("id").values_list("state", flat=True)
    assert list(made) == ["CANCELLED", "CANCELLED", "FAILED"]


def test_restarts_by_rules_are_bounded_and_the_limit_is_named(engine, device):
    plan = {"tasks": [command("a", "false")], "replan": [rule("task_failed", restart=True, times=100)]}
    _, item = engine.submit(plan)
    engine.run()
    item.refresh_from_db()
    assert Constellation.objects.filter(interaction=item).count() == limits.RESTARTS + 1
    assert (item.outcome, item.result["summary"]) == (
        "failed",
        "0 of 1 tasks completed, 1 failed, 0 cancelled or skipped; limit reached: 5 restarts",
    )


def test_a_run_that_has_reached_its_limit_of_restarts_has_failed_and_can_be_mended(engine, device):
    plan = {
        "tasks": [command("a", "false"), command("b", "sleep", "60"), noop("c", after=["b"])],
        "replan": [rule("task_failed", "a", restart=True, times=9)],
    }
    _, item = engine.submit(plan)
    engine.run()
    last = Constellation.objects.filter(interaction=item).latest("id")
    assert (last.state, last.reason, agent_state()) == ("FAILED", "limit reached: 5 restarts", "FAIL")
    assert states(last) == {"a": "FAILED", "b": "CANCELLED", "c": "CANCELLED"}
    assert last.tasks.get(task_id="b").reason == "cancelled: limit reached: 5 restarts"
    assert not Attempt.objects.filter(outcome="").exists()
    assert last.interaction.result["failed"] == 1
    mends = [{"update_task": {"task_id": name, "command": ["true"]}} for name in "ab"]
    lifecycle.constellation_retry(last.pk, ["a", "b"], by=BY, operations=mends)
    engine.run()
    last.refresh_from_db()
    assert (last.state, last.tasks.get(task_id="a").state) == ("COMPLETED", "COMPLETED")


def test_a_run_that_reaches_a_limit_while_it_is_paused_has_failed(engine, device, monkeypatch):
    monkeypatch.setattr("constellations.runs.run.RESTARTS", 0)
    plan = {"tasks": [command("a", "sh", "-c", "sleep 0.4; false"), noop("b", after=["a"])]}
    _, item = engine.submit({**plan, "replan": [rule("task_failed", restart=True)]})
    engine.run(paused_before_the_end())
    found = Constellation.objects.get(interaction=item)
    assert (found.state, found.reason) == ("FAILED", "limit reached: 0 restarts")


def test_what_was_reopened_is_not_restarted_and_says_so(engine, device):
    plan = {"tasks": [noop("a")], "replan": [rule("task_failed", restart=True)]}
    found = engine.carry_out(plan)
    lifecycle.constellation_reopen(found.pk, operations=[{"add_task": command("b", "false")}], by=BY)
    engine.run()
    assert states(found) == {"a": "COMPLETED", "b": "FAILED"}
    assert Event.objects.get(type="edit_refused").data["message"] == (
        "the constellation was reopened, so there is no request to plan anew"
    )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_restart_that_is_refused_leaves_the_other_rules_their_say(engine, device, order):
    when = {"event": "task_failed", "task": "b"}
    rules = [
        {"name": "r1", "when": when, "restart": True},
        {"name": "r2", "when": when, "edit": [{"add_task": noop("q")}]},
        {"name": "r3", "when": {"event": "task_completed", "task": "q"}, "fail": "q is there"},
    ]
    found = engine.carry_out({"tasks": [noop("a")], "absent": ["b"], "replan": [rules[each] for each in order]})
    lifecycle.constellation_reopen(found.pk, operations=[{"add_task": command("b", "false")}], by=BY)
    engine.run()
    found.refresh_from_db()
    assert states(found) == {"a": "COMPLETED", "b": "FAILED", "q": "COMPLETED"}
    assert [event.data["rule"] for event in Event.objects.filter(type="edit_refused")] == ["r1"]
    assert (found.state, found.reason) == ("FAILED", "q is there")


# Errors, copies, other devices


@pytest.mark.parametrize(
    ("task", "kind", "text"),
    [
        (command("a", "sh", "-c", "echo no >&2; exit 3"), "exit_code", "exit code 3: no"),
        (command("a", "nothing-of-that-name"), "missing", "command not found: nothing-of-that-name"),
        (command("a", "sleep", "60", timeout=0.2), "timeout", "stopped after 0.2 s"),
        ({"task_id": "a", "device": "laptop", "steps": [{"command": ["false"]}]}, "exit_code", ""),
    ],
)
def test_a_rule_reads_the_error_of_the_task_that_failed(engine, device, task, kind, text):
    condition = f"error.kind == '{kind}'" + (f" and error.text == '{text}'" if text else "")
    added = {"add_task": {"task_id": "seen", "tool": "noop", "device": "laptop"}}
    found = engine.carry_out({"tasks": [task], "replan": [rule("task_failed", "a", condition, edit=[added])]})
    assert states(found) == {"a": "FAILED", "seen": "COMPLETED"}, Task.objects.get(task_id="a").error


def test_a_failed_task_is_copied_to_any_device_but_the_one_it_failed_on(engine, device):
    device_create("other", by="system")
    again = {"task_id": "{task}_again", "copy": "{task}", "not_device": ["{device}"]}
    plan = {
        "tasks": [noop("first"), command("a", "sh", "-c", "test -e here", after=["first"], timeout=9)],
        "replan": [rule("task_failed", "a", "error.kind == 'exit_code'", edit=[{"add_task": again}])],
    }
    found = engine.carry_out(plan)
    copy = found.tasks.get(task_id="a_again")
    assert (copy.wanted_device, copy.not_device, copy.timeout) == ("", ["laptop"], 9)
    assert copy.upstream_dependencies.get().dependency_id == "first>a_again"
    tried = Attempt.objects.filter(task__task_id__startswith="a").order_by("id").values_list("task__task_id", "device__name")
    assert list(tried) == [("a", "laptop"), ("a_again", "other")]


def test_where_a_task_must_not_run_is_shown_edited_exported_and_taken_back(operator, device):
    device_create("other", by="system")
    found = plant(sessions.session_create(operator, by="system"), {"task_id": "a", "tool": "noop", "not_device": "laptop"})
    task = found.tasks.get()
    assert Rest(operator).get(f"/api/tasks/{task.pk}/").json()["not_device"] == ["laptop"]
    staff = Staff(operator)
    page = staff.page(task)
    assert 'value="laptop"' in page.content.decode()
    for dialect in ("orrery", "seed", "galaxy"):
        assert json.loads(export_document(found, dialect))
        assert 'not_device":["laptop"]' in export_document(found, dialect).replace(" ", "").replace("\n", "")
    edit_apply(found.pk, [{"update_task": {"task_id": "a", "not_device": ["other"]}}], author=BY, edit_id="e1")
    edit_undo(found.pk, "e1", BY)
    task.refresh_from_db()
    assert task.not_device == ["laptop"]


def test_an_edit_of_before_tasks_had_the_field_is_taken_back(operator, device):
    found = plant(sessions.session_create(operator, by="system"), noop("a"))
    edit_apply(found.pk, [{"add_task": noop("b")}], author=BY, edit_id="old")
    old = find_edit(found.pk, "old")
    assert old is not None
    after = {"tasks": {"b": {key: value for key, value in old.after["tasks"]["b"].items() if key != "not_device"}}}
    Edit.objects.filter(pk=old.pk).update(after={**old.after, **after})
    edit_undo(found.pk, "old", BY)
    Edit.objects.filter(pk=old.pk).update(after=old.after)
    assert states(found) == {"a": "PENDING"}


def test_a_rule_is_checked_when_the_plan_is_read_with_its_line():
    text = """tasks: [{task_id: a, tool: noop}]
replan:
  - when: {event: task_failed, task: a, condition: error.kind == 'exitcode'}
    fail: broken
  - when: {event: task_failed, task: a}
    edit:
      - add_task: {task_id: b, copy: c}
  - when: {event: task_failed, task: a}
    finish: true
    restart: true
"""
    with pytest.raises(PlanRejected) as refused:
        parse_plan(text)
    assert [(each["line"], each["key"], each["message"]) for each in refused.value.problems] == [
        (3, "replan[0].when.condition", "there is no kind of error 'exitcode'; did you mean exit_code?"),
        (7, "replan[1].edit[0].add_task.copy", "there is no task c; there are a, b"),
        (10, "replan[2].restart", "a rule does one thing, and here are finish and restart; make a rule of each"),
    ]
