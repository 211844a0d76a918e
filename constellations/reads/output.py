"""What attempts printed, read in pieces: it may be megabytes, and is never read as a whole."""

from __future__ import annotations

from typing import Any

from agents.reads.printed import printed_piece, printed_tail
from constellations.models import Attempt

OUTPUT_CHARACTERS = 64_000
"""Of one answer."""


def tail_of(attempt: Attempt) -> dict[str, Any]:
    """The last OUTPUT_CHARACTERS that `attempt` printed."""
    offset, text = printed_tail(attempt.pk, OUTPUT_CHARACTERS)
    return {"attempt": attempt.pk, "offset": offset, "text": text}


def piece_from(attempt: Attempt, offset: int, limit: int = OUTPUT_CHARACTERS) -> dict[str, Any]:
    """Up to `limit` characters of what `attempt` printed, from character `offset` on."""
    return {"attempt": attempt.pk, "offset": offset, "text": printed_piece(attempt.pk, offset, offset + limit)}
