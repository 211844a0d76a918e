"""Plans to carry out, and a runner that ends when it has carried them out."""

import json
import random
import time

from django.contrib.auth.models import User

from agents.engine.drives.drive import Drive
from agents.engine.runner import Runner
from agents.engine.sessions import Sessions
from agents.services.sessions import request_submit, session_create
from benchmarks.inside import tools  # noqa: F401 (registers the bodies)
from benchmarks.inside.furniture import DEVICE

WIDTH = 50
"""Tasks in a layer."""
UPSTREAMS = 2
"""Edges into a task, from the layer above."""
SEED = 1

Plan = dict


def layered(tasks: int, tool: str = "noop") -> Plan:
    """A random graph in layers, always the same one. Short names: a plan's text may have one million bytes."""
    chance = random.Random(SEED)
    rows = []
    for number in range(tasks):
        row = {"task_id": str(number), "device": DEVICE, "tool": tool}
        above = number // WIDTH * WIDTH - WIDTH
        if above >= 0:
            row["after"] = [str(upstream) for upstream in sorted(chance.sample(range(above, above + WIDTH), UPSTREAMS))]
        rows.append(row)
    return {"tasks": rows}


def chain(tasks: int, tool: str = "noop", **arguments) -> Plan:
    """One task after the other."""
    rows = [{"task_id": str(number), "device": DEVICE, "tool": tool, "arguments": arguments} for number in range(tasks)]
    for number, row in enumerate(rows[1:]):
        row["after"] = [str(number)]
    return {"tasks": rows}


def by() -> str:
    return f"user:{User.objects.get().pk}"


def session() -> int:
    return session_create(User.objects.get(), by=by()).pk


def submit(plan: Plan, into: int | None = None) -> int:
    """Post an interaction into a session, a new one unless one is given; returns the session."""
    into = into or session()
    request_submit(into, "interaction", "", payload(plan), by=by())
    return into


def payload(plan: Plan) -> dict:
    return {"plan": json.dumps(plan, separators=(",", ":"))}


class Watched(Sessions):
    """The real sessions of a runner, which tell it when something starts and when one of them has nothing to decide."""

    measured: "Measured"

    def _written(self, batch) -> None:
        if batch.starts:
            self.measured.begun()
        super()._written(batch)

    def _rest(self, drive: Drive) -> None:
        super()._rest(drive)
        if drive.hand.work is None and not drive.known.inbox("queued"):
            self.measured.rested(drive.stream)


class Measured(Runner):
    """The real runner, which stops once `sessions` sessions have done what they were asked; it says when that was.

    It looks only at sessions that have nothing to decide, so that it costs nothing while they work.
    """

    sessions_type = Watched

    def __init__(self, sessions: int = 1):
        super().__init__()
        self.sessions.measured = self
        self._wanted = sessions
        self._rested: set[int] = set()
        self.began_at = self.ended_at = self.began_cpu = self.ended_cpu = 0.0

    def begun(self) -> None:
        self.began_cpu = self.began_cpu or time.process_time()

    def rested(self, stream: int) -> None:
        self._rested.add(stream)
        if len(self._rested) == self._wanted and not self.ended_at:
            self.ended_at, self.ended_cpu = time.time(), time.process_time()
            self.stop()

    def run(self) -> None:
        self.began_at = time.time()
        super().run()
