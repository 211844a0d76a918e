"""What attempts printed, read in pieces: it may be megabytes, and is never read as a whole."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents.reads.printed import printed_piece, printed_tail
from agents.services.outputs import register_ended
from constellations.models import Attempt

OUTPUT_CHARACTERS = 64_000
"""Of one answer."""


@register_ended
def attempts_ended(within_s: float, most: int) -> list[int]:
    """Attempts that have ended within so many seconds, at most so many, the newest first."""
    ended = Attempt.objects.filter(ended_at__gte=timezone.now() - timedelta(seconds=within_s))
    return list(ended.order_by("-ended_at").values_list("pk", flat=True)[:most])


def tail_of(attempt: Attempt) -> dict[str, Any]:
    """The last OUTPUT_CHARACTERS that `attempt` printed."""
    offset, text = printed_tail(attempt.pk, OUTPUT_CHARACTERS)
    return {"attempt": attempt.pk, "offset": offset, "text": text}


def piece_from(attempt: Attempt, offset: int, limit: int = OUTPUT_CHARACTERS) -> dict[str, Any]:
    """Up to `limit` characters of what `attempt` printed, from character `offset` on."""
    return {"attempt": attempt.pk, "offset": offset, "text": printed_piece(attempt.pk, offset, offset + limit)}
