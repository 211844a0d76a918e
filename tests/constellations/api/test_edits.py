"""REST of edits, of a constellation's statistics, and of why a task does not run."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Actor, Device, Runner
from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Attempt, Constellation, Edit, Task
from tests.agents.conftest import Rest, add_actor, add_approvals, make_token, record
from tests.conftest import connected
from tests.constellations.api.test_api import add_attempts
from tests.constellations.planting import advance, noop, plant, states

pytestmark = pytest.mark.django_db
EXTRA = {"op": "add_task", "parameters": noop("extra")}


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def laptop():
    return connected(device_create("laptop", by="system"))


@pytest.fixture
def digits(session, laptop) -> Constellation:
    """fetch > train > evaluate > deploy, of which nothing has started."""
    names = ["fetch", "train", "evaluate", "deploy"]
    return plant(session, *(noop(name, after=names[max(number - 1, 0) : number]) for number, name in enumerate(names)))


def path(constellation, end="edits"):
    return f"/api/constellations/{constellation.pk}/{end}/"


def post(rest, constellation, *operations, status=201, headers=None, **body):
    found = rest.post(path(constellation), {"operations": list(operations), **body}, **(headers or {}))
    assert found.status_code == status, found.content
    return found


# Edits


def test_an_edit_is_made_by_whoever_asks_for_it(rest, digits, operator):
    found = post(rest, digits, EXTRA, reason="more", edit_id="e1")
    row = found.json()["edit"]
    assert (found.headers["ETag"], found.json()["version"], found.json()["changed"]) == ('"v2"', 2, True)
    assert (row["author"], row["reason"], row["edit_id"], row["undoes"]) == (f"user:{operator.pk}", "more", "e1", None)
    assert row["diff"] == [{"change": "added", "task": "extra"}]
    again = post(rest, digits, EXTRA, edit_id="e1", status=200).json()
    assert (again["changed"], again["edit"]["id"]) == (False, row["id"])


def test_an_edit_that_changes_nothing_has_no_row(rest, digits):
    post(rest, digits, EXTRA)
    post(rest, digits, {"remove_task": {"task_id": "extra"}})
    found = post(rest, digits, {"remove_task": {"task_id": "extra"}}, status=200)
    nothing = {"edit": None, "changed": False, "proposal": None, "version": 3, "newest": 3, "between": [], "between_total": 0}
    assert found.json() == nothing


def test_the_version_is_the_etag(rest, digits):
    assert rest.get(f"/api/constellations/{digits.pk}/").headers["ETag"] == '"v1"'
    assert rest.get(path(digits)).headers["ETag"] == '"v1"'
    post(rest, digits, EXTRA)
    assert rest.get(path(digits)).headers["ETag"] == '"v2"'


def test_if_match_is_what_the_edit_was_made_on(rest, digits):
    post(rest, digits, EXTRA)
    change = {"update_task": {"task_id": "train", "timeout": 4}}
    row = post(rest, digits, change, headers={"If-Match": '"v1"'}).json()["edit"]
    assert (row["based_on"], row["rebased_from"], row["version"]) == (1, 1, 3)
    stale = post(rest, digits, {"update_task": {"task_id": "train", "timeout": 5}}, headers={"If-Match": '"v2"'}, status=409)
    found = stale.json()
    assert (found["code"], found["version"]) == ("stale_edit", 3)
    by = row["author"]
    assert found["detail"] == (f"the edit was made on version 2, and version 3 is the newest: {by} changed train (version 3)")
    assert (found["problems"][0]["key"], found["problems"][0]["names"]) == ("version 3", ["train"])


@pytest.mark.parametrize(
    ("headers", "body", "detail"),
    [
        ({"If-Match": "12"}, {}, 'If-Match: must be the ETag of a constellation, such as "v12"'),
        ({"If-Match": '"v2"'}, {"based_on": 1}, "based_on: is 1, and If-Match says 2"),
        ({}, {"based_on": 9}, "based_on: there is no version 9 yet; version 1 is the newest"),
        ({}, {"edit_id": "rule:x"}, "edit_id: those that begin with rule: are made by replan rules; choose another"),
        ({}, {"colour": "red"}, "colour: unknown key; known are operations, reason, edit_id, based_on"),
        ({}, {"operations": []}, "an edit needs at least one operation"),
        ({}, {"operations": ["x"]}, "operation 1: an operation is an object (name: parameters), not the text 'x'"),
        ({}, {"operations": None}, "operations: This field may not be null."),
        ({}, {"operations": [None]}, "operations[0]: This field may not be null."),
        ({}, {"edit_id": "a b"}, "edit_id: up to 64 letters, digits and . _ : - make one"),
        ({}, {"edit_id": "\u00e9"}, "edit_id: up to 64 letters, digits and . _ : - make one"),
    ],
)
def test_a_request_that_makes_no_sense_says_why(rest, digits, headers, body, detail):
    found = post(rest, digits, EXTRA, headers=headers, status=400, **body) if "operations" not in body else None
    found = found or rest.post(path(digits), body)
    assert (found.status_code, found.json()["detail"]) == (400, detail)


def test_a_refusal_names_operation_field_and_reason(rest, digits):
    found = post(rest, digits, EXTRA, {"update_task": {"task_id": "train", "timeout": -1}}, status=400).json()
    assert found["code"] == "edit_refused"
    (problem,) = found["problems"]
    assert (problem["operation"], problem["op"], problem["field"]) == (2, "update_task", "timeout")
    assert found["detail"] == f"operation 2 (update_task), timeout: {problem['message']}"


def test_what_runs_is_a_conflict(rest, digits):
    advance(digits, fetch="RUNNING")
    found = post(rest, digits, {"remove_task": {"task_id": "fetch"}}, status=409).json()
    assert found["detail"] == "operation 1 (remove_task), task_id: fetch already runs"


def test_a_constellation_that_has_ended_is_a_conflict(rest, digits):
    Constellation.objects.update(state="COMPLETED")
    found = post(rest, digits, EXTRA, status=409).json()
    assert found["detail"] == "digits has ended (COMPLETED); work is added to it by reopening it"


def test_a_preview_writes_nothing(rest, digits):
    found = rest.post(path(digits, "preview"), {"operations": [EXTRA]})
    assert (found.status_code, found.headers["ETag"]) == (200, '"v1"')
    assert found.json()["consequences"]["ready"] == ["extra"]
    assert (Edit.objects.count(), "extra" in states(digits)) == (0, False)
    refused = rest.post(path(digits, "preview"), {"operations": [{"remove": {}}]})
    assert (refused.status_code, refused.json()["problems"][0]["operation"]) == (400, 1)


def test_an_edit_is_taken_back_and_made_again(rest, digits):
    first = post(rest, digits, EXTRA, edit_id="e1").json()["edit"]
    undone = rest.post(path(digits, "edits/e1/undo"), {"edit_id": "u1", "reason": "no"})
    assert (undone.status_code, undone.json()["edit"]["undoes"], "extra" in states(digits)) == (201, first["id"], False)
    assert rest.post(path(digits, "edits/e1/undo"), {}).status_code == 200
    assert rest.post(path(digits, "edits/u1/undo"), {}).status_code == 201
    assert "extra" in states(digits)


@pytest.mark.parametrize("end", ["preview", "edits/e1/undo"])
def test_previews_and_undos_are_made_on_a_version_too(rest, digits, end):
    post(rest, digits, {"update_task": {"task_id": "train", "timeout": 4}}, edit_id="e1")
    post(rest, digits, {"update_task": {"task_id": "train", "name": "Training"}})
    body = {"operations": [{"update_task": {"task_id": "train", "timeout": 5}}]} if end == "preview" else {}

    def answer(if_match=None, **more):
        found = rest.post(path(digits, end), body | more, **({"If-Match": if_match} if if_match else {}))
        return found.status_code, found.json().get("code", ""), found.json().get("version"), found.json().get("detail", "")

    stale = "the edit was made on version 2, and version 3 is the newest: "
    for status, code, version, detail in (answer('"v2"'), answer(based_on=2)):
        assert (status, code, version) == (409, "stale_edit", 3)
        assert detail.startswith(stale)
    assert answer("junk")[::3] == (400, 'If-Match: must be the ETag of a constellation, such as "v12"')
    assert answer('"v2"', based_on=3)[::3] == (400, "based_on: is 3, and If-Match says 2")
    assert answer(based_on=0)[0] == 400
    assert answer('"v9"')[::3] == (400, "based_on: there is no version 9 yet; version 3 is the newest")
    assert answer('"v3"')[0] in (200, 201)


def test_what_does_not_ask_for_a_version_refuses_to_be_given_one(rest, digits):
    task = Task.objects.get(task_id="fetch")
    for end in (path(digits, verb) for verb in ("commands", "reopen", "fork")):
        found = rest.post(end, {"kind": "pause"} if "commands" in end else {}, **{"If-Match": '"v1"'})
        detail = "If-Match: is for edits, previews, undos and retries with operations; this does not ask for a version"
        assert (found.status_code, found.json()["detail"]) == (400, detail)
    for end in (path(digits, "retry"), f"/api/tasks/{task.pk}/retry/"):
        found = rest.post(end, {}, **{"If-Match": '"v1"'})
        detail = "based_on: is for operations, and this retry has none; what begins again is what is there"
        assert (found.status_code, found.json()["detail"]) == (400, detail)
    assert Constellation.objects.get().state == "EXECUTING"
    assert rest.post(path(digits, "commands"), {"kind": "pause"}, **{"If-Match": "*"}).status_code == 200


def test_what_is_read_of_a_version_has_its_etag(rest, digits):
    post(rest, digits, EXTRA, edit_id="e1")
    for end in ("edits", "edits/e1", "statistics", "export"):
        assert rest.get(path(digits, end)).headers["ETag"] == '"v2"'
    again = rest.client.get(f"/api/constellations/{digits.pk}/", headers={"If-None-Match": '"v2"'})
    assert (again.status_code, again.headers["ETag"]) == (200, '"v2"')  # states change without a version


def test_an_undo_that_cannot_be_says_why(rest, digits):
    post(rest, digits, {"add_task": noop("task_005")}, edit_id="e1")
    advance(digits, task_005="RUNNING")
    found = rest.post(path(digits, "edits/e1/undo"), {})
    assert (found.status_code, found.json()["code"]) == (409, "undo_refused")
    assert found.json()["detail"] == "cannot undo: task_005 already runs"
    missing = rest.post(path(digits, "edits/none/undo"), {})
    assert (missing.status_code, missing.json()["detail"]) == (404, f"constellation {digits.pk} has no edit none")


def test_edits_are_found_by_author_version_and_task(rest, digits, admin_user, operator):
    post(rest, digits, EXTRA)
    post(Rest(admin_user), digits, {"update_task": {"task_id": "train", "timeout": 4}})
    post(rest, digits, {"update_task": {"task_id": "extra", "timeout": 4}})

    def versions(**query):
        return [row["version"] for row in rest.get(path(digits), **query).json()["results"]]

    assert versions() == [4, 3, 2]
    assert versions(author=f"user:{operator.pk}") == [4, 2]
    assert versions(since=2) == [4, 3]
    assert versions(task_id="extra") == [4, 2]
    assert versions(task_id="0") == []
    assert rest.get(path(digits), task_id="x" * 200).json()["problems"][0]["key"] == "task_id"


def test_one_edit_is_read_by_its_name_with_what_was_before_and_after(rest, digits):
    post(rest, digits, EXTRA, {"op": "remove_task", "parameters": {"task_id": "deploy"}}, edit_id="e1")
    found = rest.get(path(digits, "edits/e1")).json()
    assert (found["edit_id"], found["version"]) == ("e1", 2)
    assert (found["before"]["tasks"]["extra"], found["after"]["tasks"]["extra"]["task_id"]) == (None, "extra")
    assert (found["before"]["tasks"]["deploy"]["task_id"], found["after"]["tasks"]["deploy"]) == ("deploy", None)
    assert rest.get(path(digits, f"edits/{found['id']}")).json() == found
    missing = rest.get(path(digits, "edits/e2"))
    assert (missing.status_code, missing.json()["detail"]) == (404, f"constellation {digits.pk} has no edit e2")


# Who may


def test_editing_needs_the_role_and_the_scope(digits, session, user, viewer, operator, admin_user):
    for somebody in (user, viewer):
        assert post(Rest(somebody), digits, EXTRA, status=403)
    _, text = make_token(operator, "read", "operate")
    found = post(Rest(token=text), digits, EXTRA, status=403).json()
    assert found["detail"] == "the token lacks the scope edit"
    for end in ("preview", "edits/e1/undo"):
        assert Rest(token=text).post(path(digits, end), {"operations": []}).status_code == 403
    assert Rest(token=text).get(path(digits)).status_code == 200
    token, text = make_token(operator, "edit")
    assert post(Rest(token=text), digits, EXTRA).json()["edit"]["author"] == f"token:{token.token_key}"
    assert post(Rest(admin_user), digits, {"add_task": noop("other")})


def test_anothers_constellation_is_not_there(digits, roles):
    from tests.conftest import person

    stranger = Rest(person("stranger", "operator"))
    assert post(stranger, digits, EXTRA, status=404)
    for end in ("edits", "statistics"):
        assert stranger.get(path(digits, end)).status_code == 404


# Statistics


def test_statistics_tell_the_shape_and_the_times(rest, digits):
    post(rest, digits, {"add_task": noop("side", after=["fetch"])})
    advance(digits, fetch="COMPLETED", train="PENDING")
    found = rest.get(path(digits, "statistics")).json()
    assert found["critical_path"] == ["fetch", "train", "evaluate", "deploy"]
    assert (found["total"], found["dependencies"], found["critical_path_length"], found["max_width"]) == (5, 4, 4, 2)
    assert (found["parallelism_ratio"], found["layers"], found["version"]) == (1.25, 4, 2)
    assert found["by_state"] == {
        "WAITING_DEPENDENCY": 3, "PENDING": 1, "RUNNING": 0, "COMPLETED": 1, "FAILED": 0, "CANCELLED": 0,
    }  # fmt: skip
    assert found["wall_s"] > 0
    assert found["waiting_s"] > 0
    assert found["work_s"] == 0
    assert (found["slowest_path"], found["slowest_path_s"]) == ([], 0)


def test_statistics_name_the_chain_that_took_longest_beside_the_one_with_most_tasks(rest, engine, device):
    tasks = [noop("a"), noop("b", after=["a"]), {"task_id": "alone", "command": ["sleep", "0.3"]}]
    found = rest.get(path(engine.carry_out({"tasks": tasks}), "statistics")).json()
    assert (found["critical_path"], found["slowest_path"]) == (["a", "b"], ["alone"])
    assert 0.3 <= found["slowest_path_s"] <= found["work_s"]


# Why


@pytest.fixture
def runner():
    now = timezone.now()
    return Runner.objects.create(host="h", pid=1, pid_start=1, files="", started_at=now, renewed_at=now)


def why(rest, task_id="fetch"):
    found = rest.get(f"/api/tasks/{Task.objects.get(task_id=task_id).pk}/why/")
    assert found.status_code == 200, found.content
    return found.json()


def told(rest, task_id="fetch"):
    found = why(rest, task_id)
    return found["kind"], found["text"]


def change(task_id="fetch", **fields):
    """Fields of a task's row, as an event says them."""
    task = Task.objects.get(task_id=task_id)
    record(task.constellation.session_id, set={"task": {str(task.pk): fields}})


def test_nothing_holds_a_ready_task_back(rest, digits, runner):
    assert told(rest) == ("starting", "nothing holds it back; it starts when its session's runner comes to it")


def test_a_task_that_has_failed_says_by_what(rest, digits):
    change(state="FAILED", reason="failed", error="no route to host")
    assert told(rest) == ("ended", "fetch has ended (FAILED): no route to host")
    change(error="e" * 3_000)
    assert told(rest)[1] == f"fetch has ended (FAILED): {'e' * 500} ..."
    assert why(rest)["fields"]["error"] == "e" * 3_000
    change(state="COMPLETED", error="")
    assert told(rest) == ("ended", "fetch has ended (COMPLETED)")


def test_a_task_waits_for_its_upstreams(rest, digits, runner):
    found = why(rest, "train")
    assert (found["kind"], found["text"]) == ("dependency", "waits for fetch (PENDING)")
    assert found["fields"] == {"waits_for": [{"task_id": "fetch", "state": "PENDING"}], "total": 1}


@pytest.mark.parametrize(
    ("result", "kind", "reason"),
    [
        ({"accuracy": 0.9}, "condition_false", "condition is false: accuracy > 0.95"),
        ({"loss": 1}, "condition_unknown", "condition unknown: `accuracy` is missing: the result has loss"),
    ],
)
def test_a_condition_that_does_not_hold_is_told(rest, session, laptop, result, kind, reason):
    line = {"from": "train", "to": "deploy", "type": "CONDITIONAL", "condition": "accuracy > 0.95"}
    found = plant(session, noop("train"), noop("deploy"), dependencies=[line])
    advance(found, train="COMPLETED", deploy="SKIPPED")
    change("train", result=result)
    assert told(rest, "deploy")[0] == kind
    assert told(rest, "deploy")[1].startswith(f"can never start: train>deploy {reason}")


def test_a_skipped_task_names_the_dependency_that_decided_it(rest, digits):
    advance(digits, fetch="SKIPPED", train="SKIPPED")
    found = why(rest, "train")
    assert (found["kind"], found["fields"]["upstream"]) == ("dependency", "fetch")
    assert found["text"] == "can never start: fetch>train needs fetch completed, and it is CANCELLED"


def test_a_task_that_runs_or_has_ended_says_so(rest, digits, runner):
    advance(digits, fetch="COMPLETED", train="RUNNING")
    assert told(rest) == ("ended", "fetch has ended (COMPLETED)")
    assert told(rest, "train") == ("running", "train runs, attempt 0")
    add_approvals(digits.session, subject_id=Task.objects.get(task_id="train").pk)
    assert told(rest, "train") == ("approval", "waits for somebody to decide: run ls")
    change("evaluate", state="CANCELLED", reason="cancelled: enough")
    assert told(rest, "evaluate") == ("cancelled", "cancelled: enough")


def test_an_attempt_that_waits_for_something_else_says_so(rest, digits, laptop, runner):
    advance(digits, fetch="RUNNING")
    (attempt,) = add_attempts(digits.session, Task.objects.get(task_id="fetch").pk, laptop)
    assert told(rest)[0] == "running"
    agent = Attempt.objects.get(pk=attempt).agent_id
    waiting = {"agent": {str(agent): {"state": "PENDING", "reason": "wait: 5 s"}}}
    record(digits.session_id, set={"attempt": {str(attempt): {"holds_slot": False}}, **waiting})
    assert told(rest) == ("waits", "its agent waits (PENDING): wait: 5 s")


@pytest.mark.parametrize("count", [1, 40])
def test_an_explanation_costs_the_same_queries_however_much_is_waited_for(
    rest, session, laptop, runner, count, django_assert_max_num_queries
):
    names = [f"t{number}" for number in range(count)]
    plant(session, *map(noop, names), noop("last", after=names))
    with django_assert_max_num_queries(8):
        found = why(rest, "last")
    assert (found["fields"]["total"], len(found["fields"]["waits_for"])) == (count, min(count, 20))
    assert found["text"].endswith("t19 (PENDING) and 20 more" if count > 20 else "t0 (PENDING)")


def test_a_paused_session_holds_its_tasks_back(rest, digits, runner):
    actor = add_actor(digits.session, "paused")
    record(digits.session_id, set={"actor": {str(actor): {"reason": "look"}}})
    assert told(rest) == ("paused", "its session is paused: look")
    Actor.objects.update(state="running", pausing=True)
    assert told(rest) == ("paused", "its session is pausing")


def test_a_lost_task_waits_for_a_persons_word(rest, digits, runner):
    (approval,) = add_approvals(digits.session, subject_id=Task.objects.get(task_id="fetch").pk, kind="lost", title="Again?")
    found = why(rest)
    assert (found["kind"], found["text"]) == ("approval", "waits for somebody to decide: Again?")
    assert found["fields"] == {"approvals": [approval], "total": 1, "kind": "lost"}


def test_a_call_back_is_called_one(rest, digits, runner):
    advance(digits, fetch="RUNNING")
    subject = Task.objects.get(task_id="fetch").pk
    (approval,) = add_approvals(digits.session, subject_id=subject, kind="callback", title="uploaded", action={})
    found = why(rest)
    assert (found["kind"], found["text"]) == ("callback", "waits for a call-back from outside: uploaded")
    assert found["fields"]["approvals"] == [approval]


def test_a_failed_attempt_says_when_the_next_one_is(rest, digits, runner):
    at = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)
    change(retry_at=f"{at:%Y-%m-%dT%H:%M:%S}.000000Z", attempt=1, reason="timeout")
    assert told(rest) == ("retry", f"attempt 1 ended (timeout); the next is at {at:%Y-%m-%d %H:%M:%S} UTC")


def test_without_a_runner_nothing_runs(rest, digits):
    no_runner = "no runner lives: start one, for example with `manage.py up`"
    assert told(rest) == ("no_runner", no_runner)
    assert told(rest, "train") == ("dependency", f"waits for fetch (PENDING); besides, {no_runner}")
    assert why(rest, "train")["fields"]["no_runner"] is True
    advance(digits, fetch="RUNNING")
    change(attempt=1)
    assert told(rest) == ("no_runner", f"fetch has begun attempt 1, and {no_runner}")


def test_of_what_has_ended_nobody_says_that_no_runner_lives(rest, digits):
    advance(digits, fetch="COMPLETED", train="SKIPPED")
    assert told(rest) == ("ended", "fetch has ended (COMPLETED)")
    assert "runner" not in told(rest, "train")[1]


@pytest.mark.parametrize(
    ("task", "device", "kind", "text"),
    [
        ({"wanted_device": "laptop"}, {"state": "disconnected"}, "device_offline", "laptop is disconnected"),
        ({"wanted_device": "laptop"}, {"state": "draining"}, "device_draining", "laptop is draining"),
        ({"wanted_device": "laptop"}, {"used": 4, "queued": 2}, "device_full",
         "all 4 slots of laptop are taken, 2 sessions in its queue"),
        ({"wanted_device": "pi"}, {}, "no_device", "no device is called pi"),
        ({"device_type": "gpu", "capabilities": ["train"]}, {}, "no_device",
         "no device has the type gpu and the capabilities train"),
        ({"not_device": ["laptop"]}, {}, "no_device", "not_device leaves no device: it names laptop"),
        ({"capabilities": ["train"], "not_device": ["laptop"]}, {}, "no_device",
         "leaving out laptop (not_device), no device has the capabilities train"),
    ],
)  # fmt: skip
def test_a_device_that_takes_nothing_is_told(rest, digits, runner, task, device, kind, text):
    change(**task)
    Device.objects.update(**device)
    assert told(rest) == (kind, text)


def test_a_session_at_its_limit_says_so(rest, digits, runner, settings):
    settings.SESSION_CONCURRENT = 0
    assert told(rest) == ("limit", "its session runs 0 attempts, as many as it may")
