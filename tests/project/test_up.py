"""`manage.py up` as it is used: the real web server and clusters, in a state folder of their own, on a free port."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from project.instance import Instance
from project.processes import Identity, is_alive, look, marked, send

START_S = 60.0
STOP_S = 45.0
REPAIR_S = 30.0
"""Far above what it takes (about 6 s): what these tests bound is that it happens at all, on a busy machine too."""
LINES = {name: f"{name:<8} ready" for name in ("web", "jobs", "runners")}


def until(condition: Callable[[], object], within_s: float, what: Callable[[], str]) -> None:
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what()
        pause.wait(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextlib.contextmanager
def a_database(folder: Path) -> Iterator[str]:
    """The URL of an empty database of the kind the tests run on, gone afterwards."""
    given = settings.DATABASES["default"]
    if given["ENGINE"].endswith("sqlite3"):
        yield f"sqlite:///{folder / 'up.sqlite3'}"
        return
    server = f"{given['HOST'] or 'localhost'}:{given['PORT'] or 5432}"
    account = f"{given['USER']}:{given['PASSWORD']}" if given["PASSWORD"] else given["USER"]
    name = f"orrery_up_{os.getpid()}"
    with psycopg.connect(f"postgresql://{account}@{server}/postgres", autocommit=True) as server_connection:
        server_connection.execute(f"DROP DATABASE IF EXISTS {name}")
        server_connection.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://{account}@{server}/{name}"
        server_connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Installation:
    """A migrated database with a state folder, and the `up` that serves it."""

    def __init__(self, folder: Path, database_url: str):
        self.folder, self.url, self.port = folder, database_url, free_port()
        self.env = {**os.environ, "ORRERY_STATE_DIR": str(folder), "DATABASE_URL": database_url, "ORRERY_RUNNERS": "2"}
        self.up: subprocess.Popen | None = None
        self._output = folder / "up.out"

    def manage(self, *arguments: str) -> subprocess.CompletedProcess:
        argv = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            argv, cwd=settings.BASE_DIR, env=self.env, capture_output=True, text=True, timeout=START_S, check=False
        )

    def start(self, *arguments: str) -> None:
        argv = [sys.executable, "manage.py", "up", "--port", str(self.port), *arguments]
        with self._output.open("w") as output:
            self.up = subprocess.Popen(argv, cwd=settings.BASE_DIR, env=self.env, stdout=output, stderr=subprocess.STDOUT)

    def is_up(self) -> bool:
        return "Orrery is up" in self.said()

    def said(self) -> str:
        return self._output.read_text()

    def until(self, condition: Callable[[], object], within_s: float) -> None:
        until(condition, within_s, self.said)

    def count(self, name: str) -> int:
        """How often this child has got ready."""
        return self.said().count(LINES[name])

    @property
    def instance(self) -> Instance:
        (runtime,) = (path for path in (self.folder / "run").iterdir() if (path / "up.lock").exists())
        return Instance(runtime)

    def processes(self) -> set[Identity]:
        return marked(self.instance.mark, look())

    def cluster(self, name: str) -> list[Identity]:
        """Main process, sentinel, and the sentinel's children: workers, monitor, pusher, in the order of their start."""
        wanted = f"Q_CLUSTER_NAME={name}\0".encode()
        seen = look()
        members = [one for one in self.processes() if wanted in Path(f"/proc/{one.pid}/environ").read_bytes()]
        return sorted(members, key=lambda one: (_depth(one.pid, seen), one.start, one.pid))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.url.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)) as connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql).fetchall()

    def runners(self) -> set[Identity]:
        """The runners that the database takes for alive and that are."""
        found = self.rows("SELECT pid, pid_start FROM agents_runner WHERE state <> 'ENDED'")
        return {identity for identity in (Identity(*row) for row in found) if is_alive(identity)}

    def health(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/", timeout=5) as answer:
            return answer.status

    def end(self) -> None:
        if self.up is not None:
            self.up.kill()
            self.up.wait()
            self.instance.end_leftovers()


def _depth(pid: int, seen) -> int:
    depth = 0
    while pid in seen and seen[pid].session != pid:
        pid, depth = seen[pid].parent, depth + 1
    return depth


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
    assert send(worker, signal.SIGKILL)
    serving.until(lambda: serving.count("jobs") == 2, REPAIR_S)
    assert "jobs: no job came back within" in serving.said()
    assert not is_alive(worker)
    assert serving.count("runners") == serving.count("web") == 1


def test_a_killed_runner_is_replaced(serving):
    killed = min(serving.runners())
    assert send(killed, signal.SIGKILL)
    serving.until(lambda: len(serving.runners() - {killed}) == 2, REPAIR_S)


def test_an_idle_worker_killed_among_the_runners_is_repaired(serving):
    """A runner that ended leaves its worker idle at the queue, holding its lock: the one a kill can block the others with."""
    idle = min(serving.runners())
    send(idle, signal.SIGTERM)
    serving.until(lambda: idle not in serving.runners() or not is_alive(idle), REPAIR_S)
    send(idle, signal.SIGKILL)
    serving.until(lambda: not is_alive(idle) and len(serving.runners()) == 2, REPAIR_S)


@pytest.mark.parametrize("place", [0, 1], ids=["main", "sentinel"])
def test_the_orphans_of_a_killed_cluster_are_ended_and_it_starts_again(serving, place):
    before = serving.cluster("runners")
    send(before[place], signal.SIGKILL)
    serving.until(lambda: serving.count("runners") == 2, REPAIR_S)
    assert [identity for identity in before if is_alive(identity)] == []
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
from agents import services
from project.demo import demo_user
user = demo_user()
session = services.session_create(user, "kills", by="system")
script = 'echo "$ORRERY_ATTEMPT start $(date +%s.%N)" >>"$0"; sleep 0.05; echo "$ORRERY_ATTEMPT end $(date +%s.%N)" >>"$0"'
devices = ("laptop", "gpu_server", "test_server", "prod_server")
argv = ["sh", "-c", script, MARKS]
tasks = [{"task_id": f"t{n}", "device": devices[n % 4], "command": argv, "max_attempts": 3} for n in range(300)]
services.command_submit(session.pk, "interaction", "kills", {"plan": json.dumps({"tasks": tasks})}, by="system")
"""
OPEN = "SELECT count(*) FROM agents_inboxitem WHERE client_id = 'kills' AND state <> 'done'"


def test_a_run_of_300_commands_survives_the_death_of_its_clusters_and_of_idle_workers(serving, tmp_path):
    marks = tmp_path / "marks"
    marks.touch()
    send(serving.cluster("jobs")[2], signal.SIGKILL)
    serving.until(lambda: serving.count("jobs") == 2, REPAIR_S)
    done = serving.manage("shell", "-v", "0", "-c", SUBMIT.replace("MARKS", repr(str(marks))))
    assert done.returncode == 0, done.stderr
    serving.until(lambda: marks.read_text().count(" end ") > 60, START_S)
    for identity in serving.cluster("runners") + serving.cluster("jobs"):
        send(identity, signal.SIGKILL)
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
