"""Signs of life of actors: the last step or command, and the renewals of the runner that has the session's lease.

Nothing waits for them: what is taken over is decided by leases. An actor at rest has no runner, so that its heartbeat grows
old without harm; one that works and shows none for long is worth a look.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from agents.machines import ACTOR

STALE_S = 120.0
"""A heartbeat that is older is shown as stale."""


def heartbeat_of(active_at: datetime | None, renewed_at: datetime | None) -> datetime | None:
    """The later of an actor's last step and its runner's last renewal; None where there is no actor."""
    return None if active_at is None else max(active_at, renewed_at or active_at)


def is_stale(state: str | None, beat: datetime | None) -> bool:
    """Whether an actor that has not ended has shown no sign of life for STALE_S."""
    ended = state is None or ACTOR.is_terminal(state)
    return not ended and beat is not None and timezone.now() - beat > timedelta(seconds=STALE_S)
