"""Long outputs of attempts that have ended: all of it becomes an artifact, and rows keep its beginning and its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Length

from agents import ids
from agents.artifacts.keeping import keep_artifact
from agents.artifacts.media_types import TEXT
from agents.artifacts.recording import record_artifacts
from agents.models import Output
from agents.reads.printed import printed_characters, printed_pieces, whole_output
from agents.streams.door import door

NAME = "output.txt"
WORK_S = 30.0
"""One job begins nothing new after this."""
MOST = 100_000
"""Attempts that one job looks at."""

Ended = Callable[[float, int], list[int]]
ENDED: list[Ended] = []
"""Each says which attempts have ended within so many seconds, at most so many, the newest first."""


def register_ended(function: Ended) -> Ended:
    """Register who knows of attempts that have ended."""
    ENDED.append(function)
    return function


def keep_long_outputs(within_s: float) -> int:
    """Keep the outputs of attempts that have ended within so many seconds, where that was not done; how many there were."""
    until, kept = time.monotonic() + WORK_S, 0
    for attempt in [attempt for function in ENDED for attempt in function(within_s, MOST)]:
        if time.monotonic() > until:
            break
        kept += keep_long_output(attempt)
    return kept


def keep_long_output(attempt: int) -> bool:
    """Keep what an attempt that has ended printed, if that is more than rows are to have. A second time changes nothing."""
    printed = printed_characters(attempt)
    if printed <= settings.OUTPUT_ROWS or whole_output(attempt) is not None:
        return False
    pieces = (text.encode() for _, text in printed_pieces(attempt))
    session = ids.stream_of(attempt)
    kept = keep_artifact(pieces, name=NAME, kind="output", media_type=TEXT)
    with door(session, "system") as opened:
        if whole_output(attempt) is not None:  # somebody else did so meanwhile
            return False
        record_artifacts(opened.turn, session, [kept], attempt=attempt, call=None)
        _delete_middle(attempt, printed)
    return True


def _delete_middle(attempt: int, printed: int) -> None:
    """The rows between the first and the last half of what rows keep, whole rows only."""
    half = settings.OUTPUT_ROWS // 2
    rows = Output.objects.filter(attempt_id=attempt, offset__gte=half, offset__lt=printed - half)
    rows.annotate(ends=F("offset") + Length("text")).filter(ends__lte=printed - half).delete()
