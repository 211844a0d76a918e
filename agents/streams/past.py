"""A session as it was: what differs between any two of its events, from differences that are kept in between.

To fold fifty thousand events takes a second. So whoever looks at a stream's past first keeps what every EVENTS_BETWEEN events
did, in the memory of the process that was asked. What differs between two moments is then put together out of these steps,
forwards or backwards, and of the events between a moment and the step before it. All rows at a moment are what differs between
it and the time before the first event. They hold what the database holds: whoever shows them asks first who may see it today,
and masks it.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from agents import ids
from agents.models import Event
from agents.streams.differences import Difference, RowTuple, difference_by_events, joined, turned
from agents.streams.fold import changes_after, stream_head
from agents.streams.garbage import note_rows_made
from agents.streams.tables import Fields

EVENTS_BETWEEN = 500
"""Events of one step at most..."""
ROWS_BETWEEN = 2_000
"""...and rows after which it ends: some events add hundreds..."""
KEPT_STEPS = 256
"""...of which a stream has at most so many: beyond them two become one, and steps to come are as long as two."""
KEPT_PARTS = 8
"""Moments of a stream whose difference to the step before them is kept: those that were looked at last."""
KEPT_STREAMS = 4
"""Streams whose steps a process keeps: those that were looked at last..."""
KEPT_S = 600.0
"""...and for so long."""
SOON_EVENTS = 100_000
"""Events that are folded for a difference and would not be for the rows themselves: a second or two, once."""


@dataclass
class History:
    """Of one stream, oldest first. A step that is kept is never changed; `rows` are those after the last one."""

    stretch: int = 1
    examined: int = 0
    seqs: list[int] = field(default_factory=lambda: [0])
    steps: list[Difference] = field(default_factory=list)
    rows: dict[str, dict[int, RowTuple | None]] = field(default_factory=dict)
    parts: OrderedDict[tuple[int, int], Difference] = field(default_factory=OrderedDict)
    looked_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    # Step i leads from seqs[i] to seqs[i + 1]. `parts`: what differs between the begin of a step and a moment within it.
    # `stretch`: times the bounds that a step has. `examined`: up to where there is no more to keep.

    def reach(self, stream: int, seq: int) -> None:
        """Keep steps until `seq` lies in the one that comes next. Others may look at what is kept between two reads."""
        made = 0
        while self.examined < seq:
            with self.lock:
                begun, events = self.seqs[-1], EVENTS_BETWEEN * self.stretch
                changes = changes_after(stream, begun, min(events, seq - begun))
                for piece in _pieces(changes, ROWS_BETWEEN * self.stretch):
                    is_last = self.seqs[-1] + len(piece) == begun + len(changes)
                    if is_last and len(changes) < events:
                        break  # it grows with what follows
                    step = difference_by_events(piece, self._row_now)
                    made += sum(len(each.after) for each in step.values())
                    self._keep(self.seqs[-1] + len(piece), step)
                self.examined = begun + len(changes)
                if not changes:
                    break
        note_rows_made(made)

    def _keep(self, seq: int, step: Difference) -> None:
        for name, each in step.items():
            self.rows.setdefault(name, {}).update(each.after)
        self.seqs.append(seq)
        self.steps.append(step)
        if len(self.steps) > KEPT_STEPS:
            pairs = [self.steps[place : place + 2] for place in range(0, len(self.steps), 2)]
            self.steps = [joined(pair) for pair in pairs]
            self.seqs = [*self.seqs[:-1:2], self.seqs[-1]]
            self.stretch *= 2

    def path(self, stream: int, after: int, until: int) -> list[Difference]:
        """The differences that lead from one moment to another."""
        begin, back_to_begin = self._part(stream, after)
        end, on_to_end = self._part(stream, until)
        forwards, backwards = self.steps[begin:end], map(turned, reversed(self.steps[end:begin]))  # one of them is empty
        return [turned(back_to_begin), *forwards, *backwards, on_to_end]

    def _part(self, stream: int, seq: int) -> tuple[int, Difference]:
        """The number of the step in which `seq` lies, and what differs between its begin and `seq`."""
        place = bisect_right(self.seqs, seq) - 1
        begun = self.seqs[place]
        if begun == seq:
            return place, {}
        if (begun, seq) not in self.parts:
            step = self.steps[place] if place < len(self.steps) else None
            row_before = self._row_now if step is None else lambda name, key: step[name].before[key]
            self.parts[begun, seq] = difference_by_events(changes_after(stream, begun, seq - begun), row_before)
            if len(self.parts) > KEPT_PARTS:
                self.parts.popitem(last=False)
        self.parts.move_to_end((begun, seq))
        return place, self.parts[begun, seq]

    def _row_now(self, name: str, key: int) -> RowTuple | None:
        return self.rows.get(name, {}).get(key)


def _pieces(changes: list[Fields], most: int) -> Iterator[list[Fields]]:
    """Changes that follow each other, cut after those with which a piece has touched `most` rows."""
    begun = touched = 0
    for place, data in enumerate(changes, 1):
        touched += sum(len(rows) for kind in ("add", "set") for rows in data.get(kind, {}).values())
        if touched >= most or place == len(changes):
            yield changes[begun:place]
            begun, touched = place, 0


_KEPT: OrderedDict[int, History] = OrderedDict()
_KEPT_LOCK = threading.Lock()


def difference(stream: int, after: int, until: int) -> Difference:
    """How the stream's rows right after event `until` differ from those right after event `after`, which may be the later one.

    Raises FoldError where its events do not follow from each other.
    """
    history = _history_of(stream)
    history.reach(stream, max(after, until))
    with history.lock:
        path = history.path(stream, after, until)
    return joined(path)


def is_known_soon(stream: int, after: int, until: int) -> bool:
    """Whether their difference takes hardly longer than all rows at `until`."""
    return after <= max(_history_of(stream).seqs[-1], until) + SOON_EVENTS


def _history_of(stream: int) -> History:
    now = time.monotonic()
    with _KEPT_LOCK:
        kept = _KEPT.setdefault(stream, History())
        kept.looked_at = now
        _KEPT.move_to_end(stream)
        old = [key for key, each in _KEPT.items() if now - each.looked_at > KEPT_S]
        for key in [*old, *list(_KEPT)[: max(0, len(_KEPT) - KEPT_STREAMS)]]:
            _KEPT.pop(key, None)
    return kept


def seq_at(stream: int, moment: datetime) -> int:
    """The last event that was recorded by then, 0 where there was none: times of a stream grow with its events."""
    low, high = 0, stream_head(stream)
    while low < high:
        middle = (low + high + 1) // 2
        if (at := time_of(stream, middle)) is not None and at <= moment:
            low = middle
        else:
            high = middle - 1
    return low


def time_of(stream: int, seq: int) -> datetime | None:
    """When an event was recorded; None where there is none such."""
    return Event.objects.filter(pk=ids.row_id(stream, seq)).values_list("at", flat=True).first()
