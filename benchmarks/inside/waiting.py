"""Agents that wait for a person: many sessions with one each, or all of them in one constellation."""

import json
import os
import signal
import time
from collections.abc import Callable

from agents.models import Actor, Agent, Device, Evidence, Lease
from agents.services.sessions import request_submit
from benchmarks.inside import live, load
from benchmarks.inside.furniture import DEVICE
from benchmarks.inside.runners import held_by
from benchmarks.inside.tools import clock
from benchmarks.machine import memory

LOOK_S = 0.05
PATIENCE_S = 120
DAY_S = 24 * 3600
CALL_S, CALLS = 1.0, 60
"""Of the work of a session that is paused in the middle."""


def _asks(task_id: str) -> dict:
    return {"task_id": task_id, "device": DEVICE, "steps": [{"ask": "which one?", "timeout": DAY_S}]}


def _confirms(task_id: str) -> dict:
    return {"task_id": task_id, "device": DEVICE, "command": "true", "confirm": True}


def _calls(task_id: str) -> dict:
    calls = [{"tool": "nap", "arguments": {"seconds": CALL_S, "number": number}} for number in range(CALLS)]
    return {"task_id": task_id, "device": DEVICE, "steps": calls}


KINDS = (_asks, _confirms, _calls)


def measure(
    kinds: list[str], runners: list[int], web: int, port: int, token: str, count: int, warm: int, settle: float
) -> dict:
    """What the processes hold before and while `count` agents wait: {kind: [before, at rest]}, for kinds of WAITS.

    `warm` agents wait, and are cancelled, before that: a process grows when it does something for the first time.
    """
    found = {}
    with live.listening(port, token):
        for kind in kinds:
            WAITS[kind](warm)
            end_all()
            before = _held(runners, web, settle)
            WAITS[kind](count)
            found[kind] = [before, _held(runners, web, settle)]
            end_all()
    return found


def _held(runners: list[int], web: int, settle: float) -> dict:
    """Proportional memory of all in MB, the runners' asyncio tasks, threads and sessions, the slots of the device."""
    time.sleep(settle)
    for pid in runners:
        held_by(pid).unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR1)
    _wait(lambda: all(held_by(pid).exists() for pid in runners))
    found = [json.loads(held_by(pid).read_text()) for pid in runners]
    sums = {name: sum(each[name] for each in found) for name in ("tasks", "threads", "sessions")}
    return sums | {"pss": sum(memory(pid)[1] for pid in (web, *runners)), "slots": Device.objects.get().used}


def sessions(count: int) -> None:
    """`count` sessions of one agent each: a third PENDING, a third CONFIRM, a third Paused between two calls."""
    made = [load.submit({"tasks": [KINDS[number % len(KINDS)]("t")]}) for number in range(count)]
    paused = made[2 :: len(KINDS)]
    calls = Evidence.objects.filter(loop__agent__session__in=paused)
    _wait(lambda: calls.values("loop__agent__session").distinct().count() == len(paused))
    for session in paused:
        request_submit(session, "pause", "", {}, by=load.by())
    _wait(lambda: Actor.objects.filter(session__in=paused, state="paused").count() == len(paused))
    _at_rest(made, count - len(paused))


def tasks(count: int) -> None:
    """One constellation of `count` tasks: one half PENDING, the other CONFIRM."""
    made = load.submit({"tasks": [KINDS[number % 2](f"t{number}") for number in range(count)]})
    _at_rest([made], count)


WAITS = {"sessions": sessions, "tasks": tasks}


def end_all() -> None:
    """Cancel whatever waits."""
    waiting = Actor.objects.filter(state__in=("running", "paused"))
    for session in list(waiting.values_list("session", flat=True)):
        request_submit(session, "cancel", "", {}, by=load.by())
    _wait(lambda: not waiting.exists())
    _wait(_nobody_holds_a_session)


def _at_rest(made: list[int], wait: int) -> None:
    """`wait` agents wait for a person, and no runner holds a session."""
    agents = Agent.objects.filter(session__in=made, state__in=("PENDING", "CONFIRM"))
    _wait(lambda: agents.count() == wait)
    _wait(_nobody_holds_a_session)


def _nobody_holds_a_session() -> bool:
    return not Lease.objects.filter(runner__isnull=False).exists()


def _wait(condition: Callable[[], object]) -> None:
    deadline = clock() + PATIENCE_S
    while not condition():
        assert clock() < deadline, "it does not come to rest"
        time.sleep(LOOK_S)
