"""Constellations that get every command there is, and edits, from several clients at once, while runners are killed."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import connections

from agents.errors import AgentsError
from agents.models import Actor, Agent, Device, InboxItem
from agents.streams.fold import consistent_read
from agents.streams.verify import verify_database, verify_stream
from constellations.errors import ConstellationEnded
from constellations.machines.constellation import CLOSED
from constellations.models import Attempt, Constellation
from constellations.services import lifecycle
from constellations.services.edits import edit_apply
from tests.reliability.cluster import Cluster, Marks, marked, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]

SESSIONS = 16
CLIENTS = 3
ASKED = 80
"""Commands of each client while most constellations run, and again when they have ended."""
RUNNING = ("pause", "resume", "resume", "retry", "retry", "restart", "cancel", "edit", "edit", "fork")
ENDED = ("retry", "retry", "reopen", "reopen", "fork", "pause", "resume", "edit", "restart")
SEED = 7
BY = "user:1"
SHAKY = 'echo "$ORRERY_ATTEMPT start $(date +%s.%N)" >>"$0"; sleep 0.05; echo "$ORRERY_ATTEMPT end $(date +%s.%N)" >>"$0"; '
SHAKY += "test $((ORRERY_ATTEMPT % 4)) -ne 0"
"""A command that fails in one attempt of four, more or less."""


def shaky(marks: Marks, task_id: str, device: str, **more) -> dict:
    return {"task_id": task_id, "device": device, "command": ["sh", "-c", SHAKY, str(marks.path)], **more}


def plan(marks: Marks, devices: list[str]) -> dict:
    """Three layers of three, one of them with an agent that waits."""
    tasks = []
    for layer in range(3):
        after = [f"t{layer - 1}{n}" for n in range(3)] if layer else []
        tasks += [shaky(marks, f"t{layer}{n}", devices[n % 2], after=after[n : n + 2]) for n in range(3)]
    tasks.append({"task_id": "waits", "device": devices[0], "steps": [{"wait": 0.2}, {"command": ["true"]}]})
    return {"name": "busy", "tasks": tasks}


class Client:
    """Asks random things of random constellations; counts what was taken and what was refused, and never gets another error."""

    def __init__(self, number: int, owner: User):
        self.chance, self.owner, self.number = random.Random(SEED + number), owner, number
        self.taken: Counter[str] = Counter()
        self.forks: list[int] = []

    def work(self, verbs: tuple[str, ...]) -> None:
        try:
            for turn in range(ASKED):
                self.ask(self.chance.choice(verbs), f"{self.number}-{turn}-{len(verbs)}")
        finally:
            connections.close_all()

    def ask(self, verb: str, name: str) -> None:
        key = self.chance.choice(list(Constellation.objects.values_list("id", flat=True)))
        try:
            getattr(self, verb)(key, name)
        except AgentsError:
            self.taken["refused"] += 1
        else:
            self.taken[verb] += 1

    def pause(self, key: int, name: str) -> None:
        lifecycle.constellation_pause(key, by=BY)

    def resume(self, key: int, name: str) -> None:
        lifecycle.constellation_resume(key, by=BY)

    def retry(self, key: int, name: str) -> None:
        lifecycle.constellation_retry(key, None, by=BY, client_id=name)

    def restart(self, key: int, name: str) -> None:
        lifecycle.constellation_restart(key, by=BY, client_id=name)

    def cancel(self, key: int, name: str) -> None:
        if self.chance.random() < 0.3:
            lifecycle.constellation_cancel(key, by=BY, reason="by chance", client_id=name)

    def edit(self, key: int, name: str) -> None:
        task = {"task_id": f"e{name}", "tool": "noop", "after": ["t00"]}
        edit_apply(key, [{"op": "add_task", "parameters": task}], author=BY, edit_id=name)

    def reopen(self, key: int, name: str) -> None:
        task = {"task_id": f"r{name}", "tool": "noop"}
        lifecycle.constellation_reopen(key, operations=[{"add_task": task}], by=BY, client_id=name)

    def fork(self, key: int, name: str) -> None:
        if len(self.forks) < 6:
            self.forks.append(lifecycle.constellation_fork(key, self.owner, by=BY)[0].pk)


def resume_all() -> bool:
    """Whether every interaction has ended; what is paused goes on."""
    for key in Constellation.objects.filter(state="PAUSED").values_list("id", flat=True):
        with suppress(ConstellationEnded):  # its runner has carried a cancel out meanwhile
            lifecycle.constellation_resume(key, by=BY)
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def look(chance: random.Random, sessions: list[int]) -> None:
    for session in chance.sample(sessions, 3):
        with consistent_read():
            assert list(verify_stream(session)) == []


def kill_one(cluster: Cluster) -> None:
    until(lambda: len(cluster.runners()) == cluster.size, "all runners are there")
    os.kill(cluster.runners()[0].pid, signal.SIGKILL)


def no_two_attempts_overlap(marks: Marks) -> None:
    """By the marks that the commands themselves have left."""
    times = marks.times()
    before: dict[int, float] = {}
    for attempt in Attempt.objects.order_by("task_id", "number"):
        seen = times.get(attempt.pk, {})
        if "start" in seen:
            assert before.get(attempt.task_id, 0.0) <= seen["start"], f"{attempt} began while the one before it still ran"
        assert attempt.ended_at is not None
        before[attempt.task_id] = seen.get("end") or attempt.ended_at.timestamp()


def test_whatever_is_asked_in_whatever_order_nothing_is_lost_or_left(clusters, engine, wide, marks):
    sessions = [engine.submit(plan(marks, wide))[0].pk for _ in range(SESSIONS)]
    cluster = clusters()
    cluster.start()
    until(lambda: Constellation.objects.count() >= SESSIONS // 2, "half of them have begun")
    clients = [Client(number, engine.owner) for number in range(CLIENTS)]
    for verbs in (RUNNING, ENDED):
        ask_all(clients, verbs, cluster, sessions)
        kill_one(cluster)
        until(resume_all, "everything that was asked has ended")
    taken = sum((client.taken for client in clients), Counter())
    assert set(taken) == {*RUNNING, *ENDED, "refused"}, taken
    check_the_end(marks)


def ask_all(clients: list[Client], verbs: tuple[str, ...], cluster: Cluster, sessions: list[int]) -> None:
    """Everybody at once; a runner is killed meanwhile, and rows and events agree at every look."""
    chance = random.Random(SEED)
    with ThreadPoolExecutor(CLIENTS) as pool:
        futures = [pool.submit(client.work, verbs) for client in clients]
        kill_one(cluster)
        while not all(future.done() for future in futures):
            look(chance, sessions)
        for future in futures:
            future.result()


def check_the_end(marks: Marks) -> None:
    assert set(Constellation.objects.values_list("state", flat=True)) <= {*CLOSED, "CANCELLED"}
    assert set(Agent.objects.filter(machine="constellation_agent").values_list("state", flat=True)) <= {"FINISH", "FAIL"}
    assert set(Actor.objects.values_list("state", flat=True)) == {"idle"}
    until(lambda: not marked(), "the last processes go")
    assert set(Device.objects.values_list("used", flat=True)) == {0}
    assert not Attempt.objects.filter(outcome="").exists()
    no_two_attempts_overlap(marks)
    assert list(verify_database()) == []
