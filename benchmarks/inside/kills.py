"""kill -9 of the runner that owns a session, in the middle of its graph."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

from agents.models import InboxItem, Lease, Runner
from agents.streams.verify import verify_database
from benchmarks.inside import load
from benchmarks.inside.tools import clock, witnesses
from constellations.models import Attempt

LOOK_S = 0.0005
PATIENCE_S = 30
"""A graph that takes longer than this after a kill stands still."""


def measure(tasks: int, runners: int) -> dict:
    """Kill the owner after a third of the bodies; where no runner is left, start one at once.

    Returns seconds until the next body, tasks with a durable end that ran again, and bodies that ran twice.
    """
    started = [_start() for _ in range(runners)]
    try:
        _wait(lambda: Runner.objects.count() == runners)
        session = load.submit(load.layered(tasks, "witness"))
        _wait(lambda: len(_bodies()) > tasks / 3)
        killed_at, pid = _kill(session)
        durable = set(Attempt.objects.filter(outcome="completed").values_list("task_id", flat=True))
        if runners == 1:
            started.append(_start())
        _wait(lambda: InboxItem.objects.filter(state="done").exists())
    finally:
        for process in started:
            process.terminate()
            process.wait()
    return _account(killed_at, pid, durable, tasks)


def _start() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.inside", "runners.serve", "{}"], stdout=subprocess.DEVNULL)


def _kill(session: int) -> tuple[float, int]:
    pid = Lease.objects.select_related("runner").get(stream=session).runner.pid
    os.kill(pid, signal.SIGKILL)
    return clock(), pid


def _bodies() -> list[tuple[float, int, int]]:
    """(when, in which process, for which attempt) of every body that ran."""
    try:
        lines = witnesses().read_text().splitlines()
    except FileNotFoundError:
        return []
    return [(float(at), int(pid), int(attempt)) for at, pid, attempt in map(str.split, lines)]


def _account(killed_at: float, killed: int, durable: set[int], tasks: int) -> dict:
    task_of = dict(Attempt.objects.values_list("id", "task_id"))
    bodies = [(at, pid, task_of[attempt]) for at, pid, attempt in _bodies()]
    after = [(at, task) for at, pid, task in bodies if pid != killed]
    ran = Counter(task for _, _, task in bodies)
    assert len(ran) == tasks, f"only {len(ran)} of {tasks} tasks ran: what the killed runner left was not taken over"
    return {
        "first": after[0][0] - killed_at,
        "again": len({task for _, task in after} & durable),
        "twice": sum(count > 1 for count in ran.values()),
        "before": len(bodies) - len(after),
        "findings": list(verify_database())[:10],
    }


def _wait(condition) -> None:
    deadline = clock() + PATIENCE_S
    while not condition():
        assert clock() < deadline, "the graph stands still after the kill"
        time.sleep(LOOK_S)
