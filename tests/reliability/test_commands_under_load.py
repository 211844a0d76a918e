"""Pause, resume and cancel, sent to a hundred busy sessions at once from two clients, while a runner is killed and replaced."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

from agents import ids
from agents.devices.processes import read_mark
from agents.models import Actor, Device, InboxItem, Runner
from agents.services.devices import device_create
from agents.services.sessions import ActorEnded, request_submit
from agents.streams.fold import consistent_read
from agents.streams.verify import verify_database, verify_stream
from constellations.models import Attempt
from tests.reliability.cluster import Cluster, marked, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]

SESSIONS = 100
SLOTS = 200
"""Of each of the two devices: more than everything needs at once."""
LOOKED_AT = 5
"""Sessions of which each sample compares rows and events."""
CLIENTS = ("one", "two")
PAUSES = ("pause", "immediate")
ENDLESS_S = 600
SEED = 4

Sessions = dict[int, str]


def busy(devices: list[str], argv: list[str]) -> dict:
    """Two plain commands, one after the other, and two tasks in steps."""
    step = {"command": argv}
    return {
        "tasks": [
            {"task_id": "a", "device": devices[0], **step},
            {"task_id": "b", "device": devices[1], **step, "after": ["a"]},
            {"task_id": "c", "device": devices[0], "steps": [step, step, step]},
            {
                "task_id": "d",
                "device": devices[1],
                "phases": [{"description": f"part {n}", "steps": [step]} for n in range(3)],
            },
        ]
    }


@pytest.fixture
def devices(transactional_db) -> list[str]:
    return [device_create(name, max_concurrent=SLOTS, by="system").name for name in ("east", "west")]


@pytest.fixture
def gate(state_dir) -> Path:
    """Commands wait there until somebody holds it open: to put up the walls of three hundred takes as long as it takes."""
    os.mkfifo(path := state_dir / "gate")
    return path


@pytest.fixture
def sessions(engine, devices, gate) -> Sessions:
    """A hundred, by what is to become of them; what is cancelled, or paused at once, would not end by itself."""
    kinds = ("pause", "immediate", "cancel", "pause, cancel", "immediate, cancel")
    found: Sessions = {}
    for number in range(SESSIONS):
        kind = kinds[number % len(kinds)]
        argv = ["sleep", f"{ENDLESS_S}"] if kind in ("cancel", "immediate, cancel") else ["sh", "-c", f": < {gate}"]
        found[engine.submit(busy(devices, argv))[0].pk] = kind
    return found


def chosen(sessions: Sessions, *kinds: str) -> list[int]:
    return [key for key, kind in sessions.items() if kind in kinds]


# --- sending


def send_all(client: str, wanted: list[tuple[int, str]]) -> None:
    """One client's thread: each command, and every one of its own client ids a second time."""
    try:
        for session, what in wanted:
            kind, payload = ("pause", {"mode": "immediate"}) if what == "immediate" else (what, {})
            found = [_send(session, kind, f"{what} by {client}", payload) for _ in range(2)]
            assert found[0] == found[1]
    finally:
        connections.close_all()


def _send(session: int, kind: str, client_id: str, payload: dict) -> int | None:
    """The inbox row, None where the actor has been cancelled before."""
    try:
        return request_submit(session, kind, client_id, payload, by="user:1")[0].pk
    except ActorEnded:
        return None


@contextmanager
def sent(*commands: tuple[Iterable[int], str]) -> Iterator[list[Future]]:
    """Both clients send everything at the same time, each in an order of its own; failures are raised at the end."""
    wanted = [(session, what) for sessions, what in commands for session in sessions]
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        futures = []
        for number, client in enumerate(CLIENTS):
            order = random.Random(SEED + number).sample(wanted, len(wanted))
            futures.append(pool.submit(send_all, client, order))
        yield futures
        for future in futures:
            future.result()


# --- looking


def sampling(sessions: Sessions, condition: Callable[[], object]) -> Callable[[], bool]:
    """Looks at something each time it is asked: rows and events agree, and nobody is pausing who does not run."""
    chance = random.Random(SEED)

    def look() -> bool:
        assert not Actor.objects.filter(pausing=True).exclude(state="running").exists()
        for session in chance.sample(list(sessions), LOOKED_AT):
            with consistent_read():
                assert list(verify_stream(session)) == []
        return bool(condition())

    return look


def states(sessions: Iterable[int]) -> set[str]:
    return set(Actor.objects.filter(session__in=sessions).values_list("state", flat=True))


def no_command_waits() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exclude(kind="interaction").exists()


def at_work_for(sessions: Iterable[int]) -> set[int]:
    """Processes of these sessions."""
    wanted = set(sessions)
    found = {pid: read_mark(pid) for pid in marked()}
    return {pid for pid, carried in found.items() if carried is not None and ids.stream_of(carried.attempt_id) in wanted}


def check_nothing_is_held(sessions: Iterable[int], *, ended: bool) -> None:
    """No process, no slot; and where the work has ended, no open attempt."""
    attempts = Attempt.objects.filter(task__constellation__session__in=list(sessions), outcome="")
    assert not at_work_for(sessions)
    assert not (attempts if ended else attempts.filter(holds_slot=True)).exists()


def check_answers(sessions: Sessions) -> None:
    """Every command has one sensible answer, and of two that say the same one has changed something."""
    for session in sessions:
        rows = list(InboxItem.objects.filter(session=session).exclude(kind="interaction").order_by("pk"))
        assert len({row.client_id for row in rows}) == len(rows)
        for row in rows:
            assert row.state in ("done", "refused"), (row.client_id, row.state)
            assert row.ended_at is not None
            assert (row.state, row.outcome) in (("done", ""), ("refused", "cancelled")), row
        for kind in {row.kind for row in rows}:
            check_pair(session, kind, [row for row in rows if row.kind == kind])


def check_pair(session: int, kind: str, rows: list[InboxItem]) -> None:
    changed = [row.result["changed"] for row in rows if row.state == "done"]
    place = f"{kind} of session {session}: {[(row.client_id, row.state, row.result) for row in rows]}"
    assert changed.count(True) <= 1, place
    if kind == "cancel":
        assert changed[:1] == [True], place
    elif not any(row.state == "refused" for row in rows):
        assert changed.count(True) == 1, place


def kill_one(cluster: Cluster) -> int:
    """End the runner that has lived longest; returns its row's id."""
    victim = cluster.runners()[0]
    os.kill(victim.pid, signal.SIGKILL)
    return victim.pk


def replaced(cluster: Cluster, victim: int) -> bool:
    found = cluster.runners()
    return len(found) == cluster.size and victim not in {runner.pk for runner in found}


def test_a_hundred_busy_sessions_do_what_they_are_told(clusters, engine, gate, sessions):
    cluster = clusters()
    cluster.start()
    until(lambda: Attempt.objects.filter(outcome="").count() >= 3 * SESSIONS, "everybody is busy")
    rest, cancelled = chosen(sessions, *PAUSES), chosen(sessions, "cancel")
    half = len(rest) // 2
    later = chosen(sessions, "pause, cancel", "immediate, cancel")

    with sent(
        (chosen(sessions, "pause", "pause, cancel"), "pause"),
        (chosen(sessions, "immediate", "immediate, cancel"), "immediate"),
        (cancelled, "cancel"),
    ):
        until(sampling(sessions, lambda: "paused" in states(sessions)), "the first pause")
        victim = kill_one(cluster)
    held_open = os.open(gate, os.O_RDWR)
    until(sampling(sessions, no_command_waits), "every command is answered")
    until(lambda: replaced(cluster, victim), "the runner is replaced")
    assert states(rest + later) == {"paused"}
    assert states(cancelled) == {"cancelled"}
    until(lambda: not at_work_for(sessions), "the last processes go")
    check_nothing_is_held(rest + later, ended=False)
    check_nothing_is_held(cancelled, ended=True)
    assert set(Device.objects.values_list("used", flat=True)) == {0}

    with sent((rest[:half], "resume"), (later, "cancel")):
        until(sampling(sessions, lambda: "running" in states(rest)), "the first goes on")
        victim = kill_one(cluster)
    with sent((rest[half:], "resume")):
        pass
    until(sampling(sessions, lambda: states(rest) == {"idle"}), "what was resumed ends")
    until(sampling(sessions, no_command_waits), "every command is answered")
    assert states(later) == {"cancelled"}
    until(lambda: replaced(cluster, victim), "the runner is replaced again")
    check_nothing_is_held(sessions, ended=True)
    check_outcomes(sessions, rest)
    check_answers(sessions)
    assert not Runner.objects.filter(pk=victim, state="LIVE").exists()
    assert list(verify_database()) == []
    os.close(held_open)


def check_outcomes(sessions: Sessions, resumed: list[int]) -> None:
    """What was resumed has been completed, the rest cancelled; no slot is held."""
    rows = InboxItem.objects.filter(kind="interaction").values_list("session", "state", "outcome")
    for session, state, outcome in rows:
        assert (state, outcome) == ("done", "completed" if session in resumed else "cancelled"), (session, sessions[session])
    assert set(Device.objects.values_list("used", flat=True)) == {0}
