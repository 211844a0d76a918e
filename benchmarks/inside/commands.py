"""Cancel and cooperative pause of sessions that are at work, sent from another process than their runner's."""

import time
from collections.abc import Callable
from pathlib import Path

from agents import ids
from agents.devices import host
from agents.devices.processes import attempts_at_work, list_pids, read_mark, read_process
from agents.models import Actor, Evidence
from agents.services import sessions
from benchmarks.inside import load
from benchmarks.inside.furniture import DEVICE
from benchmarks.inside.tools import clock

LOOK_S = 0.001
PATIENCE_S = 60
CALL_S = 1.0
"""Of each command of the other sessions."""
NAP_S = 0.2
CALLS = 500
"""Of a task in steps: more than it gets to make."""
GAPS_S = (0.02, 0.09, 0.15)
"""From the beginning of a call to the pause, in turn."""
FAMILY = ["sh", "-c", "sleep 600 & sleep 600 & wait"]
FAMILY_SIZE = 3
NAMES = ("sh", "sleep")
"""Of its programs: what walls put in front of a command carries its mark too."""


def measure(trials: int, others: int) -> dict[str, list[float]]:
    """The pauses first: while nothing else runs."""
    return {"pause": pauses(trials), "cancel": cancels(trials, others)}


def cancels(trials: int, others: int) -> list[float]:
    """Seconds from the commit of a cancel to the moment the actor is cancelled and its command's processes are gone."""
    busy = [load.submit(_others()) for _ in range(others)]
    _wait(lambda: len(_at_work()) == others)
    times = [_cancel() for _ in range(trials)]
    assert _at_work() == set(busy), "the others stopped working"
    return times


def _others() -> load.Plan:
    steps = [{"command": ["sh", "-c", f"sleep {CALL_S}; echo {number}"]} for number in range(CALLS)]
    return {"tasks": [{"task_id": "steps", "device": DEVICE, "steps": steps}, _plain("plain", ["sleep", "600"])]}


def _plain(task_id: str, argv: list[str]) -> dict:
    return {"task_id": task_id, "device": DEVICE, "command": argv}


def _at_work() -> set[int]:
    """Sessions that have a process."""
    return {ids.stream_of(attempt) for attempt in attempts_at_work(host.instance_name())}


def _cancel() -> float:
    session = load.submit({"tasks": [_plain("family", FAMILY)]})
    _wait(lambda: len(_family(session)) == FAMILY_SIZE)
    family = _family(session)
    sessions.request_submit(session, "cancel", "", {}, by=load.by())
    committed = clock()
    _wait(lambda: not any(_lives(pid) for pid in family) and _state(session) == "cancelled")
    return clock() - committed


def _family(session: int) -> list[int]:
    found = ((pid, read_mark(pid)) for pid in list_pids())
    return [
        pid for pid, carried in found
        if carried is not None and ids.stream_of(carried.attempt_id) == session and name_of(pid) in NAMES
    ]  # fmt: skip


def name_of(pid: int) -> str:
    """Of its program; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _lives(pid: int) -> bool:
    found = read_process(pid)
    return found is not None and not found.zombie


def _state(session: int) -> str:
    return Actor.objects.values_list("state", flat=True).get(session=session)


def pauses(trials: int) -> list[float]:
    """Seconds from the end of the call in flight to the actor being paused, for a task in steps."""
    calls = [{"tool": "nap", "arguments": {"seconds": NAP_S, "number": number}} for number in range(CALLS)]
    session = load.submit({"tasks": [{"task_id": "steps", "device": DEVICE, "steps": calls}]})
    times = [_pause(session, number) for number in range(trials)]
    sessions.request_submit(session, "cancel", "", {}, by=load.by())
    _wait(lambda: _state(session) == "cancelled")
    return times


def _pause(session: int, number: int) -> float:
    in_flight = Evidence.objects.filter(loop__agent__session=session, ended_at=None)
    _wait(in_flight.exists)
    call = in_flight.get().pk
    time.sleep(GAPS_S[number % len(GAPS_S)])
    sessions.request_submit(session, "pause", "", {}, by=load.by())
    _wait(lambda: _state(session) == "paused")
    paused = clock()
    sessions.request_submit(session, "resume", "", {}, by=load.by())
    ended = Evidence.objects.get(pk=call)
    _wait(lambda: _state(session) == "running")
    return paused - ended.result["at"]


def _wait(condition: Callable[[], object]) -> None:
    deadline = clock() + PATIENCE_S
    while not condition():
        assert clock() < deadline, "it does not come about"
        time.sleep(LOOK_S)
