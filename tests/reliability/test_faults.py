"""What must not end a runner: a bug in one session, a lease that was lost, a result that cannot be stored."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.utils import timezone

from agents.clock import now_iso
from agents.devices import host
from agents.engine import leases
from agents.engine.journal import Journal
from agents.engine.sessions import Sessions
from agents.models import Actor, Lease, Runner, Stream
from agents.services.devices import device_bring_back, device_take_offline
from agents.services.sessions import request_submit, session_create
from agents.streams import fold, statements
from agents.streams.door import WAKE
from agents.tools.calls import TOOLS, Call, Outcome
from constellations.models import Attempt, Constellation, Task
from constellations.runs.run import ConstellationWork
from tests.conftest import TestRunner

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified"), pytest.mark.attack]


def noop(task_id: str, **more) -> dict:
    return {"task_id": task_id, "device": "laptop", "tool": "noop", **more}


@pytest.fixture
def broken(monkeypatch) -> Callable[[Callable], None]:
    """Makes the engine's decisions go wrong wherever a task is called `boom`."""
    decide = ConstellationWork.decide

    def install(bug: Callable) -> None:
        def broken_decide(work, turn, now, budget):
            if work.context.live is not None and "boom" in work.context.live.nodes:
                bug(work, turn)
            return decide(work, turn, now, budget)

        monkeypatch.setattr(ConstellationWork, "decide", broken_decide)

    return install


def divide(work, turn) -> None:
    raise ZeroDivisionError("a bug")


def record_nonsense(work, turn) -> None:
    turn.record("nonsense", value=object())


def record_what_is_there(work, turn) -> None:
    turn.record("nonsense", add={"session": list(work.drive.known.rows["session"].values())})


BUGS = {
    "while deciding": divide, "in what it records": record_nonsense, "in what the database is to hold": record_what_is_there,
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_bug_in_one_session_ends_its_actor_and_no_other(engine, device, broken, bug):
    broken(bug)
    bad, bad_item = engine.submit({"tasks": [noop("boom")]})
    others = [engine.submit({"tasks": [noop(f"t{n}") for n in range(20)]})[1] for _ in range(3)]
    engine.run()
    for item in [bad_item, *others]:
        item.refresh_from_db()
    assert bad_item.outcome == "failed"
    assert Actor.objects.get(session=bad).state == "error"
    assert [item.outcome for item in others] == ["completed"] * 3
    engine.carry_out({"tasks": [noop("again")]}, bad)
    assert list(Actor.objects.filter(session=bad).order_by("epoch").values_list("state", flat=True)) == ["error", "idle"]


def test_what_was_only_wrong_in_memory_is_read_anew_and_goes_on(engine, device, broken):
    seen = []

    def once(work, turn):
        if not seen:
            seen.append(1)
            raise ZeroDivisionError("a bug")

    broken(once)
    found = engine.carry_out({"tasks": [noop("boom"), noop("after", after=["boom"])]})
    assert (seen, found.state) == ([1], "COMPLETED")
    assert Actor.objects.get().state == "idle"


def test_transient_faults_are_tried_again_and_do_not_count_as_bugs(engine, device, broken):
    seen = []

    def unreachable(work, turn):
        if len(seen) < 4:
            seen.append(1)
            raise ConnectionResetError("the other side is gone")

    broken(unreachable)
    found = engine.carry_out({"tasks": [noop("boom"), noop("after", after=["boom"])]})
    assert (len(seen), found.state, Actor.objects.get().state) == (4, "COMPLETED", "idle")


def test_transient_faults_that_do_not_end_end_the_actor(engine, device, broken, monkeypatch):
    def unreachable(work, turn):
        raise ConnectionResetError("the other side is gone")

    monkeypatch.setattr("agents.engine.sessions.RETRY_S", 0.001)
    broken(unreachable)
    _, item = engine.submit({"tasks": [noop("boom")]})
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, Actor.objects.get().state) == ("failed", "error")
    assert "ConnectionResetError" in Actor.objects.get().reason


def test_a_request_whose_preparation_meets_a_transient_fault_is_prepared_again(engine, device, monkeypatch):
    from constellations.services import plans

    prepare, seen = plans.requested_plan, []

    def unreachable(interaction, payload):
        seen.append(1)
        if len(seen) < 3:
            raise ConnectionResetError("the other side is gone")
        return prepare(interaction, payload)

    monkeypatch.setattr(plans, "requested_plan", unreachable)
    assert engine.carry_out({"tasks": [noop("a")]}).state == "COMPLETED"
    assert len(seen) == 3


def test_a_session_whose_work_cannot_even_be_read_ends_in_error(engine, device, monkeypatch):
    session, item = engine.submit(
        {"tasks": [noop("a"), {"task_id": "b", "device": "laptop", "command": ["true"], "after": ["a"]}]}
    )

    def no_load(work):
        raise ZeroDivisionError("a bug")

    def no_settled(work, batch):
        raise ZeroDivisionError("another")

    monkeypatch.setattr(ConstellationWork, "load", no_load)
    monkeypatch.setattr(ConstellationWork, "settled", no_settled)
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "failed"
    assert Actor.objects.get(session=session).state == "error"


def test_a_result_that_no_database_holds_is_a_failed_attempt(engine, device):
    found = engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "command": ["echo", "9" * 40]}]})
    assert found.state == "FAILED"
    assert "cannot be stored" in Attempt.objects.get().error


def test_a_tool_that_raises_is_a_failed_attempt(engine, device, monkeypatch):
    async def broken_tool(call: Call) -> Outcome:
        raise ZeroDivisionError("a bug")

    monkeypatch.setitem(TOOLS, "broken", broken_tool)
    found = engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "tool": "broken"}]})
    assert (found.state, Attempt.objects.get().error) == ("FAILED", "ZeroDivisionError: a bug")


# --- leases


@pytest.fixture
def _slow_once(monkeypatch):
    """The tool `slow_once`: its first call ends only when it is interrupted."""
    calls = []

    async def slow_once(call: Call) -> Outcome:
        calls.append(call.attempt)
        await asyncio.sleep(600 if len(calls) == 1 else 0)
        return Outcome("completed")

    monkeypatch.setitem(TOOLS, "slow_once", slow_once)


def run_with(meddle: Callable[[TestRunner], None]) -> TestRunner:
    """Run until everything rests; `meddle` is called once, as soon as an attempt runs."""
    done: list[int] = []

    def rests() -> bool:
        if done:
            return runner._all_rest()
        if count("SELECT count(*) FROM constellations_attempt WHERE outcome = ''"):
            done.append(1)
            meddle(runner)
        return False

    runner = TestRunner(rests)
    runner.run()
    assert done
    assert not runner.gave_up
    return runner


def count(statement: str) -> int:
    return statements.raw_cursor().execute(statement).fetchone()[0]


def in_another_process(function: Callable[[], None]) -> None:
    """As it were: on a connection of its own."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(function).result()
        pool.submit(connections.close_all).result()


SLOW = {"tasks": [{"task_id": "slow", "device": "laptop", "tool": "slow_once", "on_lost": "retry"}, noop("b", after=["slow"])]}


@pytest.mark.usefixtures("_slow_once")
def test_a_runner_that_could_not_renew_interrupts_everything_and_lets_go(engine, device):
    _, item = engine.submit(SLOW)

    def stand_still(runner: TestRunner) -> None:
        runner._leases._renewed -= leases.FENCE_S + 1

    runner = run_with(stand_still)
    item.refresh_from_db()
    assert item.outcome == "completed"
    assert outcomes_of("slow") == ["lost", "completed"]
    assert Runner.objects.get(pk=runner.row.pk).state == "ENDED"
    assert not Lease.objects.exclude(runner=None).exists()


@pytest.mark.usefixtures("_slow_once")
def test_an_owner_whose_fence_was_moved_records_nothing_more(engine, device):
    session, item = engine.submit(SLOW)

    def take_away() -> None:
        """Another runner takes the session over, records something, and dies."""
        other = Runner.objects.create(
            host=host.boot_identity(), pid=1, pid_start=0, files=str(host.runtime_dir()),
            started_at=timezone.now(), renewed_at=timezone.now(),
        )  # fmt: skip
        stream = Stream.objects.get(pk=session.pk)
        Stream.objects.filter(pk=session.pk).update(token=stream.token + 1)
        Lease.objects.filter(stream=stream).update(runner=other)
        request_submit(session.pk, "ping", "", {}, by="user:1")

    run_with(lambda runner: in_another_process(take_away))
    item.refresh_from_db()
    assert item.outcome == "completed"
    assert outcomes_of("slow") == ["lost", "completed"]
    fences = list(Attempt.objects.filter(task__task_id="slow").order_by("number").values_list("fence", flat=True))
    assert fences == sorted(set(fences))


def test_a_look_that_was_asked_for_is_still_asked_for_when_the_lease_is_given_back(engine):
    """A slot that another session's commit has granted moves no stream: the lease alone says so."""
    session = session_create(engine.owner, by="system")
    now = timezone.now()
    row = Runner.objects.create(
        host=host.boot_identity(), pid=1, pid_start=0, files=str(host.runtime_dir()), started_at=now, renewed_at=now
    )
    head, journal = fold.stream_head(session.pk), Journal()
    held = leases.Leases(journal, row.pk)

    async def give_back(asked_for: bool) -> bool:
        (leased,) = await held.take([session.pk])
        if asked_for:
            async with journal.transaction() as cursor:
                statements.current_store().execute(cursor, WAKE, (statements.current_store().time(now_iso()), session.pk))
        returned = leases.ReturnedLease(session.pk, head, leased.token, (leased.rows_from, leased.rows_to), None)
        return await held.give_back([returned]) == {session.pk}

    given = []
    for asked_for in (True, False):
        assert asyncio.run(give_back(asked_for))
        found = statements.current_store().execute(journal.cursor(), "SELECT runner_id, wake_at FROM agents_lease").fetchone()
        given.append((found[0], found[1] is not None))
    journal.close()
    row.delete()
    assert given == [(None, True), (None, False)]


def outcomes_of(task_id: str) -> list[str]:
    return list(Attempt.objects.filter(task__task_id=task_id).order_by("number").values_list("outcome", flat=True))


def test_a_runner_that_breaks_leaves_its_sessions_to_the_next(engine, device, monkeypatch):
    _, item = engine.submit({"tasks": [noop(f"t{n}") for n in range(10)]})

    def breaks(runner) -> None:
        raise ZeroDivisionError("a bug in the loop itself")

    with monkeypatch.context() as patched:
        patched.setattr(Sessions, "fire_timers", lambda sessions: sessions.drives and breaks(sessions))
        with pytest.raises(ZeroDivisionError):
            engine.run()
    assert not Lease.objects.exclude(runner=None).exists()
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"


# --- waiting


def test_a_task_waits_for_its_device_and_starts_when_that_comes_online(engine, device):
    device_take_offline(device.pk, by="system")
    _, item = engine.submit({"tasks": [noop("a"), noop("b", after=["a"])]})
    waited: list[int] = []

    def come_online() -> bool:
        if not waited and count("SELECT count(*) FROM constellations_task WHERE state = 'PENDING'"):
            waited.append(1)
            in_another_process(lambda: device_bring_back(device.pk, by="system") and None)
        return bool(waited) and count("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')") == 0

    engine.run(until=come_online)
    item.refresh_from_db()
    assert item.outcome == "completed"


def test_a_paused_session_keeps_no_time_for_its_work(engine, device, settings):
    plan = {"tasks": [{"task_id": "a", "device": "laptop", "command": ["false"], "max_attempts": 2, "backoff": 0.2}]}
    session, _ = engine.submit(plan)
    sent: list[int] = []
    wakes: list[float | None] = []

    def paused() -> bool:
        if not sent and count("SELECT count(*) FROM constellations_task WHERE retry_at IS NOT NULL"):
            sent.append(1)
            in_another_process(lambda: request_submit(session.pk, "pause", "", {}, by="user:1") and None)
        if not count("SELECT count(*) FROM agents_actor WHERE state = 'paused'"):
            return False
        wakes.append(runner.sessions.drives[session.pk].wake_at())
        return True

    runner = TestRunner(paused)
    runner.run()
    assert wakes[0] is not None
    assert wakes[0] > time.time() + settings.PAUSED_S / 2
    request_submit(session.pk, "resume", "", {}, by="user:1")
    engine.run()
    assert Task.objects.get().state == "FAILED"
    assert Attempt.objects.count() == 2


def test_a_paused_actor_that_nobody_resumes_ends_with_its_work(engine, device, settings):
    settings.PAUSED_S = 0.2
    session, item = engine.submit({"tasks": [noop("a"), noop("b", after=["a"])]})
    device_take_offline(device.pk, by="system")
    sent: list[int] = []

    def ended() -> bool:
        if not sent and count("SELECT count(*) FROM constellations_task"):
            sent.append(1)
            in_another_process(lambda: request_submit(session.pk, "pause", "", {}, by="user:1") and None)
        return count("SELECT count(*) FROM agents_actor WHERE state = 'completed'") == 1

    engine.run(until=ended)
    item.refresh_from_db()
    assert (item.state, item.outcome) == ("done", "cancelled")
    assert Constellation.objects.get().state == "CANCELLED"
    device_bring_back(device.pk, by="system")
    assert engine.carry_out({"tasks": [noop("c")]}, session).state == "COMPLETED"
