"""Commands that something else than their runner has ended are lost: `on_lost` decides, and not without end."""

import pytest

from agents.models import Approval
from agents.services.approvals import approval_decide
from constellations.models import Attempt, Task
from constellations.runs.attempts.lost import KILLED_AT_MOST
from constellations.services.lifecycle import constellation_retry
from tests.constellations.runs.attempts.test_crews import WAITING

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def killed(times: int, **more) -> dict:
    """A command that is killed so many times, and completes after that."""
    script = f"test $(cat tries 2>/dev/null | wc -l) -ge {times} && exit 0; echo >>tries; kill -KILL $$"
    return {"tasks": [{"task_id": "t", "device": "laptop", "command": ["sh", "-c", script], **more}]}


def outcomes() -> list[str]:
    return list(Attempt.objects.order_by("number").values_list("outcome", flat=True))


def test_by_retry_it_is_made_again_beyond_its_attempts(engine, device):
    engine.carry_out(killed(KILLED_AT_MOST - 1, max_attempts=1))
    assert (Task.objects.get().state, Task.objects.get().error) == ("COMPLETED", "")
    assert outcomes() == ["lost"] * (KILLED_AT_MOST - 1) + ["completed"]


def test_one_that_always_ends_so_is_given_up(engine, device):
    engine.carry_out(killed(100))
    task = Task.objects.get()
    assert (task.state, task.reason) == ("FAILED", "lost")
    assert task.error == f"killed by SIGKILL from outside; {KILLED_AT_MOST} attempts in a row have ended so"
    assert outcomes() == ["lost"] * KILLED_AT_MOST


def test_after_a_retry_by_a_person_it_is_counted_anew(engine, device):
    made = engine.carry_out(killed(KILLED_AT_MOST + 1))
    constellation_retry(made.pk, ["t"], by="user:1")
    engine.run()
    assert (Task.objects.get().state, outcomes()) == ("COMPLETED", [*["lost"] * (KILLED_AT_MOST + 1), "completed"])


def test_by_fail_it_has_failed(engine, device):
    engine.carry_out(killed(1, on_lost="fail", max_attempts=3))
    assert (Task.objects.get().state, Task.objects.get().reason, outcomes()) == ("FAILED", "lost", ["lost"])


def test_by_ask_somebody_is_asked(engine, device):
    engine.submit(killed(1, on_lost="ask"))
    engine.run(WAITING)
    approval_decide(Approval.objects.get(kind="lost").pk, "approve", by="user:1")
    engine.run()
    assert (Task.objects.get().state, outcomes()) == ("COMPLETED", ["lost", "completed"])


def test_a_call_of_a_task_in_steps_is_made_again(engine, device):
    plan = killed(1)
    step = {"command": plan["tasks"][0].pop("command")}
    plan["tasks"][0]["steps"] = [step]
    engine.carry_out(plan)
    assert (Task.objects.get().state, outcomes()) == ("COMPLETED", ["completed"])
