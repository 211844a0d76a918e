"""How many attempts had slots at every moment, as the streams of sessions tell it."""

from __future__ import annotations

from collections import Counter

from agents.models import Event, Stream


class SlotsTold:
    """From all events of sessions: the most that each session, and each device, had in use at one time.

    Of one session the order is that of its stream. Of a device it is that of the decisions' times, ends before starts: it holds
    where one runner drives all sessions.
    """

    def __init__(self) -> None:
        self.of_sessions: Counter[int] = Counter()
        self.of_devices: Counter[int] = Counter()
        moves: list[tuple] = []
        for stream in Stream.objects.filter(kind="session").values_list("id", flat=True):
            moves += self._session(stream)
        now: Counter[int] = Counter()
        for _, change, device in sorted(moves):
            now[device] += change
            self.of_devices[device] = max(self.of_devices[device], now[device])
        self.left = +now

    def _session(self, stream: int) -> list[tuple]:
        """(time, +1 or -1, device) of each slot that is taken or given back."""
        rows: dict[int, dict] = {}
        moves, held = [], 0
        for at, data in Event.objects.filter(stream=stream).order_by("seq").values_list("at", "data"):
            touched = {row["id"]: {"outcome": "", "holds_slot": True, **row} for row in data.get("add", {}).get("attempt", ())}
            before = {key: _held(rows.get(key)) for key in touched}
            rows.update(touched)
            for key, fields in data.get("set", {}).get("attempt", {}).items():
                before.setdefault(int(key), _held(rows[int(key)]))
                rows[int(key)].update(fields)
            for key, held_before in before.items():
                now = _held(rows[key])
                if now != held_before:
                    moves += [(at, change, of) for change, of in ((-1, held_before), (1, now)) if of is not None]
                    held += (now is not None) - (held_before is not None)
            self.of_sessions[stream] = max(self.of_sessions[stream], held)
        return moves


def _held(row: dict | None) -> int | None:
    """The device of which an attempt has a slot."""
    if row is None or row["outcome"] or not row["holds_slot"]:
        return None
    return row.get("slot_device_id") or row["device_id"]
