"""The list of sessions: how each stands for who looks, how far it is, how long it took, what it cost, and who waits.

A standing follows from rows and is in none. So a filter by it narrows down in the database as far as rows can tell, and asks
the standing itself about what is left: PIECE sessions at a time, PIECES times in one answer at most. `next` goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery

from agents.minds.budgets.places import MICROS
from agents.models import Actor, Approval, InboxItem, Session, Spending
from agents.models.sessions import SessionQuerySet
from agents.reads.heartbeats import heartbeat_of, is_stale
from agents.reads.standings import Viewer, read_standings
from constellations.models import Constellation, Task

PAGE = 50
PAGE_LIMIT = 100
"""Sessions of one answer."""
PIECE = 200
PIECES = 5
STATES = {
    "waiting": ("waiting",),
    "others": ("waiting_others", "review"),
    "paused": ("paused",),
    "running": ("running", "queued"),
    "stale": ("stale",),
    "completed": ("completed",),
    "failed": ("failed", "partially_failed"),
    "cancelled": ("cancelled",),
    "idle": ("idle",),
}
"""What may be asked for, and the names of the standings that it stands for."""
ENDED = ("completed", "failed", "cancelled")
"""Of these the latest request has ended."""


@dataclass(frozen=True)
class Wanted:
    """Which sessions: a key of STATES, a text of titles, a user's name; made from `since` until `until`."""

    state: str = ""
    text: str = ""
    owner: str = ""
    is_mine: bool = False
    since: datetime | None = None
    until: datetime | None = None


def list_sessions(user: Any, viewer: Viewer, wanted: Wanted, before: int | None, limit: int = PAGE) -> dict[str, Any]:
    """{"results": rows, newest first, "next": the `before` of the next page, or None}."""
    rows, found, after = narrow(Session.objects.visible_to(user), user, wanted), [], before
    names = STATES.get(wanted.state, ())
    for _ in range(PIECES if names else 1):
        piece = list(_before(rows, after)[: PIECE if names else limit + 1])
        standings = read_standings([row.pk for row in piece], viewer)
        fitting = [(row, standings[row.pk]) for row in piece if not names or standings[row.pk]["name"] in names]
        found += fitting
        after = piece[-1].pk if piece and len(piece) == (PIECE if names else limit + 1) else None
        if after is None or len(found) > limit:
            break
    shown = found[:limit]
    beyond = shown[-1][0].pk if len(found) > limit else after
    return {"results": describe_sessions(shown), "next": beyond}


def _before(rows: SessionQuerySet, before: int | None) -> QuerySet[Any]:
    rows = rows if before is None else rows.filter(pk__lt=before)
    return rows.select_related("owner").with_latest_actor().order_by("-id")


def narrow(visible: SessionQuerySet, user: Any, wanted: Wanted) -> SessionQuerySet:
    """As far as rows can tell: none that fits is left out."""
    fits = Q(title__icontains=wanted.text) if wanted.text else Q()
    fits &= Q(owner=user) if wanted.is_mine else Q()
    fits &= Q(owner__username=wanted.owner) if wanted.owner else Q()
    fits &= Q(created_at__gte=wanted.since) if wanted.since else Q()
    fits &= Q(created_at__lt=wanted.until) if wanted.until else Q()
    rows = visible.filter(fits)
    if wanted.state in ("waiting", "others"):
        asked = Approval.objects.filter(state="waiting").values("session")
        review = Constellation.objects.filter(state="READY").values("session")
        return rows.filter(Q(pk__in=asked) | Q(pk__in=review))
    if wanted.state in ENDED:
        latest = InboxItem.objects.filter(session=OuterRef("pk"), kind="interaction").order_by("-id")
        outcomes = {"failed": ("failed", "partially_failed", "")}.get(wanted.state, (wanted.state,))
        ended = Exists(Actor.objects.filter(session=OuterRef("pk"), state__in=("error", "cancelled")))
        return rows.annotate(ended_as=Subquery(latest.values("outcome")[:1])).filter(Q(ended_as__in=outcomes) | ended)
    if wanted.state in ("running", "paused", "stale"):
        at_work = InboxItem.objects.filter(kind="interaction", state__in=("queued", "running")).values("session")
        paused = Actor.objects.filter(Q(state="paused") | Q(pausing=True)).values("session")
        return rows.filter(Q(pk__in=at_work) | Q(pk__in=paused))
    return rows


def describe_sessions(found: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Rows with their standing, progress, times, cost and who waits; a number of queries that does not depend on how many."""
    keys = [session.pk for session, _ in found]
    if not keys:
        return []
    asked, graphs = _latest_asked(keys), _latest_graphs(keys)
    progress, costs, waits = _progress_of(graphs.values()), _costs_of(keys), _waiting_of(keys)
    rows = []
    for session, standing in found:
        item, graph = asked.get(session.pk), graphs.get(session.pk)
        begun = item.started_at or item.created_at if item else None
        beat = heartbeat_of(session.active_at, session.renewed_at)
        rows.append(
            {
                "id": session.pk, "title": str(session), "owner": session.owner.get_username(), "standing": standing,
                "plan": graph.name if graph else "", "constellation": graph.pk if graph else None,
                "tasks": progress.get(graph.pk if graph else 0, {"total": 0, "ended": 0, "failed": 0}),
                "begun_at": begun, "ended_at": item.ended_at if item else None, "created_at": session.created_at,
                "cost": costs.get(session.pk, 0.0), "waits": waits.get(session.pk, []),
                "heartbeat_at": beat, "stale": is_stale(session.actor_state, beat),
            }
        )  # fmt: skip
    return rows


def _latest_asked(sessions: Sequence[int]) -> dict[int, InboxItem]:
    newest = InboxItem.objects.filter(session__in=sessions, kind="interaction").order_by()
    keys = newest.values("session").annotate(latest=Max("id")).values_list("latest", flat=True)
    rows = InboxItem.objects.filter(pk__in=list(keys)).defer("payload", "result")
    return {row.session_id: row for row in rows}


def _latest_graphs(sessions: Sequence[int]) -> dict[int, Constellation]:
    keys = Constellation.objects.filter(session__in=sessions).order_by().values("session").annotate(latest=Max("id"))
    rows = Constellation.objects.filter(pk__in=list(keys.values_list("latest", flat=True))).only("id", "session_id", "name")
    return {row.session_id: row for row in rows}


def _progress_of(graphs: Iterable[Constellation]) -> dict[int, dict[str, int]]:
    """Tasks of each: {"total", "ended", "failed"}."""
    rows = Task.objects.filter(constellation__in=[graph.pk for graph in graphs]).order_by()
    found: dict[int, dict[str, int]] = {}
    for graph, state, count in rows.values_list("constellation", "state").annotate(Count("id")):
        counted = found.setdefault(graph, {"total": 0, "ended": 0, "failed": 0})
        counted["total"] += count
        counted["ended"] += count if state in ("COMPLETED", "FAILED", "CANCELLED") else 0
        counted["failed"] += count if state == "FAILED" else 0
    return found


def _costs_of(sessions: Sequence[int]) -> dict[int, float]:
    rows = Spending.objects.filter(scope="session", key__in=sessions, period="").values_list("key", "micros")
    return {key: micros / MICROS for key, micros in rows}


def _waiting_of(sessions: Sequence[int]) -> dict[int, list[str]]:
    """Titles of what waits for a person, the oldest first, by session."""
    rows = Approval.objects.filter(session__in=sessions, state="waiting").exclude(kind="callback").order_by("id")
    found: dict[int, list[str]] = {}
    for session, title in rows.values_list("session_id", "title")[: 5 * PAGE_LIMIT]:
        found.setdefault(session, []).append(title)
    return found
