"""What one decision wants recorded: events that carry the new values of what changed, and the slots it needs.

An event's `data` carries `add` (whole rows), `set` (fields of rows) and `del` (row ids), each by table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.clock import from_iso
from agents.machines import Machine, step
from agents.streams.row_types import StatefulRow
from agents.streams.tables import Fields

PIECE = 1000
"""Rows, or transitions, that one event may carry."""


@dataclass(slots=True)
class PendingEvent:
    """An event before it has its place in the stream."""

    type: str
    data: Fields
    by: str
    at: str


@dataclass(slots=True)
class SlotDemand:
    """What a session wants of one device: slots beside those it starts on now, and how it ranks in the queue."""

    waiting: int = 0
    priority: int = 0
    held: int = 0


@dataclass(slots=True)
class Batch:
    """What one writer wants recorded in one stream.

    `head` is the head the decisions were made on, `token` the lease's fence (None: a service under the stream's lock),
    `rows` the row numbers to give out. `events` are written all or none. `starts` are events that need a slot of their
    device each, `frees` the slots that `events` give back; `write_batches` says in `admitted` how many of a device's starts,
    from the first, were written, in `free` how many slots are left there, in `queued` the devices
    it now queues for, and in `woken` which sessions got slots.
    """

    stream: int
    head: int
    token: int | None = None
    rows: int = 0
    events: list[PendingEvent] = field(default_factory=list)
    frees: dict[int, int] = field(default_factory=dict)
    starts: dict[int, list[PendingEvent]] = field(default_factory=dict)
    wants: dict[int, SlotDemand] = field(default_factory=dict)
    request_id: str = ""
    admitted: dict[int, int] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)
    woken: set[int] = field(default_factory=set)
    queued: set[int] = field(default_factory=set)
    rows_after: int = 0

    def written(self) -> list[PendingEvent]:
        """The events that `write_batches` wrote, in their order."""
        if not self.starts:
            return self.events
        return self.events + [event for device, starts in self.starts.items() for event in starts[: self.admitted[device]]]


class Turn:
    """Collects the events of one decision. `row` arguments are rows as records hold them, and are changed in place."""

    __slots__ = ("at", "by", "events", "frees", "starts", "take", "ts", "wants")

    def __init__(self, at: str, by: str, take: Callable[[], int]):
        self.at, self.by, self.take = at, by, take
        self.ts = from_iso(at)
        self.events: list[PendingEvent] = []
        self.starts: dict[int, list[PendingEvent]] = {}
        self.frees: dict[int, int] = {}
        self.wants: dict[int, SlotDemand] = {}

    def record(self, event_type: str, /, by: str = "", **data: Any) -> None:
        """An event; `add`, `set` and `delete` change rows, whatever else is for the reader."""
        if "delete" in data:
            data["del"] = data.pop("delete")
        self.events.append(PendingEvent(event_type, data, by or self.by, self.at))

    def step(
        self, machine: Machine, row: StatefulRow, event: str, facts: Fields | None = None, reason: str = "", **fields: Any
    ) -> tuple[Fields, Fields]:
        """One transition, not yet recorded: what the reader is told, and the fields that change."""
        told, changes, _ = self._step(machine, row, event, facts, reason, fields)
        return told, changes

    def _step(
        self, machine: Machine, row: StatefulRow, event: str, facts: Fields | None, reason: str, fields: Fields
    ) -> tuple[Fields, Fields, tuple[str, ...]]:
        """As `step`, and the effects of the machine's row."""
        source = row["state"]
        target, effects = step(machine, source, event, facts or {})
        changes: Fields = {"state": target, "entered_at": self.at}
        if reason or row.get("reason"):
            changes["reason"] = reason
        if fields:
            changes.update(fields)
        told = {
            "machine": machine.name, "id": row["id"], "from_state": source, "to_state": target, "event": event,
            "reason": reason, "spent": round(self.ts - from_iso(row["entered_at"]), 6),
        }  # fmt: skip
        row.update(changes)  # type: ignore[typeddict-item]  # of each table those of its machine
        return told, changes, effects

    def transition(
        self,
        machine: Machine,
        table: str,
        row: StatefulRow,
        event: str,
        facts: Fields | None = None,
        reason: str = "",
        *,
        add: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        also: dict[str, Fields] | None = None,
        by: str = "",
        **fields: Any,
    ) -> tuple[str, ...]:
        """Drive `row`'s machine by `event`: one `state_changed` event, one history row. Returns the effects to carry out.

        `fields` change with it in the same row, `also` sets fields of rows of other tables, `add` adds rows.
        """
        data, changes, effects = self._step(machine, row, event, facts, reason, fields)
        data["set"] = {table: {str(row["id"]): changes}}
        if also:
            data["set"].update(also)
        if add:
            data["add"] = add
        self.events.append(PendingEvent("state_changed", data, by or self.by, self.at))
        return effects

    def record_steps(self, event_type: str, table: str, steps: list[tuple[Fields, Fields]], by: str = "") -> None:
        """Many transitions decided by `step` in one pass: one event, in pieces."""
        for at in range(0, len(steps), PIECE):
            piece = steps[at : at + PIECE]
            changes = {table: {str(told["id"]): fields for told, fields in piece}}
            self.record(event_type, by=by, transitions=[told for told, _ in piece], set=changes)
