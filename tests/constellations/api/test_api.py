"""REST of constellations, tasks, their attempts and what they printed."""

from itertools import pairwise

import pytest

from agents.models import Output
from agents.services import sessions
from agents.services.devices import device_create
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.reads.output import OUTPUT_CHARACTERS
from tests.agents.conftest import NOW, Rest, add_agents, add_interaction, add_rows
from tests.constellations.planting import noop, plant

pytestmark = pytest.mark.django_db


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def device():
    return device_create("laptop", by="system")


def add_constellation(session, tasks=3, **fields):
    """A chain of tasks t0 > t1 > ...: (id of the constellation, ids of its tasks)."""
    interaction, agent = add_interaction(session), add_agents(session)[0]
    row = {"session_id": session.pk, "interaction_id": interaction, "agent_id": agent, "created_at": NOW, "entered_at": NOW}
    made = add_rows(session.pk, "constellation", [{**row, **fields}])[0]
    rows = [{"constellation_id": made, "task_id": f"t{n}", "created_at": NOW, "entered_at": NOW} for n in range(tasks)]
    nodes = add_rows(session.pk, "task", rows)
    edges = [
        {"constellation_id": made, "dependency_id": f"{up}>{down}", "upstream_id": up, "downstream_id": down}
        for up, down in pairwise(nodes)
    ]
    add_rows(session.pk, "dependency", edges)
    return made, nodes


def add_attempts(session, task, device, count=1):
    agent = add_agents(session, count)[0]
    row = {"task_id": task, "agent_id": agent, "device_id": device.pk, "fence": 1, "started_at": NOW}
    return add_rows(session.pk, "attempt", [{**row, "number": number + 1} for number in range(count)])


def printed(attempt, *texts):
    offset = 0
    for text in texts:
        Output.objects.create(attempt_id=attempt, offset=offset, text=text)
        offset += len(text)


def test_a_constellation_shows_its_graph_and_counts(rest, session):
    made, nodes = add_constellation(session, name="digits")
    row = rest.get(f"/api/constellations/{made}/").json()
    assert (row["name"], row["session"], row["truncated"]) == ("digits", session.pk, False)
    assert [task["task_id"] for task in row["tasks"]] == ["t0", "t1", "t2"]
    assert [(each["upstream_id"], each["downstream_id"]) for each in row["dependencies"]] == list(pairwise(nodes))
    assert row["counts"] == {"WAITING_DEPENDENCY": 3}
    assert row["dependencies"][0]["type"] == "SUCCESS_ONLY"


def test_a_graph_larger_than_the_limit_says_so(rest, session, monkeypatch):
    monkeypatch.setattr("constellations.api.views.GRAPH_ROWS", 2)
    made, _ = add_constellation(session)
    row = rest.get(f"/api/constellations/{made}/").json()
    assert (len(row["tasks"]), row["truncated"]) == (2, True)


@pytest.mark.parametrize("tasks", [2, 60])
def test_details_and_lists_cost_the_same_queries_however_large_the_graph(
    rest, session, tasks, device, django_assert_max_num_queries
):
    made, nodes = add_constellation(session, tasks)
    add_attempts(session, nodes[0], device, min(tasks, 20))
    for path in (f"constellations/{made}", "constellations", "tasks", f"tasks/{nodes[0]}"):
        with django_assert_max_num_queries(9):
            assert rest.get(f"/api/{path}/").status_code == 200


def test_constellations_are_filtered_by_session_and_state(rest, operator, session):
    made, _ = add_constellation(session)
    other = sessions.session_create(operator, by="system")
    failed, _ = add_constellation(other, state="FAILED")
    listed = [row["id"] for row in rest.get("/api/constellations/").json()["results"]]
    assert listed == [failed, made]
    assert [row["id"] for row in rest.get("/api/constellations/", session=session.pk).json()["results"]] == [made]
    assert [row["id"] for row in rest.get("/api/constellations/", state="FAILED").json()["results"]] == [failed]
    assert rest.get("/api/constellations/", state="BROKEN").status_code == 400


def test_tasks_are_filtered_by_constellation_and_state_and_paged(rest, session):
    _, others = add_constellation(session, 2)
    made, nodes = add_constellation(session, 3)
    page = rest.get("/api/tasks/", constellation=made, limit=2).json()
    assert [row["id"] for row in page["results"]] == nodes[:2]
    last = rest.get("/api/tasks/", constellation=made, limit=2, cursor=page["next"]).json()
    assert ([row["id"] for row in last["results"]], last["next"]) == (nodes[2:], None)
    assert len(rest.get("/api/tasks/", session=session.pk).json()["results"]) == len(others) + len(nodes)
    assert rest.get("/api/tasks/", state="RUNNING").json()["results"] == []
    assert rest.get("/api/tasks/", state="SLEEPING").json()["problems"][0]["key"] == "state"


def test_what_belongs_to_others_is_not_there(session, viewer, admin_user):
    made, nodes = add_constellation(session)
    for path in (f"constellations/{made}", f"constellations/{made}/edits", f"tasks/{nodes[0]}", f"tasks/{nodes[0]}/output"):
        assert Rest(viewer).get(f"/api/{path}").status_code == 404
    for path in ("constellations", "tasks"):
        assert Rest(viewer).get(f"/api/{path}/").json()["results"] == []
    assert Rest(admin_user).get(f"/api/tasks/{nodes[0]}/").status_code == 200


def test_a_task_shows_its_attempts_and_the_end_of_what_the_last_one_printed(rest, session, device):
    _, nodes = add_constellation(session)
    first, last = add_attempts(session, nodes[0], device, 2)
    printed(first, "old")
    printed(last, "one\n", "two\n")
    row = rest.get(f"/api/tasks/{nodes[0]}/").json()
    assert [attempt["number"] for attempt in row["attempts"]] == [1, 2]
    assert row["attempts"][0]["device"] == "laptop"
    assert row["output"] == {"attempt": last, "offset": 0, "text": "one\ntwo\n"}
    assert row["priority"] == "MEDIUM"


def test_a_task_that_never_ran_has_no_output(rest, session):
    _, nodes = add_constellation(session)
    row = rest.get(f"/api/tasks/{nodes[0]}/").json()
    assert (row["attempts"], row["output"]) == ([], None)
    assert rest.get(f"/api/tasks/{nodes[0]}/output/").status_code == 404


def test_long_output_is_shown_from_its_end_and_read_on_from_an_offset(rest, session, device):
    _, nodes = add_constellation(session)
    attempt = add_attempts(session, nodes[0], device)[0]
    pieces = ["a" * 40_000, "b" * 40_000, "c" * 10_000]
    printed(attempt, *pieces)
    whole = "".join(pieces)
    end = rest.get(f"/api/tasks/{nodes[0]}/").json()["output"]
    assert end["text"] == whole[-OUTPUT_CHARACTERS:]
    assert end["offset"] == len(whole) - OUTPUT_CHARACTERS
    read, offset = "", 0
    while piece := rest.get(f"/api/tasks/{nodes[0]}/output/", offset=offset).json()["text"]:
        assert len(piece) <= OUTPUT_CHARACTERS
        read += piece
        offset += len(piece)
    assert read == whole


def test_the_output_of_an_earlier_attempt_is_read_by_its_number(rest, session, device):
    _, nodes = add_constellation(session)
    first, _ = add_attempts(session, nodes[0], device, 2)
    printed(first, "failed because")
    assert rest.get(f"/api/tasks/{nodes[0]}/output/", attempt=1, offset=7).json()["text"] == "because"
    assert rest.get(f"/api/tasks/{nodes[0]}/output/", attempt=3).status_code == 404
    assert rest.get(f"/api/tasks/{nodes[0]}/output/", attempt="x").status_code == 400


def test_edits_are_listed_newest_first(rest, session):
    made, _ = add_constellation(session)
    row = {
        "constellation_id": made, "author": "planner", "reason": "accuracy too low", "based_on": 1, "operations": [],
        "before": {}, "after": {}, "diff": {}, "at": NOW,
    }  # fmt: skip
    add_rows(session.pk, "edit", [{**row, "edit_id": f"e{n}", "version": n + 2} for n in range(3)])
    page = rest.get(f"/api/constellations/{made}/edits", limit=2).json()
    assert [edit["edit_id"] for edit in page["results"]] == ["e2", "e1"]
    assert rest.get(f"/api/constellations/{made}/edits", cursor=page["next"]).json()["results"][0]["version"] == 2


def test_a_task_shows_all_that_can_be_edited_of_it(rest, session, device):
    policy = {"tool": "*", "pattern": "x", "decision": "deny"}
    watched = {"steps": [{"say": "hello"}], "policies": [policy], "progress": {"stuck_threshold": 5}}
    tied = {"dependency_id": "l", "from": "a", "to": "b", "type": "COMPLETION_ONLY", "description": "in any case"}
    found = plant(session, noop("a"), {"task_id": "b", **watched}, dependencies=[tied])
    row = rest.get(f"/api/tasks/{found.tasks.get(task_id='b').pk}/").json()
    assert TASK_DEFAULTS.keys() - row.keys() == set()
    assert [step["text"] for phase in row["phases"] for step in phase["steps"]] == ["hello"]
    assert (row["policies"], row["settings"], row["progress"]["phases_total"]) == ([policy], {"stuck_threshold": 5}, 1)
    assert row["incoming"] == [
        {"dependency_id": "l", "upstream": "a", "type": "COMPLETION_ONLY", "condition": "", "description": "in any case"}
    ]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ({"plan": "name: release\ntasks: [{task_id: hello, command: [echo, hello]}]"}, "release"),
        ({"plan": "name: release\ntasks: [{task_id: hello, command: [echo, hello]}]", "title": "mine"}, "mine"),
        ({"request": "`echo hello`  on laptop"}, "`echo hello` on laptop"),
        ({"plan": "tasks: [{task_id: hello, command: [echo, hello]}]"}, ""),
    ],
)
def test_a_session_without_a_title_is_called_as_what_it_was_begun_with(rest, body, title):
    answer = rest.post("/api/sessions/", body)
    assert (answer.status_code, answer.json()["title"]) == (201, title)
