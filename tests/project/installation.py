"""An installation of its own for a test: a database, a state folder, a free port, and the processes that serve it."""

import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from project.up.instance import Instance
from project.up.processes import Identity, find_marked, is_alive, read_processes

START_S = 180.0
STOP_S = 120.0
REPAIR_S = 120.0
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
        self.env["ORRERY_WRITABLE"] = str(folder.parent)  # where tests have files for their commands
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
        return find_marked(self.instance.mark, read_processes())

    def cluster(self, name: str) -> list[Identity]:
        """Main process, sentinel, and the sentinel's children: workers, monitor, pusher, in the order of their start."""
        wanted = f"Q_CLUSTER_NAME={name}\0".encode()
        seen = read_processes()
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
