"""The log of a session: what all of its attempts printed, in the order in which it came, page by page and masked.

Rows of output are numbered as they are written, so a number is a place in the log. Of a long output that has ended the
middle is no row any more (agents.services.outputs): where it was, the next piece says how much is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, Max, QuerySet, Value
from django.db.models.functions import Length

from agents import ids
from agents.masks.values import mask_text
from agents.models import Artifact, Output
from agents.reads.printed import printed_piece, printed_pieces
from constellations.models import Attempt

PIECES = 500
"""Of one answer at most."""
USUAL_PIECES = 200
PAGE_CHARACTERS = 256_000
"""Of one answer; a single piece may have more."""
DOWNLOAD_CHARACTERS = 500_000_000
"""Of a download; what follows is left out, and that is said."""
DOWNLOAD_AT_ONCE = 200
"""Attempts that are read from the database together."""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of output, as far as is known before its text is read."""

    row: int
    attempt: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class LogScope:
    """Which outputs of a session are looked at: all of them, those of one task, or those of one attempt."""

    session: int
    task: int | None = None
    attempt: int | None = None

    def attempts(self) -> QuerySet[Attempt]:
        low, high = ids.row_range(self.session)
        rows = Attempt.objects.filter(pk__gte=low, pk__lt=high)
        rows = rows if self.task is None else rows.filter(task=self.task)
        return rows if self.attempt is None else rows.filter(pk=self.attempt)

    def outputs(self) -> QuerySet[Output]:
        low, high = ids.row_range(self.session)
        rows = Output.objects.filter(attempt_id__gte=low, attempt_id__lt=high)
        if self.task is not None or self.attempt is not None:
            rows = rows.filter(attempt_id__in=self.attempts().values("pk"))
        return rows


def log_page(scope: LogScope, *, after: int | None, before: int | None, limit: int) -> dict[str, Any]:
    """{pieces, first, last, more}: what came after a place; else the last that came, before a place if one is named.

    A piece is {id, attempt, number, task, task_id, offset, text, left_out, whole}: `left_out` characters before it are kept
    in the artifact `whole` alone. `first` and `last` are the places to go on from, null of an empty page; `more` says
    whether there was more in the direction that was asked for.
    """
    places, more = _places(scope, after, before, limit)
    about = {row["pk"]: row for row in _about(place.attempt for place in places)}
    texts, cuts = _texts(places), _cuts(places)
    pieces = [
        {
            "id": place.row,
            "attempt": place.attempt,
            "number": about[place.attempt]["number"],
            "task": about[place.attempt]["task_id"],
            "task_id": about[place.attempt]["task__task_id"],
            "offset": place.offset,
            "text": texts[place.row],
            "left_out": cuts.get(place.row, (0, None))[0],
            "whole": cuts.get(place.row, (0, None))[1],
        }
        for place in places
    ]
    ends = (places[0].row, places[-1].row) if places else (None, None)
    return {"pieces": pieces, "first": ends[0], "last": ends[1], "more": more}


def _about(attempts: Iterable[int]) -> Any:
    return Attempt.objects.filter(pk__in=set(attempts)).values("pk", "number", "task_id", "task__task_id")


def _places(scope: LogScope, after: int | None, before: int | None, limit: int) -> tuple[list[Place], bool]:
    """Rows of a page in the order of the log, and whether there are more beyond it."""
    # With the bare key a database might go through the outputs of all sessions in their order; this takes the index.
    place = ExpressionWrapper(F("id") + Value(0), output_field=BigIntegerField())
    rows = scope.outputs().annotate(place=place, size=Length("text"))
    if after is not None:
        rows = rows.filter(place__gt=after)
    if before is not None:
        rows = rows.filter(place__lt=before)
    ordered = rows.order_by("place" if after is not None else "-place")
    found = [Place(*row) for row in ordered.values_list("id", "attempt_id", "offset", "size")[: limit + 1]]
    taken, characters = 0, 0
    for row in found[:limit]:
        if taken and characters + row.size > PAGE_CHARACTERS:
            break
        taken, characters = taken + 1, characters + row.size
    page = found[:taken]
    return page if after is not None else page[::-1], taken < len(found)


def _texts(places: Iterable[Place]) -> dict[int, str]:
    """The masked text of each row; rows of one attempt that follow one another are masked together.

    Around a part of an output more is read than is shown (agents.reads.printed). What is an attempt's whole output, as most
    are, needs that not: all of these are read at once.
    """
    runs = _runs(places)
    printed = Output.objects.filter(attempt_id__in={run[0].attempt for run in runs}).order_by().values_list("attempt_id")
    ends = dict(printed.annotate(end=Max(F("offset") + Length("text"))))
    whole = [run for run in runs if run[0].offset == 0 and run[-1].end == ends[run[0].attempt]]
    raw = dict(Output.objects.filter(pk__in=[place.row for run in whole for place in run]).values_list("pk", "text"))
    texts: dict[int, str] = {}
    for run in runs:
        if run[0].row in raw:
            text = mask_text("".join(raw[place.row] for place in run))
        else:
            text = printed_piece(run[0].attempt, run[0].offset, run[-1].end)
        for place in run:
            begins = place.offset - run[0].offset
            texts[place.row] = text[begins : begins + place.size]
    return texts


def _runs(places: Iterable[Place]) -> list[list[Place]]:
    """By attempt: rows without a gap between them."""
    runs: list[list[Place]] = []
    open_runs: dict[int, list[Place]] = {}
    for place in places:
        run = open_runs.get(place.attempt)
        if run is not None and run[-1].end == place.offset:
            run.append(place)
        else:
            open_runs[place.attempt] = [place]
            runs.append(open_runs[place.attempt])
    return runs


def _cuts(places: Iterable[Place]) -> dict[int, tuple[int, int]]:
    """By row: the characters that are left out before it, and the artifact that has them."""
    runs = [run[0] for run in _runs(places) if run[0].offset]
    kept = Artifact.objects.filter(attempt_id__in={place.attempt for place in runs}, kind="output")
    wholes = dict(kept.order_by("id").values_list("attempt_id", "pk"))
    cuts: dict[int, tuple[int, int]] = {}
    for place in runs:
        if place.attempt not in wholes:
            continue
        earlier = Output.objects.filter(attempt_id=place.attempt, offset__lt=place.offset).order_by("-offset")
        offset, size = earlier.values_list("offset", Length("text")).first() or (0, 0)
        if offset + size < place.offset:
            cuts[place.row] = (place.offset - offset - size, wholes[place.attempt])
    return cuts


def whole_log(scope: LogScope) -> Iterator[bytes]:
    """The outputs as a whole, one attempt after the other, each under a line that names it; the middle of long ones too."""
    left = DOWNLOAD_CHARACTERS
    rows = scope.attempts().order_by("pk").values_list("pk", "number", "task__task_id", "outcome")
    for attempt, number, task_id, outcome in rows.iterator(chunk_size=DOWNLOAD_AT_ONCE):
        headed = False
        for _, text in printed_pieces(attempt):
            if not headed:
                yield mask_text(f"==> {task_id}, attempt {number} ({outcome or 'running'}) <==\n").encode()
                headed = True
            yield text[:left].encode()
            left -= len(text)
            if left <= 0:
                yield f"\n==> The rest is left out: this is as much as {DOWNLOAD_CHARACTERS:,} characters <==\n".encode()
                return
        if headed:
            yield b"\n"
