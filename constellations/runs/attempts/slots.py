"""The slots of one session in one turn: how many it has and may have, and what there seems to be of each device."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from agents.streams.statements import current_store, raw_cursor
from constellations.assignment.candidates import Candidate
from constellations.runs.context import Context

GRANTED = "SELECT device_id, granted FROM agents_slotrequest WHERE session_id = %s AND granted > 0"


def session_limit(context: Context) -> int:
    """How many attempts of a session may have slots at one time: what is said of itself, or the setting, and of this work."""
    own = context.session["max_concurrent"] or settings.SESSION_CONCURRENT
    return min(own, context.constellation.get("max_concurrent") or own)


def granted_slots(session: int) -> dict[int, int]:
    """Slots that were handed to the session while it waited in queues, by device; they count as used."""
    return dict(current_store().execute(raw_cursor(), GRANTED, (session,)).fetchall())


class SessionSlots:
    """`room` is how many more starts may be offered. `frees` are slots that this turn gives back, `held` what is kept."""

    def __init__(self, context: Context, frees: Mapping[int, int], held: Mapping[int, int], granted: Mapping[int, int]):
        self._devices = context.devices
        self._frees, self._held, self._granted = frees, held, granted
        self._candidates: dict[int, Candidate] = {}
        self.limit = session_limit(context)
        self.running = sum(held.values())
        self.room = self.limit - self.running

    def candidate(self, key: int) -> Candidate:
        """A device as a strategy sees it, with what was offered in this turn."""
        if (known := self._candidates.get(key)) is not None:
            return known
        row = self._devices[key]
        taken = row["used"] - self._frees.get(key, 0) - self._granted.get(key, 0)
        found = self._candidates[key] = Candidate(
            key, row["name"], row["max_concurrent"], taken, self._held.get(key, 0), row["queued"], row["type"],
            row["capabilities"], row["labels"], row["readings"],
        )  # fmt: skip
        return found

    def others(self, key: int) -> int:
        """Slots of a device that are not the session's: taken by others, or granted."""
        return self._devices[key]["used"] - self._frees.get(key, 0) - self._held.get(key, 0)

    def take(self, device: Candidate) -> None:
        """A start is offered there."""
        device.taken += 1
        device.mine += 1
        self.running += 1
        self.room -= 1
