"""Mend and retry in one step: tasks that have ended are changed by the edit that comes with their retry, or nothing is."""

from __future__ import annotations

import pytest

from agents.models import InboxItem, Session
from agents.streams.fold import stream_head
from constellations.models import Constellation, Edit
from constellations.services.lifecycle import constellation_retry
from tests.agents.conftest import Rest, make_token
from tests.constellations.admin.admin_client import Form, Staff, added, address, row_of
from tests.constellations.editor.test_replacing import still_open
from tests.constellations.mcp.test_tools import Program
from tests.constellations.runs.test_run import command, noop, query, states
from tests.constellations.services.test_lifecycle import once, told_while_it_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
MENDED = {"update_task": {"task_id": "train", "command": ["true"]}}
PLAN = {"name": "n", "tasks": [noop("fetch"), command("train", "false", after=["fetch"]), noop("report", after=["train"])]}


@pytest.fixture
def ended(engine, device) -> Constellation:
    """train FAILED, so report was skipped."""
    found = engine.carry_out(PLAN)
    assert (found.state, states(found)) == (
        "PARTIALLY_FAILED", {"fetch": "COMPLETED", "train": "FAILED", "report": "CANCELLED"},
    )  # fmt: skip
    return found


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


def ask(rest: Rest, found: Constellation, verb: str, **body):
    return rest.post(f"/api/constellations/{found.pk}/{verb}/", body)


def test_a_failed_task_is_mended_and_begins_again_by_reopening(engine, ended, rest, operator):
    answer = ask(rest, ended, "reopen", operations=[MENDED], retry=["train"], reason="false was wrong")
    assert answer.status_code == 202, answer.json()
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, ended.version, set(states(ended).values())) == ("COMPLETED", 2, {"COMPLETED"})
    edit = Edit.objects.get()
    assert (edit.author, edit.reason, edit.diff[0]["fields"]["arguments"]) == (
        f"user:{operator.pk}", "false was wrong", [{"argv": ["false"]}, {"argv": ["true"]}],
    )  # fmt: skip
    assert ended.tasks.get(task_id="train").attempts.count() == 2


def test_a_failed_task_is_mended_and_begins_again_in_a_fork(engine, ended, rest):
    answer = ask(rest, ended, "fork", operations=[MENDED], retry=["train"])
    assert answer.status_code == 201, answer.json()
    engine.run()
    fork = Constellation.objects.get(session=answer.json()["session"])
    assert (fork.state, set(states(fork).values())) == ("COMPLETED", {"COMPLETED"})
    assert states(ended)["train"] == "FAILED"


def test_a_retry_with_operations_reopens_what_has_ended(engine, ended, rest):
    task = ended.tasks.get(task_id="train")
    answer = rest.post(f"/api/tasks/{task.pk}/retry/", {"operations": [MENDED]})
    assert answer.status_code == 202, answer.json()
    assert InboxItem.objects.get(pk=answer.json()["interaction"]).payload["request"] == "Reopen n: retry train, 1 operation"
    engine.run()
    assert set(states(ended).values()) == {"COMPLETED"}


def test_a_failed_task_is_mended_and_begins_again_while_others_run(engine, device, operator):
    tasks = [*PLAN["tasks"], command("slow", "sleep", "0.4")]

    def when() -> bool:
        return query("SELECT id FROM constellations_task WHERE task_id = 'train' AND state = 'FAILED'") is not None

    def mend(made: int):
        return constellation_retry(made, ["train"], operations=[MENDED], by="user:1", reason="mended", client_id="m1")

    found, done = told_while_it_runs(engine, {**PLAN, "tasks": tasks}, mend, when)
    assert (found.state, set(states(found).values())) == ("COMPLETED", {"COMPLETED"})
    assert (done.tasks, done.interaction, done.edit.version) == (["train"], None, 2)
    again = constellation_retry(found.pk, ["train"], operations=[MENDED], by="user:1", reason="mended", client_id="m1")
    assert (again.changed, again.tasks, again.edit) == (False, ["train"], Edit.objects.get())


def test_new_work_is_put_before_and_behind_what_begins_again(engine, ended, rest):
    operations = [
        {"add_task": noop("clean")},
        {"add_dependency": {"from": "clean", "to": "train"}},
        MENDED,
        {"add_task": noop("notify", after=["train"])},
    ]
    assert ask(rest, ended, "reopen", operations=operations, retry=["train"]).status_code == 202
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, set(states(ended).values())) == ("COMPLETED", {"COMPLETED"})
    clean, train = (ended.tasks.get(task_id=name) for name in ("clean", "train"))
    assert clean.ended_at <= train.started_at
    assert ended.tasks.get(task_id="notify").state == "COMPLETED"


@pytest.mark.parametrize(
    ("verb", "retry"), [("reopen", "retry"), ("fork", "retry"), ("retry", "tasks")], ids=["reopen", "fork", "retry"]
)
@pytest.mark.parametrize(
    ("operations", "tasks", "code", "message"),
    [
        (
            [MENDED], ["fetch"], "not_retried",
            "fetch is COMPLETED; only what has FAILED or was cancelled begins again",
        ),
        (
            [MENDED, {"update_task": {"task_id": "fetch", "name": "F"}}], ["train"], "edit_refused",
            "operation 2 (update_task), task_id: fetch has ended (COMPLETED)",
        ),
        (
            [MENDED, {"update_task": {"task_id": "report", "timeout": -1}}], ["train"], "edit_refused",
            "operation 2 (update_task), timeout: is -1; it must be above 0 and at most 31,536,000",
        ),
    ],
    ids=["what is completed begins again", "what is completed is changed", "nonsense"],
)  # fmt: skip
def test_all_of_it_is_done_or_nothing(ended, rest, verb, retry, operations, tasks, code, message):
    seq, sessions = stream_head(ended.session_id), Session.objects.count()
    found = ask(rest, ended, verb, **{"operations": operations, retry: tasks})
    assert (found.json()["code"], found.json()["detail"]) == (code, message)
    assert (stream_head(ended.session_id), Session.objects.count()) == (seq, sessions)


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("reopen", "operation 1 (remove_task), task_id: train cannot go: it has been tried once, and that stays on record"),
        ("fork", "train is to begin again, and the operations remove it; do one of the two"),
    ],
)
def test_what_begins_again_does_not_go(ended, rest, verb, message):
    """In a fork nothing has been tried yet."""
    found = ask(rest, ended, verb, operations=[{"remove_task": {"task_id": "train"}}], retry=["train"])
    assert (found.status_code, found.json()["detail"]) == (409, message)


def test_a_change_of_what_does_not_begin_again_says_how_it_would(ended, rest):
    found = ask(rest, ended, "reopen", operations=[MENDED])
    assert found.status_code == 409
    assert found.json()["detail"] == (
        "operation 1 (update_task), task_id: train has ended (FAILED); "
        "retry it in the same request as these operations, or add a task that replaces it"
    )


def test_operations_without_anything_that_begins_again_are_no_retry(engine, device, rest):
    found = engine.carry_out({"name": "fine", "tasks": [noop("a")]})
    answer = ask(rest, found, "retry", operations=[{"add_task": noop("b")}])
    assert (answer.status_code, answer.json()["code"]) == (409, "not_retried")
    assert answer.json()["detail"].startswith("nothing has FAILED, so nothing begins again")


@pytest.mark.parametrize("verb", ["retry", "reopen", "fork"])
def test_to_mend_needs_the_scope_edit_as_every_edit_does(ended, operator, verb):
    rest = Rest(token=make_token(operator, "read", "operate")[1])
    found = ask(rest, ended, verb, operations=[MENDED], **{"tasks" if verb == "retry" else "retry": ["train"]})
    assert (found.status_code, found.json()["detail"]) == (403, "the token lacks the scope edit")
    task = ended.tasks.get(task_id="train")
    assert rest.post(f"/api/tasks/{task.pk}/retry/", {"operations": [MENDED]}).status_code == 403


# Versions


TRAIN_FAILED = "SELECT id FROM constellations_task WHERE task_id = 'report' AND state = 'CANCELLED'"
NAMED = {"update_task": {"task_id": "report", "name": "Report"}}


@pytest.fixture
def edited(engine, device, rest) -> Constellation:
    """An open constellation that somebody has seen as version 1, and somebody else has edited since."""
    found = still_open(engine, PLAN, TRAIN_FAILED)
    assert ask(rest, found, "edits", operations=[NAMED], edit_id="theirs").json()["version"] == 2
    return found


@pytest.mark.parametrize("by_header", [True, False])
@pytest.mark.parametrize("of_one_task", [True, False])
def test_a_mending_retry_says_what_its_author_has_not_seen(edited, rest, by_header, of_one_task):
    task = edited.tasks.get(task_id="train")
    where = f"/api/tasks/{task.pk}/retry/" if of_one_task else f"/api/constellations/{edited.pk}/retry/"
    body = {"operations": [MENDED], "client_id": "m1"} | ({} if of_one_task else {"tasks": ["train"]})
    seen = ({}, {"If-Match": '"v1"'}) if by_header else ({"based_on": 1}, {})
    for changed in (True, False):
        answer = rest.post(where, body | seen[0], **seen[1])
        found = answer.json()
        assert (answer.status_code, found["tasks"], found["changed"]) == (200, ["train"], changed)
        assert (found["version"], found["newest"], answer.headers["ETag"]) == (3, 3, '"v3"')
        assert [(each["version"], each["edit_id"]) for each in found["between"]] == [(2, "theirs")]
        assert found["between_total"] == 1
    assert Edit.objects.get(version=3).based_on == 1
    assert rest.post(where, body).json()["changed"] is False  # whatever it was made on, it is the same request


def test_a_mending_retry_does_not_overwrite_what_its_author_has_not_seen(edited, rest):
    operations = [MENDED, {"update_task": {"task_id": "report", "name": "Mine"}}]
    answer = ask(rest, edited, "retry", tasks=["train"], operations=operations, based_on=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "stale_edit")
    assert [each["edit_id"] for each in answer.json()["between"]] == ["theirs"]
    assert (edited.tasks.get(task_id="report").name, states(edited)["train"]) == ("Report", "FAILED")
    late = ask(rest, edited, "retry", tasks=["train"], operations=[MENDED], based_on=9)
    assert (late.status_code, late.json()["detail"]) == (
        400, "based_on: there is no version 9 yet; version 2 is the newest",
    )  # fmt: skip


def test_a_mending_retry_over_mcp_says_what_its_author_has_not_seen(edited, operator):
    program = Program(make_token(operator, "read", "operate", "edit", name="claude"))
    found = program("retry", constellation_id=edited.pk, tasks=["train"], operations=[MENDED], based_on=1)
    assert (found["version"], found["newest"], found["between_total"]) == (3, 3, 1)
    assert [each["edit_id"] for each in found["between"]] == ["theirs"]
    assert (found["edit"], found["truncated"]) == (Edit.objects.get(version=3).pk, False)


def test_a_mending_retry_that_reopens_is_rebased_too(engine, ended, rest):
    assert ask(rest, ended, "reopen", operations=[NAMED, {"add_task": noop("more")}]).status_code == 202
    engine.run()
    clashing = [MENDED, {"update_task": {"task_id": "report", "name": "Mine"}}]
    refused = ask(rest, ended, "retry", tasks=["train"], operations=clashing, based_on=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_edit")
    answer = ask(rest, ended, "retry", tasks=["train"], operations=[MENDED], based_on=1)
    assert (answer.status_code, answer.json()["version"], answer.json()["newest"]) == (202, 1, 2)
    assert (answer.headers["ETag"], answer.json()["between_total"]) == ('"v1"', 1)
    engine.run()
    assert set(states(ended).values()) == {"COMPLETED"}
    assert Edit.objects.get(version=3).based_on == 1


# What goes along with a retry


def test_what_a_person_cancelled_stays_so_when_something_before_it_is_retried(engine, device, rest):
    plan = {
        "name": "n", "tasks": [command("a", "false"), noop("hold", confirm=True), noop("b")],
        "dependencies": [{"from": up, "to": "b", "type": "COMPLETION_ONLY"} for up in ("a", "hold")],
    }  # fmt: skip
    session, _ = engine.submit(plan)
    engine.run(lambda: query("SELECT id FROM agents_approval WHERE state = 'waiting'") is not None)
    found = Constellation.objects.get(session=session)
    for task_id in ("b", "hold"):
        task = found.tasks.get(task_id=task_id)
        rest.post(f"/api/tasks/{task.pk}/cancel/", {"reason": "dangerous, never run it"})
    engine.run()
    answer = ask(rest, found, "retry")
    assert (answer.status_code, answer.json()["tasks"]) == (202, ["a"])
    engine.run()
    assert states(found) == {"a": "FAILED", "b": "CANCELLED", "hold": "CANCELLED"}
    assert attempts_of(found)["b"] == 0
    named = ask(rest, found, "retry", tasks=["a", "b"])
    assert named.json()["tasks"] == ["a", "b"]
    engine.run()
    assert states(found) == {"a": "FAILED", "b": "COMPLETED", "hold": "CANCELLED"}


def test_what_was_cancelled_because_the_run_ended_goes_along_and_the_answer_names_it(engine, device, rest, tmp_path):
    """Nobody wanted b to end: a rule ended all of the run."""
    waits = f"test -e {tmp_path}/again || sleep 60"
    plan = {
        "name": "n", "tasks": [command("a", *once(tmp_path / "a")), command("b", "sh", "-c", waits), noop("c", after=["b"])],
        "dependencies": [{"from": "a", "to": "b", "type": "COMPLETION_ONLY"}],
        "replan": [{"when": {"event": "task_failed", "task": "a"}, "fail": "a is needed"}],
    }  # fmt: skip
    found = engine.carry_out(plan)
    assert states(found) == {"a": "FAILED", "b": "CANCELLED", "c": "CANCELLED"}
    (tmp_path / "again").touch()
    first, again = (ask(rest, found, "retry", client_id="r1") for _ in range(2))
    assert (first.status_code, first.json()["tasks"]) == (202, ["a", "b", "c"])
    assert (again.status_code, again.json()["tasks"]) == (200, ["a", "b", "c"])
    engine.run()
    assert set(states(found).values()) == {"COMPLETED"}
    late = ask(rest, found, "retry", client_id="r1")
    assert (late.status_code, late.json()["tasks"]) == (200, ["a", "b", "c"])


# What the operations replace


def in_place_of(old: str) -> dict:
    return {"add_task": noop(f"{old}2", after=["a"], replaces=old)}


def attempts_of(found: Constellation) -> dict[str, int]:
    return {task.task_id: task.attempts.count() for task in found.tasks.all()}


CHAIN = {
    "name": "n", "tasks": [command("a", "false"), command("b", "false"), noop("c", after=["b"])],
    "dependencies": [{"from": "a", "to": "b", "type": "COMPLETION_ONLY"}],
}  # fmt: skip


def test_what_the_operations_of_a_retry_replace_does_not_begin_again(engine, device, rest):
    found = engine.carry_out(CHAIN)
    operations = [{"update_task": {"task_id": "a", "command": ["true"]}}, in_place_of("b")]
    answer = ask(rest, found, "retry", tasks=["a"], operations=operations)
    assert answer.status_code == 202, answer.json()
    engine.run()
    assert states(found) == {"a": "COMPLETED", "b": "FAILED", "c": "COMPLETED", "b2": "COMPLETED"}
    assert attempts_of(found) == {"a": 2, "b": 1, "c": 1, "b2": 1}


def test_what_the_operations_of_a_reopening_replace_with_a_copy_does_not_begin_again(engine, device, operator):
    found = engine.carry_out(CHAIN)
    program = Program(make_token(operator, "read", "operate", "edit", name="claude"))
    copied = {"add_task": {"task_id": "b2", "copy": "b", "command": ["true"], "replaces": "b"}}
    mended = {"update_task": {"task_id": "a", "command": ["true"]}}
    program("reopen", constellation_id=found.pk, retry=["a"], operations=[mended, copied])
    engine.run()
    assert attempts_of(found) == {"a": 2, "b": 1, "c": 1, "b2": 1}
    assert found.tasks.get(task_id="c").state == "COMPLETED"


def test_what_was_cancelled_and_replaced_does_not_begin_again_in_a_fork(engine, device, rest):
    plan = {"name": "n", "tasks": [command("a", "false"), noop("b", confirm=True), noop("c", after=["b"])]}
    session, _ = engine.submit(plan)
    engine.run(lambda: query("SELECT id FROM agents_approval WHERE state = 'waiting'") is not None)
    found = Constellation.objects.get(session=session)
    rest.post(f"/api/tasks/{found.tasks.get(task_id='b').pk}/cancel/", {"reason": "no"})
    engine.run()
    reopened = ask(rest, found, "reopen", operations=[{"add_task": noop("b2", replaces="b")}])
    assert reopened.status_code == 202, reopened.json()
    engine.run()
    answer = ask(rest, found, "fork", retry=["a"])
    assert answer.status_code == 201, answer.json()
    engine.run()
    fork = Constellation.objects.get(session=answer.json()["session"])
    assert attempts_of(fork) == {"a": 1, "b": 0, "c": 0, "b2": 0}
    assert (states(fork), fork.state) == (states(found), "PARTIALLY_FAILED")


# The admin


def mended(values: dict, **more) -> dict:
    """What is sent where the command of `train` is another one."""
    return {**values, f"{row_of(values, 'train')}-command": "true", **more}


def test_what_failed_is_mended_on_the_page_that_reopens(engine, ended, operator):
    staff = Staff(operator)
    values = Form(staff.client.get(address(ended, "reopen")).content.decode(), "reopen_form").values
    staff.told(staff.client.post(address(ended, "reopen"), mended(values)))
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, set(states(ended).values())) == ("COMPLETED", {"COMPLETED"})


def test_what_failed_is_mended_in_the_admin_while_a_person_is_waited_for(engine, device, operator):
    found = still_open(engine, PLAN, "SELECT id FROM constellations_task WHERE task_id = 'report' AND state = 'CANCELLED'")
    staff = Staff(operator)
    assert f'href="{address(found, "mend")}"' in staff.page(found).content.decode()
    values = Form(staff.client.get(address(found, "mend")).content.decode(), "mend_form").values
    assert values["retry"] == "train"
    wrong = staff.client.post(address(found, "mend"), mended(values, retry="fetch"))
    assert "fetch is COMPLETED; only what has FAILED or was cancelled begins again" in wrong.content.decode()
    told = staff.told(staff.client.post(address(found, "mend"), mended(values)))
    assert told == ["n is mended."]
    assert (states(found)["train"], states(found)["report"]) == ("PENDING", "WAITING_DEPENDENCY")
    assert found.tasks.get(task_id="train").arguments == {"argv": ["true"]}
    assert f'href="{address(found, "mend")}"' not in staff.page(found).content.decode()


def test_a_task_that_replaces_another_is_added_on_the_page_of_the_constellation(engine, device, operator):
    found = still_open(engine, PLAN, "SELECT id FROM constellations_task WHERE task_id = 'report' AND state = 'CANCELLED'")
    staff = Staff(operator)
    values = added(staff.form(found), "tasks", task_id="train2", tool="noop", replaces="train")
    (told,) = staff.told(staff.save(found, values))
    assert told.startswith("Saved as version 2: added task train2 in the place of train")
    assert states(found)["report"] == "WAITING_DEPENDENCY"
