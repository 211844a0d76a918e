"""kill -9 of real runners in the middle of real commands: what was recorded stays, what was not went by its `on_lost`."""

import os
import signal
import time
from contextlib import suppress

import pytest

from agents.models import Approval, InboxItem, Lease, Runner, Stream
from agents.services.approvals import approval_decide
from agents.streams.verify import verify_database
from constellations.models import Attempt, Constellation, Task
from tests.reliability.cluster import Marks, marked, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]

ON_LOST = ("retry", "fail", "ask")
TAKE_OVER_S = 5.0
"""From a runner's death to the first new start in one of its sessions: 0.1 s on an idle machine, 0.6 s is the goal."""


def commands(marks: Marks, devices: list[str], tasks: int, on_lost=ON_LOST, seconds: float = 0.03) -> dict:
    """Commands that wait, after the first twenty, each for another one to end."""
    rows = [
        marks.command(
            f"t{n}", devices[n % len(devices)], seconds * (1 + n % 3), on_lost=on_lost[n % len(on_lost)], timeout=60,
        )
        for n in range(tasks)
    ]  # fmt: skip
    waits = [{"from": f"t{n - 20}", "to": f"t{n}", "type": "COMPLETION_ONLY"} for n in range(20, tasks)]
    return {"tasks": rows, "dependencies": waits}


def approve_what_asks() -> None:
    """A person's word for each task that lost its attempt and asks."""
    for approval in Approval.objects.filter(kind="lost", state="waiting"):
        approval_decide(approval.pk, "approve", by="user:1")


def all_answered() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def all_done() -> bool:
    """All requests are answered; whatever asks on the way gets its approval."""
    approve_what_asks()
    return all_answered()


def check_on_lost() -> None:
    """Every task ended as its last attempt and its `on_lost` say."""
    for task in Task.objects.prefetch_related("attempts"):
        outcomes = [attempt.outcome for attempt in task.attempts.order_by("number")]
        if task.on_lost == "fail" and "lost" in outcomes:
            assert (task.state, outcomes[-1]) == ("FAILED", "lost"), (task, outcomes)
        else:
            assert (task.state, outcomes[-1]) == ("COMPLETED", "completed"), (task, outcomes)
        assert outcomes.count("completed") <= 1
        assert [attempt.number for attempt in task.attempts.order_by("number")] == list(range(1, len(outcomes) + 1))


def test_after_the_death_of_the_whole_cluster_the_file_and_the_attempts_agree(clusters, engine, marks, wide):
    for _ in range(3):
        engine.submit(commands(marks, wide, 100))
    first = clusters()
    first.start()
    until(lambda: marks.count("end") >= 100, "the first hundred commands")
    assert marked()
    first.kill()
    lost = set(Attempt.objects.filter(outcome="").values_list("pk", flat=True))
    assert lost
    clusters().start()
    until(lambda: not Attempt.objects.filter(pk__in=lost, outcome="").exists(), "what was lost is decided")
    until(all_done, "everything ends")
    marks.check()
    check_on_lost()
    assert set(Attempt.objects.filter(outcome="lost").values_list("pk", flat=True)) <= lost
    assert Task.objects.filter(on_lost="ask", attempts__outcome="lost", state="COMPLETED").exists()
    assert not marked()
    assert list(verify_database()) == []


def test_when_one_of_two_runners_dies_the_other_takes_its_sessions_over_at_once(clusters, engine, marks, wide):
    for _ in range(6):
        engine.submit(commands(marks, wide, 40, on_lost=("retry",)))
    cluster = clusters()
    cluster.start()
    until(lambda: marks.count("end") >= 40, "the first forty commands")
    victim = Runner.objects.get(pk=Lease.objects.exclude(runner=None).values_list("runner", flat=True).first())
    orphaned = dict(Stream.objects.filter(lease__runner=victim).values_list("pk", "token"))
    os.kill(victim.pid, signal.SIGKILL)
    died = time.time()

    def taken_over() -> set[int]:
        """Attempts started under a later lease than the dead runner's."""
        found = Attempt.objects.filter(task__constellation__session__in=orphaned)
        rows = found.values_list("pk", "fence", "task__constellation__session")
        return {pk for pk, fence, session in rows if fence > orphaned[session]}

    def first_start() -> float:
        later = taken_over()
        return min((seen["start"] for attempt, seen in marks.times().items() if attempt in later), default=0)

    until(first_start, "a start in a session that was taken over")
    print(f"taken over after {first_start() - died:.3f} s")
    assert first_start() - died < TAKE_OVER_S
    until(all_done, "everything ends")
    marks.check()
    check_on_lost()
    assert not marked()
    assert list(verify_database()) == []


def test_commands_that_are_killed_before_their_runners_are_lost_and_have_not_failed(clusters, engine, marks, wide):
    """As by a service manager that ends everything at once, or by the kernel when memory is short."""
    for _ in range(2):
        engine.submit(commands(marks, wide, 60, seconds=0.3))
    first = clusters()
    first.start()
    until(lambda: marks.count("end") >= 20 and len(marked()) >= 8, "commands at work")
    for pid in marked():
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(os.getpgid(pid), signal.SIGKILL)
    until(lambda: Attempt.objects.exclude(outcome__in=("", "completed")).exists(), "a runner sees it")
    first.kill()
    clusters().start()
    until(all_done, "everything ends")
    assert Attempt.objects.filter(outcome="lost").exists()
    marks.check()
    check_on_lost()
    assert list(verify_database()) == []


def test_no_task_with_a_durable_end_runs_again_after_a_kill(clusters, engine, wide):
    plan = {
        "tasks": [{"task_id": f"t{n}", "tool": "noop", "device": wide[n % 2]} for n in range(1000)],
        "dependencies": [{"from": f"t{n // 2}", "to": f"t{n}"} for n in range(1, 1000)],
    }
    engine.submit(plan)
    first = clusters()
    first.start()
    until(lambda: Attempt.objects.filter(outcome="completed").count() > 50, "some tasks have ended")
    first.kill()
    ended = dict(Attempt.objects.filter(outcome="completed").values_list("task_id", "pk"))
    clusters().start()
    until(all_answered, "everything ends")
    again = Attempt.objects.filter(task_id__in=ended).exclude(pk__in=ended.values())
    assert not again.exists()
    assert Constellation.objects.get().result["completed"] == 1000
    assert list(verify_database()) == []
