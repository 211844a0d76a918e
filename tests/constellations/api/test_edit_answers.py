"""What an edit is answered with: the version that it made, the newest, and what its author has not seen."""

from __future__ import annotations

import json

import pytest

from agents.models import Approval
from agents.services import sessions
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.streams.verify import verify_database
from constellations.errors import StaleEdit
from constellations.models import Constellation, Edit
from constellations.services import dispatcher, standing
from constellations.services.dispatcher import execute_commands
from constellations.services.edits import edit_apply
from constellations.services.preview import edit_preview
from tests.agents.conftest import Rest, make_token
from tests.constellations.admin.admin_client import Staff, problems, row_of
from tests.constellations.mcp.test_http import web  # noqa: F401  a server process on the test's database
from tests.constellations.mcp.test_tools import Program
from tests.constellations.planting import noop, plant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def digits(operator) -> Constellation:
    """fetch > train > deploy, of which nothing has started."""
    device_create("laptop", by="system")
    session = sessions.session_create(operator, "mine", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]), noop("deploy", after=["train"]))


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


@pytest.fixture
def colleague(admin_user) -> Rest:
    return Rest(admin_user)


def update(task_id: str, **fields) -> dict:
    return {"update_task": {"task_id": task_id, **fields}}


def post(rest: Rest, constellation: Constellation, *operations: dict, if_match: str = "", **body):
    headers = {"If-Match": if_match} if if_match else {}
    return rest.post(f"/api/constellations/{constellation.pk}/edits/", {"operations": list(operations), **body}, **headers)


def timeout_of(constellation: Constellation, task_id: str) -> float | None:
    return constellation.tasks.get(task_id=task_id).timeout


def came(answer: dict) -> list[tuple[int, str]]:
    return [(each["version"], each["changes"]) for each in answer["between"]]


# Edits


def test_an_edit_that_is_sent_again_answers_the_version_that_it_made(rest, colleague, digits, admin_user):
    first = post(rest, digits, update("fetch", name="Fetch"), edit_id="e1", based_on=1)
    assert (first.json()["version"], first.json()["newest"], first.json()["between"]) == (2, 2, [])
    post(colleague, digits, update("train", timeout=60), reason="it hung")
    again = post(rest, digits, update("fetch", name="Fetch"), edit_id="e1", based_on=1)
    said = again.json()
    assert (said["changed"], said["version"], said["newest"], again.headers["ETag"]) == (False, 2, 3, '"v2"')
    assert said["between"] == [
        {
            "version": 3, "edit_id": Edit.objects.get(version=3).edit_id, "author": f"user:{admin_user.pk}",
            "author_name": "admin", "reason": "it hung", "changes": "updated task train (timeout)",
        }
    ]  # fmt: skip
    assert said["between_total"] == 1
    unseen = post(rest, digits, update("train", timeout=5), if_match=again.headers["ETag"])
    assert (unseen.status_code, unseen.json()["code"]) == (409, "stale_edit")
    assert timeout_of(digits, "train") == 60
    assert list(verify_database()) == []


def test_an_edit_that_was_rebased_says_over_what(rest, colleague, digits):
    post(colleague, digits, update("train", timeout=60))
    found = post(rest, digits, update("deploy", name="Deploy"), based_on=1).json()
    assert (found["version"], found["newest"], came(found)) == (3, 3, [(2, "updated task train (timeout)")])
    post(colleague, digits, update("train", timeout=70))
    again = post(rest, digits, update("deploy", name="Deploy"), edit_id=found["edit"]["edit_id"], based_on=1).json()
    assert [each["version"] for each in again["between"]] == [2, 4]
    assert (again["version"], again["newest"]) == (3, 4)


def test_of_two_edits_at_once_each_answers_its_own_version(operator, digits, monkeypatch):
    """The second is made after the first and before that one is answered."""
    answered = dispatcher.describe_edit

    def late(*arguments, **named):
        if Edit.objects.count() == 1:
            edit_apply(digits.pk, [update("train", timeout=60)], author="user:2")
        return answered(*arguments, **named)

    monkeypatch.setattr(dispatcher, "describe_edit", late)
    program = Program(make_token(operator, "read", "edit", name="claude"))
    made = program("update_task", constellation_id=digits.pk, task_id="fetch", timeout=3, based_on=1, edit_id="e1")
    assert (made["version"], made["newest"], came(made)) == (2, 3, [(3, "updated task train (timeout)")])
    assert made["message"] == "edit e1 was made: version 2. After version 2 came version 3 by user:2; see between"
    refused = program("update_task", constellation_id=digits.pk, task_id="train", timeout=5, based_on=made["version"])
    assert "user:2 changed train (version 3)" in refused
    assert timeout_of(digits, "train") == 60


def test_an_edits_message_names_what_it_is_on_top_of_and_what_came_after_it(operator, digits, colleague, admin_user):
    first, second = (Program(make_token(operator, "read", "edit", name=name)) for name in ("claude", "codex"))
    first("update_task", constellation_id=digits.pk, task_id="fetch", timeout=3, based_on=1)
    rebased = {"constellation_id": digits.pk, "task_id": "deploy", "timeout": 4, "based_on": 1, "edit_id": "e3"}
    made = second("update_task", **rebased)
    assert (made["version"], made["newest"]) == (3, 3)
    assert made["message"] == "edit e3 was made: version 3, on top of version 2 by token claude of operator; see between"
    for number in range(5, 10):
        post(colleague, digits, update("train", timeout=number))
    again = second("update_task", **rebased)
    assert again["message"] == (
        "edit e3 had been made before, on top of version 2 by token claude of operator; nothing was changed now. "
        "After version 3 came version 4 by admin, version 5 by admin, version 6 by admin and 2 more; see between"
    )
    nothing = first("update_task", constellation_id=digits.pk, task_id="fetch", timeout=3, based_on=2)
    assert nothing["message"].startswith(
        "there was nothing to change. After version 2 came version 3 by token codex of operator, version 4 by admin"
    )


def test_an_edits_message_counts_what_between_has_no_room_for(operator, digits, colleague, monkeypatch):
    monkeypatch.setattr(standing, "BETWEEN", 1)
    for number in range(2, 6):
        post(colleague, digits, update("train", timeout=number))
    program = Program(make_token(operator, "read", "edit", name="claude"))
    arguments = {"constellation_id": digits.pk, "task_id": "fetch", "timeout": 9, "based_on": 1, "edit_id": "e6"}
    assert program("update_task", **arguments)["message"] == (
        "edit e6 was made: version 6, on top of version 2 by admin and 3 more; see between"
    )
    post(colleague, digits, update("train", timeout=7))
    assert program("update_task", **arguments)["message"].endswith("After version 6 came 1 edit; see between")


def test_an_edit_that_says_no_version_is_told_what_came_while_it_was_made(rest, digits, monkeypatch):
    monkeypatch.setattr("constellations.api.edit_views.edit_apply", slow_apply := _after_another(digits))
    found = post(rest, digits, update("fetch", name="Fetch")).json()
    assert slow_apply.calls == 1
    assert (found["version"], came(found)) == (3, [(2, "updated task train (timeout)")])


def _after_another(digits: Constellation):
    """`edit_apply`, before which somebody else's edit is made."""

    def apply(*arguments, **named):
        apply.calls += 1
        edit_apply(digits.pk, [update("train", timeout=60)], author="user:2")
        return edit_apply(*arguments, **named)

    apply.calls = 0
    return apply


@pytest.mark.parametrize(("based_on", "version", "between"), [(1, 1, [2]), (2, 2, []), (None, 2, [])])
def test_an_edit_that_changes_nothing_has_seen_what_it_was_based_on(rest, colleague, digits, based_on, version, between):
    post(colleague, digits, update("train", timeout=60))
    body = {} if based_on is None else {"based_on": based_on}
    answer = post(rest, digits, update("fetch", max_attempts=1), **body)
    found = answer.json()
    assert (answer.status_code, found["edit"], found["changed"]) == (200, None, False)
    assert (found["version"], answer.headers["ETag"], found["newest"]) == (version, f'"v{version}"', 2)
    assert [each["version"] for each in found["between"]] == between


def test_an_undo_that_somebody_else_has_made_is_not_called_seen(rest, colleague, digits):
    post(rest, digits, update("fetch", name="Fetch"), edit_id="e1", based_on=1)
    post(colleague, digits, update("train", timeout=60))
    where = f"/api/constellations/{digits.pk}/edits/e1/undo/"
    assert colleague.post(where, {}).json()["version"] == 4
    answer = rest.post(where, {"based_on": 2, "edit_id": "u1"})
    found = answer.json()
    assert (found["changed"], found["version"], found["newest"], answer.headers["ETag"]) == (False, 2, 4, '"v2"')
    assert [each["version"] for each in found["between"]] == [3, 4]
    assert post(rest, digits, update("train", timeout=5), if_match=answer.headers["ETag"]).status_code == 409


def test_an_undo_answers_the_version_that_it_made(rest, colleague, digits):
    post(rest, digits, update("fetch", name="Fetch"), edit_id="e1", based_on=1)
    post(colleague, digits, update("train", timeout=60))
    where = f"/api/constellations/{digits.pk}/edits/e1/undo/"
    made = rest.post(where, {"based_on": 2, "edit_id": "u1"}).json()
    assert (made["version"], [each["version"] for each in made["between"]]) == (4, [3])
    post(colleague, digits, update("train", timeout=70))
    again = rest.post(where, {"based_on": 2, "edit_id": "u1"})
    assert (again.json()["version"], again.headers["ETag"]) == (4, '"v4"')
    assert [each["version"] for each in again.json()["between"]] == [3, 5]


def test_a_preview_on_an_older_version_is_applied_with_that_one(rest, colleague, digits):
    post(colleague, digits, update("train", timeout=60))
    body = {"operations": [update("deploy", timeout=5)], "based_on": 1}
    answer = rest.post(f"/api/constellations/{digits.pk}/preview/", body)
    found = answer.json()
    assert (found["version"], found["newest"], answer.headers["ETag"]) == (1, 2, '"v1"')
    assert came(found) == [(2, "updated task train (timeout)")]
    assert post(rest, digits, update("train", timeout=5), if_match=answer.headers["ETag"]).status_code == 409


def test_a_refusal_names_also_what_did_not_clash(rest, colleague, digits):
    post(colleague, digits, update("train", timeout=60))
    post(colleague, digits, update("deploy", timeout=70))
    found = post(rest, digits, update("train", timeout=5), based_on=1).json()
    assert (found["code"], found["version"], [each["key"] for each in found["problems"]]) == ("stale_edit", 3, ["version 2"])
    assert [each["version"] for each in found["between"]] == [2, 3]


def test_what_came_between_is_bounded_and_counted(digits, monkeypatch):
    monkeypatch.setattr(standing, "BETWEEN", 2)
    for number in range(4):
        edit_apply(digits.pk, [update("train", timeout=number + 1)], author="user:2")
    done = execute_commands([{"tool": "update_task", "parameters": {"task_id": "fetch", "name": "F"}}], digits.pk,
                            author="user:1", based_on=1)  # fmt: skip
    assert (done.version, done.newest, [each["version"] for each in done.between], done.between_total) == (6, 6, [2, 3], 4)
    with pytest.raises(StaleEdit) as refused:
        edit_apply(digits.pk, [update("train", timeout=9)], author="user:1", based_on=1)
    members = refused.value.members
    assert ([each["version"] for each in members["between"]], members["between_total"]) == ([2, 3], 5)
    assert edit_preview(digits.pk, [update("deploy", timeout=5)], 1)["between_total"] == 5


# Proposals


def test_a_proposal_answers_the_version_that_its_author_has_seen(operator, digits):
    agent = Program(make_token(operator, "read", "operate", name="claude"))
    edit_apply(digits.pk, [update("train", timeout=60)], author="user:2")
    wanted = {"constellation_id": digits.pk, "task_id": "fetch", "timeout": 3, "based_on": 1, "edit_id": "p1"}
    said = agent("update_task", **wanted)
    assert (said["version"], said["newest"], came(said)) == (1, 2, [(2, "updated task train (timeout)")])
    approval_decide(Approval.objects.get().pk, "approve", by=f"user:{operator.pk}")
    edit_apply(digits.pk, [update("deploy", timeout=70)], author="user:2")
    made = agent("update_task", **wanted)
    assert (made["version"], made["newest"]) == (3, 4)
    assert [each["version"] for each in made["between"]] == [2, 4]


# The admin


@pytest.fixture
def staff(operator) -> Staff:
    return Staff(operator)


def test_the_admin_says_over_what_an_edit_was_made(staff, digits):
    values = staff.form(digits)
    edit_apply(digits.pk, [update("train", timeout=60)], author="user:999")
    told = staff.told(staff.save(digits, {**values, f"{row_of(values, 'fetch')}-name": "mine"}))
    assert told == [
        "Saved as version 3: updated task fetch. Others had edited since version 1; your changes were applied on top of "
        "version 2 by user:999 (updated task train (timeout))."
    ]


def test_who_saves_on_top_of_the_newest_version_is_told_also_what_did_not_clash(staff, digits):
    values = staff.form(digits)
    edit_apply(digits.pk, [update("train", timeout=60)], author="user:999")
    edit_apply(digits.pk, [update("deploy", timeout=70)], author="user:999")
    page = staff.save(digits, {**values, f"{row_of(values, 'train')}-name": "mine"})
    assert problems(page)["__all__"] == [
        "user:999 changed train (version 2)", "also since: version 3 by user:999 (updated task deploy (timeout))",
    ]  # fmt: skip
    assert "Save mine on top of version 3" in page.content.decode()


# Over HTTP, in a server process


def test_the_second_of_two_editors_over_http_does_not_overwrite_what_it_has_not_seen(web, operator, admin_user, digits):  # noqa: F811
    mine, theirs = (make_token(who, "read", "edit", name="p")[1] for who in (operator, admin_user))

    def ask(token: str, operation: dict, **more: str):
        sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **more}
        body = {"operations": [operation], **({"edit_id": "e1"} if "name" in operation["update_task"] else {})}
        status, headers, text = web.request("POST", f"/api/constellations/{digits.pk}/edits/", body, **sent)
        return status, headers.get("etag"), json.loads(text)

    ask(mine, update("fetch", name="Fetch"), If_Match='"v1"')  # its answer is lost
    assert ask(theirs, update("train", timeout=60), If_Match='"v2"')[0] == 201
    status, etag, said = ask(mine, update("fetch", name="Fetch"), If_Match='"v1"')
    assert (status, etag, said["version"], said["newest"]) == (200, '"v2"', 2, 3)
    status, _, said = ask(mine, update("train", timeout=5), If_Match=etag)
    assert (status, said["code"], timeout_of(digits, "train")) == (409, "stale_edit", 60)
    assert list(verify_database()) == []
