"""What a task's page shows of its progress, and of what it waits for."""

import pytest

from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Attempt
from constellations.reads import progress as task_progress
from tests.agents.conftest import NOW, Rest, add_agents, add_approvals, add_rows, record
from tests.constellations.api.test_api import add_attempts, add_constellation

pytestmark = pytest.mark.django_db
PHASES = [{"description": name, "expected_duration": None, "steps": []} for name in ("build", "test", "ship")]


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def device():
    return device_create("laptop", by="system")


@pytest.fixture
def task(session):
    """A task in three phases."""
    _, nodes = add_constellation(session, 1)
    record(session.pk, set={"task": {str(nodes[0]): {"phases": PHASES, "tool": "steps"}}})
    return nodes[0]


def add_phases(session, agent, *phases):
    whole = {"agent_id": agent, "total": 3, "started_at": NOW}
    return add_rows(session.pk, "phase", [{**whole, "number": number + 1, **each} for number, each in enumerate(phases)])


def result(name, passed):
    return {"name": name, "passed": passed}


def host_of(attempt):
    return Attempt.objects.get(pk=attempt).agent_id


def progress(rest, task):
    return rest.get(f"/api/tasks/{task}/").json()["progress"]


def test_a_task_that_never_began_has_all_its_phases_before_it(rest, task):
    assert progress(rest, task) == {
        "phases_done": 0, "phases_total": 3, "elapsed_s": None, "files_changed": [], "files_changed_total": 0,
        "tests": {"passed": 0, "failed": 0},
    }  # fmt: skip


def test_a_plain_task_has_no_phases(rest, session, device):
    _, nodes = add_constellation(session, 1)
    add_attempts(session, nodes[0], device)
    found = progress(rest, nodes[0])
    assert (found["phases_done"], found["phases_total"]) == (0, 0)
    assert found["elapsed_s"] > 0


def test_phases_files_and_tests_are_those_of_the_latest_attempt(rest, session, device, task):
    earlier, latest = add_attempts(session, task, device, 2)
    hosts = add_agents(session, 2)
    record(session.pk, set={"attempt": {str(earlier): {"agent_id": hosts[0]}, str(latest): {"agent_id": hosts[1]}}})
    done = {"ended_at": NOW, "outcome": "success"}
    add_phases(session, hosts[0], {**done, "files_changed": ["old.py"]}, done, done)
    first = {**done, "files_changed": ["b.py", "a.py"], "tests": [result("t1", False), result("t2", False)]}
    add_phases(session, host_of(latest), first, {"files_changed": ["a.py"], "tests": [result("t1", True)]})
    found = progress(rest, task)
    assert (found["phases_done"], found["phases_total"]) == (1, 3)
    assert (found["files_changed"], found["files_changed_total"]) == (["a.py", "b.py"], 2)
    assert found["tests"] == {"passed": 1, "failed": 1}


def test_app_agents_add_files_and_tests_and_no_phases(rest, session, device, task):
    host = host_of(add_attempts(session, task, device)[0])
    app = add_agents(session, parent_id=host)[0]
    below = add_agents(session, parent_id=app)[0]
    stranger = add_agents(session)[0]
    add_phases(session, host, {"ended_at": NOW, "files_changed": ["host.py"]})
    for agent, name in ((app, "app.py"), (below, "below.py"), (stranger, "stranger.py")):
        add_phases(session, agent, {"ended_at": NOW, "files_changed": [name], "tests": [result(name, True)]})
    found = progress(rest, task)
    assert found["files_changed"] == ["app.py", "below.py", "host.py"]
    assert (found["phases_done"], found["tests"]) == (1, {"passed": 2, "failed": 0})


def test_the_files_shown_are_bounded_and_their_number_is_not(rest, session, device, task, monkeypatch):
    monkeypatch.setattr(task_progress, "FILES", 2)
    host = host_of(add_attempts(session, task, device)[0])
    add_phases(session, host, {"files_changed": ["c", "b", "a"]})
    found = progress(rest, task)
    assert (found["files_changed"], found["files_changed_total"]) == (["a", "b"], 3)


def test_time_stops_with_the_attempt(rest, session, device, task):
    attempt = add_attempts(session, task, device)[0]
    times = {"started_at": "2026-01-01T00:00:00.000000Z", "ended_at": "2026-01-01T00:01:30.500000Z"}
    record(session.pk, set={"attempt": {str(attempt): times}})
    assert progress(rest, task)["elapsed_s"] == 90.5


def test_a_task_shows_the_approvals_that_wait_for_somebody(rest, session, task):
    waiting = add_approvals(session, 2, subject_id=task)
    add_approvals(session, subject_id=task, state="approved")
    add_approvals(session)
    row = rest.get(f"/api/tasks/{task}/").json()
    assert [each["id"] for each in row["approvals"]] == waiting
    assert row["approvals"][0]["action"]["tool"] == "command"


@pytest.mark.parametrize("count", [1, 60])
def test_a_tasks_page_costs_the_same_queries_however_much_was_done(
    rest, session, device, task, count, django_assert_max_num_queries
):  # fmt: skip
    host = host_of(add_attempts(session, task, device, count)[-1])
    for app in add_agents(session, count, parent_id=host):
        add_phases(session, app, {"files_changed": [str(app)]})
    add_approvals(session, count, subject_id=task)
    with django_assert_max_num_queries(11):
        assert rest.get(f"/api/tasks/{task}/").status_code == 200
