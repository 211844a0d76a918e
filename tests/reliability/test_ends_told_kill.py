"""kill -9 between the end of a task and the editing session that is told of it: each rule fires once for each end."""

import os
import signal

import pytest

from agents.models import Actor, Event, Lease, Runner
from agents.services.sessions import request_submit
from agents.streams.verify import verify_database
from constellations.models import Constellation, Task
from tests.constellations.planting import noop
from tests.reliability.cluster import Marks, until
from tests.reliability.test_kill import all_answered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]


def chain(marks: Marks, devices: list[str], length: int, seconds: float = 0.05) -> dict:
    """Commands one after the other; a rule answers to the end of each by a task of its own."""
    tasks = [
        marks.command(f"t{n}", devices[n % len(devices)], seconds, after=[f"t{n - 1}"] if n else [], on_lost="retry")
        for n in range(length)
    ]
    rule = {
        "name": "answer", "when": {"event": "task_completed", "task": [f"t{n}" for n in range(length)]}, "times": 100,
        "edit": [{"add_task": noop("after_{task}")}],
    }  # fmt: skip
    return {"tasks": tasks, "replan": [rule]}


def check_each_end_was_told_once(length: int) -> None:
    for made in Constellation.objects.all():
        records = Event.objects.filter(stream=made.session_id, type="ends_taken").values_list("data", flat=True)
        taken = [task for data in records for task in data["tasks"]]
        wanted = [f"t{n}" for n in range(length)] + [f"after_t{n}" for n in range(length)]
        assert sorted(taken) == sorted(wanted)
        assert sorted(made.tasks.values_list("task_id", flat=True)) == sorted(wanted)
        assert (made.state, made.fired) == ("COMPLETED", {"answer": length})
    assert not Task.objects.filter(untold=True).exists()
    assert list(verify_database()) == []


def test_ends_that_came_while_actors_paused_are_told_after_the_death_of_the_whole_cluster(clusters, engine, marks, wide):
    sessions = [engine.submit(chain(marks, wide, 3, seconds=1.0))[0] for _ in range(4)]
    first = clusters()
    first.start()
    until(lambda: Task.objects.filter(state="RUNNING").count() == 4, "work in all sessions")
    for session in sessions:
        request_submit(session.pk, "pause", "p", {}, by="user:1")
    until(lambda: Actor.objects.filter(state="paused").count() == 4, "all actors are paused")
    assert Task.objects.filter(untold=True, state="COMPLETED").exists()
    first.kill()
    clusters().start()
    for session in sessions:
        request_submit(session.pk, "resume", "r", {}, by="user:1")
    until(all_answered, "everything ends")
    check_each_end_was_told_once(3)


def test_of_two_runners_the_one_that_lives_tells_what_the_dead_one_had_not(clusters, engine, marks, wide):
    for _ in range(6):
        engine.submit(chain(marks, wide, 8))
    clusters().start()
    until(lambda: marks.count("end") >= 12, "the first dozen commands")
    victim = Runner.objects.get(pk=Lease.objects.exclude(runner=None).values_list("runner", flat=True).first())
    os.kill(victim.pid, signal.SIGKILL)
    until(all_answered, "everything ends")
    check_each_end_was_told_once(8)
