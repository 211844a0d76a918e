"""A coding agent of our own as a device, and plans that have it do what they say."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.devices.host import instance_name
from agents.devices.processes import list_pids, read_mark
from agents.models import Approval, Device
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from constellations.models import Task
from tests.constellations.runs.attempts.test_crews import found
from tests.constellations.runs.test_run import in_thread

AGENT = [sys.executable, str(Path(__file__).with_name("scripted_agent.py"))]


def make_coder(name: str = "coder", **connection) -> Device:
    """A device that is the scripted agent."""
    settings = {"profile": "opencode", "argv": AGENT, **connection}
    return device_create(name, by="system", kind="acp", connection=settings, max_concurrent=2)


@pytest.fixture
def coder(transactional_db) -> Device:
    return make_coder()


def errand(*steps: dict, task_id: str = "work", **more) -> dict:
    """A task in words that has the scripted agent make these steps."""
    return {"task_id": task_id, "device": "coder", "description": "DO: " + json.dumps(steps), **more}


def carry_out(engine, *steps: dict, **more) -> Task:
    return engine.carry_out({"tasks": [errand(*steps, **more)]}).tasks.get()


def conduct(engine, *acts: Act) -> None:
    """Run to the end of all requests; each act is made once its condition holds, one after the other."""
    left = list(acts)
    ended = found("agents_inboxitem", "state IN ('queued', 'running')")

    def look() -> bool:
        if left and left[0].when():
            act = left.pop(0)
            in_thread(act.do)
        return not left and not ended()

    engine.run(look)


@dataclass
class Act:
    when: Callable[[], bool]
    do: Callable[[], None]


def kill_agents() -> None:
    """As whoever runs out of memory kills them: the programs themselves, and not what stands around them."""
    for pid in list_pids():
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            mine = (mark := read_mark(pid)) is not None and mark.instance == instance_name()
            if mine and words[:2] == [word.encode() for word in AGENT]:
                os.kill(pid, signal.SIGKILL)


WAITING = found("agents_approval", "state = 'waiting'")


def decision(wanted: str = "approve", *, look: Callable[[Approval], None] = lambda row: None, **more) -> Act:
    """Decide about what waits, once it does, after a `look` at it."""

    def decide() -> None:
        row = Approval.objects.get(state="waiting")
        look(row)
        approval_decide(row.pk, wanted, by="user:1", **more)

    return Act(WAITING, decide)
