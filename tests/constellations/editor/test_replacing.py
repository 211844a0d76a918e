"""A task in the place of one that failed takes over what waited for that one, and a run that it makes good is a success."""

from __future__ import annotations

import json

import pytest

from constellations import conditions
from constellations.editor import replacing
from constellations.errors import EditRefused, NotRetried, StaleEdit
from constellations.models import Constellation, Edit
from constellations.plan import dialects
from constellations.plan import plan as plans
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import constellation_reopen, constellation_retry
from constellations.services.preview import edit_preview
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest, make_token
from tests.constellations.mcp.test_tools import Program
from tests.constellations.runs.test_run import command, noop, query, states
from tests.constellations.services.test_lifecycle import told_while_it_runs

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"
REPLACED = {"add_task": noop("train2", {"accuracy": 0.97}, after=["fetch"], replaces="train")}
PLAN = {
    "name": "n",
    "tasks": [
        noop("fetch"), command("train", "false", after=["fetch"]), noop("report", after=["train"]),
        noop("mail", after=["report"]), noop("deploy"), noop("late", after=["fetch"]),
    ],
    "dependencies": [
        {"from": "train", "to": "deploy", "condition": "accuracy > 0.95"},
        {"from": "fetch", "to": "late2", "condition": "True or results['train']['accuracy'] > 0"},
    ],
}  # fmt: skip
PLAN["tasks"].append(noop("late2"))


@pytest.fixture
def ended(engine, device) -> Constellation:
    """train FAILED, so report and deploy were skipped, and mail because of report."""
    found = engine.carry_out(PLAN)
    assert found.state == "PARTIALLY_FAILED"
    assert {key for key, state in states(found).items() if state == "CANCELLED"} == {"report", "mail", "deploy"}
    return found


def edges(found: Constellation) -> dict[str, str]:
    return dict(found.dependencies.values_list("dependency_id", "condition"))


def reopen(engine, found: Constellation, *operations: dict) -> None:
    constellation_reopen(found.pk, operations=list(operations), by=BY, reason="made good")
    engine.run()
    found.refresh_from_db()


# What a replacement takes over


def test_what_waited_for_the_failed_task_waits_for_its_replacement_and_the_run_is_a_success(engine, ended):
    reopen(engine, ended, REPLACED)
    assert (ended.state, ended.interaction.outcome) == ("COMPLETED", "completed")
    assert states(ended) == {key: "FAILED" if key == "train" else "COMPLETED" for key in states(ended)}
    assert edges(ended).keys() >= {"fetch>train", "fetch>train2", "train2>report", "train2>deploy"}
    assert not edges(ended).keys() & {"train>report", "train>deploy"}
    assert edges(ended)["train2>deploy"] == "accuracy > 0.95"
    assert ended.result["summary"] == "7 of 8 tasks completed, 0 failed, 0 cancelled or skipped, 1 replaced"
    assert ended.tasks.get(task_id="train2").replaces == "train"


def test_conditions_over_the_results_of_the_replaced_task_go_along(engine, ended):
    operations = [{"add_task": noop("audit")}, {"add_dependency": {
        "from": "fetch", "to": "audit", "condition": "results['train']['accuracy'] > 0.9 and results.train.accuracy < 1"
    }}]  # fmt: skip
    reopen(engine, ended, *operations, REPLACED)
    assert edges(ended)["fetch>audit"] == "results['train2']['accuracy'] > 0.9 and results['train2'].accuracy < 1"
    assert edges(ended)["fetch>late2"] == "True or results['train']['accuracy'] > 0"  # late2 had run


def test_a_replacement_is_added_by_somebody_else_while_the_rest_runs(engine, device):
    plan = {**PLAN, "tasks": [*PLAN["tasks"], command("slow", "sleep", "0.4")]}

    def skipped() -> bool:
        return query("SELECT id FROM constellations_task WHERE task_id = 'report' AND state = 'CANCELLED'") is not None

    found, _ = told_while_it_runs(engine, plan, lambda made: edit_apply(made, [REPLACED], author=BY), skipped)
    assert (found.state, found.result["replaced"]) == ("COMPLETED", 1)
    assert states(found) == {key: "FAILED" if key == "train" else "COMPLETED" for key in states(found)}


def test_a_replacement_that_fails_is_replaced_in_its_turn(engine, ended):
    reopen(engine, ended, {"add_task": command("again", "false", replaces="train")})
    assert (ended.state, states(ended)["report"]) == ("PARTIALLY_FAILED", "CANCELLED")
    with pytest.raises(EditRefused, match="train was replaced by again already; replace that one, when it has failed"):
        constellation_reopen(ended.pk, operations=[REPLACED], by=BY)
    reopen(engine, ended, {"add_task": noop("third", {"accuracy": 1}, replaces="again")})
    assert (ended.state, states(ended)["deploy"]) == ("COMPLETED", "COMPLETED")
    assert ended.result["replaced"] == 2


def test_a_retry_of_all_that_failed_leaves_out_what_was_replaced(engine, ended):
    reopen(engine, ended, {"add_task": command("again", "false", replaces="train")})
    assert constellation_retry(ended.pk, None, by=BY).tasks == ["again"]
    engine.run()
    with pytest.raises(NotRetried, match="train was replaced by again; retry that one, or undo the edit that added it"):
        constellation_retry(ended.pk, ["train"], by=BY)


def test_a_planner_rule_replaces_a_task_that_failed(engine, device):
    again = {"task_id": "{task}-again", "tool": "noop", "after": ["fetch"], "replaces": "{task}"}
    rule = {"when": {"event": "task_failed", "task": "train"}, "edit": [{"add_task": again}]}
    found = engine.carry_out({"tasks": PLAN["tasks"][:4], "replan": [rule]})
    assert (found.state, states(found)["mail"], states(found)["train"]) == ("COMPLETED", "COMPLETED", "FAILED")
    assert found.tasks.get(task_id="train-again").replaces == "train"


@pytest.mark.parametrize("named", ["a", ["a"], ["b", "a"]])
def test_a_rule_about_a_task_answers_to_its_replacement(engine, device, named):
    when = {"event": "task_completed", "task": named, "condition": "n > 1"}
    plan = {
        "tasks": [command("a", "false"), noop("b")], "replan": [{"when": when, "edit": [{"add_task": noop("of_{task}")}]}],
    }  # fmt: skip
    found = engine.carry_out(plan)
    reopen(engine, found, {"add_task": command("a2", "false", replaces="a")})
    assert "of_a2" not in states(found)
    reopen(engine, found, {"add_task": noop("a3", {"n": 2}, replaces="a2")})
    assert states(found) == {"a": "FAILED", "a2": "FAILED", "a3": "COMPLETED", "b": "COMPLETED", "of_a3": "COMPLETED"}


def still_open(engine, plan: dict, until: str) -> Constellation:
    """A constellation of which one task waits for a person, as soon as a statement finds something."""
    session, _ = engine.submit({**plan, "tasks": [*plan["tasks"], noop("gate", confirm=True)]})
    engine.run(lambda: query(until) is not None)
    return Constellation.objects.get(session=session)


def test_what_cannot_be_taken_over_is_said(engine, device, operator):
    """always started when train had ended, however it ended."""
    tasks = [command("train", "false"), noop("always"), noop("report", after=["train"])]
    plan = {"tasks": tasks, "dependencies": [{"from": "train", "to": "always", "type": "COMPLETION_ONLY"}]}
    done = "SELECT id FROM constellations_task WHERE task_id = 'always' AND state = 'COMPLETED'"
    found = still_open(engine, plan, done)
    preview = edit_preview(found.pk, [{"add_task": noop("train2", replaces="train")}])
    assert preview["diff"][0] == {
        "change": "added", "task": "train2", "replaces": "train", "stays": {"train>always": "always has ended (COMPLETED)"},
    }  # fmt: skip
    assert preview["consequences"]["revived"] == ["report"]
    program = Program(make_token(operator, "read", "edit", name="claude"))
    said = program("add_task", constellation_id=found.pk, task_id="train2", tool="noop", replaces="train", edit_id="e1")
    assert said["message"] == "edit e1 was made: version 2. train>always stays as it is: always has ended (COMPLETED)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"replaces": "trian"}, "there is no task trian; did you mean train?"),
        ({"replaces": "fetch"}, "fetch is COMPLETED; only what has FAILED or was cancelled is replaced"),
        ({"replaces": "report"}, "report was skipped and may still change; update it, or what decided that it was skipped"),
        ({"replaces": "train2"}, "train2 cannot replace itself"),
        ({"replaces": "train", "after": ["mail"]}, "the tasks would wait for each other: mail > train2 > report > mail"),
        ({"replaces": 7}, "must be text, not the number 7; put it in quotes"),
    ],
)
def test_what_cannot_be_replaced_says_why(ended, fields, message):
    with pytest.raises(EditRefused) as refused:
        constellation_reopen(ended.pk, operations=[{"add_task": noop("train2", **fields)}], by=BY)
    assert message in refused.value.problems[0]["message"]


def test_only_a_new_task_replaces_another(ended):
    operations = [{"update_task": {"task_id": "report", "replaces": "train"}}]
    with pytest.raises(EditRefused, match=r"replaces is for new tasks, .* report is there already"):
        constellation_reopen(ended.pk, operations=operations, by=BY)


# Undo, versions, plans


@pytest.fixture
def open_again(engine, device) -> Constellation:
    """train FAILED, report was skipped, and a person is waited for."""
    return still_open(engine, PLAN, "SELECT id FROM constellations_task WHERE task_id = 'report' AND state = 'CANCELLED'")


def test_a_replacement_is_taken_back_and_made_again(open_again):
    before = edges(open_again)
    edit_apply(open_again.pk, [REPLACED], author=BY, edit_id="e1")
    after = edges(open_again)
    assert states(open_again)["report"] == "WAITING_DEPENDENCY"
    edit_undo(open_again.pk, "e1", BY, undo_id="u1")
    assert (edges(open_again), states(open_again)["report"]) == (before, "CANCELLED")
    edit_undo(open_again.pk, "u1", BY)
    assert (edges(open_again), open_again.tasks.get(task_id="train2").replaces) == (after, "train")


def test_an_edit_from_before_there_were_replacements_is_taken_back(open_again):
    edit_apply(open_again.pk, [{"add_task": noop("extra")}], author=BY, edit_id="e1")
    row = Edit.objects.get()
    del row.after["tasks"]["extra"]["replaces"]
    Edit.objects.filter(pk=row.pk).update(after=row.after)
    edit_undo(open_again.pk, "e1", BY)
    assert "extra" not in states(open_again)
    Edit.objects.filter(pk=row.pk).update(
        after={**row.after, "tasks": {"extra": {**row.after["tasks"]["extra"], "replaces": ""}}}
    )


def test_a_replacement_is_stale_where_somebody_tied_something_to_the_old_task(open_again):
    operations = [{"add_task": noop("x")}, {"add_dependency": {"from": "train", "to": "x", "type": "UNCONDITIONAL"}}]
    edit_apply(open_again.pk, operations, author="user:2")
    with pytest.raises(StaleEdit, match="user:2 changed train"):
        edit_apply(open_again.pk, [REPLACED], author=BY, based_on=1)


def test_what_was_replaced_is_read(engine, ended, operator):
    reopen(engine, ended, REPLACED)
    task = ended.tasks.get(task_id="train2")
    assert Rest(operator).get(f"/api/tasks/{task.pk}/").json()["replaces"] == "train"
    program = Program(make_token(operator, "read", name="claude"))
    shown = {each["task_id"]: each["replaces"] for each in program("get_constellation", constellation_id=ended.pk)["tasks"]}
    assert (shown["train2"], shown["train"]) == ("train", "")


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_an_export_begins_anew_so_that_a_replacement_in_it_hides_no_failure(engine, ended, operator, dialect):
    """What had failed runs again in the import, and fails again; nothing has been replaced there."""
    reopen(engine, ended, REPLACED)
    rest = Rest(operator)
    exported = rest.get(f"/api/constellations/{ended.pk}/export/?dialect={dialect}").content.decode()
    assert "replaces" not in exported
    session = rest.post("/api/sessions/", {}).json()["id"]
    answer = rest.post(f"/api/sessions/{session}/import/", {"document": exported})
    assert answer.status_code == 202, answer.json()
    engine.run()
    again = Constellation.objects.get(session=session)
    assert (again.state, "replaced" in again.result) == ("PARTIALLY_FAILED", False)
    assert (states(again)["train"], states(again)["train2"]) == ("FAILED", "COMPLETED")


@pytest.mark.parametrize("old", ["a", "b", "c"], ids=["a task of the plan", "itself", "no task"])
def test_a_plan_replaces_nothing(device, operator, old):
    """It would hide a failure: nothing has failed when it begins."""
    rest = Rest(operator)
    session = rest.post("/api/sessions/", {}).json()["id"]
    plan = {"tasks": [command("a", "false"), noop("b", replaces=old)]}
    sent = rest.post(f"/api/sessions/{session}/interactions/", {"plan": json.dumps(plan)})
    assert sent.status_code == 400
    told = [(each["key"], each["message"]) for each in sent.json()["problems"]]
    assert told == [("tasks[1].replaces", plans.NOTHING_TO_REPLACE)]
    carried = {"tasks": {"a": {"task_data": {"actions": [{"function": "noop"}], "orrery": {"replaces": old}}}}}
    imported = rest.post("/api/import/check", {"document": carried, "dialect": "galaxy"})
    assert [each["message"] for each in imported.json()["problems"]] == [plans.NOTHING_TO_REPLACE]


# Pure


def test_a_condition_reads_the_replacement_wherever_it_read_the_old_task():
    written = "results['a']['n'] > 1 and (results.a.n < \n 2 or results['b'] == 'a')"
    renamed = conditions.rename_read_tasks(written, {"a": "it's", "c": "d"})
    assert renamed == "results[\"it's\"]['n'] > 1 and (results[\"it's\"].n < \n 2 or results['b'] == 'a')"
    assert conditions.rename_read_tasks("results['ä']", {"ä": "ö"}) == "results['ö']"
    assert conditions.rename_read_tasks("a > 1", {"a": "b"}) == "a > 1"


@pytest.mark.parametrize(
    ("rows", "counted"),
    [
        ({"a": ("FAILED", ""), "b": ("COMPLETED", "a")}, ["b"]),
        ({"a": ("CANCELLED", ""), "b": ("COMPLETED", "a")}, ["b"]),
        ({"a": ("FAILED", ""), "b": ("FAILED", "a")}, ["a", "b"]),
        ({"a": ("FAILED", ""), "b": ("FAILED", "a"), "c": ("COMPLETED", "b")}, ["c"]),
        ({"a": ("FAILED", ""), "b": ("CANCELLED", "a")}, ["a", "b"]),
        ({"a": ("COMPLETED", ""), "b": ("COMPLETED", "a")}, ["a", "b"]),
        ({"a": ("FAILED", "b"), "b": ("FAILED", "a")}, ["a", "b"]),
        ({"a": ("FAILED", "gone")}, ["a"]),
    ],
)
def test_a_failure_that_a_completed_replacement_makes_good_does_not_count(rows, counted):
    given = {key: {"task_id": key, "state": state, "replaces": old} for key, (state, old) in rows.items()}
    assert [row["task_id"] for row in replacing.tasks_that_count(given)] == counted
