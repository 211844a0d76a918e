"""Fresh installations to measure on: each with a database, a state folder and processes of its own.

The database is migrated and furnished once (a user, a token, a device with many slots); every place is a copy of it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parents[1]
POSTGRES_URL = os.environ.get("POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
CALL_S = 180
"""Seconds one measurement may take before it counts as broken."""
START_S = 30
END_S = 10
"""Seconds a process may take to start, and to end when told to."""
LOOK_S = 0.02


class BenchmarkFailed(Exception):
    """A benchmark could not be measured; a slow one is never an error."""


class Sqlite:
    """Databases as files of one folder."""

    name = "sqlite"

    def __init__(self, folder: Path):
        self._folder = folder

    def url(self, database: str) -> str:
        return f"sqlite:///{self._file(database)}"

    def create(self, database: str, template: str = "") -> None:
        if template:
            shutil.copyfile(self._file(template), self._file(database))

    def drop(self, database: str) -> None:
        for end in ("", "-wal", "-shm"):
            Path(f"{self._file(database)}{end}").unlink(missing_ok=True)

    def _file(self, database: str) -> Path:
        return self._folder / f"{database}.sqlite3"


class Postgres:
    """Databases of one PostgreSQL server, named after this process."""

    name = "postgres"

    def __init__(self, folder: Path):
        self._server = POSTGRES_URL.rpartition("/")[0]

    @staticmethod
    def is_reachable() -> bool:
        try:
            psycopg.connect(f"{POSTGRES_URL.rpartition('/')[0]}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        return f"{self._server}/{self._named(database)}"

    def create(self, database: str, template: str = "") -> None:
        self._execute(f"CREATE DATABASE {self._named(database)}" + (f" TEMPLATE {self._named(template)}" if template else ""))

    def drop(self, database: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {self._named(database)} WITH (FORCE)")

    def _named(self, database: str) -> str:
        return f"orrery_bench_{os.getpid()}_{database}"

    def _execute(self, statement: str) -> None:
        with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
            connection.execute(statement)


DATABASES = {"sqlite": Sqlite, "postgres": Postgres}


class Process:
    """A function of `benchmarks.inside` in a process of its own; JSON lines come out of it."""

    def __init__(self, popen: subprocess.Popen[str], function: str):
        self._popen, self._function, self.pid = popen, function, popen.pid

    def read(self) -> Any:
        """The next thing it says."""
        assert self._popen.stdout is not None
        ready, _, _ = select.select([self._popen.stdout], [], [], CALL_S)
        line = self._popen.stdout.readline() if ready else ""
        if not line:
            raise BenchmarkFailed(f"{self._function} said nothing for {CALL_S} s" if not ready else f"{self._function} broke")
        return json.loads(line)

    def result(self) -> Any:
        """The last thing it says, once it has ended."""
        found = self.read()
        self._popen.wait(END_S)
        return found

    def end(self) -> None:
        """Ask it to end, then end it and whatever it started."""
        self._popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_S)
        with suppress(ProcessLookupError):  # the usual case: the whole group has ended
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


class Place:
    """One installation."""

    def __init__(self, database: str, url: str, state: Path, furniture: dict[str, Any], settings: dict[str, str]):
        self.database, self.url, self.furniture = database, url, furniture
        own = {
            "DATABASE_URL": url, "ORRERY_STATE_DIR": str(state), "DJANGO_SETTINGS_MODULE": "project.settings",
            "ORRERY_DRAIN_S": "1", "ORRERY_LOG_LEVEL": "ERROR",
        }  # fmt: skip
        self._environment = {**os.environ, **own, **settings}

    def call(self, function: str, **arguments: Any) -> Any:
        """What `benchmarks.inside.FUNCTION(**arguments)` returns in a fresh process."""
        with self.process(function, **arguments) as process:
            return process.result()

    @contextmanager
    def process(self, function: str, **arguments: Any) -> Iterator[Process]:
        """The same, side by side with the caller: it runs until the end of the block at the latest."""
        command = [sys.executable, "-m", "benchmarks.inside", function, json.dumps(arguments)]
        process = Process(self._started(command, stdout=subprocess.PIPE, text=True), function)
        try:
            yield process
        finally:
            process.end()

    @contextmanager
    def web(self) -> Iterator[tuple[int, int]]:
        """A web server: (port, pid)."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "project.web_server",
            "-v",
            "0",
            "-b",
            "127.0.0.1",
            "-p",
            str(port),
            "benchmarks.inside.web:application",
        ]
        server = Process(self._started(command, stdout=subprocess.DEVNULL), "the web server")
        try:
            _wait_for(port)
            yield port, server.pid
        finally:
            server.end()

    @contextmanager
    def scripted_model(self, script: Path) -> Iterator[str]:
        """A scripted model over HTTP: the base URL of its chat completions."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, str(ROOT / "manage.py"), "scripted_model", str(script), "--port", str(port)]
        server = Process(self._started(command, stdout=subprocess.DEVNULL), "the scripted model")
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.end()

    def _started(self, command: list[str], **streams: Any) -> subprocess.Popen:
        return subprocess.Popen(command, cwd=ROOT, env=self._environment, start_new_session=True, **streams)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise BenchmarkFailed(f"nothing listens on port {port} after {START_S} s") from error
        time.sleep(LOOK_S)


class Ground:
    """Where places of one kind of database are made."""

    def __init__(self, folder: Path, database: str):
        self.database, self._folder = database, folder
        self._databases = DATABASES[database](folder)
        self._count = 0
        self._furniture: dict[str, Any] = {}

    def prepare(self) -> None:
        self._databases.create("template")
        self._furniture = self._at("template", {}).call("furniture.furnish")

    def clear(self) -> None:
        self._databases.drop("template")

    @contextmanager
    def place(self, like: Place | None = None, **settings: str) -> Iterator[Place]:
        """A fresh place, or one with a copy of another's database; `settings` are environment variables."""
        self._count += 1
        name = f"place{self._count}"
        self._databases.create(name, like.database if like else "template")
        try:
            yield self._at(name, settings)
        finally:
            self._databases.drop(name)

    def _at(self, name: str, settings: dict[str, str]) -> Place:
        state = self._folder / f"{self.database}-{name}"
        state.mkdir()
        return Place(name, self._databases.url(name), state, self._furniture, settings)


@contextmanager
def ground(database: str) -> Iterator[Ground]:
    """Ground for places, cleared at the end."""
    with tempfile.TemporaryDirectory(prefix="orrery-bench-") as folder:
        made = Ground(Path(folder), database)
        try:
            made.prepare()
            yield made
        finally:
            made.clear()
