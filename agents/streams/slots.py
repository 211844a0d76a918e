"""Slots of devices: claimed in the commit that starts a task, freed in the one that ends it.

As long as nobody queues for a device, a commit needs one conditional update of the device's row. Where the slots do not
suffice, sessions queue (`SlotRequest`) and freed slots are *granted* to the first in the queue: by priority, then fair
share (who holds fewest there), then age. A granted slot stays counted in `used` until the session takes it up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.clock import now_iso

if TYPE_CHECKING:
    from agents.streams.statements import RawCursor, Store
    from agents.streams.turn import Batch

QUICK = (
    "UPDATE agents_device SET used = used + %s WHERE id = %s AND queued = 0 AND used + %s BETWEEN 0 AND max_concurrent"
    " AND (%s <= 0 OR state = 'connected') RETURNING max_concurrent - used"
)
DEVICE = "SELECT used, max_concurrent, state FROM agents_device WHERE id = %s"
QUEUE = "SELECT session_id, priority, held, wanted, granted FROM agents_slotrequest WHERE device_id = %s ORDER BY since, id"

LEAVE = "DELETE FROM agents_slotrequest WHERE device_id = %s AND session_id = %s"


@dataclass(slots=True)
class QueuePlace:
    """One session in the queue of a device. Sorting by `rank` gives who is next."""

    session: int
    priority: int
    held: int
    wanted: int
    granted: int
    new: bool = False

    def rank(self) -> tuple[int, int]:
        return -self.priority, self.held


def settle_slots(store: Store, cursor: RawCursor, batches: list[Batch]) -> None:
    """Give back and take the slots of `batches`, device by device in the order of their ids; fills `Batch.admitted`."""
    concerned: dict[int, list[Batch]] = {}
    for batch in batches:
        for device in {*batch.frees, *batch.starts, *batch.wants}:
            concerned.setdefault(device, []).append(batch)
    for device in sorted(concerned):
        for batch in concerned[device]:
            starts, frees = len(batch.starts.get(device, ())), batch.frees.get(device, 0)
            want = batch.wants.get(device)
            if want is None or not want.waiting:  # one statement does where nobody queues and there is room for all
                net = starts - frees
                row = store.execute(cursor, QUICK, (net, device, net, net)).fetchone()
                if row is not None:
                    batch.admitted[device], batch.free[device] = starts, row[0]
                    continue
            _queue(store, cursor, device, batch, starts, frees)


def _queue(store: Store, cursor: RawCursor, device: int, batch: Batch, starts: int, frees: int) -> None:
    """The way through the queue: everybody's turn is computed anew from the slots that are free now."""
    store.execute(cursor, DEVICE + store.for_update, (device,))
    used, most, state = cursor.fetchone()
    places = [QueuePlace(*row) for row in store.execute(cursor, QUEUE, (device,)).fetchall()]
    mine = next((place for place in places if place.session == batch.stream), None)
    if mine is None:
        mine = QueuePlace(batch.stream, 0, 0, 0, 0, new=True)
        places.append(mine)
    want = batch.wants.get(device)
    mine.wanted = starts + (want.waiting if want else 0)
    mine.priority, mine.held = (want.priority, want.held) if want else (mine.priority, mine.held)
    used -= frees + mine.granted
    mine.granted = 0
    before = {place.session: place.granted for place in places}
    used += share_slots(places, most - used if state == "connected" else 0)
    batch.admitted[device] = min(starts, mine.granted)
    mine.wanted -= batch.admitted[device]
    used -= mine.granted - batch.admitted[device]
    mine.granted = 0
    batch.free[device] = most - used if state == "connected" else 0
    batch.woken |= {p.session for p in places if p.granted > before[p.session]}
    if mine.wanted:
        batch.queued.add(device)
    _keep(store, cursor, device, places, mine, used)


def share_slots(places: list[QueuePlace], free: int) -> int:
    """Grant up to `free` slots to those who want one, the best placed first; returns how many were granted."""
    granted = 0
    for _ in range(max(free, 0)):
        waiting = [place for place in places if place.granted < place.wanted]
        if not waiting:
            break
        first = min(waiting, key=QueuePlace.rank)
        first.granted += 1
        first.held += 1
        granted += 1
    return granted


def _keep(store: Store, cursor: RawCursor, device: int, places: list[QueuePlace], mine: QueuePlace, used: int) -> None:
    now = store.time(now_iso())
    for place in places:
        if place is mine and not place.wanted:
            if not place.new:
                store.execute(cursor, LEAVE, (device, place.session))
        elif place.new:
            store.execute(
                cursor,
                "INSERT INTO agents_slotrequest (device_id, session_id, priority, held, wanted, granted, since)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (device, place.session, place.priority, place.held, place.wanted, place.granted, now),
            )
        else:
            store.execute(
                cursor,
                "UPDATE agents_slotrequest SET priority = %s, held = %s, wanted = %s, granted = %s"
                " WHERE device_id = %s AND session_id = %s",
                (place.priority, place.held, place.wanted, place.granted, device, place.session),
            )
    store.execute(
        cursor,
        "UPDATE agents_device SET used = %s,"
        " queued = (SELECT count(*) FROM agents_slotrequest WHERE device_id = %s) WHERE id = %s",
        (used, device, device),
    )
