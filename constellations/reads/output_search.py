"""Search in what the attempts of a session printed: the latest first, in masked text, within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from agents.reads.printed import printed_pieces
from constellations.models import Attempt

SEARCHED_CHARACTERS = 20_000_000
"""That one answer looks through, the rest of the last attempt not counted."""
HITS = 100
"""Of one answer."""
HITS_OF_ONE = 10
"""Of one attempt."""
AROUND = 80
"""Characters before and after a hit that an excerpt shows."""
TEXT_CHARACTERS = 200
"""Of what is searched for."""
ATTEMPTS_AT_ONCE = 200
"""Looked at for one answer, whatever they printed."""


def search_outputs(session: int, text: str, *, task: int | None, before: int | None) -> dict[str, Any]:
    """`search_attempts` among those of a session, or of one of its tasks."""
    rows = Attempt.objects.filter(task__constellation__session=session)
    return search_attempts(rows if task is None else rows.filter(task=task), text, before=before)


def search_attempts(rows: QuerySet[Attempt], text: str, *, before: int | None) -> dict[str, Any]:
    """{hits, next}: places in the outputs where `text` stands, in capital or small letters; `next` continues where this ends.

    `before` is an attempt's id, from which on nothing is looked at any more. A hit is {attempt, number, task, task_id,
    offset, excerpt}.
    """
    rows = rows.order_by("-id") if before is None else rows.filter(pk__lt=before).order_by("-id")
    attempts = list(rows.values_list("pk", "number", "task_id", "task__task_id")[: ATTEMPTS_AT_ONCE + 1])
    wanted, looked_at = re.compile(re.escape(text), re.IGNORECASE), 0
    hits: list[dict[str, Any]] = []
    for place, (attempt, number, key, task_id) in enumerate(attempts):
        if looked_at >= SEARCHED_CHARACTERS or len(hits) >= HITS or place == ATTEMPTS_AT_ONCE:
            return {"hits": hits, "next": attempts[place - 1][0]}
        about = {"attempt": attempt, "number": number, "task": key, "task_id": task_id}
        found, characters = _hits_in(attempt, wanted, len(text))
        hits += [{**about, "offset": offset, "excerpt": excerpt} for offset, excerpt in found]
        looked_at += characters
    return {"hits": hits, "next": None}


def _hits_in(attempt: int, wanted: re.Pattern[str], length: int) -> tuple[list[tuple[int, str]], int]:
    """The first hits in one output, (offset, excerpt), and how many characters were looked through."""
    found: list[tuple[int, str]] = []
    looked_at = 0
    for begins, text in _windows(attempt, length + 2 * AROUND):
        looked_at = begins + len(text)
        for hit in wanted.finditer(text):
            if found and begins + hit.start() <= found[-1][0]:
                continue  # also in the window before
            excerpt = text[max(0, hit.start() - AROUND) : hit.end() + AROUND]
            found.append((begins + hit.start(), excerpt))
            if len(found) == HITS_OF_ONE:
                return found, looked_at
    return found, looked_at


def _windows(attempt: int, overlap: int) -> Iterator[tuple[int, str]]:
    """The output piece by piece, each with the last of the one before it: a hit may stand in both."""
    last = ""
    for offset, text in printed_pieces(attempt):
        yield offset - len(last), last + text
        last = (last + text)[-overlap:]
