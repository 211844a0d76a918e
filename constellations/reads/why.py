"""Why a task is not running: one explanation, computed from the rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.utils import timezone

from agents.engine.leases import LEASE_S
from agents.machines import ACTOR
from agents.models import Actor, Evidence, Loop, Runner
from agents.reads.agents import agents_below
from agents.reads.verdicts import latest_verdict, set_since
from agents.streams.tables import Fields
from constellations import conditions
from constellations.assignment.wishes import NOT_ALLOWED, NOT_OFFERED, wish_of
from constellations.editor.draft import is_skipped
from constellations.live.row_types import LinkedDependency, TaskRow
from constellations.live.rows import Edge, Node, edge_holds
from constellations.machines.task import ENDED
from constellations.models import Attempt, Dependency, Task
from constellations.plan.fitting import CALL_FIELDS, DEVICE_FIELDS, why_none_fits
from constellations.plan.tasks import IN_WORDS
from constellations.reads.devices import judge_devices
from constellations.reads.progress import same_stream, waiting_approvals

SHOWN = 20
"""Upstream tasks, or devices, that an explanation lists."""
ERROR_SHOWN = 500
"""Characters of an error that the sentence has; `fields` has all of it."""
EDGES = 10_000
"""Dependencies of one task that are looked at."""
KINDS = (
    "running", "ended", "cancelled", "in_words", "dependency", "condition_unknown", "condition_false", "approval", "callback",
    "waits", "resources", "review", "paused", "retry", "no_runner", "no_device", "not_allowed", "not_offered",
    "device_offline", "device_draining", "device_full", "limit", "starting", "stuck",
)  # fmt: skip
"""`in_words`: it says in words alone what to do. `review`: nobody has started its constellation. `callback`: somebody outside
has to report. `not_allowed`: the session's owner may use no device that fits. `not_offered`: it wishes for no device, and none
is offered for that. `waits`: its agent awaits something else. `starting`: nothing holds it back. `stuck`: its agent gets, or
got, nowhere.
"""
BARRED = "its session's owner may not use what it could run on"
UNOFFERED = "it wishes for no device, and those that are there are not offered to such tasks"
NEEDS = "needs a model or a command"
NO_RUNNER = "no runner lives: start one, for example with `manage.py up`"


def explain_task(task: Task) -> Fields:
    """{"kind": one of KINDS, "text": a sentence, "fields": what it is about}; to be read inside `consistent_read`.

    Where no runner lives, that is said of every task that has not ended, whatever else it waits for.
    """
    found = _explanation(task)
    if task.state in ENDED or found["kind"] == "no_runner" or _runner_lives():
        return found
    if found["kind"] in ("running", "starting"):
        begun = f"{task.task_id} has begun attempt {task.attempt}, and " if task.state == "RUNNING" else ""
        return explanation_of("no_runner", f"{begun}{NO_RUNNER}")
    return {**found, "text": f"{found['text']}; besides, {NO_RUNNER}", "fields": {**found["fields"], "no_runner": True}}


def _explanation(task: Task) -> Fields:
    row = {"state": task.state, "reason": task.reason}
    if task.state == "RUNNING":
        return (
            _approval(task)
            or _awaits(task)
            or _short(task)
            or _stuck(task)
            or explanation_of("running", f"{task.task_id} runs, attempt {task.attempt}")
        )
    if task.state == "WAITING_DEPENDENCY" or is_skipped(row):
        found = _dependencies(task) or explanation_of(
            "starting", "all it waits for has ended; its session is about to take that up"
        )
        then = f"; then it {NEEDS}" if task.tool == IN_WORDS and task.state == "WAITING_DEPENDENCY" else ""
        return {**found, "text": found["text"] + then}
    if task.state == "CANCELLED":
        return explanation_of("cancelled", task.reason or "it was cancelled")
    if task.state == "FAILED" and task.reason.startswith("stuck:") and (stuck := _stuck(task)) is not None:
        return stuck
    if task.state != "PENDING":
        beginning = task.error if len(task.error) <= ERROR_SHOWN else f"{task.error[:ERROR_SHOWN]} ..."
        because = f": {beginning}" if task.error else ""
        return explanation_of("ended", f"{task.task_id} has ended ({task.state}){because}", state=task.state, error=task.error)
    reasons = (reason(task) for reason in REASONS)
    nothing = explanation_of("starting", "nothing holds it back; it starts when its session's runner comes to it")
    return next((each for each in reasons if each is not None), nothing)


def explanation_of(kind: str, text: str, /, **fields: Any) -> Fields:
    return {"kind": kind, "text": text, "fields": fields}


# What it waits for


def _dependencies(task: Task) -> Fields | None:
    """The dependency that decided it can never start, else all that do not hold yet."""
    rows = same_stream(Dependency.objects.filter(constellation=task.constellation_id, downstream=task), task.pk)
    edges = [_edge(row, task) for row in rows.select_related("upstream").order_by("id")[:EDGES]]
    read = {edge.up.key for edge in edges}  # tasks whose results conditions read: upstream, and those that they name
    for edge in edges:
        read |= conditions.tasks_read_by(edge.row["condition"]) if edge.row["condition"] else set()
    others = Task.objects.filter(constellation=task.constellation_id, task_id__in=read, result__isnull=False)
    results: dict[str, Any] = dict(others.values_list("task_id", "result"))
    decided = [(edge, *edge_holds(edge, results)) for edge in edges]
    for edge, holds, reason in decided:
        if holds is False:
            fields = {
                "dependency_id": edge.row["dependency_id"], "upstream": edge.up.key, "state": edge.up.row["state"],
                "condition": edge.row["condition"],
            }  # fmt: skip
            kind = "dependency"
            if edge.row["type"] == "CONDITIONAL" and edge.up.row["state"] == "COMPLETED":
                kind = "condition_unknown" if reason.startswith("condition unknown") else "condition_false"
            return explanation_of(kind, f"can never start: {edge.row['dependency_id']} {reason}", **fields)
    unmet = [edge.up.row for edge, holds, _ in decided if holds is None]
    if not unmet:
        return None
    names = [f"{row['task_id']} ({row['state']})" for row in unmet]
    waits_for = [{"task_id": row["task_id"], "state": row["state"]} for row in unmet[:SHOWN]]
    text = f"waits for {', '.join(names[:SHOWN])}{_and_more(names)}"
    return explanation_of("dependency", text, waits_for=waits_for, total=len(unmet))


def _edge(row: Dependency, task: Task) -> Edge:
    up = row.upstream
    upstream = {"task_id": up.task_id, "state": up.state, "reason": up.reason, "result": up.result}
    fields = {"dependency_id": row.dependency_id, "type": row.type, "condition": row.condition}
    up_node, down = Node(cast(TaskRow, upstream)), Node(cast(TaskRow, {"task_id": task.task_id}))
    return Edge(cast(LinkedDependency, fields), up_node, down)


# What holds a ready one back


def _in_words(task: Task) -> Fields | None:
    if task.tool != IN_WORDS:
        return None
    return explanation_of(
        "in_words", f"{NEEDS}: it says in words alone what to do; an edit gives it a command, a tool or steps"
    )


def _approval(task: Task) -> Fields | None:
    waiting = waiting_approvals(task)
    if not waiting:
        return None
    first, about = waiting[0], {"approvals": [row.pk for row in waiting[:SHOWN]], "total": len(waiting)}
    if first.kind == "callback":
        return explanation_of("callback", f"waits for a call-back from outside: {first.title}", **about, kind=first.kind)
    return explanation_of("approval", f"waits for somebody to decide: {first.title}", **about, kind=first.kind)


def _awaits(task: Task) -> Fields | None:
    """An attempt that has given back its slot: a time or an event wakes it, and then it wants the slot again.

    While its session is paused, nothing that comes is taken up.
    """
    attempt = Attempt.objects.filter(task=task, outcome="", holds_slot=False).select_related("agent").first()
    if attempt is None:
        return None
    if (paused := _paused(task)) is not None:
        return paused
    agent = attempt.agent
    text = f"its agent waits ({agent.state})" + (f": {agent.reason}" if agent.reason else "")
    return explanation_of("waits", text, agent=agent.pk, state=agent.state)


def _short(task: Task) -> Fields | None:
    """An agent whose device is low on something, or away, stands still where it is, until the device is no longer."""
    attempt = Attempt.objects.filter(task=task, outcome="").select_related("device").first()
    if attempt is None:
        return None
    agents = [attempt.agent_id, *agents_below(attempt.agent_id)]
    loop = Loop.objects.filter(agent__in=agents, state="ResourcePaused").first()
    if loop is None:
        return None
    text = f"its agent waits until {attempt.device.name} is ready again: {loop.reason}"
    return explanation_of("resources", text, agent=loop.agent_id, device=attempt.device.name, since=loop.entered_at)


def _stuck(task: Task) -> Fields | None:
    """Its agent is stuck: the latest verdict, unless something has gone well since, or somebody lets it go on anyway."""
    attempt = Attempt.objects.filter(task=task).order_by("-number").first()
    if attempt is None:
        return None
    lives, agents = attempt.outcome == "", [attempt.agent_id, *agents_below(attempt.agent_id)]
    row = Evidence.objects.filter(loop__agent__in=agents, verdict__isnull=False).select_related("loop").order_by("-id").first()
    if row is None or row.verdict is None or row.verdict["action"] not in ("steer", "halt"):
        return None
    well = Evidence.objects.filter(loop=row.loop_id, number__gt=row.number, success=True, kind__in=Evidence.ACTIONS)
    if lives and (row.verdict["identity"] in task.accepted or well.exists()):
        return None
    set_since([row])
    found = latest_verdict([row], lives=lives) or {}
    since = found["since"]
    text = f"its agent {'is' if lives else 'was'} stuck since row {since['row']} ({since['at']:%Y-%m-%d %H:%M:%S} UTC): "
    text += f"{found['about']}. {found['sentence'].removesuffix('.')}. {found['followed']}"
    return explanation_of("stuck", text, agent=row.loop.agent_id, **found)


def _review(task: Task) -> Fields | None:
    graph = task.constellation
    if graph.state != "READY":
        return None
    return explanation_of(
        "review", "its constellation is under review: nothing runs until somebody starts it", constellation=graph.pk
    )


def _paused(task: Task) -> Fields | None:
    graph = task.constellation
    if graph.state == "PAUSED":
        return explanation_of(
            "paused", "its constellation is paused" + (f": {graph.reason}" if graph.reason else ""), constellation=graph.pk
        )
    actor = Actor.objects.filter(session=task.constellation.session_id).order_by("-epoch").first()
    if actor is None or ACTOR.is_terminal(actor.state) or not (actor.state == "paused" or actor.pausing):
        return None
    said = f": {actor.reason}" if actor.state == "paused" and actor.reason else ""
    return explanation_of(
        "paused", f"its session is {'paused' if actor.state == 'paused' else 'pausing'}{said}", actor=actor.pk
    )


def _retry(task: Task) -> Fields | None:
    if task.retry_at is None or task.retry_at <= timezone.now():
        return None
    text = f"attempt {task.attempt} ended ({task.reason}); the next is at {task.retry_at:%Y-%m-%d %H:%M:%S} UTC"
    return explanation_of("retry", text, retry_at=task.retry_at, attempt=task.attempt, max_attempts=task.max_attempts)


def _runner_lives() -> bool:
    alive = timezone.now() - timedelta(seconds=LEASE_S)
    return Runner.objects.filter(state="LIVE", renewed_at__gt=alive).exists()


def _device(task: Task) -> Fields | None:
    wanted = {name: getattr(task, name) for name in (*DEVICE_FIELDS, *CALL_FIELDS)}
    judged = judge_devices(wish_of(wanted), task.constellation.session.owner_id)
    fitting = [row for row, why in judged if not why]
    if not fitting:
        return _no_device(wanted, judged)
    online = [row for row in fitting if row["state"] == "connected"]
    if not online:
        drains = any(row["state"] == "draining" for row in fitting)
        text = ", ".join(f"{row['name']} is {row['state']}" for row in fitting[:SHOWN]) + _and_more(fitting)
        devices = [{"name": row["name"], "state": row["state"]} for row in fitting[:SHOWN]]
        return explanation_of("device_draining" if drains else "device_offline", text, devices=devices, total=len(fitting))
    if any(row["used"] < row["max_concurrent"] for row in online):
        return None
    queues = [f", {row['queued']} sessions in its queue" if row["queued"] else "" for row in online[:SHOWN]]
    taken = [
        f"all {row['max_concurrent']} slots of {row['name']} are taken{queue}"
        for row, queue in zip(online, queues, strict=False)
    ]
    shown = [{key: row[key] for key in ("name", "used", "max_concurrent", "queued")} for row in online[:SHOWN]]
    return explanation_of("device_full", "; ".join(taken) + _and_more(online), devices=shown, total=len(online))


def _no_device(wanted: Fields, judged: list[tuple[Fields, str]]) -> Fields:
    """Why none of the devices is one for the task."""
    for kind, why, text in (("not_allowed", NOT_ALLOWED, BARRED), ("not_offered", NOT_OFFERED, UNOFFERED)):
        names = [row["name"] for row, found in judged if found == why]
        if names:
            told = f"{text}: {', '.join(names[:SHOWN])}{_and_more(names)}"
            return explanation_of(kind, told, devices=names[:SHOWN], total=len(names))
    named = wanted["wanted_device"]
    text = f"no device is called {named}" if named else why_none_fits(wanted)
    return explanation_of("no_device", text, **{name: wanted[name] for name in DEVICE_FIELDS})


def _and_more(rows: list[Any]) -> str:
    return f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""


def _limit(task: Task) -> Fields | None:
    running = same_stream(Attempt.objects.filter(outcome="", holds_slot=True), task.pk).count()
    graph = task.constellation
    own = graph.session.max_concurrent or settings.SESSION_CONCURRENT
    limit = min(own, graph.max_concurrent or own)
    if running < limit:
        return None
    return explanation_of("limit", f"its session runs {running:,} attempts, as many as it may", running=running, limit=limit)


REASONS: tuple[Callable[[Task], Fields | None], ...] = (
    _in_words,
    _review,
    _paused,
    _approval,
    _retry,
    lambda task: None if _runner_lives() else explanation_of("no_runner", NO_RUNNER),
    _device,
    _limit,
)
"""Of a task that is PENDING; the first that holds is the explanation."""
