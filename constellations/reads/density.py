"""When things happened in a session: events by equal spans of time, and the moments that somebody may want to go to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import F

from agents import ids
from agents.clock import iso_of
from agents.models import Event, InboxItem, Transition
from agents.streams.fold import stream_head
from constellations.machines.constellation import CLOSED
from constellations.models import Edit, Task

LOOKED_AT = 50_000
"""Events that are read; of more every second, third and so on, and each counts for as many."""
MARKS = 200
"""Of one kind, the latest."""
TEXT = 200
"""Characters of a mark's text."""
APPROVALS = {"approval_asked": "Asked", "approval_decided": "Decided"}


def read_density(session: int, buckets: int) -> dict[str, Any]:
    """{"first_at", "last_at", "head", "buckets", "marks"}. Every bucket says the last seq up to its end, also an empty one."""
    head, low = stream_head(session), ids.row_range(session)[0]
    marks = sorted((mark for kind in (_edits, _failures, _requests, _approvals, _outcomes) for mark in kind(session)), key=_seq)
    step = max(1, -(-head // LOOKED_AT))
    events = Event.objects.filter(pk__gt=low, pk__lte=low + head)
    if step > 1:
        events = events.annotate(left=F("seq") % step).filter(left=1)
    times = list(events.order_by("pk").values_list("seq", "at"))
    if not times:
        return {"first_at": None, "last_at": None, "head": head, "buckets": [], "marks": []}
    first, last = times[0][1], times[-1][1]
    span = max((last - first).total_seconds(), 0.001) / buckets
    found = [_bucket(first + timedelta(seconds=span * place)) for place in range(buckets)]
    for seq, at in times:
        bucket = found[_place(at, first, span, buckets)]
        bucket["events"] += step
        bucket["seq"] = max(bucket["seq"], seq)
    found[-1]["seq"] = head
    for mark in marks:
        if mark["kind"] in ("edit", "failure"):
            found[_place(mark["at"], first, span, buckets)][f"{mark['kind']}s"] += 1
    for before, bucket in pairwise(found):
        bucket["seq"] = max(bucket["seq"], before["seq"])
    for mark in marks:
        mark["at"] = iso_of(mark["at"])
    return {"first_at": iso_of(first), "last_at": iso_of(last), "head": head, "buckets": found, "marks": marks}


def _seq(mark: dict[str, Any]) -> int:
    seq: int = mark["seq"]
    return seq


def _bucket(at: datetime) -> dict[str, Any]:
    return {"at": iso_of(at), "seq": 0, "events": 0, "edits": 0, "failures": 0}


def _place(at: datetime, first: datetime, span: float, buckets: int) -> int:
    return min(buckets - 1, max(0, int((at - first).total_seconds() / span)))


def _mark(seq: int, at: datetime, kind: str, by: str, text: str) -> dict[str, Any]:
    return {"seq": seq, "at": at, "kind": kind, "by": by, "text": text[:TEXT]}


def _events(session: int, *types: str) -> Any:
    low, high = ids.row_range(session)
    return Event.objects.filter(pk__gte=low, pk__lt=high, type__in=types).order_by("-pk")


def _edits(session: int) -> Iterator[dict[str, Any]]:
    """An edit of many rows is several events: the first of them, which has its row, is the mark."""
    found = (
        _events(session, "edited").filter(data__has_key="diff").values_list("seq", "at", "by", "data__author", "data__reason")
    )
    for seq, at, by, author, reason in found[:MARKS]:
        yield _mark(seq, at, "edit", author or by, reason or "An edit")


def _transitions(session: int, machine: str, states: tuple[str, ...]) -> Any:
    low, high = (ids.transition_id(place, 0) for place in ids.row_range(session))
    rows = Transition.objects.filter(pk__gte=low, pk__lt=high, machine=machine, to_state__in=states)
    return rows.order_by("-pk").values_list("seq", "at", "by", "subject_id", "to_state", "reason")[:MARKS]


def _failures(session: int) -> Iterator[dict[str, Any]]:
    found = list(_transitions(session, "task", ("FAILED",)))
    names = dict(Task.objects.filter(pk__in=[row[3] for row in found]).values_list("pk", "task_id"))
    for seq, at, by, task, _, reason in found:
        yield _mark(seq, at, "failure", by, f"{names.get(task, 'a task')} failed{': ' * bool(reason)}{reason}")


def _requests(session: int) -> Iterator[dict[str, Any]]:
    asked = InboxItem.objects.filter(session=session, kind="interaction").order_by("-id").values_list("created_at", flat=True)
    times = set(asked[:MARKS])
    for seq, at, by in _events(session, "command_received").values_list("seq", "at", "by")[:MARKS]:
        if at in times:
            yield _mark(seq, at, "request", by, "A request")


def _approvals(session: int) -> Iterator[dict[str, Any]]:
    found = _events(session, *APPROVALS).values_list("seq", "at", "by", "type", "data__title")
    for seq, at, by, kind, title in found[:MARKS]:
        yield _mark(seq, at, "approval", by, f"{APPROVALS[kind]}{': ' * bool(title)}{title or ''}")


def _outcomes(session: int) -> Iterator[dict[str, Any]]:
    for seq, at, by, _, state, reason in _transitions(session, "constellation", (*CLOSED, "CANCELLED")):
        yield _mark(seq, at, "outcome", by, reason or state.lower().replace("_", " "))


def authors_in(session: int) -> set[str]:
    """All who did something in a session, as records name them."""
    low, high = ids.row_range(session)
    events = Event.objects.filter(pk__gte=low, pk__lt=high).order_by()
    edits = Edit.objects.filter(constellation__session=session).order_by()
    return set(events.values_list("by", flat=True).distinct()) | set(edits.values_list("author", flat=True).distinct())
