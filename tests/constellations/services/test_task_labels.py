"""The labels of a task: what they may be, where they can be said, and every list that is narrowed down by them."""

import json

import pytest

from agents.models import Session
from agents.services import sessions
from agents.streams.verify import verify_database
from constellations.errors import PlanRejected
from constellations.models import Constellation, Task
from constellations.plan import dialects, plan
from constellations.reads.exports import export_document
from constellations.services.edits import edit_apply
from tests.agents.conftest import Rest, make_token
from tests.constellations.admin.admin_client import Staff, problems
from tests.constellations.mcp.mcp_program import SCOPES, Program
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def session(operator) -> Session:
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def made(session) -> Constellation:
    return plant(session, noop("a", labels=["gpu", "team.red"]), noop("b", labels=["big"]), noop("c"))


def labels(constellation: Constellation) -> dict[str, list[str]]:
    return dict(Task.objects.filter(constellation=constellation).values_list("task_id", "labels"))


def test_a_plan_says_them_and_a_task_without_has_none(made):
    assert labels(made) == {"a": ["gpu", "team.red"], "b": ["big"], "c": []}
    assert list(verify_database()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["x"] * 17, "has 17 items; 16 are allowed"),
        (["x" * 65], "has 65 characters; 64 are allowed"),
        (["a b"], "takes letters from A to Z, digits, and . _ - between them; it begins and ends with a letter or a digit"),
        (["-a"], "takes letters from A to Z, digits, and . _ - between them; it begins and ends with a letter or a digit"),
        ([""], "must not be empty"),
        ([7], "must be text, not the number 7; put it in quotes"),
        ("gpu", "must be a list, not the text 'gpu'; put it in brackets: [gpu]"),
    ],
)
def test_what_is_no_label_is_refused(given, says):
    with pytest.raises(PlanRejected) as refused:
        plan.parse_plan(json.dumps({"tasks": [noop("a", labels=given)]}))
    assert [each["message"] for each in refused.value.problems] == [says]


def test_as_many_and_as_long_as_may_be():
    most = [f"{number:02}{'x' * 62}" for number in range(16)]
    assert plan.parse_plan(json.dumps({"tasks": [noop("a", labels=most)]})).tasks[0]["labels"] == most


def test_edits_give_change_and_take_them(made):
    edit_apply(made.pk, [{"add_task": noop("d", labels=["new"])}], author="user:1")
    changed, _ = edit_apply(made.pk, [{"update_task": {"task_id": "b", "labels": ["small"]}}], author="user:1")
    assert changed.diff == [{"change": "updated", "task": "b", "fields": {"labels": [["big"], ["small"]]}}]
    edit_apply(made.pk, [{"update_task": {"task_id": "a", "labels": None}}], author="user:1")
    edit_apply(made.pk, [{"add_task": {"task_id": "e", "copy": "d"}}], author="user:1")
    assert labels(made) == {"a": [], "b": ["small"], "c": [], "d": ["new"], "e": ["new"]}
    listed = [noop("f", labels=["other"])]
    edit_apply(made.pk, [{"build_constellation": {"tasks": listed}}], author="user:1")
    assert labels(made) == {"f": ["other"]}
    assert list(verify_database()) == []


@pytest.mark.parametrize("dialect", ["orrery", "seed", "galaxy"])
def test_what_is_exported_with_them_is_imported_with_them(made, dialect):
    read = dialects.read_constellation(export_document(made, dialect), dialect)
    assert {task["task_id"]: task["labels"] for task in read.tasks} == labels(made)


@pytest.mark.parametrize(
    ("asked", "found"),
    [({"labels": "gpu"}, ["a"]), ({"labels": "team"}, []), ({"labels": "big", "state": "RUNNING"}, []), ({}, ["a", "b", "c"])],
)
def test_rest_and_mcp_show_them_and_ask_by_them(operator, made, asked, found):
    rows = Rest(operator).get("/api/tasks/", constellation=made.pk, **asked).json()["results"]
    assert [row["task_id"] for row in rows] == found
    view = Program(make_token(operator, *SCOPES))("get_constellation", constellation_id=made.pk, **asked)
    assert ([task["task_id"] for task in view["tasks"]], view["matching"]) == (found, len(found))
    assert {row["task_id"]: row["labels"] for row in rows} == {task["task_id"]: task["labels"] for task in view["tasks"]}


def test_a_task_by_itself_shows_them(operator, made):
    task = Task.objects.get(constellation=made, task_id="a")
    assert Rest(operator).get(f"/api/tasks/{task.pk}/").json()["labels"] == ["gpu", "team.red"]
    assert Rest(operator).get("/api/tasks/", labels="x" * 65).status_code == 400


def test_the_admin_lists_them_narrows_down_by_them_and_changes_them(operator, made):
    staff = Staff(operator)
    listed = staff.client.get("/admin/constellations/task/").content.decode()
    assert '<a href="?labels=team.red">team.red</a>' in listed
    narrow = staff.client.get("/admin/constellations/task/?labels=big").content.decode()
    assert ">b</" in narrow
    assert ">c</" not in narrow
    task = Task.objects.get(constellation=made, task_id="a")
    values = staff.form(task)
    assert values["tasks-0-labels"] == "gpu, team.red"
    assert staff.save(task, values, **{"tasks-0-labels": "gpu, old"}).status_code == 302
    assert labels(made)["a"] == ["gpu", "old"]
    refused = staff.save(task, staff.form(task), **{"tasks-0-labels": "a b"})
    assert list(problems(refused)) == ["a.labels"]
