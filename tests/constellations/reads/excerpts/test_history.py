"""The history of edits: by version whoever made them, bounded, found by what they did, and the whole of each by itself."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.services import sessions
from agents.services.devices import device_create
from constellations.mcp import reading
from constellations.mcp.access import Caller
from constellations.models import Constellation, Edit
from constellations.reads.excerpts import history
from constellations.services.edits import edit_apply
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest, make_token
from tests.constellations.planting import noop, plant
from tests.constellations.runs.test_run import command
from tests.constellations.services.test_live_edits import edited_while_it_runs

pytestmark = pytest.mark.django_db
LINE = {"from": "fetch", "to": "deploy"}


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def digits(operator) -> Constellation:
    """fetch > train > deploy, of which nothing has started."""
    device_create("laptop", by="system")
    names = ["fetch", "train", "deploy"]
    tasks = [noop(name, after=names[max(number - 1, 0) : number]) for number, name in enumerate(names)]
    return plant(sessions.session_create(operator, "mine", by="system"), *tasks)


def path(constellation, end="edits"):
    return f"/api/constellations/{constellation.pk}/{end}/"


def make(constellation, op: str, edit_id: str = "", **parameters) -> Edit:
    made, _ = edit_apply(constellation.pk, [{"op": op, "parameters": parameters}], author="user:1", edit_id=edit_id)
    assert made is not None
    return made


def pages(read, **first) -> list[list[int]]:
    """Versions on each page of `read`, which gives rows and what to go on with."""
    found, following = [], first
    while following is not None:
        versions, following = read(**following)
        found.append(versions)
    return found


# Its order


def turn_round(first: Edit, second: Edit) -> None:
    """As if a runner had made the first: a number that it keeps ahead is beside those that services take."""
    Edit.objects.filter(pk=first.pk).update(id=second.pk + 100)


def test_the_history_goes_by_version_whoever_gave_out_the_ids(rest, digits, operator):
    edits = [make(digits, "add_task", **noop(name)) for name in "abcd"]
    turn_round(edits[1], edits[3])
    caller = Caller(operator, make_token(operator, "read")[0])

    def over_rest(**query):
        found = rest.get(path(digits), limit=2, **query).json()
        return [row["version"] for row in found["results"]], found["next"] and {"cursor": found["next"]}

    def over_mcp(**query):
        found = reading.list_edits(caller, {"constellation_id": digits.pk, "limit": 3, **query})
        return [row.version for row in found.edits], found.next and {"before": found.next}

    assert pages(over_rest) == [[5, 4], [3, 2]]
    assert pages(over_mcp) == [[5, 4, 3], [2]]


def test_the_admins_history_goes_by_constellation_and_version(digits, admin_user, client):
    edits = [make(digits, "add_task", **noop(name)) for name in "abc"]
    turn_round(edits[0], edits[2])
    other = plant(digits.session, noop("a"))
    make(other, "add_task", **noop("b"))
    client.force_login(admin_user)
    rows = client.get("/admin/constellations/edit/").context["cl"].result_list
    assert [(row.constellation_id, row.version) for row in rows] == [(other.pk, 2)] + [(digits.pk, n) for n in (4, 3, 2)]


def test_the_latest_undo_is_told_whoever_gave_out_the_ids(digits):
    make(digits, "add_task", edit_id="e1", **noop("a"))
    first, _ = edit_undo(digits.pk, "e1", "user:1", undo_id="u1")
    make(digits, "add_task", **noop("a"))
    second, _ = edit_undo(digits.pk, "e1", "user:1", undo_id="u2")
    turn_round(first, second)
    told, changed = edit_undo(digits.pk, "e1", "user:1")
    assert (told.edit_id, changed) == ("u2", False)


@pytest.mark.django_db(transaction=True)
def test_the_planners_edit_is_in_its_place(engine, device, operator):
    rule = {"when": {"event": "task_completed", "task": "a"}, "edit": [{"add_task": noop("planned")}]}
    plan = {"tasks": [command("a", "sleep", "0.3")], "replan": [rule]}

    def change(made):
        for name in "xyz":
            edit_apply(made, [{"add_task": noop(name, after=["a"])}], author="user:1")

    found = edited_while_it_runs(engine, plan, change)
    edits = {row.version: row for row in Edit.objects.filter(constellation=found)}
    assert [edits[version].author for version in (2, 3, 4, 5)] == ["user:1"] * 3 + ["planner"]
    assert edits[5].pk < edits[2].pk  # so ids say nothing about which came first
    answer = Rest(found.session.owner).get(path(found), limit=1).json()
    assert ([row["author"] for row in answer["results"]], answer["next"]) == (["planner"], 5)


def test_a_page_says_what_may_be_its_cursor(rest, digits):
    answer = rest.get(path(digits), cursor="e1")
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, "cursor")
    assert rest.get(path(digits), cursor=2**63 - 1).status_code == 200


# What it shows


def test_a_list_shows_the_beginning_of_a_large_edit_and_the_edit_itself_all(rest, digits):
    added = [{"op": "add_task", "parameters": noop(f"t{number}", after=["fetch"])} for number in range(400)]
    answer = rest.post(path(digits), {"operations": added, "edit_id": "big"})
    listed = rest.get(path(digits)).json()["results"][0]
    assert answer.json()["edit"] == listed
    assert (len(listed["operations"]), listed["operations_total"]) == (history.ROWS, 400)
    assert (len(listed["diff"]), listed["diff_total"], listed["truncated"]) == (history.ROWS, 800, True)
    whole = rest.get(path(digits, "edits/big")).json()
    assert (whole["operations"], len(whole["diff"]), len(whole["after"]["tasks"])) == (added, 800, 400)


def test_a_page_is_bounded_in_bytes_however_large_its_edits_are(rest, digits):
    for number in range(3):
        make(digits, "update_task", task_id="train", description=f"{number}" * 20_000)
    found = rest.get(path(digits))
    assert len(found.content) < 3 * (2 * history.ROWS_BYTES + 1_000)
    assert [(row["operations"], row["operations_total"], row["truncated"]) for row in found.json()["results"]] == [
        ([], 1, True)
    ] * 3


def test_what_is_short_is_shown_whole(rest, digits):
    make(digits, "update_task", task_id="train", timeout=4)
    (row,) = rest.get(path(digits)).json()["results"]
    assert row["operations"] == [{"op": "update_task", "parameters": {"task_id": "train", "timeout": 4}}]
    assert row["diff"] == [{"change": "updated", "task": "train", "fields": {"timeout": [None, 4]}}]
    assert (row["operations_total"], row["diff_total"], row["truncated"]) == (1, 1, False)


def test_a_page_is_chosen_without_reading_what_edits_did(rest, digits):
    """Rows of megabytes are not sorted: those of the page are read by their keys."""
    for number in range(5):
        make(digits, "update_task", task_id="train", timeout=number + 1)
    with CaptureQueriesContext(
        connection,
    ) as caught:
        rest.get(path(digits), limit=2)
    sorted_ones = [query["sql"] for query in caught if '"version" DESC' in query["sql"]]
    assert len(sorted_ones) == 1
    assert '"operations"' not in sorted_ones[0]


# What is found


def test_edits_of_a_task_are_those_of_its_dependencies_too(rest, digits, operator):
    make(digits, "add_dependency", **LINE)
    make(digits, "update_dependency", **LINE, type="COMPLETION_ONLY")
    make(digits, "update_task", task_id="train", timeout=4)
    make(digits, "remove_dependency", **LINE)
    make(digits, "add_dependency", **LINE, dependency_id="by another name")
    caller = Caller(operator, make_token(operator, "read")[0])

    def versions(task_id):
        found = [row["version"] for row in rest.get(path(digits), task_id=task_id).json()["results"]]
        over_mcp = reading.list_edits(caller, {"constellation_id": digits.pk, "task_id": task_id})
        assert [row.version for row in over_mcp.edits] == found
        return found

    assert (versions("fetch"), versions("deploy"), versions("train")) == ([6, 5, 3, 2], [6, 5, 3, 2], [4])
    assert versions("fetch>deploy") == versions("by another name") == versions("0") == versions("") == []


@pytest.mark.parametrize("name", ["a.b:c/d-e", "ünïcode", "12"])
def test_a_task_is_found_by_any_name_that_it_may_have(rest, digits, name):
    make(digits, "add_task", **noop(name, after=["fetch"]))
    make(digits, "remove_dependency", **{"from": "fetch", "to": name})
    make(digits, "update_task", task_id="train", timeout=4)
    assert [row["version"] for row in rest.get(path(digits), task_id=name).json()["results"]] == [3, 2]


@pytest.mark.parametrize("name", ["it's", 'say "no"', "$task", "%s", "\\", "a[0]", "*", "?"])
def test_a_name_that_no_task_has_is_found_nowhere(rest, digits, name):
    make(digits, "add_dependency", **LINE)
    answer = rest.get(path(digits), task_id=name)
    assert (answer.status_code, answer.json()["results"]) == (200, [])
