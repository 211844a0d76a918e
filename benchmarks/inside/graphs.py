"""Graphs of no-ops, carried out by a runner in this process."""

import os
import statistics
import time
from itertools import pairwise

from django.db import connection
from django.db.models import Min

from agents.models import Agent, Event, InboxItem, Transition
from benchmarks.inside import load
from constellations.models import Attempt, Constellation, Dependency, Task

KEPT = (Event, Transition, Agent, Attempt, Task, Dependency)
"""What a run leaves in the database, a table each."""


def prepare(tasks: int) -> int:
    """Post a layered graph for a runner that comes later; returns the session."""
    return load.submit(load.layered(tasks))


def layered(tasks: int, session: int | None = None) -> dict:
    """Carry out a layered graph, posted now unless it was before. Times in seconds."""
    empty, posting = _bytes(), time.time()
    session = session or prepare(tasks)
    posted = time.time() - posting
    runner = load.Measured()
    runner.run()
    _check(tasks)
    first = Attempt.objects.aggregate(first=Min("started_at"))["first"].timestamp()
    return {
        "tasks": tasks,
        "wall": runner.ended_at - first,
        "whole": posted + runner.ended_at - runner.began_at,
        "cpu": runner.ended_cpu - runner.began_cpu,
        "commits": runner.journal.commits,
        "records": sum(model.objects.count() for model in KEPT) / tasks,
        "bytes": (_bytes() - empty) / tasks,
    }


def _check(tasks: int) -> None:
    outcomes = list(InboxItem.objects.filter(kind="interaction").values_list("outcome", flat=True))
    done = Attempt.objects.filter(outcome="completed").count()
    assert outcomes == ["completed"] * len(outcomes), outcomes
    assert done == Task.objects.count() >= tasks, f"{done} of {tasks} tasks have been done"


def _bytes() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
            return cursor.fetchone()[0]
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return os.path.getsize(connection.settings_dict["NAME"])


def chain(tasks: int) -> dict:
    """A chain of no-ops that say when they ran: wall of one hop, gaps from body to body. Seconds."""
    load.submit(load.chain(tasks, "stamp"))
    runner = load.Measured()
    runner.run()
    _check(tasks)
    first = Attempt.objects.aggregate(first=Min("started_at"))["first"].timestamp()
    times = [result["at"] for result in Task.objects.order_by("id").values_list("result", flat=True)]
    gaps = [after - before for before, after in pairwise(times)]
    return {
        "hop": (runner.ended_at - first) / tasks,
        "median": statistics.median(gaps),
        "p95": statistics.quantiles(gaps, n=20)[-1],
    }


def pauses(tasks: int, seconds: float) -> dict:
    """A chain of tasks that take time; wall in seconds."""
    load.submit(load.chain(tasks, "pause", seconds=seconds))
    runner = load.Measured()
    runner.run()
    _check(tasks)
    first = Attempt.objects.aggregate(first=Min("started_at"))["first"].timestamp()
    return {"wall": runner.ended_at - first}


def sessions(count: int, tasks: int) -> dict:
    """Many sessions at once, each with a chain of no-ops: transitions a second of the whole engine."""
    for _ in range(count):
        load.submit(load.chain(tasks))
    runner = load.Measured(count)
    runner.run()
    _check(count * tasks)
    begun = Constellation.objects.aggregate(first=Min("created_at"))["first"].timestamp()
    return {"rate": Transition.objects.count() / (runner.ended_at - begun)}
