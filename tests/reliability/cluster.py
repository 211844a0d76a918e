"""A real cluster of runners on the test's own database, and commands that leave their marks in a file beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from agents.devices import host
from agents.devices.processes import is_same_process, list_pids, read_mark
from agents.models import Runner
from constellations.models import Attempt

PATIENCE_S = 120.0
"""Far above what anything here takes: what is bounded is that it happens at all."""
LOOK_S = 0.005
LOOKING_SHARE = 4
"""A pause is so many times what the look before it cost: looking takes a fifth of a processor at most."""
SCRIPT = 'echo "$ORRERY_ATTEMPT start $(date +%s.%N)" >>"$0"; sleep "$1"; echo "$ORRERY_ATTEMPT end $(date +%s.%N)" >>"$0"'


def until(condition: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for a condition, bounded. After a look that costs much comes a longer pause: others need the processor."""
    deadline, pause = time.monotonic() + within_s, Event()
    began = time.thread_time()
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {within_s:g} s"
        pause.wait(max(LOOK_S, LOOKING_SHARE * (time.thread_time() - began)))
        began = time.thread_time()


def database_url() -> str:
    """The test database, as another process finds it."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    account = quote(found["USER"]) + (f":{quote(found['PASSWORD'])}" if found["PASSWORD"] else "")
    return f"postgresql://{account}@{found['HOST'] or 'localhost'}:{found['PORT'] or 5432}/{found['NAME']}"


class Cluster:
    """`manage.py qcluster` of the runners, in a process group of its own; `kill` ends all of it in one blow."""

    def __init__(self, folder: Path, runners: int = 2, drain_s: float = 30):
        self.folder, self.size = folder, runners
        self.env = {
            **os.environ, "ORRERY_STATE_DIR": str(folder), "DATABASE_URL": database_url(), "ORRERY_RUNNERS": str(runners),
            "ORRERY_DRAIN_S": str(drain_s), "Q_CLUSTER_NAME": "runners", "ORRERY_SECRET_KEY": settings.SECRET_KEY,
            "ORRERY_WRITABLE": str(folder),  # commands leave marks there, which is no test of walls
        }  # fmt: skip
        self.process: subprocess.Popen | None = None

    def start(self, among: int = 0) -> None:
        """Returns when all its runners are at work, and with those of other clusters `among` so many."""
        with (self.folder / "cluster.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "qcluster"], cwd=settings.BASE_DIR, env=self.env,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wanted = among or self.size
        until(lambda: len(self.runners()) == wanted, f"{wanted} runners, see {self.folder / 'cluster.log'}")

    def runners(self) -> list[Runner]:
        """Those that live, oldest first."""
        rows = Runner.objects.filter(state="LIVE").order_by("pk")
        return [row for row in rows if is_same_process(row.pid, row.pid_start)]

    def kill(self) -> None:
        """SIGKILL to every process of the cluster at once; commands are in groups of their own."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def log(self) -> str:
        return (self.folder / "cluster.log").read_text()


class OneRunner:
    """A runner by itself, a process of its own: nobody brings it back when it was killed."""

    RUN = "import django; django.setup(); from agents.engine.runner import Runner; Runner().run()"

    def __init__(self, folder: Path):
        # As in the tests' own process: what the programs of tests need lies in the repository, which walls hide.
        walls = {"ORRERY_CONFINEMENT": "none", "ORRERY_UNCONFINED_COMMANDS": "1"}
        self.env = Cluster(folder).env | {"DJANGO_SETTINGS_MODULE": "project.settings", **walls}
        self.log = folder / "runner.log"
        known = set(Runner.objects.values_list("pk", flat=True))
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.RUN], cwd=settings.BASE_DIR, env=self.env, stdout=log, stderr=log
            )
        fresh = Runner.objects.filter(state="LIVE").exclude(pk__in=known)
        until(fresh.exists, f"a runner, see {self.log}")
        self.pk = fresh.get().pk

    def stop_for_a_while(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def marked() -> set[int]:
    """Processes that work for an attempt of this database, whoever started them."""
    instance = host.instance_name()
    return {pid for pid in list_pids() if (found := read_mark(pid)) is not None and found.instance == instance}


class Marks:
    """The file to which each command appends when its attempt starts and when it ends."""

    def __init__(self, folder: Path):
        self.path = folder / "marks"
        self.path.touch()

    def command(self, task_id: str, device: str, seconds: float, **more) -> dict:
        return {"task_id": task_id, "device": device, "command": ["sh", "-c", SCRIPT, str(self.path), f"{seconds:g}"], **more}

    def count(self, kind: str) -> int:
        return self.path.read_text().count(f" {kind} ")

    def times(self) -> dict[int, dict[str, float]]:
        """{attempt: {"start": seconds since 1970, "end": ...}}; fails when an attempt says the same thing twice."""
        found: dict[int, dict[str, float]] = {}
        for line in self.path.read_text().splitlines():
            attempt, kind, at = line.split()
            assert kind not in found.setdefault(int(attempt), {}), f"attempt {attempt} has two marks of its {kind}"
            found[int(attempt)][kind] = float(at)
        return found

    def check(self) -> None:
        """The file and the attempts agree, and no two attempts of a task overlap."""
        times, attempts = self.times(), list(Attempt.objects.order_by("task_id", "number"))
        assert set(times) <= {attempt.pk for attempt in attempts}
        before: tuple[int, float] = 0, 0.0
        for attempt in attempts:
            seen = times.get(attempt.pk, {})
            assert attempt.outcome in ("completed", "lost"), attempt
            assert set(seen) == {"start", "end"} or attempt.outcome == "lost", f"{attempt}: {seen}"
            assert attempt.ended_at is not None
            # A lost attempt's end is recorded after its processes are gone.
            end = seen.get("end") or attempt.ended_at.timestamp()
            if before[0] == attempt.task_id and "start" in seen:
                assert before[1] <= seen["start"], f"{attempt} began while the attempt before it still ran"
            before = attempt.task_id, end
