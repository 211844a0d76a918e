"""SIGTERM to a runner's worker: what runs may end, nothing is lost, the sessions go on elsewhere. And jobs delivered twice."""

import os
import signal
import time

import pytest

from agents import jobs
from agents.models import Approval, InboxItem, Lease, Runner
from agents.services.approvals import approval_decide
from agents.services.sessions import request_submit
from agents.streams.verify import verify_database
from constellations.models import Attempt, Task
from tests.reliability.cluster import PATIENCE_S, marked, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]


def owner_of(session: int) -> Runner | None:
    return Lease.objects.select_related("runner").get(stream=session).runner


def has_ended(runner: Runner) -> bool:
    return Runner.objects.get(pk=runner.pk).state == "ENDED"


def test_a_runner_told_to_stop_lets_its_commands_end_and_the_other_goes_on(clusters, engine, marks, wide):
    tasks = [marks.command(f"t{n}", wide[n % 2], 0.1, after=[f"t{n - 8}"] if n >= 8 else []) for n in range(48)]
    sessions = [engine.submit({"tasks": tasks})[0].pk for _ in range(2)]
    clusters().start()
    until(lambda: marks.count("end") >= 8 and owner_of(sessions[0]), "the first commands")
    victim = owner_of(sessions[0])
    assert victim is not None
    os.kill(victim.pid, signal.SIGTERM)
    until(lambda: has_ended(victim), "the runner ends")
    assert not Lease.objects.filter(runner=victim).exists()
    until(lambda: not InboxItem.objects.filter(state__in=("queued", "running")).exists(), "everything ends")
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"completed"}
    assert Attempt.objects.count() == Task.objects.filter(state="COMPLETED").count() == 96
    marks.check()
    assert list(verify_database()) == []


def test_told_twice_it_interrupts_and_on_lost_decides(clusters, engine, marks, wide, state_dir):
    tasks = [marks.command(choice, wide[0], 0.0, on_lost=choice, max_attempts=1) for choice in ("retry", "fail", "ask")]
    for task in tasks:  # the first attempt never ends by itself, a second one does
        task["command"] = ["sh", "-c", f"test -e {task['task_id']} || {{ touch {task['task_id']}; exec sleep 600; }}"]
    session, item = engine.submit({"tasks": tasks})
    clusters().start()
    until(lambda: Attempt.objects.filter(outcome="").count() == 3, "three attempts")
    begun = [state_dir / "workspaces" / wide[0] / task["task_id"] for task in tasks]
    until(lambda: all(path.exists() for path in begun), "three commands")
    victim = owner_of(session.pk)
    assert victim is not None
    os.kill(victim.pid, signal.SIGTERM)
    ping, _ = request_submit(session.pk, "ping", "", {}, by="user:1")
    until(lambda: InboxItem.objects.get(pk=ping.pk).state == "done", "it still listens")
    assert Attempt.objects.filter(outcome="").count() == 3
    os.kill(victim.pid, signal.SIGTERM)
    until(lambda: has_ended(victim), "the runner ends")
    until(lambda: Task.objects.get(task_id="retry").state == "COMPLETED", "what is repeated completes")
    assert Task.objects.get(task_id="fail").state == "FAILED"
    assert Task.objects.get(task_id="ask").state == "PENDING"
    approval_decide(Approval.objects.get(kind="lost").pk, "approve", by="user:1")
    until(lambda: InboxItem.objects.get(pk=item.pk).state == "done", "everything ends")
    outcomes = {task.task_id: [a.outcome for a in task.attempts.order_by("number")] for task in Task.objects.all()}
    assert outcomes == {"retry": ["lost", "completed"], "fail": ["lost"], "ask": ["lost", "completed"]}
    assert not marked()
    assert list(verify_database()) == []


def test_a_surplus_runner_returns_at_once(clusters, settings):
    cluster = clusters()
    cluster.start()
    settings.RUNNERS = 2
    began = time.monotonic()
    jobs.run_runner("twice")
    jobs.run_runner("twice")
    assert time.monotonic() - began < PATIENCE_S / 10
    assert [runner.pk for runner in cluster.runners()] == list(Runner.objects.order_by("pk").values_list("pk", flat=True))
