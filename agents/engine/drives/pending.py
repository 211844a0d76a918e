"""What a drive has decided and nobody has written yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.streams.tables import Fields
from agents.streams.turn import Batch, PendingEvent, SlotDemand, Turn


class Pending:
    """What still holds of a refused batch, what is to be noted, and what calls are told once the batch under way is durable."""

    __slots__ = ("_frees", "_notes", "_wants", "interrupts", "kept", "told")

    def __init__(self) -> None:
        self.kept: list[PendingEvent] = []
        self.interrupts: list[int] = []
        self.told: list[tuple[int, str, Fields]] = []
        self._frees: dict[int, int] = {}
        self._wants: dict[int, SlotDemand] = {}
        self._notes: list[tuple[str, Fields]] = []

    def note(self, event: str, **data: Any) -> None:
        """An event that changes no row, recorded with the next turn."""
        self._notes.append((event, data))

    def move_into(self, turn: Turn) -> None:
        """The turn begins with what was decided before it."""
        turn.events, self.kept = self.kept, []
        turn.frees, self._frees = self._frees, {}
        turn.wants, self._wants = self._wants, {}
        notes, self._notes = self._notes, []
        for event, data in notes:
            turn.record(event, **data)

    def keep(self, batch: Batch) -> None:
        """The batch was refused: what it offered is offered anew, and everything else of it still holds."""
        self.kept, self._frees = batch.events, batch.frees
        self._wants = {device: want for device, want in batch.wants.items() if not want.waiting}

    def forget(self) -> None:
        """The rows are read anew, and with them everything is decided anew."""
        self.kept, self._frees, self._wants = [], {}, {}
        self.interrupts.clear()
        self.told.clear()

    def is_touched_by(self, events: Iterable[Fields]) -> bool:
        """Whether one of the events changes a row that what is kept changes too."""
        if not self.kept:
            return False
        return not _changed(event["data"] for event in events).isdisjoint(_changed(event.data for event in self.kept))


class Precedence:
    """Whether the session's next batch asks for the stream's lock before it is decided, because others record there too.

    `of_all`: what the batch under way decides is about everything there is, so whatever comes first makes it worthless.
    """

    __slots__ = ("_came_second", "_locked", "of_all", "wants_lock")

    def __init__(self) -> None:
        self._came_second = False
        self._locked = False
        self.wants_lock = False
        self.of_all = False

    def begin(self, locked: bool) -> None:
        """A turn begins. `locked`: nobody else can record meanwhile."""
        self._locked, self.wants_lock = locked, False

    def may_decide_of_all(self) -> bool:
        """Whether to do so now, or under the stream's lock, where the same is asked again."""
        self.wants_lock = self._came_second and not self._locked
        return not self.wants_lock

    def came_first(self) -> None:
        """The batch is written. Once everything there is has been decided about, other work begins."""
        self._came_second = self._came_second and not self.of_all
        self.of_all = False

    def came_second(self) -> None:
        """The batch was refused: somebody else has recorded first."""
        self._came_second = True


def _changed(changes: Iterable[Fields]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for data in changes:
        for table, rows in data.get("set", {}).items():
            found.update((table, key) for key in rows)
        for table, gone in data.get("del", {}).items():
            found.update((table, str(key)) for key in gone)
    return found
