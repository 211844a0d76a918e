"""What an attempt said until its end is there as soon as its end is, whoever dies in between."""

import asyncio
import os
import signal

import pytest

from agents.devices import host
from agents.engine.bodies.outcomes import OutcomeFile
from agents.engine.sessions import Sessions
from agents.models import InboxItem, Output
from agents.services.sessions import request_submit
from agents.streams.verify import verify_database
from agents.tools.calls import TOOLS, Call, Outcome
from constellations.models import Attempt
from tests.agents.conftest import Rest
from tests.conftest import TestRunner
from tests.reliability.cluster import until
from tests.reliability.test_faults import count, in_another_process

pytestmark = pytest.mark.django_db(transaction=True)
LINES = 5
SAYS = f"for line in $(seq {LINES}); do echo line $line; sleep 0.04; done; echo end"
SAID = "".join(f"line {line + 1}\n" for line in range(LINES)) + "end\n"


def said(attempt: int) -> str:
    return "".join(Output.objects.filter(attempt_id=attempt).order_by("offset", "id").values_list("text", flat=True))


def ends(outcome: str = "completed") -> list[int]:
    return list(Attempt.objects.filter(outcome=outcome).values_list("pk", flat=True))


@pytest.mark.kill
def test_output_is_whole_whenever_an_end_is_seen_and_after_every_death_of_a_runner(clusters, engine, wide, operator):
    """A reader asks for the output of each attempt the moment it sees its end, while runners are killed one after another."""
    tasks = [{"task_id": f"t{n}", "device": wide[n % 2], "command": ["sh", "-c", SAYS], "max_attempts": 20} for n in range(60)]
    for task in tasks:
        task["on_lost"] = "retry"
    engine.submit({"tasks": tasks})
    engine.submit({"tasks": tasks})
    cluster = clusters()
    cluster.start()
    rest, seen, wrong, kills = Rest(engine.owner), set[int](), list[tuple[int, str]](), 0

    def look() -> bool:
        nonlocal kills
        answered_all = not InboxItem.objects.filter(state__in=("queued", "running")).exists()
        for attempt in set(ends()) - seen:
            seen.add(attempt)
            task = Attempt.objects.get(pk=attempt).task_id
            answered = rest.get(f"/api/tasks/{task}/output/").json()
            if answered["attempt"] != attempt or answered["text"] != SAID:
                wrong.append((attempt, answered["text"]))
            if len(seen) > 20 * (kills + 1) and (living := cluster.runners()):
                os.kill(living[0].pid, signal.SIGKILL)
                kills += 1
        return answered_all

    until(look, "everything ends")
    assert (wrong, len(seen)) == ([], 120)
    assert kills >= 3
    assert [attempt for attempt in ends() if said(attempt) != SAID] == []
    assert list(verify_database()) == []


def test_what_a_dead_runner_had_only_in_its_outcome_file_is_written_once(engine, device, monkeypatch):
    """It dies between the end of a command and the record of it; half of what was printed was durable by then."""
    begun: list[int] = []

    async def endless(call: Call) -> Outcome:
        begun.append(call.attempt)
        await asyncio.Event().wait()
        return Outcome("completed")

    def dies(sessions: Sessions) -> None:
        if begun:
            raise ZeroDivisionError("the runner dies")

    monkeypatch.setitem(TOOLS, "endless", endless)
    _, item = engine.submit({"tasks": [{"task_id": "a", "device": "laptop", "tool": "endless"}]})
    with monkeypatch.context() as patched:
        patched.setattr(Sessions, "fire_timers", dies)
        with pytest.raises(ZeroDivisionError):
            engine.run()
    (attempt,) = begun
    Output.objects.create(attempt_id=attempt, offset=0, text="first half, ")
    left = OutcomeFile(host.runtime_dir(), 999_999)
    left.add(attempt, Outcome("completed", printed=24, unwritten=(0, "first half, second half\n")))
    left.flush()
    left.close()
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, ends()) == ("completed", [attempt])
    assert list(Output.objects.order_by("offset").values_list("offset", "text")) == [(0, "first half, "), (12, "second half\n")]


def test_a_cancelled_attempt_has_what_it_said_before_the_decision(engine, device, monkeypatch):
    """Its output is never flushed for its own sake here: it comes with the record of the end, or later."""
    monkeypatch.setattr("agents.engine.bodies.reports.FLUSH_S", 600.0)
    says = ["sh", "-c", "echo begun; while :; do sleep 1; done"]
    session, _ = engine.submit({"tasks": [{"task_id": "a", "device": "laptop", "command": says}]})
    asked: list[int] = []
    read: list[str] = []

    def ended() -> bool:
        if runner.sessions.reports.outputs and not asked:
            asked.append(1)
            in_another_process(lambda: request_submit(session.pk, "cancel", "", {}, by="user:1") and None)
        if not read and count("SELECT count(*) FROM constellations_attempt WHERE outcome = 'cancelled'"):
            in_another_process(lambda: read.append(said(Attempt.objects.get().pk)))
        return bool(read) and runner._all_rest()

    runner = TestRunner(ended)
    runner.run()
    assert (read, runner.gave_up) == (["begun\n"], False)
