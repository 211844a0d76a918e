"""What models say while they say it, as the live views of one process get it: read once for all, masked, soon forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson
from django.db.models import Max, Q

from agents import ids
from agents.masks.values import mask_text
from agents.models import ModelDelta

BEFORE = 16_384
"""Characters before new ones that the mask looks at with them: a secret may come in two parts."""
REMEMBERED = 500
"""Deltas of one stream that a new follower gets."""
CALLS = 1_000
"""Calls of one stream whose last characters are remembered."""


@dataclass(frozen=True, slots=True)
class Delta:
    """More of what a call says. `offset` counts the characters of its kind before it."""

    call: int
    offset: int
    kind: str
    text: str


@dataclass
class DeltaMemory:
    """The latest deltas of one stream, with running numbers; `last` is the newest one's."""

    last: int = 0
    deltas: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _known: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)

    # `_known`: by call and kind, how many characters are known, and the last of them.

    def beyond(self, call: int) -> dict[str, int]:
        """How many characters of a call are known, by kind."""
        return {kind: self._known.get((call, kind), (0, ""))[0] for kind in ("text", "thinking")}

    def add(self, fresh: Iterable[Delta]) -> None:
        """Take up rows of a call in their order; what is known already is passed over."""
        for delta in fresh:
            key = delta.call, delta.kind
            end, before = self._known.get(key, (0, ""))
            if delta.offset + len(delta.text) <= end:
                continue
            shown = mask_text(before + delta.text)[len(before) :]
            self.last += 1
            told = {"call": delta.call, "offset": delta.offset, "kind": delta.kind, "text": shown}
            self.deltas.append((self.last, orjson.dumps(told)))
            if len(self._known) >= CALLS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = delta.offset + len(delta.text), (before + delta.text)[-BEFORE:]

    def after(self, number: int) -> list[bytes]:
        """Deltas after that number, as JSON."""
        return [text for place, text in self.deltas if place > number]


def read_deltas(call: int, beyond: dict[str, int]) -> list[Delta]:
    """What a call has said beyond what is known of it, in the order in which it was written."""
    rows = ModelDelta.objects.filter(call_id=call, offset__gte=min(beyond.values())).order_by("pk")
    found = (Delta(row.call_id, row.offset, row.kind, row.text) for row in rows)
    return [delta for delta in found if delta.offset >= beyond.get(delta.kind, 0)]


def read_saying(streams: Iterable[int]) -> list[tuple[int, str, int]]:
    """(call, kind, offset of its last row) of every call in these streams that says something."""
    wanted = Q()
    for stream in streams:
        lowest, beyond = ids.row_range(stream)
        wanted |= Q(call_id__gte=lowest, call_id__lt=beyond)
    return list(ModelDelta.objects.filter(wanted).values_list("call_id", "kind").annotate(Max("offset")).order_by("call_id"))
