"""The attempts of one constellation that crews work on: their beginning, their time, their wake-ups, their calls.

Which attempts these are is in assignments.py. What a crew's move means for others, their owner is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from agents.crews.crew import Crew
from agents.crews.load import load_crew
from agents.crews.members.assignment import slot_device_of
from agents.engine.bodies.outputs import durable_characters
from agents.streams.tables import TABLES, Fields, fold_rows
from agents.streams.turn import Turn
from agents.tools.calls import Call, Outcome
from constellations.runs.attempts.assignments import make_assignment
from constellations.runs.context import Context, Start

NO_NEWS = (False, "connected")
"""What nobody has to be woken for: a device that has enough of all and takes work."""
RECORDS = 256
"""Of crews in one turn of a session, beyond which the others wait for the next; one crew adds to it what its own turn takes."""


@dataclass(slots=True)
class CrewMove:
    """What a crew's move means for others: its attempt has ended, wants its slot back, or has given it back.

    `is_elsewhere`: the slot that it wants is of another device than before.
    """

    start: Start
    end: Outcome | None = None
    wants_slot: bool = False
    freed_device: int | None = None
    is_elsewhere: bool = False


class Crews:
    """By the ids of their attempts."""

    def __init__(self, context: Context):
        self._context = context
        self._crews: dict[int, tuple[Crew, Start]] = {}
        self._awake: dict[int, None] = {}
        self._bodies: dict[int, Crew] = {}
        self._timers: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._known: dict[int, tuple[bool, str]] = {}

    # `_awake`: those with something to decide; `_bodies`: by the keys of calls under way; `_since`: when each got its slot;
    # `_due`: of each the one of its timers that counts; `_known`: of each device whether it is low, and its state.

    def __contains__(self, attempt: int) -> bool:
        return attempt in self._crews

    def __bool__(self) -> bool:
        return bool(self._crews)

    # --- beginnings

    def begin(self, start: Start) -> None:
        """The attempt has its slot, for the first time or again, and that is durable."""
        key = start.attempt["id"]
        if key not in self._crews:
            start.agent = TABLES["agent"].whole(start.agent)
            start.attempt = TABLES["attempt"].whole(start.attempt)
            self._crews[key] = self._make_crew(start), start
        self._since.pop(key, None)
        self._awake[key] = None

    def load(self, start: Start) -> None:
        """From rows, after another runner began it."""
        key, crew = start.attempt["id"], self._make_crew(start)
        load_crew(crew, fold_rows)
        crew.printed = durable_characters(key)
        self._crews[key] = crew, start
        if crew.body is not None:
            self._bodies[crew.body] = crew
        self._awake[key] = None

    def _make_crew(self, start: Start) -> Crew:
        assert start.loop is not None
        return Crew(make_assignment(self._context, start), start.agent, TABLES["loop"].whole(start.loop))

    # --- driving

    def act(self, turn: Turn, now: float) -> Iterator[CrewMove]:
        """Every crew with something to decide goes on until it has to wait; whoever drives them follows each move at once."""
        self._wake_pressed()
        while (at := self.wake_at()) is not None and at <= now:
            _, key = heappop(self._timers)
            del self._due[key]
            self._awake[key] = None
        most = len(turn.events) + RECORDS
        while self._awake and len(turn.events) < most:
            key = next(iter(self._awake))
            del self._awake[key]
            if key in self._crews and (moved := self._act_one(turn, now, key)) is not None:
                yield moved

    def _act_one(self, turn: Turn, now: float, key: int) -> CrewMove | None:
        crew, start = self._crews[key]
        self._since.setdefault(key, now)
        time_ends, moved = self._time_ends(key, crew), None
        if time_ends is not None and now >= time_ends:
            self._interrupt(crew)
            crew.out_of_time(turn)
        else:
            crew.act(turn, now)
        if crew.body is not None:
            self._bodies[crew.body] = crew
        for told in crew.take_told():
            self._context.tell(*told)
        if crew.end is not None:
            if crew.attempt["holds_slot"]:
                self._count_time(crew, turn.ts)
            self._interrupt_left(crew)
            self._forget(key)
            return CrewMove(start, end=crew.end)
        if crew.more:
            self._awake[key] = None
        elif crew.wants_slot:
            freed = self._release(turn, crew) if crew.holds_slot_elsewhere else None
            moved = CrewMove(start, wants_slot=True, freed_device=freed, is_elsewhere=self._turn_to(turn, crew))
        elif crew.rests and (device := self._release(turn, crew)) is not None:
            moved = CrewMove(start, freed_device=device)
        times = [time for time in (crew.wake_at(), self._time_ends(key, crew)) if time is not None]
        if not times:
            self._due.pop(key, None)
        elif self._due.get(key) != min(times):
            self._due[key] = min(times)
            heappush(self._timers, (min(times), key))
        return moved

    def wake_all(self) -> None:
        self._awake.update(dict.fromkeys(self._crews))

    def _wake_pressed(self) -> None:
        """Devices that have become low, or are no more, concern every crew on them; so do those that come and go."""
        devices = self._context.devices.items() if self._crews else ()
        known = {key: (bool(row.get("low", "")), row["state"]) for key, row in devices}
        changed = {key for key, told in known.items() if told != self._known.get(key, NO_NEWS)}
        self._known = known or self._known
        for key, (crew, _) in self._crews.items() if changed else ():
            if changed & crew.devices:
                self._awake[key] = None

    # --- slots and time

    def _release(self, turn: Turn, crew: Crew) -> int | None:
        """It waits, for whatever: others may have its slot. Returns the device where it had one."""
        attempt = crew.attempt
        if not attempt["holds_slot"]:
            return None
        self._count_time(crew, turn.ts)
        fields = {"holds_slot": False, "ran_s": attempt["ran_s"]}
        turn.record("attempt_waits", attempt_id=attempt["id"], set={"attempt": {str(attempt["id"]): fields}})
        attempt["holds_slot"] = False
        return slot_device_of(attempt)

    def _turn_to(self, turn: Turn, crew: Crew) -> bool:
        """Say of which device the attempt wants a slot, where that is another one than before."""
        attempt, device = crew.attempt, crew.device
        if slot_device_of(attempt) == device:
            return False
        other = None if device == attempt["device_id"] else device
        turn.record("attempt_moves", attempt_id=attempt["id"], set={"attempt": {str(attempt["id"]): {"slot_device_id": other}}})
        attempt["slot_device_id"] = other
        return True

    def _count_time(self, crew: Crew, now: float) -> None:
        since = self._since.pop(crew.attempt["id"], now)
        crew.attempt["ran_s"] = round(crew.attempt["ran_s"] + max(0.0, now - since), 3)

    def _time_ends(self, key: int, crew: Crew) -> float | None:
        """When a task in steps has run for as long as it may; waiting does not count. One call has a time-out of its own."""
        if crew.assignment.plain or crew.assignment.timeout is None or not crew.attempt["holds_slot"]:
            return None
        return self._since[key] + crew.assignment.timeout - crew.attempt["ran_s"]

    def wake_at(self) -> float | None:
        """When a crew has something to decide by itself."""
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    @property
    def are_short(self) -> bool:
        """Whether one waits for its device to have enough of something."""
        return any(crew.is_short for crew, _ in self._crews.values())

    # --- calls

    def take(self, key: int, outcome: Outcome) -> bool:
        """A call has ended; False when it is none of a crew's."""
        crew = self._bodies.pop(key, None)
        if crew is None or crew.body != key:
            return False
        crew.take(outcome)
        self._awake[crew.attempt["id"]] = None
        return True

    def hear(self, key: int, kind: str, data: Mapping[str, Any]) -> None:
        """What a call under way tells; one that is none of a crew's has nobody to hear it."""
        crew = self._bodies.get(key)
        if crew is not None and crew.body == key:
            crew.hear(kind, data)
            self._awake[crew.attempt["id"]] = None

    def calls(self) -> list[Call]:
        """Those that may begin now that what was decided is durable."""
        found: list[Call] = []
        for crew in self._bodies.values():
            if crew.calls:
                found += crew.calls
                crew.calls = []
        return found

    def bodies(self) -> dict[int, int]:
        """Calls under way: key > attempt."""
        return {key: crew.attempt["id"] for key, crew in self._bodies.items()}

    # --- what others do

    def pause(self, turn: Turn) -> list[int]:
        """What runs ends; whoever has no call under way is frozen where it is. Returns the devices whose slots they give up."""
        self.record_ends(turn)
        devices = [self._release(turn, crew) for crew, _ in self._crews.values() if crew.body is None]
        return [device for device in devices if device is not None]

    def record_ends(self, turn: Turn) -> None:
        """While the runner ends: nothing that follows from the end of a call."""
        for key in self._awake:
            if key in self._crews:
                self._crews[key][0].record_end(turn)

    def cancel(self, turn: Turn, start: Start, reason: str, why: str) -> None:
        """End an attempt's agents, and what runs for it once that is durable. `why` is what their transitions say."""
        key = start.attempt["id"]
        crew, _ = self._crews[key]
        self._forget(key)
        self._interrupt(crew)
        crew.cancel(turn, reason, why)

    def _forget(self, key: int) -> None:
        del self._crews[key]
        self._due.pop(key, None)
        self._since.pop(key, None)

    def _interrupt(self, crew: Crew) -> None:
        """End the call under way once the decision to do so is durable."""
        if crew.body is not None:
            self._context.interrupt(crew.body)
            self._bodies.pop(crew.body, None)

    def _interrupt_left(self, crew: Crew) -> None:
        """A call that its agents have left under way ends with them."""
        for body in [body for body, each in self._bodies.items() if each is crew]:
            self._context.interrupt(body)
            del self._bodies[body]

    def apply_foreign(self, data: Fields) -> None:
        """Somebody has decided about an approval."""
        decided = data.get("set", {}).get("approval", {})
        for key, (crew, _) in self._crews.items() if decided else ():
            for approval in crew.waits_for():
                if fields := decided.get(str(approval["id"])):
                    approval.update(fields)
                    self._awake[key] = None

    def rule_on_loop(self, turn: Turn, ruling: Fields) -> bool:
        """Whether one of the agents here is the one that an arbiter has ruled on."""
        return any(crew.rule_on_loop(turn, ruling) for crew, _ in self._crews.values())

    def hint(self, turn: Turn, agent: int, text: str) -> bool:
        """A person's word to an agent with a model; whether one is here that takes it."""
        heard = [key for key, (crew, _) in self._crews.items() if crew.hint(turn, agent, text)]
        self._awake.update(dict.fromkeys(heard))
        return bool(heard)

    def go_on(self, turn: Turn, agent: int, identity: str) -> Start | None:
        """A person says "go on anyway"; the attempt whose agent it is."""
        for crew, start in self._crews.values():
            if crew.accept(turn, agent, identity):
                return start
        return None
