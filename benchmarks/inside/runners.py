"""A runner as it is in production, in a process of its own."""

import asyncio
import json
import os
import signal
import threading
from pathlib import Path

from django.conf import settings

from agents.engine.runner import Runner
from benchmarks.inside import tools  # noqa: F401 (registers the bodies)

POOLS = ("asyncio_", "reader", "plans", "short plans", "hooks")
"""Names of threads."""


def serve() -> None:
    """Until the process is told to end. On SIGUSR1 it writes what it holds."""
    runner = Runner()
    signal.signal(signal.SIGUSR1, lambda *_: _write(runner))
    print(json.dumps("ready"), flush=True)
    runner.run()


def held_by(pid: int) -> Path:
    """Where a runner writes what it holds: asyncio tasks, threads, sessions."""
    return settings.STATE_DIR / f"held-{pid}"


def _write(runner: Runner) -> None:
    """Threads of pools are not counted: they are few, wait for work themselves, and whoever waits for one has a task."""
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith(POOLS)]
    tasks, sessions = len(asyncio.all_tasks(runner._loop)), len(runner.sessions.drives)
    path = held_by(os.getpid())
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"tasks": tasks, "threads": len(threads), "sessions": sessions}))
    fresh.rename(path)
