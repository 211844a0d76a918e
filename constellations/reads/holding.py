"""Whether the newest graph of a session is one in which nothing starts: paused, or under review."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import OuterRef, Subquery

from agents.reads.standing import PAUSED, REVIEW
from constellations.models import Constellation

HELD = {"PAUSED": PAUSED, "READY": REVIEW}
"""By the state of the graph."""


def held_sessions(sessions: Iterable[int]) -> dict[int, str]:
    """Those of the sessions whose newest constellation is held, by their ids."""
    newest = Constellation.objects.filter(session=OuterRef("session")).order_by("-id").values("pk")[:1]
    rows = Constellation.objects.filter(session__in=list(sessions), state__in=HELD, pk=Subquery(newest))
    return {session: HELD[state] for session, state in rows.order_by().values_list("session_id", "state")}
