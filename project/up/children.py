"""The programs that `up` runs: each in a session of its own, with its output in a log file."""

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from django.conf import settings

from agents.devices.host import is_orphaned
from project.up.processes import Identity, Look, end_processes, in_session, is_alive, read_processes, with_descendants
from project.up.retired import RetiredRunners
from project.up.watchdog import Probe

LOG_BYTES = 10_000_000
"""A log that has grown beyond this begins again; the one before it is kept."""
TAIL_LINES = 15
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 30.0
"""Between an end and the next start; doubles from the first to the longest."""
STEADY_S = 10.0
"""After a start that lasted for so long the delay begins again with the first."""
TRIES = 3
"""Falls in a row of a child that never got ready, after which it is broken rather than unlucky."""


class SupervisedChild:
    """One program, its processes and how it fares. `probe` knows whether it works, `stop_s` how long a stop may take."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path, probe: Probe, stop_s: float):
        self.name, self.argv, self.env = name, list(argv), dict(env)
        self.log, self.probe, self.stop_s = log, probe, stop_s
        self.process: subprocess.Popen | None = None
        self.known: set[Identity] = set()
        self.retired: list[RetiredRunners] = []
        self.was_ready = self.is_announced = False
        self.start_at = 0.0
        self.started_at = 0.0
        self.falls = 0

    def start(self, now: float) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                cwd=settings.BASE_DIR,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started_at = now
        self.is_announced = False
        self.probe.started(now)

    def exit_code(self) -> int | None:
        """Of the main process: None while it runs."""
        return self.process.poll() if self.process is not None else None

    def is_running(self, seen: Look) -> bool:
        """Whether any process of it is left; reaps the main one."""
        self.exit_code()
        return bool(self.remember(seen))

    def cluster(self, seen: Look) -> set[Identity]:
        """The main process and what it forked, without the commands that run for tasks: those have sessions of their own."""
        return in_session(self.process.pid, seen) if self.process is not None else set()

    def has_orphans(self, seen: Look) -> bool:
        """Whether processes of it have outlived their parent, as a cluster's workers do when their sentinel dies."""
        return any(is_orphaned(identity.pid) for identity in self.cluster(seen))

    def remember(self, seen: Look) -> set[Identity]:
        """All living processes of this child, also those whose parents have died since the last look."""
        alive = {identity for identity in self.known if is_alive(identity)}
        self.known = with_descendants(alive | self.cluster(seen), seen)
        return self.known

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def look_at_retired(self, now: float, successors_work: bool) -> None:
        """Runners of an earlier fall go on, or are told to end where there are others."""
        self.retired = [retired for retired in self.retired if retired.look(now, successors_work)]

    def retired_runners(self) -> set[Identity]:
        return set[Identity]().union(*(retired.runners for retired in self.retired))

    def kill(self, but: Set[Identity] = frozenset()) -> None:
        """End its processes and then what these carry, or its processes `but` some that go on; the main one is reaped.

        A runner must not see the end of its commands before its own: it would record that as theirs.
        """
        self.remember(read_processes())
        end_processes(lambda seen: (self.cluster(seen) | self.retired_runners()) - but)
        if not but:
            end_processes(self.remember)
        if self.process is not None:
            self.process.wait()
            self.process = None

    def fell(self, now: float) -> float:
        """Plan the next start; returns the seconds until then."""
        if self.was_ready and now - self.started_at > STEADY_S:
            self.falls = 0
        delay = min(FIRST_DELAY_S * 2**self.falls, LONGEST_DELAY_S)
        self.falls += 1
        self.start_at = now + delay
        return delay

    def excused(self, now: float) -> None:
        """What it could not do was not its fault: where it has fallen, it starts at once."""
        self.falls, self.start_at = 0, min(self.start_at, now)
        self.probe.excused(now)

    @property
    def is_broken(self) -> bool:
        return not self.was_ready and self.falls >= TRIES

    def begin_log(self) -> None:
        """A fresh log; the last one is kept beside it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists():
            self.log.replace(previous_log(self.log))
        self.log.touch()

    def bound_log(self) -> None:
        """Its writer goes on in the same file, so that one is copied and emptied."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            shutil.copyfile(self.log, previous_log(self.log))
            os.truncate(self.log, 0)

    def last_lines(self) -> list[str]:
        if not self.log.exists():
            return []
        with self.log.open(errors="replace") as log:
            return [line.rstrip() for line in deque(log, TAIL_LINES)]


def previous_log(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
