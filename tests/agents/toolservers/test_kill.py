"""Runners are killed in the middle of a tool server's call."""

from __future__ import annotations

import pytest

from agents.models import Approval, Evidence, Lease, Output
from constellations.machines.task import ENDED
from constellations.models import Task
from tests.agents.coding.test_kill import answer_if_asked
from tests.reliability.cluster import until
from tests.reliability.conftest import begin_apart  # noqa: F401  # a fixture

pytestmark = [pytest.mark.kill, pytest.mark.django_db(transaction=True)]


def counting(to: int, **more) -> dict:
    return {"tasks": [{"task_id": "one", "tool": "srv.count", "arguments": {"to": to, "pause": 0.05}, **more}]}


def test_a_call_goes_on_when_the_runner_dies_that_waits_for_it(srv, begin_apart, marks):  # noqa: F811
    _, driver = begin_apart(counting(60, on_lost="fail"))
    until(Output.objects.exists, "it counts")
    driver.kill()
    until(lambda: Lease.objects.filter(runner__isnull=False).exclude(runner=driver.pk).exists(), "another one has the session")
    until(lambda: Task.objects.get().state in ENDED, "the task ends")
    assert (Task.objects.get().state, Task.objects.get().result) == ("COMPLETED", {"result": "counted to 60"})
    assert marks.read_text().splitlines() == ["count begins", "count ends"]
    printed = "".join(Output.objects.order_by("offset").values_list("text", flat=True))
    assert printed == "".join(f"{number}/60 counted {number}\n" for number in range(1, 61)) + "counted to 60"


@pytest.mark.parametrize("on_lost", ["retry", "fail", "ask"])
def test_a_call_is_lost_with_the_runner_that_holds_its_server(srv, begin_apart, marks, on_lost):  # noqa: F811
    holder, _ = begin_apart(counting(20, on_lost=on_lost))
    until(Output.objects.exists, "it counts")
    holder.kill()
    answer_if_asked(on_lost)
    until(lambda: Task.objects.get().state in ENDED, "the task ends")
    assert Task.objects.get().state == ("FAILED" if on_lost == "fail" else "COMPLETED")
    assert Approval.objects.exists() == (on_lost == "ask")
    tries = [row.error_kind for row in Evidence.objects.filter(tool="srv.count").order_by("id")]
    assert tries == (["lost"] if on_lost == "fail" else ["lost", ""])
    assert marks.read_text().splitlines().count("count ends") == (0 if on_lost == "fail" else 1)
