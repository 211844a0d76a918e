"""One session in the memory of the runner that owns it: what it was asked, its actor, the work in hand.

A drive decides in turns. What a turn decided becomes one batch; the drive waits until that batch is durable, and only
then does what follows from it. A foreign record that came first is read and taken up, and the decisions that it does not
touch are kept; where it touches them, the drive forgets everything and reads its rows again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agents import ids
from agents.clock import to_iso
from agents.engine.actor import ActorPart
from agents.engine.leases import Leased
from agents.engine.work import Work, handler
from agents.streams.fold import consistent_read, events_since
from agents.streams.statements import cursor, store
from agents.streams.tables import TABLES, Fields, fold_rows
from agents.streams.turn import Batch, PendingEvent, SlotDemand, Turn
from agents.tools.calls import Call, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.gates.policies import Rule

REFILL = 1024
"""Row numbers a busy session keeps ahead."""
FAULTS = 3
"""Bugs that one lease survives: after the first the session is read anew, after the others its actor ends in Error."""
LOADED_FAULTS = 2
"""After more the work in hand is not even read."""
EVENTS_BEHIND = 10_000
"""A session that missed more than this is read anew instead of followed."""
UNDECIDED = -2
"""The head of a batch that is to be decided under the stream's lock: no stream has it, so it is refused."""

Rows = dict[str, dict[str, Fields]]


class Drive:
    """A leased session. Only the runner's loop calls it, but for `hydrate`, which may run in a thread."""

    def __init__(self, leased: Leased, devices: Mapping[int, Fields], policies: Sequence[Rule], printed: Callable[[int], str]):
        self.stream, self.token = leased.stream, leased.token
        self.devices, self.policies, self.printed = devices, policies, printed
        self.head = -1
        self.rows: Rows = {}
        self.work: Work | None = None
        self.outcomes: dict[int, Outcome] = {}
        self.prepared: dict[int, tuple[Any, float]] = {}
        self.busy = False
        self.lost = False
        self.stale = True
        self.draining = False
        self.woken = True
        self.is_new = True
        self.fault = ""
        self.retries = 0
        self._faults = 0
        self._taken_over = True
        self._consumed: list[int] = []
        self._kept: list[PendingEvent] = []
        self._kept_frees: dict[int, int] = {}
        self._kept_wants: dict[int, SlotDemand] = {}
        self._interrupts: list[int] = []
        self._notes: list[tuple[str, Fields]] = []
        self._of_all = False
        self._came_second = False
        self._locked = False
        self._wants_lock = False
        self._numbers: deque[tuple[int, int]] = deque([(leased.rows_from, leased.rows_to)])
        self._known_rows = leased.rows_to
        self._beyond = 0
        self.actor = ActorPart(self)

    # `prepared`: requests that were read, by their ids, and the seconds that this took. `printed`: the last that the call under
    # way of an attempt has printed. `woken`: somebody asked for a look since the last turn, for example because a slot was
    # granted. `_of_all`: what was decided is about everything there is. `_came_second`: others record in this session too,
    # while this work is in hand.

    # --- reading

    def hydrate(self) -> None:
        """Read what is open in the session: head, actor, inbox, agents, and the work in hand."""
        with consistent_read():
            self.head, self._known_rows = (
                store().execute(cursor(), "SELECT head, rows FROM agents_stream WHERE id = %s", (self.stream,)).fetchone()
            )
            self.rows = {name: {} for name in TABLES}
            self.read("session", "id = %s", self.stream)
            self.read("actor", "session_id = %s AND epoch = (SELECT max(epoch) FROM agents_actor WHERE session_id = %s)",
                      self.stream, self.stream)  # fmt: skip
            self.read("inbox", "session_id = %s AND state IN ('queued', 'running')", self.stream)
            running = self.interaction()
            loads = self._faults <= LOADED_FAULTS
            self.work = handler().load(self, running) if running is not None and loads else None
        self._kept, self._kept_frees, self._kept_wants = [], {}, {}
        self._consumed.clear()
        self._interrupts.clear()
        self._beyond = 0
        self._of_all = False
        self.stale = False

    def read(self, table: str, where: str, *parameters: Any) -> list[Fields]:
        """Read rows of the fold into `rows`; returns them."""
        fresh = fold_rows(table, where, *parameters)
        self.rows[table].update((str(row["id"]), row) for row in fresh)
        return fresh

    def interaction(self) -> Fields | None:
        """The interaction being worked on."""
        return next((row for row in self.inbox("running") if row["kind"] == "interaction"), None)

    def inbox(self, state: str) -> list[Fields]:
        return [row for row in self.rows["inbox"].values() if row["state"] == state]

    # --- deciding

    def take(self) -> int:
        """A fresh row id: from the numbers kept ahead, else from beyond the stream's count as of `head`."""
        while self._numbers:
            first, last = self._numbers[0]
            if first < last:
                self._numbers[0] = (first + 1, last)
                return ids.row_id(self.stream, first + 1)
            self._numbers.popleft()
        self._beyond += 1
        return ids.row_id(self.stream, self._known_rows + self._beyond)

    def turn(self, now: float, *, locked: bool = False) -> tuple[Batch | None, bool]:
        """Decide: (what is to be recorded, whether there is more to decide). `locked`: nobody else can record meanwhile."""
        self._locked, self._wants_lock = locked, False
        turn = Turn(to_iso(now), "system", self.take)
        turn.drafts, self._kept = self._kept, []
        turn.frees, self._kept_frees = self._kept_frees, {}
        turn.wants, self._kept_wants = self._kept_wants, {}
        notes, self._notes = self._notes, []
        for event, data in notes:
            turn.record(event, **data)
        more = self.actor.decide(turn, now)
        self.woken = False
        if not (turn.drafts or turn.starts or turn.frees or turn.wants or self._wants_lock):
            return None, more
        ahead = sum(last - first for first, last in self._numbers)
        refill = REFILL if ahead < REFILL // 2 else 0
        self.busy = True
        return (
            Batch(
                self.stream, UNDECIDED if self._wants_lock else self.head, self.token, self._beyond + refill,
                turn.drafts, turn.frees, turn.starts, turn.wants,
            ),
            more,
        )  # fmt: skip

    def note(self, event: str, **data: Any) -> None:
        """An event that changes no row, recorded with the next turn."""
        self._notes.append((event, data))

    def discard(self, key: int) -> None:
        """The outcome of a call that is closed already tells nothing."""
        self.outcomes.pop(key, None)

    def consume(self, key: int) -> Outcome:
        """The outcome of a call, kept until what is decided about it is durable."""
        self._consumed.append(key)
        return self.outcomes[key]

    def unconsumed(self) -> Iterable[int]:
        """Keys of the calls whose outcomes wait for a decision."""
        if not self._consumed:
            return list(self.outcomes)
        done = set(self._consumed)
        return [key for key in self.outcomes if key not in done]

    def interrupt(self, key: int) -> None:
        """End a call's body once the decision to do so is durable."""
        self._interrupts.append(key)

    def interrupting(self) -> list[int]:
        """Keys of the calls that end once the batch under way is durable."""
        return self._interrupts

    def decides_of_all(self) -> None:
        """What this turn decides is about everything there is: it does not hold where others have recorded more meanwhile."""
        self._of_all = True

    def may_decide_of_all(self) -> bool:
        """Whether to do so now, or under the stream's lock, where the same is asked again.

        What others come before would have been decided in vain, and everything would have to be read anew; so where others
        record too, the lock is taken first.
        """
        self._wants_lock = self._came_second and not self._locked
        return not self._wants_lock

    # --- after a commit

    def written(self, batch: Batch) -> tuple[list[Call], list[int]]:
        """The batch is durable: (calls to begin, keys of calls to interrupt)."""
        self._came_second = self._came_second and not self._of_all
        self.busy = self._of_all = False
        self.head += len(batch.drafts) + sum(batch.admitted[device] for device in batch.starts)
        refill = batch.rows - self._beyond
        if refill:
            self._numbers.append((batch.rows_after - refill, batch.rows_after))
        self._known_rows, self._beyond = batch.rows_after, 0
        for key in self._consumed:
            self.outcomes.pop(key, None)
        self._consumed.clear()
        interrupts, self._interrupts = self._interrupts, []
        calls = self.work.settled(batch) if self.work is not None else []
        self.actor.settled()
        return calls, interrupts

    def has_recorded(self, batch: Batch) -> bool:
        """Whether a batch is written of which the connection was lost before the answer came; its last record shows it."""
        if batch.starts.keys() - batch.admitted.keys() or not (drafts := batch.written()):
            return False
        token = store().execute(cursor(), "SELECT token FROM agents_stream WHERE id = %s", (self.stream,)).fetchone()
        if token != (self.token,):
            return False
        events = events_since(self.stream, batch.head + len(drafts) - 1, 1)
        last = drafts[-1]
        return bool(events) and (events[0]["type"], events[0]["by"], events[0]["at"]) == (last.type, last.by, last.at)

    def forget(self) -> None:
        """What is in memory is worth nothing any more: everything is to be read anew."""
        self.busy, self.stale, self._taken_over = False, True, True

    def broke(self, error: Exception) -> bool:
        """Something here raised: forget what is in memory; False when there is nothing left to try."""
        self.forget()
        self._faults += 1
        self.fault = f"{type(error).__name__}: {error}"[:2000] if self._faults > 1 else ""
        return self._faults <= FAULTS

    def refused(self, batch: Batch) -> None:
        """Nothing of the batch is written: keep what still holds, or forget everything."""
        self.busy, self._came_second = False, True
        if self.work is not None:
            self.work.unsettled(batch)
        self._kept, self._kept_frees = batch.drafts, batch.frees
        self._kept_wants = {device: want for device, want in batch.wants.items() if not want.waiting}
        self.woken = True
        if self._beyond:
            self.stale = True
        self.follow()

    # --- foreign records

    def follow(self) -> None:
        """Read what others have recorded since `head` and take it up; sets `lost` or `stale` where that is not possible."""
        row = store().execute(cursor(), "SELECT head, rows, token FROM agents_stream WHERE id = %s", (self.stream,)).fetchone()
        if row is None or row[2] != self.token:
            self.lost = True
            return
        if row[0] == self.head or self.stale:
            return
        if self._of_all or row[0] - self.head > EVENTS_BEHIND:
            self.stale = True
            return
        events = self._between(self.head, row[0])
        if self._beyond or _touched(event["data"] for event in events) & _touched(draft.data for draft in self._kept):
            self.stale = True
            return
        self.head, self._known_rows = row[0], row[1]
        for event in events:
            self._absorb(event["data"])

    def _between(self, head: int, last: int) -> list[Fields]:
        events: list[Fields] = []
        while head < last:
            page = [event for event in events_since(self.stream, head) if event["seq"] <= last]
            events += page
            head = page[-1]["seq"]
        return events

    def _absorb(self, data: Fields) -> None:
        for name in ("session", "actor", "inbox"):
            for row in data.get("add", {}).get(name, ()):
                self.rows[name][str(row["id"])] = TABLES[name].whole(row)
            for key, fields in data.get("set", {}).get(name, {}).items():
                if key in self.rows[name]:
                    self.rows[name][key].update(fields)
        if self.work is not None:
            self.work.absorb(data)

    # --- waiting

    def is_idle(self) -> bool:
        """Nothing is under way and nothing is to be decided before `wake_at`."""
        return not (self.busy or self.outcomes or self._kept or (self.work is not None and self.work.running()))

    def wake_at(self) -> float | None:
        """When the session has something to decide by itself."""
        works = self.work is not None and self.actor.is_working()
        times = [self.actor.wake_at(), self.work.wake_at() if self.work is not None and works else None]
        return min((time for time in times if time is not None), default=None)

    def unused(self) -> tuple[int, int]:
        """The last of the row numbers kept ahead, to be given back."""
        return self._numbers[-1] if self._numbers else (self._known_rows, self._known_rows)

    def orphans(self) -> dict[int, int]:
        """Once after the lease was taken: calls that an earlier owner began and that have not ended (see `Work.running`)."""
        orphans = self.work.running() if self._taken_over and self.work is not None else {}
        self._taken_over = False
        return orphans


def _touched(changes: Iterable[Fields]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for data in changes:
        for table, rows in data.get("set", {}).items():
            found.update((table, key) for key in rows)
        for table, gone in data.get("del", {}).items():
            found.update((table, str(key)) for key in gone)
    return found
