"""How long artifacts are kept: by age, by what a session has, and by what all have. Contents go when nobody refers to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from agents import ids
from agents.artifacts.opening import open_store
from agents.artifacts.store import Store
from agents.models import Artifact, StoredContent
from agents.streams.door import door
from agents.streams.statements import write_transaction

GRACE_S = 24 * 3600
"""A content that nobody refers to stays so long: what refers to it may be on its way (agents.artifacts.keeping)."""
AT_ONCE = 500
"""Artifacts that one event lets go."""
WORK_S = 40.0
"""One job begins nothing new after this."""


def apply_retention() -> tuple[int, int]:
    """Let go what is too old or too much, and remove contents that nobody refers to; how many artifacts and contents."""
    until = time.monotonic() + WORK_S
    gone = sum(_let_go(rows, why, until) for rows, why in _overdue())
    store, now = open_store(), timezone.now()
    removed = remove_unreferenced(store, now - timedelta(seconds=GRACE_S), until)
    store.sweep(now - timedelta(seconds=GRACE_S))
    return gone, removed


def _overdue() -> Iterator[tuple[list[Artifact], str]]:
    """Artifacts to let go, oldest first, and why, each after those before it are gone."""
    live = Artifact.objects.filter(removed_at=None)
    if settings.ARTIFACT_DAYS:
        before = timezone.now() - timedelta(days=settings.ARTIFACT_DAYS)
        yield list(live.filter(is_kept=False, created_at__lt=before)[: AT_ONCE * 10]), "age"
    if settings.ARTIFACT_SESSION_BYTES:
        over = live.values("session").annotate(held=Sum("size")).filter(held__gt=settings.ARTIFACT_SESSION_BYTES).order_by()
        for session, held in over.values_list("session", "held"):
            yield _oldest(live.filter(session=session), held - settings.ARTIFACT_SESSION_BYTES), "session"
    if settings.ARTIFACT_TOTAL_BYTES:
        held = live.aggregate(held=Sum("size"))["held"] or 0
        yield _oldest(live, held - settings.ARTIFACT_TOTAL_BYTES), "total"


def _oldest(rows: QuerySet[Artifact], too_many: int) -> list[Artifact]:
    """The oldest that have so many bytes together, but those that are kept."""
    found: list[Artifact] = []
    for row in rows.filter(is_kept=False).order_by("created_at").iterator(chunk_size=AT_ONCE):
        if too_many <= 0:
            break
        found.append(row)
        too_many -= row.size
    return found


def _let_go(rows: list[Artifact], why: str, until: float) -> int:
    """Record that they are removed, an event for each session."""
    by_session: dict[int, list[int]] = {}
    for row in rows:
        by_session.setdefault(ids.stream_of(row.pk), []).append(row.pk)
    gone = 0
    for session, keys in by_session.items():
        if time.monotonic() > until:
            break
        with door(session, "system") as opened:
            still = Artifact.objects.filter(pk__in=keys, removed_at=None, is_kept=False).values_list("pk", flat=True)
            fields = {str(key): {"removed_at": opened.turn.at} for key in still[:AT_ONCE]}
            if fields:
                opened.turn.record("artifacts_removed", why=why, set={"artifact": fields})
            gone += len(fields)
    return gone


def remove_unreferenced(store: Store, before: datetime, until: float) -> int:
    """Remove the contents that no artifact refers to and that nobody has wanted since then; how many."""
    used = Artifact.objects.filter(sha256=OuterRef("sha256"), removed_at=None)
    unused = StoredContent.objects.filter(~Exists(used), claimed_at__lt=before).values_list("pk", flat=True)
    removed = 0
    for sha256 in list(unused[: AT_ONCE * 10]):
        if time.monotonic() > until:
            break
        with write_transaction():  # who wants it again waits for this row (agents.artifacts.keeping)
            held = StoredContent.objects.select_for_update().filter(Q(pk=sha256), ~Exists(used), Q(claimed_at__lt=before))
            if held.exists():
                store.remove(sha256)
                StoredContent.objects.filter(pk=sha256).delete()
                removed += 1
    return removed
