"""One session in the memory of the runner that owns it: what it was asked, its actor, the work in hand.

A drive decides in turns. What a turn decided becomes one batch; the drive waits until that batch is durable, and only
then does what follows from it. A foreign record that came first is read and taken up, and the decisions that it does not
touch are kept; where it touches them, the drive forgets everything and reads its rows again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agents.clock import to_iso
from agents.engine.drives.actor import ActorPart
from agents.engine.drives.ended import Ended
from agents.engine.drives.known import Known
from agents.engine.drives.numbers import RowNumbers
from agents.engine.drives.pending import Pending, Precedence
from agents.engine.drives.work import InHand, registered_handler
from agents.engine.leases import LeasedSession
from agents.streams.fold import consistent_read, events_since
from agents.streams.row_types import LiveDevices
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import Fields
from agents.streams.turn import Batch, Turn
from agents.tools.calls import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.gates.policies import Rule
    from agents.llm.profiles import Profile

FAULTS = 3
"""Bugs that one lease survives: after the first the session is read anew, after the others its actor ends in Error."""
LOADED_FAULTS = 2
"""After more the work in hand is not even read."""
EVENTS_BEHIND = 10_000
"""A session that missed more than this is read anew instead of followed."""
UNDECIDED = -2
"""The head of a batch that is to be decided under the stream's lock: no stream has it, so it is refused."""


class Drive:
    """A leased session. Only the runner's loop calls it, but for `hydrate`, which may run in a thread.

    Its parts: what was read (`known`), what is worked on (`hand`), which bodies have ended (`outcomes`), what is decided and
    not yet written (`pending`, `precedence`), and the lease's row numbers. To the work in hand it is an `OwnedSession`.

    `woken`: somebody asked for a look since the last turn, for example because a slot was granted. `busy`: a batch is under
    way. `is_new`: its rows were never read under this lease.
    """

    def __init__(
        self, leased: LeasedSession, devices: LiveDevices, policies: Sequence[Rule],
        profiles: Mapping[str, Profile], printed: Callable[[int], str],
    ):  # fmt: skip
        self.stream, self.token = leased.stream, leased.token
        self.devices, self.policies, self.profiles, self.printed = devices, policies, profiles, printed
        self.known = Known(leased.stream)
        self.hand = InHand()
        self.outcomes = Ended()
        self.pending = Pending()
        self.precedence = Precedence()
        self.numbers = RowNumbers(leased)
        self.actor = ActorPart(self, self.known, self.hand)
        self.busy = False
        self.draining = False
        self.woken = True
        self.is_new = True
        self.fault = ""
        self.retries = 0
        self._faults = 0
        self._taken_over = True

    # --- reading

    def hydrate(self) -> None:
        """Read what is open in the session: head, actor, inbox, agents, and the work in hand."""
        known = self.known
        with consistent_read():
            known.head, self.numbers.known = (
                current_store()
                .execute(raw_cursor(), "SELECT head, rows FROM agents_stream WHERE id = %s", (self.stream,))
                .fetchone()
            )
            known.read_open()
            running = known.interaction()
            loads = self._faults <= LOADED_FAULTS
            self.hand.work = registered_handler().load(self, running) if running is not None and loads else None
        self.pending.forget()
        self.outcomes.restore()
        self.numbers.beyond = 0
        self.precedence.of_all = False
        known.stale = False

    def read(self, table: str, where: str, *parameters: Any) -> list[Any]:
        """Rows of the fold, which are known from now on. Whoever reads them says which type of row they are."""
        return self.known.read(table, where, *parameters)

    # --- deciding

    def turn(self, now: float, *, locked: bool = False) -> tuple[Batch | None, bool]:
        """Decide: (what is to be recorded, whether there is more to decide). `locked`: nobody else can record meanwhile."""
        precedence = self.precedence
        precedence.begin(locked)
        turn = Turn(to_iso(now), "system", self.numbers.take)
        self.pending.move_into(turn)
        more = self.actor.decide(turn, now, self.fault)
        self.fault = ""
        self.woken = False
        if not (turn.events or turn.starts or turn.frees or turn.wants or precedence.wants_lock):
            return None, more
        self.busy = True
        head = UNDECIDED if precedence.wants_lock else self.known.head
        return (
            Batch(self.stream, head, self.token, self.numbers.wanted(), turn.events, turn.frees, turn.starts, turn.wants),
            more,
        )

    def interrupt(self, key: int) -> None:
        """End a call's body once the decision to do so is durable."""
        self.pending.interrupts.append(key)

    def tell(self, key: int, kind: str, data: Fields) -> None:
        """Tell a call under way what was decided, once that is durable."""
        self.pending.told.append((key, kind, data))

    def decides_of_all(self) -> None:
        """What this turn decides is about everything there is: it does not hold where others have recorded more meanwhile."""
        self.precedence.of_all = True

    def may_decide_of_all(self) -> bool:
        """Whether to do so now, or under the stream's lock, where the same is asked again.

        What others come before would have been decided in vain, and everything would have to be read anew; so where others
        record too, the lock is taken first.
        """
        return self.precedence.may_decide_of_all()

    # --- after a commit

    def written(self, batch: Batch) -> tuple[list[Call], list[int], list[tuple[int, str, Fields]]]:
        """The batch is durable: (calls to begin, keys of calls to interrupt, what calls under way are told)."""
        self.precedence.came_first()
        self.busy = False
        self.known.head += len(batch.events) + sum(batch.admitted[device] for device in batch.starts)
        self.numbers.settle(batch)
        self.outcomes.settle()
        interrupts, self.pending.interrupts = self.pending.interrupts, []
        told, self.pending.told = self.pending.told, []
        calls = self.hand.work.settled(batch) if self.hand.work is not None else []
        self.actor.settled()
        return calls, interrupts, told

    def has_recorded(self, batch: Batch) -> bool:
        """Whether a batch is written of which the connection was lost before the answer came; its last record shows it."""
        if batch.starts.keys() - batch.admitted.keys() or not (written := batch.written()):
            return False
        token = (
            current_store().execute(raw_cursor(), "SELECT token FROM agents_stream WHERE id = %s", (self.stream,)).fetchone()
        )
        if token != (self.token,):
            return False
        events = events_since(self.stream, batch.head + len(written) - 1, 1)
        last = written[-1]
        return bool(events) and (events[0]["type"], events[0]["by"], events[0]["at"]) == (last.type, last.by, last.at)

    def forget(self) -> None:
        """What is in memory is worth nothing any more: everything is to be read anew."""
        self.busy, self.known.stale, self._taken_over = False, True, True

    def broke(self, error: Exception) -> bool:
        """Something here raised: forget what is in memory; False when there is nothing left to try."""
        self.forget()
        self._faults += 1
        self.fault = f"{type(error).__name__}: {error}"[:2000] if self._faults > 1 else ""
        return self._faults <= FAULTS

    def refused(self, batch: Batch) -> None:
        """Nothing of the batch is written: keep what still holds, or forget everything."""
        self.busy = False
        self.precedence.came_second()
        if self.hand.work is not None:
            self.hand.work.unsettled(batch)
        self.pending.keep(batch)
        self.woken = True
        if self.numbers.beyond:
            self.known.stale = True
        self.follow()

    # --- foreign records

    def follow(self) -> None:
        """Read what others have recorded since `head` and take it up; sets `lost` or `stale` where that cannot be."""
        known = self.known
        row = (
            current_store()
            .execute(raw_cursor(), "SELECT head, rows, token FROM agents_stream WHERE id = %s", (self.stream,))
            .fetchone()
        )
        if row is None or row[2] != self.token:
            known.lost = True
            return
        head, rows, _ = row
        if head == known.head or known.stale:
            return
        if self.precedence.of_all or head - known.head > EVENTS_BEHIND:
            known.stale = True
            return
        events = self._between(known.head, head)
        if self.numbers.beyond or self.pending.is_touched_by(events):
            known.stale = True
            return
        known.head, self.numbers.known = head, rows
        for event in events:
            known.apply_foreign(event["data"])
            if self.hand.work is not None:
                self.hand.work.apply_foreign(event["data"])

    def _between(self, head: int, last: int) -> list[Fields]:
        events: list[Fields] = []
        while head < last:
            page = [event for event in events_since(self.stream, head) if event["seq"] <= last]
            events += page
            head = page[-1]["seq"]
        return events

    # --- waiting

    def is_idle(self) -> bool:
        """Nothing is under way and nothing is to be decided before `wake_at`."""
        work = self.hand.work
        return not (self.busy or self.outcomes or self.pending.kept or (work is not None and work.running()))

    def wake_at(self) -> float | None:
        """When the session has something to decide by itself."""
        work = self.hand.work
        works = work is not None and self.actor.is_working()
        times = [self.actor.wake_at(), work.wake_at() if work is not None and works else None]
        return min((time for time in times if time is not None), default=None)

    def orphans(self) -> dict[int, int]:
        """Once after the lease was taken: calls that an earlier owner began and that have not ended (see `Work.running`)."""
        orphans = self.hand.work.running() if self._taken_over and self.hand.work is not None else {}
        self._taken_over = False
        return orphans
