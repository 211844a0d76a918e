"""A session as it was: the fold up to any event, from folds that are kept in between.

To fold fifty thousand events takes a second, so the first look at a stream's past keeps the fold every EVENTS_BETWEEN events,
in the memory of the process that was asked; any other moment is folded from the nearest one before it. Rows that did not
change are shared between kept folds, so that each costs little more than what changed. They hold what the database holds:
whoever shows them asks first who may see it today, and masks it.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime

from agents import ids
from agents.models import Event
from agents.streams.fold import Rows, events_since, stream_head
from agents.streams.tables import TABLES, Fields

EVENTS_BETWEEN = 2_000
"""Events between two kept folds..."""
KEPT_FOLDS = 32
"""...of which a stream has at most so many: beyond them every second one is let go, and twice as many events lie between."""
KEPT_STREAMS = 4
"""Streams whose folds a process keeps: those that were looked at last..."""
KEPT_S = 600.0
"""...and for so long."""


@dataclass
class KeptFolds:
    """Of one stream, oldest first. A fold that is kept is never changed."""

    every: int = EVENTS_BETWEEN
    seqs: list[int] = field(default_factory=lambda: [0])
    folds: list[Rows] = field(default_factory=lambda: [{}])
    looked_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def nearest(self, seq: int) -> tuple[int, Rows]:
        """The last that is not later, for the caller to change."""
        place = bisect_right(self.seqs, seq) - 1
        return self.seqs[place], {name: dict(rows) for name, rows in self.folds[place].items()}

    def keep(self, seq: int, rows: Rows) -> None:
        """Keep the fold at `seq`, if that is far enough beyond the last one."""
        if seq < self.seqs[-1] + self.every:
            return
        self.seqs.append(seq)
        self.folds.append({name: dict(found) for name, found in rows.items()})
        if len(self.seqs) > KEPT_FOLDS:
            self.seqs, self.folds, self.every = self.seqs[::2], self.folds[::2], self.every * 2


_KEPT: OrderedDict[int, KeptFolds] = OrderedDict()
_KEPT_LOCK = threading.Lock()


def fold_at(stream: int, seq: int) -> Rows:
    """The stream's rows right after event `seq`. Raises FoldError where its events do not follow from each other."""
    kept = _kept_of(stream)
    with kept.lock:  # two who look at the same past at once fold it once
        at, rows = kept.nearest(seq)
        while at < seq:
            wanted = min(EVENTS_BETWEEN, seq - at)
            events = events_since(stream, at, wanted)
            for event in events:
                apply_anew(event["data"], rows)
            if not events:
                break
            at = events[-1]["seq"]
            kept.keep(at, rows)
    return rows


def _kept_of(stream: int) -> KeptFolds:
    now = time.monotonic()
    with _KEPT_LOCK:
        kept = _KEPT.setdefault(stream, KeptFolds())
        kept.looked_at = now
        _KEPT.move_to_end(stream)
        old = [key for key, each in _KEPT.items() if now - each.looked_at > KEPT_S]
        for key in [*old, *list(_KEPT)[: max(0, len(_KEPT) - KEPT_STREAMS)]]:
            _KEPT.pop(key, None)
    return kept


def apply_anew(data: Fields, rows: Rows) -> None:
    """As `fold.apply_event`, of rows that others share: a row that changes is a new one, the old one stays as it was."""
    for name, fresh in data.get("add", {}).items():
        table, into = TABLES[name], rows.setdefault(name, {})
        for row in fresh:
            into[str(row["id"])] = table.whole(row)
    for name, changes in data.get("set", {}).items():
        into = rows.setdefault(name, {})
        for key, fields in changes.items():
            into[key] = {**into[key], **fields}
    for name, gone in data.get("del", {}).items():
        for key in gone:
            rows.setdefault(name, {}).pop(str(key), None)


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
