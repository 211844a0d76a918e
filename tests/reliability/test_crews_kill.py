"""kill -9 of real runners in the middle of tasks in steps, and while their agents wait: what is durable stays, waits go on."""

import os
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from agents.models import (
    Actor,
    Agent,
    Approval,
    Device,
    Event,
    Evidence,
    InboxItem,
    Lease,
    Loop,
    PhaseRecord,
    Runner,
    Transition,
)
from agents.services.approvals import approval_decide
from agents.services.sessions import request_submit
from agents.streams import statements
from agents.streams.verify import verify_database
from agents.tools.calls import RETRIES, TOOLS, Call, Outcome
from constellations.models import Attempt, Task
from tests.reliability.cluster import marked, until
from tests.reliability.steps import StepMarks, calls_of, check_each_done_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]

SESSIONS = 4
CALLS = 6
ON_LOST = ("fail", "ask", "retry", "retry", "retry")
"""Of the five tasks of each session."""


@pytest.fixture
def marks(state_dir) -> StepMarks:
    return StepMarks(state_dir)


def plan(marks: StepMarks, devices: list[str]) -> dict:
    """Tasks in steps; every second one has three phases."""
    tasks = []
    for n, on_lost in enumerate(ON_LOST):
        calls = [marks.call(f"c{k}", 0.15) for k in range(CALLS)]
        phases = [{"description": f"part {k}", "steps": calls[2 * k : 2 * k + 2]} for k in range(3)]
        work = {"phases": phases} if n % 2 else {"steps": calls}
        tasks.append({"task_id": f"t{n}", "device": devices[n % 2], "on_lost": on_lost, "max_attempts": 2, **work})
    return {"tasks": tasks}


def all_answered() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def all_done() -> bool:
    """All requests are answered; to whatever asks what to do about a lost call, somebody says "try again"."""
    for approval in Approval.objects.filter(kind="question", state="waiting"):
        assert approval.options[0] == "try again"
        approval_decide(approval.pk, "approve", by="user:1", answer="try again")
    return all_answered()


def check_phases() -> None:
    """Every phase that began was completed, each exactly once."""
    for task in Task.objects.filter(state="COMPLETED"):
        rows = PhaseRecord.objects.filter(agent=task.attempts.get().agent_id)
        wanted = len(task.phases) if len(task.phases) > 1 else 0
        assert [(row.number, row.outcome) for row in rows] == [(n + 1, "success") for n in range(wanted)], task
    for kind in ("phase_started", "phase_ended"):
        told = Counter(key for event in Event.objects.filter(type=kind) for key in phases_of(event.data))
        assert set(told) == {str(row.pk) for row in PhaseRecord.objects.all()}
        assert set(told.values()) == {1}


def phases_of(data: dict) -> list[str]:
    added = [str(row["id"]) for row in data.get("add", {}).get("phase", ())]
    return added + list(data.get("set", {}).get("phase", {}))


def check_tasks() -> None:
    """Every task ended within its first attempt, as its `on_lost` says."""
    for attempt in Attempt.objects.select_related("task"):
        task, check = attempt.task, [(row.error_kind, row.success) for row in calls_of(attempt)]
        lost = ("lost", False) in check
        check_each_done_once(attempt)
        if task.on_lost == "fail" and lost:
            assert (task.state, attempt.outcome, check[-1]) == ("FAILED", "lost", ("lost", False)), task
        else:
            assert (task.state, attempt.outcome) == ("COMPLETED", "completed"), (task, task.error)
            assert check.count(("", True)) == CALLS, (task, check)


def check_at_rest() -> None:
    assert not marked()
    assert set(Device.objects.values_list("used", flat=True)) == {0}
    assert not Attempt.objects.filter(outcome="").exists()
    assert list(verify_database()) == []


@pytest.mark.parametrize("victims", ["all of the cluster", "one of two runners"])
def test_tasks_in_steps_go_on_within_their_attempts(clusters, engine, marks, wide, victims):
    for _ in range(SESSIONS):
        engine.submit(plan(marks, wide))
    cluster = clusters()
    cluster.start()
    until(lambda: marks.count("end") >= 30, "the first thirty calls")
    if victims == "all of the cluster":
        cluster.kill()
        attempts = set(Attempt.objects.values_list("pk", flat=True))
        assert Evidence.objects.filter(ended_at=None).exists()
        clusters().start()
    else:
        owner = Lease.objects.exclude(runner=None).values_list("runner", flat=True).first()
        os.kill(Runner.objects.get(pk=owner).pid, signal.SIGKILL)
        attempts = set(Attempt.objects.values_list("pk", flat=True))
    durable = dict(Evidence.objects.filter(success=True).values_list("pk", "call"))
    until(all_done, "everything ends")
    assert attempts <= set(Attempt.objects.values_list("pk", flat=True))
    assert Attempt.objects.count() == Task.objects.count() == SESSIONS * len(ON_LOST)
    for row in Evidence.objects.filter(pk__in=durable, tool="command"):
        assert not Evidence.objects.filter(loop=row.loop_id, call=row.call, pk__gt=row.pk).exists(), f"{row} was done again"
    assert Evidence.objects.filter(error_kind="lost").exists()
    marks.check()
    check_tasks()
    check_phases()
    if victims == "all of the cluster":
        assert Approval.objects.filter(kind="question", state="approved").exists()
        assert Task.objects.filter(on_lost="fail", state="FAILED").exists()
    check_at_rest()


def test_an_app_agent_on_another_device_and_its_host_go_on_after_every_runner_was_killed(clusters, engine, marks, wide):
    """Half of the app agents are at work, or want a slot of the other device, when all runners die."""
    calls = [marks.call(f"c{k}", 0.15) for k in range(4)]
    child = {"delegate": {"name": "other", "device": wide[1], "on_lost": "retry", "steps": calls[1:3]}}
    work = {"device": wide[0], "on_lost": "retry", "steps": [calls[0], child, calls[3]]}
    tasks = [{"task_id": f"t{n}", **work} for n in range(6)]
    engine.submit({"tasks": tasks})
    cluster = clusters()
    cluster.start()
    until(lambda: marks.count("end") >= 8, "the first calls of app agents")
    cluster.kill()
    clusters().start()
    until(all_done, "everything ends")
    assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}
    assert Attempt.objects.count() == len(tasks)
    there = Agent.objects.filter(machine="device_agent", parent__machine="device_agent")
    assert set(there.values_list("device__name", "state")) == {(wide[1], "FINISH")}
    marks.check()
    check_at_rest()


def test_what_an_app_agent_has_lost_fails_the_task_for_good_where_on_lost_says_so(clusters, engine, marks, wide):
    child = {"delegate": {"name": "other", "steps": [marks.call("slow", 3)]}}
    task = {"task_id": "work", "device": wide[0], "on_lost": "fail", "max_attempts": 2, "steps": [child]}
    engine.submit({"tasks": [task]})
    first = clusters()
    first.start()
    until(lambda: marks.count("start") == 1, "the app agent's call")
    first.kill()
    clusters().start()
    until(all_answered, "it ends")
    assert (Task.objects.get().state, Task.objects.get().reason) == ("FAILED", "lost")
    assert Attempt.objects.get().outcome == "lost"
    check_at_rest()


# --- agents that wait


def waiting_plans(marks: StepMarks, device: str) -> dict[str, dict]:
    """Everything that an agent may wait for, each in a session of its own."""
    on = marks.call("on", 0)
    work = {
        "approved": {"command": marks.argv("on", 0), "confirm": True},
        "rejected": {"command": marks.argv("on", 0), "confirm": True},
        "question": {"steps": [{"ask": "which one?", "options": ["left", "right"], "timeout": 3600, "save": "said"}, on]},
        "permission": {"steps": [marks.call("on", 0, confirm=True)]},
        "callback": {"steps": [{"wait": {"for": "delivery", "timeout": 3600}, "save": "brought"}, on]},
        "time": {"steps": [{"wait": WAIT_S}, on]},
        "child": {"steps": [{"delegate": {"name": "other", "steps": [marks.call("slow", 2.5)]}}, on]},
        "paused": {"steps": [marks.call(f"c{k}", 0.1) for k in range(30)]},
    }
    return {name: {"tasks": [{"task_id": name, "device": device, **task}]} for name, task in work.items()}


WAIT_S = 10
"""Longer than a cluster takes to be killed and started twice, on most machines: else there is less to see."""
SHOWN = {
    "approved": ("CONFIRM",), "rejected": ("CONFIRM",), "question": ("PENDING",), "permission": ("PENDING",),
    "callback": ("PENDING",), "time": ("PENDING",), "child": ("PENDING", "CONTINUE"),
}  # fmt: skip
"""States of the agents in the order of their rows."""


def shown(name: str) -> tuple[str, ...]:
    agents = Agent.objects.filter(machine="device_agent", session__constellations__tasks__task_id=name)
    return tuple(agents.order_by("pk").values_list("state", flat=True))


def history(sessions: dict[str, int], names) -> list[tuple]:
    """All that the actors, agents and loops of some sessions went through."""
    chosen = [sessions[name] for name in names]
    rows = Transition.objects.filter(stream__in=chosen).order_by("id")
    return list(rows.values_list("stream", "machine", "subject_id", "event", "to_state"))


def all_wait() -> bool:
    paused = Actor.objects.filter(state="paused").count() == 1
    return paused and all(shown(name) == states for name, states in SHOWN.items())


def have_been_looked_at(sessions: dict[str, int]) -> None:
    """Every session answers to somebody who has read it."""
    sent = [request_submit(key, "ping", "", {}, by="user:1")[0].pk for key in sessions.values()]
    until(lambda: InboxItem.objects.filter(pk__in=sent, state="done").count() == len(sent), "every session answers")


def decide_all(sessions: dict[str, int]) -> None:
    said = {"question": {"answer": "left"}, "callback": {"answer": {"n": 1}}}
    for approval in Approval.objects.filter(state="waiting"):
        name = Task.objects.get(pk=approval.subject_id).task_id
        decision = "reject" if name == "rejected" else "approve"
        approval_decide(approval.pk, decision, by="user:1", digest=approval.digest, **said.get(name, {}))
    request_submit(sessions["paused"], "resume", "", {}, by="user:1")


def test_agents_wait_through_a_kill_and_follow_what_was_decided_while_no_runner_lived(clusters, engine, marks, wide):
    sessions = {name: engine.submit(one)[0].pk for name, one in waiting_plans(marks, wide[0]).items()}
    still = [name for name in sessions if name not in ("time", "child")]
    first = clusters()
    first.start()
    until(lambda: Evidence.objects.filter(loop__agent__session=sessions["paused"]).exists(), "the first call")
    request_submit(sessions["paused"], "pause", "", {}, by="user:1")
    until(all_wait, "everybody waits")
    assert Loop.objects.get(agent__session=sessions["permission"]).state == "AwaitingPermission"
    before = history(sessions, still)
    first.kill()
    second = clusters()
    second.start()
    have_been_looked_at(sessions)
    assert history(sessions, still) == before
    assert Device.objects.get(name=wide[0]).used == 1
    second.kill()
    decide_all(sessions)
    assert history(sessions, still) == before
    clusters().start()
    until(all_answered, "everything ends")
    states = dict(Task.objects.values_list("task_id", "state"))
    assert states.pop("rejected") == "FAILED"
    assert set(states.values()) == {"COMPLETED"}, states
    check_waits_were_kept(sessions)
    marks.check()
    check_at_rest()


def check_waits_were_kept(sessions: dict[str, int]) -> None:
    """Each wait ended once, not before its time, with what was said; and what was decided was used once."""
    assert Task.objects.get(task_id="question").result["said"] == "left"
    assert Task.objects.get(task_id="callback").result["brought"] == {"n": 1}
    assert not Approval.objects.filter(used_at=None).exists()
    for name in ("question", "permission", "callback", "time", "child"):
        moves = Transition.objects.filter(stream=sessions[name], machine="device_agent")
        waits = [row for row in moves.order_by("id") if "PENDING" in (row.from_state, row.to_state)]
        assert [row.to_state for row in waits] == ["PENDING", "CONTINUE"], name
        if name == "time":
            assert (waits[1].at - waits[0].at).total_seconds() >= WAIT_S
    for attempt in Attempt.objects.all():
        check_each_done_once(attempt)
    assert Attempt.objects.count() == Task.objects.count()


@pytest.mark.parametrize("what", ["a call of a task in steps", "a plain task"])
def test_what_was_approved_once_is_asked_for_again_when_it_was_lost(clusters, engine, marks, wide, what):
    slow = {"command": marks.argv("slow", 1.5), "confirm": True}
    work = {"steps": [slow, marks.call("on", 0)]} if what == "a call of a task in steps" else slow
    engine.submit({"tasks": [{"task_id": "work", "device": wide[0], "on_lost": "retry", **work}]})
    first = clusters()
    first.start()
    waiting = Approval.objects.filter(state="waiting")
    until(waiting.exists, "it asks")
    approval = waiting.get()
    approval_decide(approval.pk, "approve", by="user:1", digest=approval.digest)
    until(lambda: marks.count("start") == 1, "the approved call runs")
    first.kill()
    clusters().start()
    until(waiting.exists, "it asks again")
    again = waiting.get()
    assert (again.kind, again.action) == (approval.kind, approval.action)
    assert marks.count("start") == 1
    approval.refresh_from_db()
    assert approval.used_at is not None
    approval_decide(again.pk, "approve", by="user:1", digest=again.digest)
    until(all_answered, "it ends")
    assert Task.objects.get().state == "COMPLETED"
    assert [mark.name for mark in marks.found() if mark.kind == "start"].count("slow") == 2
    assert Approval.objects.filter(used_at__isnull=False).count() == Approval.objects.count() == 2
    check_at_rest()


def test_an_answer_to_something_else_is_none_after_another_runner_took_over(engine, device, monkeypatch):
    """The first runner ends while the agent waits to try again; the second one must ask, and not take the older answer."""
    made: list[int] = []

    async def limited_then_missing(call: Call) -> Outcome:
        made.append(call.key)
        kind = "rate_limit" if len(made) <= RETRIES + 1 else "missing"
        return Outcome("failed", error=kind, error_kind=kind)

    monkeypatch.setitem(TOOLS, "limited", limited_then_missing)
    steps = [{"ask": "which one?"}, {"tool": "limited"}]
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", "steps": steps}]})
    engine.run(is_there("agents_approval", "state = 'waiting'"))
    approval_decide(Approval.objects.get().pk, "approve", by="user:1", answer="left")
    engine.run(is_there("agents_loop", "state = 'ErrorRecovery'"))
    engine.run(is_there("agents_approval", "state = 'waiting'"))
    assert Approval.objects.get(state="waiting").title == "work: missing"
    approval_decide(Approval.objects.get(state="waiting").pk, "approve", by="user:1", answer="skip it")
    engine.run()
    assert Task.objects.get().state == "COMPLETED"
    assert list(verify_database()) == []


def is_there(table: str, where: str) -> Callable[[], bool]:
    """Asks, from inside the engine's loop, whether there is such a row."""
    return lambda: statements.raw_cursor().execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0] > 0
