"""The inbox: all that waits for a person in one list, what is worth a look besides, and what was decided.

An entry is {key, kind, waits, title, by, since, session, task, agent, device, details, approval}. `kind` is that of an
approval, or one of ENTRIES; `waits`: somebody has to do something. `approval` is the row where the entry is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Value
from django.utils import timezone

from agents import ids
from agents.access.permissions import why_refused
from agents.machines import DEVICE_AGENT
from agents.minds.budgets.places import MICROS, WARN_AT
from agents.models import Agent, Approval, Budget, Device, Evidence, InboxItem, Session, Spending
from agents.models.sessions import SessionQuerySet
from agents.reads.verdicts import describe_verdict, ways_on
from constellations.models import Attempt, Constellation, Task

WAITING_SHOWN = 100
"""Approvals of one answer; others are there once these are decided."""
DECIDED_SHOWN = 50
COUNTED = 99
"""Beyond it a count says that there are more."""
SESSIONS_AT_WORK = 100
"""The latest, in which stuck agents are looked for."""
AGENTS_LOOKED_AT = 2_000
STUCK_SHOWN = 50
PLANS_SHOWN = 50
DEVICES_SHOWN = 50
BUDGETS_SHOWN = 50
SPENDINGS_LOOKED_AT = 500
FAILED_SHOWN = 50
FAILED_FOR = timedelta(days=7)
"""A request that failed longer ago is history."""
ENTRIES = ("stuck", "plan", "device_lost", "budget_used", "failed")
"""Kinds that are no approvals."""
NOT_FOR_PEOPLE = ("callback",)
"""A call-back is awaited from outside."""

Entry = dict[str, Any]


def asked_of_people(visible: SessionQuerySet) -> QuerySet[Approval]:
    """The approvals of these sessions that persons decide."""
    return Approval.objects.filter(session__in=visible).exclude(kind__in=NOT_FOR_PEOPLE)


def count_waiting(user: Any) -> dict[str, Any]:
    """{"waiting": what this user may do something about, "more": whether there is more than that}.

    Every open page asks again and again: one query, and one more while one of the sessions is at work.
    """
    visible = Session.objects.visible_to(user)
    asked: list[QuerySet[Any, Any]] = []
    if not why_refused(user, None, "approve"):
        asked.append(_counted(asked_of_people(visible).filter(state="waiting")))
    if not why_refused(user, None, "operate"):
        asked.append(_counted(plans_under_review(visible)))
        asked.append(_at_work(visible).annotate(found=Value(0)).values_list("session_id", "found"))
    rows = list(asked[0].union(*asked[1:], all=True)) if asked else []
    found = sum(count for _, count in rows) + len(stuck_evidence([session for session, _ in rows if session]))
    return {"waiting": min(found, COUNTED), "more": found > COUNTED}


def _counted(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    """One row: (0, how many there are, counted up to one beyond COUNTED)."""
    bounded = rows.model._default_manager.filter(pk__in=rows.order_by().values("pk")[: COUNTED + 1]).order_by()
    counted = bounded.annotate(no_session=Value(0)).values("no_session").annotate(found=Count("pk"))
    found: QuerySet[Any, Any] = counted.values_list("no_session", "found")
    return found


def list_inbox(user: Any) -> dict[str, Any]:
    """{"entries": what waits, oldest first, then what is worth a look, newest first; "more": whether approvals were left out}.

    To be read inside `consistent_read`. The number of queries does not depend on how much there is.
    """
    visible = Session.objects.visible_to(user)
    approvals = list(_with_places(asked_of_people(visible).filter(state="waiting")).order_by("id")[: WAITING_SHOWN + 1])
    waiting = [*_approval_entries(approvals[:WAITING_SHOWN]), *_stuck_entries(visible), *_plan_entries(visible)]
    notices = [*_failed_entries(visible), *_budget_entries(user, visible)]
    if not why_refused(user, None, "read"):
        notices += _device_entries()
    entries = sorted(waiting, key=_since) + sorted(notices, key=_since, reverse=True)
    return {"entries": entries, "more": len(approvals) > WAITING_SHOWN}


def list_decided(user: Any, before: Approval | None) -> dict[str, Any]:
    """{"entries": the latest decisions, newest first, "next": id of the one that the next page is before, or None}."""
    rows = _with_places(asked_of_people(Session.objects.visible_to(user))).filter(decided_at__isnull=False)
    if before is not None:
        at = before.decided_at
        rows = rows.filter(Q(decided_at__lt=at) | Q(decided_at=at, id__lt=before.pk))
    found = list(rows.order_by("-decided_at", "-id")[: DECIDED_SHOWN + 1])
    shown = found[:DECIDED_SHOWN]
    return {"entries": _approval_entries(shown), "next": shown[-1].pk if len(found) > DECIDED_SHOWN else None}


def _since(entry: Entry) -> datetime:
    """Nobody knows since when a budget is used up: what has no time comes before all others."""
    found: datetime | None = entry["since"]
    return found or datetime.max.replace(tzinfo=UTC)


def _entry(kind: str, number: int, since: datetime | None, title: str, **more: Any) -> Entry:
    empty: Entry = {
        "by": "", "session": None, "task": None, "agent": None, "device": "", "details": {}, "approval": None,
        "waits": kind not in ("device_lost", "budget_used", "failed"),
    }  # fmt: skip
    return {**empty, "key": f"{kind}-{number}", "kind": kind, "since": since, "title": title, **more}


def _session(session: Session) -> dict[str, Any]:
    return {"id": session.pk, "title": str(session)}


# Approvals


def _with_places(rows: QuerySet[Approval]) -> QuerySet[Approval]:
    return rows.select_related("session", "agent__device")


def _approval_entries(rows: Sequence[Approval]) -> list[Entry]:
    tasks = _tasks_named(row.subject_id for row in rows)
    found = []
    for row in rows:
        agent = row.agent
        device = agent.device.name if agent and agent.device else ""
        by = row.action.get("author", "") or (agent.name if agent else "")
        where = {"session": _session(row.session), "task": tasks.get(row.subject_id), "device": device}
        entry = _entry(row.kind, row.pk, row.asked_at, row.title, by=by, agent=row.agent_id, approval=row, **where)
        found.append({**entry, "waits": row.state == "waiting"})
    return found


def _tasks_named(numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = Task.objects.filter(pk__in=set(numbers)).values_list("pk", "name", "task_id")
    return {key: {"id": key, "name": name or task_id} for key, name, task_id in rows}


# Agents that are stuck


def _at_work(visible: SessionQuerySet) -> QuerySet[InboxItem]:
    """The requests under way in the sessions in which stuck agents are looked for."""
    working = InboxItem.objects.filter(state="running", kind="interaction", session__in=visible)
    return InboxItem.objects.filter(pk__in=working.order_by("-id").values("pk")[:SESSIONS_AT_WORK]).order_by()


def stuck_evidence(sessions: Sequence[int]) -> list[Evidence]:
    """The verdicts of agents at work that are stuck now, one of each: nothing has gone well since, and nobody said to go on."""
    if not sessions:
        return []
    lives = _in_streams(sessions) & Q(machine=DEVICE_AGENT.name) & ~Q(state__in=sorted(DEVICE_AGENT.terminal))
    agents = Agent.objects.filter(lives).order_by("-id").values("pk")[:AGENTS_LOOKED_AT]
    judged = Evidence.objects.filter(loop__agent__in=agents, verdict__isnull=False).select_related("loop__agent__session")
    latest = {row.loop_id: row for row in judged.select_related("loop__agent__device").order_by("id")}
    stuck = {key: row for key, row in latest.items() if row.verdict and row.verdict["action"] in ("steer", "halt")}
    went_well = Evidence.objects.filter(loop__in=stuck, success=True, kind__in=Evidence.ACTIONS).values_list("loop", "number")
    for loop, number in went_well if stuck else ():
        if loop in stuck and number > stuck[loop].number:
            del stuck[loop]
    return _not_accepted(list(stuck.values()))[:STUCK_SHOWN]


def _in_streams(sessions: Iterable[int]) -> Q:
    """Rows of these sessions by their primary keys: the foreign keys of the busiest tables have no index."""
    found = Q(pk__in=[])
    for session in sessions:
        low, high = ids.row_range(session)
        found |= Q(pk__gte=low, pk__lt=high)
    return found


def _not_accepted(rows: list[Evidence]) -> list[Evidence]:
    """Those of loops with which nobody has let the task go on; each knows its `task`, or None."""
    hosts = {row.loop.agent.parent_id or row.loop.agent_id for row in rows}
    sessions = {row.loop.agent.session_id for row in rows}
    attempts = Attempt.objects.filter(_in_streams(sessions), agent__in=hosts).select_related("task").order_by("id")
    tasks = {attempt.agent_id: attempt.task for attempt in attempts} if rows else {}
    found = []
    for row in rows:
        task = tasks.get(row.loop.agent.parent_id or row.loop.agent_id)
        row.task = task  # type: ignore[attr-defined]
        if task is None or (row.verdict and row.verdict["identity"] not in task.accepted):
            found.append(row)
    return found


def _stuck_entries(visible: SessionQuerySet) -> list[Entry]:
    found = []
    for row in stuck_evidence(list(_at_work(visible).values_list("session_id", flat=True))):
        agent, task = row.loop.agent, getattr(row, "task", None)
        told = describe_verdict(row) or {}
        details = {
            "identity": told["identity"], "about": told["about"], "sentence": told["sentence"], "followed": told["followed"],
            "ways": list(ways_on(told, lives=True, has_mind=False).values()),
        }  # fmt: skip
        where = {"session": _session(agent.session), "device": agent.device.name if agent.device else ""}
        about = {"id": task.pk, "name": task.name or task.task_id} if task else None
        title = f"{agent.name} is stuck: {told['about']}"
        since = row.ended_at or row.started_at
        found.append(_entry("stuck", row.pk, since, title, by=agent.name, agent=agent.pk, task=about, details=details, **where))
    return found


# Plans


def plans_under_review(visible: SessionQuerySet) -> QuerySet[Constellation]:
    """What a model has planned and a person has to start."""
    return Constellation.objects.filter(
        state="READY", session__in=visible, interaction__state="running", interaction__kind="interaction"
    )


def _plan_entries(visible: SessionQuerySet) -> list[Entry]:
    rows = plans_under_review(visible).select_related("session", "agent").order_by("-id")[:PLANS_SHOWN]
    return [
        _entry(
            "plan", row.pk, row.entered_at, f"{row} was planned, and waits to be started", by=row.agent.name,
            session=_session(row.session), details={"constellation": row.pk, "version": row.version},
        )
        for row in rows
    ]  # fmt: skip


# What is worth a look


def _failed_entries(visible: SessionQuerySet) -> list[Entry]:
    """Sessions whose last request failed not long ago."""
    failed = InboxItem.objects.filter(
        kind="interaction", state="done", outcome__in=("failed", "partially_failed"), session__in=visible,
        ended_at__gte=timezone.now() - FAILED_FOR,
    )  # fmt: skip
    rows = list(failed.select_related("session").order_by("-id")[:FAILED_SHOWN])
    later = InboxItem.objects.filter(session__in={row.session_id for row in rows}, kind="interaction", state="done")
    latest = dict(later.order_by("id").values_list("session_id", "id")) if rows else {}
    shown = [row for row in rows if latest.get(row.session_id) == row.pk]
    graphs = Constellation.objects.filter(interaction__in=[row.pk for row in shown]).order_by("id")
    reasons = {graph.interaction_id: graph for graph in graphs} if shown else {}
    found = []
    for row in shown:
        graph, whole = reasons.get(row.pk), row.outcome == "failed"
        told = {"outcome": row.outcome, "reason": graph.reason if graph else "", "constellation": graph.pk if graph else None}
        title = f"{row.session} {'failed' if whole else 'failed in part'}"
        since = row.ended_at or row.created_at
        found.append(_entry("failed", row.pk, since, title, by=row.by, session=_session(row.session), details=told))
    return found


def _device_entries() -> list[Entry]:
    """Devices that were there once and are not now, though nobody has taken them away."""
    lost = Q(state="failed") | Q(state="disconnected", entered_at__gt=F("created_at"), kind="remote")
    rows = Device.objects.filter(lost, is_off=False).order_by("-entered_at")[:DEVICES_SHOWN]
    return [
        _entry(
            "device_lost", row.pk, row.entered_at, f"{row.name} is {row.state}", device=row.name,
            details={"device": row.pk, "state": row.state, "reason": row.reason, "queued": row.queued},
        )
        for row in rows
    ]  # fmt: skip


def _budget_entries(user: Any, visible: SessionQuerySet) -> list[Entry]:
    """Budgets of which WARN_AT are used, by place: the reader's own ones, of visible sessions, and to who reads, all of it."""
    day = f"{timezone.now():%Y-%m-%d}"
    budgets = list(Budget.objects.filter(scope__in=("installation", "user", "session")).order_by("id")[:BUDGETS_SHOWN])
    if not budgets:
        return []
    own = Q(scope="user", key=user.pk) | Q(scope="session", key__in=visible.values("pk"))
    if not why_refused(user, None, "read"):
        own |= Q(scope="installation")
    warned = Q(warned_tokens__gt=0) | Q(warned_micros__gt=0)
    rows = Spending.objects.filter(own, warned, period__in=("", day)).order_by("-id")[:SPENDINGS_LOOKED_AT]
    found = [entry for row in rows for budget in budgets if (entry := _budget_entry(budget, row, day)) is not None]
    return found[:BUDGETS_SHOWN]


def _budget_entry(budget: Budget, row: Spending, day: str) -> Entry | None:
    """What a budget says of a place that it applies to and has nearly used up; None where it does not."""
    period = day if budget.per == "day" else ""
    if (budget.scope, period) != (row.scope, row.period) or budget.subject not in (None, row.key):
        return None
    tokens = row.input_tokens + row.output_tokens + row.open_tokens + row.unknown_tokens
    money = (row.micros + row.open_micros + row.unknown_micros) / MICROS
    sides = (
        ("tokens", budget.tokens, row.raised_tokens, tokens),
        ("money", budget.money, row.raised_micros / MICROS, money),
    )
    for unit, bound, raised, used in sides:
        if bound is not None and used >= WARN_AT * (whole := bound + raised):
            stopped = used >= whole
            place = {"installation": "the installation", "user": "your sessions", "session": f"session {row.key}"}[row.scope]
            share = "All" if stopped else f"{100 * used / whole:.0f}%"
            title = f"{share} of the budget of {place} {'is' if stopped else 'are'} used"
            told = {"budget": budget.pk, "unit": unit, "bound": whole, "used": used, "stopped": stopped, "then": budget.then}
            where = {"session": {"id": row.key, "title": f"session {row.key}"}} if row.scope == "session" else {}
            number = budget.pk << ids.BITS | row.pk
            return _entry("budget_used", number, None, title, details={**told, "per": budget.per}, **where)
    return None
