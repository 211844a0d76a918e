"""What attempts printed, read in pieces: it may be megabytes, and is never read as a whole."""

from __future__ import annotations

from typing import Any

from agents.models import Output
from constellations.models import Attempt

OUTPUT_CHARACTERS = 64_000
"""Of one answer."""
ROWS_AT_ONCE = 20


def tail_of(attempt: Attempt) -> dict[str, Any]:
    """The last OUTPUT_CHARACTERS that `attempt` printed."""
    pieces: list[str] = []
    end, size = 0, 0
    rows = Output.objects.filter(attempt_id=attempt.pk).order_by("-offset").values_list("offset", "text")
    for offset, text in rows.iterator(chunk_size=ROWS_AT_ONCE):
        end = end or offset + len(text)
        pieces.append(text)
        size += len(text)
        if size >= OUTPUT_CHARACTERS:
            break
    text = "".join(reversed(pieces))[-OUTPUT_CHARACTERS:]
    return {"attempt": attempt.pk, "offset": end - len(text), "text": text}


def piece_from(attempt: Attempt, offset: int, limit: int = OUTPUT_CHARACTERS) -> dict[str, Any]:
    """Up to `limit` characters of what `attempt` printed, from character `offset` on."""
    rows = Output.objects.filter(attempt_id=attempt.pk)
    before = rows.filter(offset__lte=offset).order_by("-offset").values_list("offset", flat=True).first()
    found, size = [], 0
    onward = rows.filter(offset__gte=before or 0).order_by("offset").values_list("offset", "text")
    for start, text in onward.iterator(chunk_size=ROWS_AT_ONCE):
        part = text[max(0, offset - start) :]
        found.append(part)
        size += len(part)
        if size >= limit:
            break
    return {"attempt": attempt.pk, "offset": offset, "text": "".join(found)[:limit]}


def printed(attempt: Attempt) -> int:
    """Characters that `attempt` has printed so far."""
    last = Output.objects.filter(attempt_id=attempt.pk).order_by("-offset").values_list("offset", "text").first()
    return 0 if last is None else last[0] + len(last[1])
