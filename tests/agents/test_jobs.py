"""What django-q2 runs: runners are asked for when they are missing, and a delivery too many changes nothing."""

import os
import signal
import subprocess
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler

from agents import jobs
from agents.devices import host
from agents.engine import summon
from agents.engine.leases import RunnerLock
from agents.models import Runner
from agents.services import sessions

pytestmark = pytest.mark.django_db(transaction=True)


def living_runner(pid: int = 1) -> RunnerLock:
    row = Runner.objects.create(
        host=host.boot_identity(), pid=pid, pid_start=1, files=str(host.runtime_dir()),
        started_at=timezone.now(), renewed_at=timezone.now(),
    )  # fmt: skip
    return RunnerLock(host.runtime_dir(), row.pk)


def test_a_request_asks_for_a_runner_once_when_none_lives(operator):
    session = sessions.session_create(operator, by="user:1")
    for n in range(3):
        sessions.request_submit(session.pk, "ping", f"p{n}", {}, by="user:1")
    assert [queued.func() for queued in OrmQ.objects.filter(key=summon.queue_of("runners"))] == ["agents.jobs.run_runner"]


def test_a_request_asks_for_nothing_while_a_runner_lives(operator):
    lock = living_runner()
    session = sessions.session_create(operator, by="user:1")
    sessions.request_submit(session.pk, "ping", "", {}, by="user:1")
    assert OrmQ.objects.count() == 0
    lock.close()


def test_a_runner_too_many_acknowledges_its_job_and_returns_at_once(settings):
    settings.RUNNERS = 1
    lock = living_runner()
    summon.ask_for_runner()
    nonce = OrmQ.objects.get().task["args"][0]
    jobs.run_runner(nonce)
    jobs.run_runner(nonce)
    assert OrmQ.objects.count() == 0
    assert Runner.objects.count() == 1
    lock.close()


def test_a_runner_whose_lock_is_free_does_not_count_as_alive():
    lock = living_runner()
    assert jobs.live_runners() == 1
    lock.close()
    assert jobs.live_runners() == 0


def test_a_runner_that_has_outlived_its_cluster_does_not_count():
    """It is about to end, so the runner of the cluster in its place must not think itself one too many."""
    cluster = subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    worker = int(cluster.stdout.readline())
    lock = living_runner(worker)
    try:
        assert jobs.live_runners() == 1
        cluster.kill()
        cluster.wait()
        assert jobs.live_runners() == 0
    finally:
        os.kill(worker, signal.SIGKILL)
        lock.close()


def test_the_safety_net_asks_for_as_many_as_are_missing(settings):
    settings.RUNNERS = 2
    jobs.ensure_runners()
    assert summon.runners_asked_for() == 2


def test_the_safety_net_does_not_ask_again_while_nobody_has_taken_up_what_it_asked_for(settings):
    settings.RUNNERS = 2
    for _ in range(5):
        jobs.ensure_runners()
    assert summon.runners_asked_for() == 2


def test_the_schedule_of_the_safety_net_is_carried_out_by_the_cluster_of_short_jobs():
    Schedule.objects.create(
        name="orrery: ensure runners", func="agents.jobs.ensure_runners", schedule_type="I", minutes=1,
        next_run=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    scheduler()
    assert [queued.func() for queued in OrmQ.objects.filter(key="jobs")] == ["agents.jobs.ensure_runners"]


def test_the_canary_leaves_its_word():
    jobs.canary("n1")
    assert (host.runtime_dir() / "canary").read_text().startswith("n1 ")
