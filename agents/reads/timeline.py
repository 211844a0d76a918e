"""What the machines of a session went through between two moments, in columns: from it a timeline draws states as bars.

A transition tells of the state that it left: it ended `at`, and began `spent` seconds before.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agents import ids
from agents.models import Event, Stream, Transition

ROWS = 10_000
"""Transitions of one answer; a shorter time is asked for where it says `truncated`."""
COLUMNS = ("machine", "subject_id", "from_state", "to_state", "event", "at", "spent")


def timeline_of(session: int, begins: datetime | None, ends: datetime | None) -> dict[str, Any]:
    """{columns, rows, truncated}: the first ROWS transitions from `begins` on and before `ends`, None for no bound.

    `columns` holds a list for each of COLUMNS, `rows` says how long they are.
    """
    head = Stream.objects.values_list("head", flat=True).get(pk=session)
    first = 0 if begins is None else first_seq_from(session, begins, head)
    last = head + 1 if ends is None else first_seq_from(session, ends, head)
    low, high = (ids.transition_id(ids.row_range(session)[0] + seq, 0) for seq in (first, last))
    found = list(Transition.objects.filter(pk__gte=low, pk__lt=high).order_by("pk").values_list(*COLUMNS)[: ROWS + 1])
    shown = found[:ROWS]
    columns = zip(*shown, strict=True) if shown else ([] for _ in COLUMNS)
    return {
        "columns": {name: list(values) for name, values in zip(COLUMNS, columns, strict=True)},
        "rows": len(shown),
        "truncated": len(found) > ROWS,
    }


def first_seq_from(stream: int, moment: datetime, head: int) -> int:
    """The seq of the first event at `moment` or later, head + 1 where there is none.

    It halves the stream by primary keys: events have no index of their times, and are in their order.
    """
    low, high = 1, head + 1
    while low < high:
        middle = (low + high) // 2
        at = Event.objects.filter(pk=ids.row_id(stream, middle)).values_list("at", flat=True).first()
        if at is not None and at < moment:
            low = middle + 1
        else:
            high = middle
    return low
