"""The installation that a kill storm strikes, and the strikes: SIGKILL to its programs by what they are."""

from __future__ import annotations

import http.client
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from agents.devices.host import runtime_dir
from agents.models import Runner
from project.up.instance import Instance
from project.up.processes import Identity, Look, find_marked, is_alive, read_processes

RUNNERS = 2
WEB_LOOK_S = 0.02
WEB_PATIENCE_S = 1.0
"""A web server that is silent for so long does not answer."""


class Target:
    """`manage.py up` with everything it has started."""

    def __init__(self, port: int):
        self.port = port
        self.output = settings.STATE_DIR / "up.out"
        self._instance = Instance(runtime_dir())
        self._up: subprocess.Popen | None = None
        self._jobs_struck = 0
        self._starts = 0

    def start(self) -> None:
        self._starts += 1
        argv = [sys.executable, "manage.py", "up", "--port", str(self.port), "--runners", str(RUNNERS)]
        with self.output.open("a") as output:
            self._up = subprocess.Popen(
                argv, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def end(self) -> None:
        if self._up is not None:
            self._kill_up()
            self._instance.end_leftovers()

    def has_ended(self) -> bool:
        """`up` should never end by itself."""
        return self._up is not None and self._up.poll() is not None

    def programs(self, seen: Look) -> set[Identity]:
        """All that `up` has started, without what these run for tasks."""
        return find_marked(self._instance.mark, seen)

    def cluster(self, name: str, seen: Look) -> list[Identity]:
        """Living main process, sentinel, and the sentinel's children; shorter where one of the first two has died."""
        wanted = f"Q_CLUSTER_NAME={name}".encode()
        members = [one for one in self.programs(seen) if wanted in _environment(one.pid)]
        mains = [one for one in members if seen[one.pid].session == one.pid]
        sentinels = [one for one in members if seen[one.pid].parent in {main.pid for main in mains}]
        return [*mains, *sentinels, *(one for one in members if seen[one.pid].parent in {each.pid for each in sentinels})]

    def runners(self) -> list[Identity]:
        """Those that the database takes for alive and that are."""
        rows = Runner.objects.exclude(state="ENDED").order_by("pk").values_list("pid", "pid_start")
        return [one for one in (Identity(*row) for row in rows) if is_alive(one)]

    def is_whole(self) -> bool:
        """Everything is there again, but for what only the watchdog sees."""
        seen = read_processes()
        if self.output.read_text().count("Orrery is up") < self._starts:
            return False
        return len(self.runners()) >= RUNNERS and all(len(self.cluster(name, seen)) >= 5 for name in ("jobs", "runners"))

    def victims(self, kind: str, chance: random.Random) -> set[Identity]:
        """Whom a strike of this kind kills now."""
        seen = read_processes()
        return set(VICTIMS[kind](self, seen, chance))

    def _a_job(self, seen: Look, chance: random.Random) -> list[Identity]:
        """One process of the jobs' cluster, each in turn."""
        members = self.cluster("jobs", seen)
        self._jobs_struck += 1
        return members[self._jobs_struck % len(members) :][:1] if members else []

    def _web(self, seen: Look) -> list[Identity]:
        return [one for one in self.programs(seen) if b"project.web_server" in _command_line(one.pid)]

    def _a_runner(self, seen: Look, chance: random.Random) -> list[Identity]:
        runners = self.runners()
        return [chance.choice(runners)] if runners else []

    def restart(self) -> None:
        """kill -9 of `up` alone, and a new start at once."""
        self._kill_up()
        self.start()

    def _kill_up(self) -> None:
        assert self._up is not None
        self._up.kill()
        self._up.wait()


VICTIMS: dict[str, Callable[[Target, Look, random.Random], list[Identity]]] = {
    "runner": Target._a_runner,
    "sentinel": lambda target, seen, chance: target.cluster("runners", seen)[1:2],
    "main": lambda target, seen, chance: target.cluster("runners", seen)[:1],
    "web": lambda target, seen, chance: target._web(seen),
    "jobs": Target._a_job,
    "all": lambda target, seen, chance: list(target.programs(seen)),
}
KINDS = (*VICTIMS, "up")


def _environment(pid: int) -> list[bytes]:
    return _content(pid, "environ").split(b"\0")


def _command_line(pid: int) -> list[bytes]:
    return _content(pid, "cmdline").split(b"\0")


def _content(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended
        return b""


class WebWatch(threading.Thread):
    """Asks the web server again and again. `outages`: [from, to] in seconds since 1970, the last one perhaps without an end."""

    def __init__(self, port: int):
        super().__init__(daemon=True)
        self._port = port
        self._over = threading.Event()
        self.outages: list[list[float]] = []
        self.answers = 0

    def run(self) -> None:
        while not self._over.wait(WEB_LOOK_S):
            asked_at = time.time()
            if self._answers():
                self.answers += 1
                if self.is_out():
                    self.outages[-1].append(time.time())
            elif self.answers and not self.is_out():
                self.outages.append([asked_at])

    def is_out(self) -> bool:
        return bool(self.outages) and len(self.outages[-1]) == 1

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=WEB_PATIENCE_S)
        try:
            connection.request("GET", "/health/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True
