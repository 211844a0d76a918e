"""Who works, and on what: runners with their leases, sessions that nobody holds, and the queues of django-q2."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min, Q
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.models import Task as Job

from agents.engine.leases import LEASE_S
from agents.engine.summon import queue_of
from agents.models import Lease, Runner, Session

RUNNERS_SHOWN = 100
SESSIONS_SHOWN = 100
"""Sessions that nobody holds, those that have waited longest first."""
HELD_SHOWN = 200
"""Sessions that runners hold, the latest first."""
PERIODS = {Schedule.ONCE: "once", Schedule.HOURLY: "every hour", Schedule.DAILY: "every day", Schedule.WEEKLY: "every week"}
JOBS_H = 24
"""Hours whose ended jobs are counted."""


def runners_overview(user: Any) -> dict[str, Any]:
    """{"at", "runners", "held", "unheld", "queues", "schedules"}; sessions are those that `user` may see. Eight queries."""
    now = timezone.now()
    return {
        "at": now,
        "runners": _runners(now),
        "held": _held(user),
        "unheld": _unheld(user, now),
        "queues": _queues(now),
        "schedules": [_schedule(row) for row in Schedule.objects.order_by("name")[:RUNNERS_SHOWN]],
    }


def _schedule(row: Schedule) -> dict[str, Any]:
    if row.schedule_type == Schedule.MINUTES:
        how_often = "every minute" if row.minutes == 1 else f"every {row.minutes} minutes"
    else:
        how_often = PERIODS.get(row.schedule_type) or row.get_schedule_type_display().lower()
    return {"name": row.name, "func": row.func, "next_run": row.next_run, "how_often": how_often}


def _runners(now: datetime) -> list[dict[str, Any]]:
    """Those that live or were heard within the last day, the latest first; `is_silent`: its leases are about to be taken."""
    heard = Q(state__in=("LIVE", "DRAINING")) | Q(renewed_at__gt=now - timedelta(hours=JOBS_H))
    found = Runner.objects.filter(heard).annotate(sessions=Count("leases")).order_by("-id")[:RUNNERS_SHOWN]
    return [
        {
            "id": row.pk, "host": row.host.split(" ")[0], "pid": row.pid, "state": row.state, "started_at": row.started_at,
            "renewed_at": row.renewed_at, "age_s": (now - row.renewed_at).total_seconds(), "sessions": row.sessions,
            "is_silent": row.state != "ENDED" and (now - row.renewed_at).total_seconds() > LEASE_S,
            "stop_wanted": row.stop_wanted, "confinement": row.confinement,
        }
        for row in found
    ]  # fmt: skip


def _held(user: Any) -> list[dict[str, Any]]:
    leases = Lease.objects.filter(runner__isnull=False, stream_id__in=Session.objects.visible_to(user).values("pk"))
    return _named(leases.order_by("-stream_id").values("stream_id", "runner_id", "wake_at")[:HELD_SHOWN])


def _unheld(user: Any, now: datetime) -> list[dict[str, Any]]:
    """Sessions that want a look now, or wanted one, and whose runner is none, has ended, or has fallen silent."""
    lost = Q(runner__isnull=True) | Q(runner__state="ENDED") | Q(runner__renewed_at__lt=now - timedelta(seconds=LEASE_S))
    leases = Lease.objects.filter(lost, wake_at__lte=now, stream_id__in=Session.objects.visible_to(user).values("pk"))
    return _named(leases.order_by("wake_at").values("stream_id", "runner_id", "wake_at")[:SESSIONS_SHOWN])


def _named(leases: Any) -> list[dict[str, Any]]:
    rows = list(leases)
    titles = {row.pk: str(row) for row in Session.objects.filter(pk__in=[each["stream_id"] for each in rows]).only("title")}
    return [
        {"session": row["stream_id"], "title": titles[row["stream_id"]], "runner": row["runner_id"], "wake_at": row["wake_at"]}
        for row in rows
        if row["stream_id"] in titles
    ]


def _queues(now: datetime) -> list[dict[str, Any]]:
    """Of each cluster of django-q2 here: workers, jobs that wait and are under way, and what has ended within JOBS_H."""
    own: dict[str, Any] = settings.Q_CLUSTER
    clusters = {own["name"]: own, **own["ALT_CLUSTERS"]}
    waits = Q(pk__in=[])
    for name, options in clusters.items():  # a job that was fetched is locked for as long as it may be tried again
        waits |= Q(key=queue_of(name), lock__lt=now - timedelta(seconds=options["retry"]))
    found = {
        row["key"]: row
        for row in OrmQ.objects.values("key").annotate(all=Count("pk"), waiting=Count("pk", filter=waits), oldest=Min("lock"))
    }
    since = now - timedelta(hours=JOBS_H)
    ended = Job.objects.filter(stopped__gt=since).order_by().values("cluster")
    counts = {
        row["cluster"]: row
        for row in ended.annotate(
            done=Count("pk", filter=Q(success=True)), failed=Count("pk", filter=Q(success=False)), last=Max("stopped")
        )
    }
    nothing: dict[str, Any] = {}
    queued = {name: found.get(queue_of(name), nothing) for name in clusters}
    return [
        {
            "name": name, "workers": options["workers"], "waiting": queued[name].get("waiting", 0),
            "under_way": queued[name].get("all", 0) - queued[name].get("waiting", 0),
            "done": counts.get(name, nothing).get("done", 0), "failed": counts.get(name, nothing).get("failed", 0),
            "last": counts.get(name, nothing).get("last"),
        }
        for name, options in clusters.items()
    ]  # fmt: skip
