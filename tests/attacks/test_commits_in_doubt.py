"""The connection breaks at every commit of a run, before it or just after it: nothing is lost, nothing is done twice."""

from contextlib import asynccontextmanager

import psycopg
import pytest

from agents.engine.journal import Journal
from agents.models import Event, Output
from agents.streams.verify import verify_database
from constellations.models import Attempt, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]
COMMITS = range(1, 22, 2)


class Breaking(Journal):
    """Its transaction number `at` ends with a lost connection: `written` all the same, or not."""

    at, written, broken = 0, False, 0

    def __init__(self) -> None:
        self.begun = 0
        super().__init__()

    @asynccontextmanager
    async def transaction(self, *, pipelined: bool = False):
        self.begun += 1
        breaks = self.begun == self.at
        Breaking.broken += breaks
        if breaks and not self.written:
            raise psycopg.OperationalError("the connection is lost")
        async with super().transaction(pipelined=pipelined) as cursor:
            yield cursor
        if breaks:
            raise psycopg.OperationalError("the connection is lost")


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_a_connection_that_breaks_at_a_commit_loses_nothing_and_doubles_nothing(engine, device, monkeypatch, written):
    monkeypatch.setattr("agents.engine.runner.Journal", Breaking)
    monkeypatch.setattr(Breaking, "broken", 0)
    says = ["sh", "-c", "echo said"]
    tasks = [
        {"task_id": f"t{n}", "device": "laptop", "command": says, "after": [f"t{n - 3}"] if n > 2 else []} for n in range(9)
    ]
    plan = {"tasks": [{**task, "on_lost": "fail"} for task in tasks]}
    for at in COMMITS:
        monkeypatch.setattr(Breaking, "at", at)
        monkeypatch.setattr(Breaking, "written", written)
        assert engine.carry_out(plan).state == "COMPLETED", at
    assert Task.objects.count() == Attempt.objects.filter(outcome="completed").count() == Attempt.objects.count()
    printed = Output.objects.values_list("attempt_id", "text")
    assert dict(printed) == {attempt: "said\n" for attempt in Attempt.objects.values_list("pk", flat=True)}
    assert len(printed) == Attempt.objects.count()
    assert Event.objects.filter(type="outage", stream__kind="system").count() == Breaking.broken
    assert Breaking.broken >= len(COMMITS) // 2, "runs with fewer commits than that are hardly broken"
    assert list(verify_database()) == []
