"""`manage.py up` as it is used: the real web server and clusters, in a state folder of their own, on a free port."""

import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest

from project.up.processes import is_alive, send_signal
from tests.project.installation import REPAIR_S, START_S, STOP_S, Installation, a_database, free_port

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def migrated(tmp_path_factory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    with a_database(folder) as url:
        installation = Installation(folder, url)
        done = installation.manage("migrate", "-v", "0")
        assert done.returncode == 0, done.stderr
        yield installation


@pytest.fixture
def serving(migrated) -> Iterator[Installation]:
    """An installation that is up, with everything ready."""
    migrated.start()
    try:
        migrated.until(migrated.is_up, START_S)
        yield migrated
    finally:
        migrated.end()


def test_without_migrations_it_says_what_to_run(tmp_path):
    installation = Installation(tmp_path, f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    done = installation.manage("up", "--port", str(installation.port))
    assert done.returncode == 1
    assert "migrations; run: python manage.py migrate" in done.stderr


def test_it_serves_and_one_interrupt_leaves_no_process(serving):
    assert serving.health() == 200
    assert len(serving.runners()) == 2
    everything = serving.processes()
    assert {len(serving.cluster("jobs")), len(serving.cluster("runners"))} == {5, 6}
    serving.up.send_signal(signal.SIGINT)
    assert serving.up.wait(STOP_S) == 0
    assert [identity for identity in everything if is_alive(identity)] == []
    assert serving.processes() == set()
    assert serving.runners() == set()


def test_a_second_one_is_refused_and_may_replace_the_first(serving):
    refused = serving.manage("up", "--port", str(free_port()))
    assert refused.returncode == 1
    assert f"up on this database already at http://127.0.0.1:{serving.port}/ (process {serving.up.pid})" in refused.stderr
    assert serving.health() == 200
    first, before = serving.up, serving.processes()
    serving.start("--replace")
    serving.until(serving.is_up, START_S + STOP_S)
    assert first.wait(STOP_S) == 0
    assert [identity for identity in before if is_alive(identity)] == []
    assert serving.health() == 200


def test_a_killed_idle_worker_of_the_jobs_is_repaired(serving):
    worker = serving.cluster("jobs")[2]
    assert send_signal(worker, signal.SIGKILL)
    serving.until(lambda: serving.count("jobs") == 2, REPAIR_S)
    assert "jobs: no job came back within" in serving.said()
    assert not is_alive(worker)
    assert serving.count("runners") == serving.count("web") == 1


def test_a_killed_runner_is_replaced(serving):
    killed = min(serving.runners())
    assert send_signal(killed, signal.SIGKILL)
    serving.until(lambda: len(serving.runners() - {killed}) == 2, REPAIR_S)


def test_an_idle_worker_killed_among_the_runners_is_repaired(serving):
    """A runner that ended leaves its worker idle at the queue, holding its lock: the one a kill can block the others with."""
    idle = min(serving.runners())
    send_signal(idle, signal.SIGTERM)
    serving.until(lambda: idle not in serving.runners() or not is_alive(idle), REPAIR_S)
    send_signal(idle, signal.SIGKILL)
    serving.until(lambda: not is_alive(idle) and len(serving.runners()) == 2, REPAIR_S)


@pytest.mark.parametrize("place", [0, 1], ids=["main", "sentinel"])
def test_the_runners_of_a_killed_cluster_work_on_until_there_are_others(serving, place):
    before, working = serving.cluster("runners"), serving.runners()
    send_signal(before[place], signal.SIGKILL)
    serving.until(lambda: "runners: next start in" in serving.said(), REPAIR_S)
    assert {identity for identity in before if is_alive(identity)} == working
    serving.until(lambda: serving.count("runners") == 2, REPAIR_S)
    serving.until(lambda: not any(is_alive(identity) for identity in before), REPAIR_S)
    assert len(serving.runners()) == 2


def test_what_a_killed_up_left_is_ended_by_the_next(serving):
    left = serving.processes()
    serving.up.kill()
    serving.up.wait()
    assert all(is_alive(identity) for identity in left)
    serving.start()
    serving.until(serving.is_up, START_S)
    assert f"Ended {len(left)} processes that an earlier run had left." in serving.said()
    assert [identity for identity in left if is_alive(identity)] == []
    assert serving.health() == 200


SUBMIT = """
import json, sys
from agents.services import sessions
from project.demo.demo import demo_user
user = demo_user()
session = sessions.session_create(user, "kills", by="system")
script = 'echo "$ORRERY_ATTEMPT start $(date +%s.%N)" >>"$0"; sleep 0.05; echo "$ORRERY_ATTEMPT end $(date +%s.%N)" >>"$0"'
devices = ("laptop", "gpu_server", "test_server", "prod_server")
argv = ["sh", "-c", script, MARKS]
tasks = [{"task_id": f"t{n}", "device": devices[n % 4], "command": argv, "max_attempts": 3} for n in range(300)]
sessions.request_submit(session.pk, "interaction", "kills", {"plan": json.dumps({"tasks": tasks})}, by="system")
"""
OPEN = "SELECT count(*) FROM agents_inboxitem WHERE client_id = 'kills' AND state <> 'done'"


def test_a_run_of_300_commands_survives_the_death_of_its_clusters_and_of_idle_workers(serving, tmp_path):
    marks = tmp_path / "marks"
    marks.touch()
    send_signal(serving.cluster("jobs")[2], signal.SIGKILL)
    serving.until(lambda: serving.count("jobs") == 2, REPAIR_S)
    done = serving.manage("shell", "-v", "0", "-c", SUBMIT.replace("MARKS", repr(str(marks))))
    assert done.returncode == 0, done.stderr
    serving.until(lambda: marks.read_text().count(" end ") > 60, START_S)
    for identity in serving.cluster("runners") + serving.cluster("jobs"):
        send_signal(identity, signal.SIGKILL)
    serving.until(lambda: serving.rows(OPEN) == [(0,)], START_S)

    times: dict[int, dict[str, float]] = {}
    for line in marks.read_text().splitlines():
        attempt, kind, at = line.split()
        times.setdefault(int(attempt), {})[kind] = float(at)
    columns = "id, task_id, outcome FROM constellations_attempt ORDER BY task_id, number"
    attempts = serving.rows(f"SELECT {columns}")
    completed = [row for row in attempts if row[2] == "completed"]
    assert len(completed) == len({row[1] for row in attempts}) == 300
    assert {row[2] for row in attempts} <= {"completed", "lost"}
    assert all(set(times[row[0]]) == {"start", "end"} for row in completed)
    for earlier, later in pairwise(attempts):
        if earlier[1] == later[1] and earlier[0] in times and later[0] in times:
            assert max(times[earlier[0]].values()) < times[later[0]]["start"]
    checked = serving.manage("verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
