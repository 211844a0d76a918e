"""Ready tasks and the devices they run on: order, choice, offers of starts, places in queues (docs/engine.md, "Slots").

A task waits by what it wishes for, and gets its device when a slot there seems free: so none waits for one device while another
stands idle, and a device that is lost, drained or added changes nothing for those that wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf

from django.conf import settings

from agents.crews.members.assignment import slot_device_of
from agents.crews.members.member import new_loop
from agents.machines import DEVICE_AGENT
from agents.streams.row_types import AgentRow
from agents.streams.tables import Fields
from agents.streams.turn import Batch, PendingEvent, SlotDemand, Turn
from constellations.assignment.candidates import Candidate, SessionFacts
from constellations.assignment.strategies import choose_device, find_strategy
from constellations.assignment.wishes import Wish, why_not, wish_of
from constellations.live.row_types import AttemptRow
from constellations.live.rows import Node
from constellations.machines import TASK
from constellations.plan.tasks import IN_WORDS
from constellations.runs.attempts.assignments import needs_crew
from constellations.runs.attempts.slots import SessionSlots, granted_slots
from constellations.runs.context import Context, Start

CONNECTED = "connected"
"""The state of a device that takes new work."""
NEW_QUEUES = 16
"""Queues that a session joins in one turn at most."""
Place = tuple[int, float, int, Node]
"""In a heap: priority, length of the way to an end, age, the task."""


@dataclass(slots=True, eq=False)
class Line:
    """Those that wait for a slot by one wish; or to go on with what they have begun on one device, which have none."""

    wish: Wish | None = None
    device: int = 0
    heap: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class SlotOffer:
    """A start, or the return of an attempt that waited, until it has its slot and its commit; only then memory changes."""

    line: Line
    place: Place
    start: Start
    type: str
    changes: Fields


class Dispatch:
    """The ready tasks of one constellation in lines, each by priority, critical path, age; and the slots that it has."""

    def __init__(self, context: Context):
        self._context = context
        self._lines: dict[Wish, Line] = {}
        self._back: dict[int, Line] = {}
        self._returning: dict[int, Start] = {}
        self._places: dict[int, int] = {}
        self._offers: dict[int, list[SlotOffer]] = {}
        self._held: dict[int, int] = {}
        self._queued: dict[int, int] = {}
        self._fits: tuple[int, dict[Wish, list[int]]] = -1, {}
        self._age = 0
        self.waits_for_a_device = self.waits_beside_a_queue = False

    # `_places`: of each ready task the age of its one place that counts; an edit may have left others in the heaps.
    # `_returning`: attempts that have waited, by their tasks; they want their slot back, on the device they work on: `_back`.
    # `_queued`: devices in whose queues the session is, and the priority it has there. `_fits`: devices that come into question
    # for a wish, as of a version of the devices. `waits_beside_a_queue`: other devices than those it queues for may do, too.

    # --- who waits

    def ready(self, node: Node) -> None:
        """`node` may start: it waits with those that wish for the same. One in words alone may not."""
        row = node.row
        if row["tool"] == IN_WORDS:
            return
        wish = wish_of(row)
        line = self._lines.get(wish) or self._lines.setdefault(wish, Line(wish))
        self._join(line, node, node.rank)

    def returns(self, start: Start) -> None:
        """An attempt has waited long enough: it goes on when it has a slot, before others of its priority.

        That is a slot of the device where the agent works whose turn it is.
        """
        row, device = start.node.row, slot_device_of(start.attempt)
        if row["id"] not in self._returning:
            self._returning[row["id"]] = start
            self._join(self._back.setdefault(device, Line(device=device)), start.node, inf)

    def _join(self, line: Line, node: Node, rank: float) -> None:
        self._age += 1
        self._places[node.row["id"]] = self._age
        heappush(line.heap, (-node.row["priority"], -rank, self._age, node))

    def forget(self, node: Node) -> None:
        """The attempt has ended, perhaps while it wanted its slot back."""
        self._returning.pop(node.row["id"], None)
        self._places.pop(node.row["id"], None)

    def _waiting_lines(self, paused: bool) -> list[Line]:
        """Lines in which somebody waits; an edit may have blocked, moved or removed what was ready."""
        lines = [] if paused else [line for line in self._lines.values() if self._first_of(line)]
        return lines + [line for line in self._back.values() if self._first_of(line)]

    def _first_of(self, line: Line) -> Place | None:
        """The first in a line, once those are out that do not wait there any more."""
        while line.heap and not self._startable(line.heap[0]):
            heappop(line.heap)
        return line.heap[0] if line.heap else None

    def _startable(self, place: Place) -> bool:
        return self._places.get(place[-1].row["id"]) == place[2] and self._is_ready(place[-1])

    def _is_ready(self, node: Node) -> bool:
        live = self._context.live
        waits = node.row["state"] == "PENDING" and node.row["tool"] != IN_WORDS
        begins = waits or node.row["id"] in self._returning
        return begins and live is not None and live.nodes.get(node.key) is node

    # --- which device

    def _devices_for(self, line: Line) -> list[int]:
        """Devices that take work and come into question for a line, by the rows as they are now."""
        devices = self._context.devices
        if line.wish is None:
            return [line.device] if devices[line.device]["state"] == CONNECTED else []
        if self._fits[0] != devices.version:
            self._fits = devices.version, {}
        known = self._fits[1]
        if line.wish not in known:
            named, owner = line.wish.wanted_device, self._context.session["owner_id"]
            found = devices.named(named) if named else None
            rows = ([found] if found else []) if named else devices.values()
            fitting = (row for row in rows if row["state"] == CONNECTED and not why_not(row, line.wish, row["users"], owner))
            known[line.wish] = [row["id"] for row in fitting]
        return known[line.wish]

    def _choose(self, candidates: list[Candidate], node: Node, slots: SessionSlots) -> Candidate:
        name = self._context.constellation.get("assignment") or settings.ASSIGNMENT
        context = self._context
        facts = SessionFacts(context.stream, context.session["owner_id"], slots.running, slots.limit)
        return choose_device(find_strategy(name), candidates, node.row, facts)

    # --- starting

    def offer(self, turn: Turn, budget: int, *, draining: bool, paused: bool, woken: bool) -> bool:
        """Offer starts as far as budget, limit and slots seem to go; True when more could start at once.

        `paused`: only what has begun gets its slot back. `woken`: somebody asked for a look since the last turn.
        """
        self.waits_for_a_device = self.waits_beside_a_queue = False
        if draining:
            return False
        lines = self._waiting_lines(paused)
        if not (lines or self._queued):
            return False
        granted = granted_slots(self._context.stream) if woken and self._queued else {}
        slots = SessionSlots(self._context, turn.frees, self._held, granted)
        more, left = self._offer_starts(turn, slots, lines, budget)
        self._say_demands(turn, self._join_queues(turn, slots, left))
        for device, offers in self._offers.items():
            turn.starts[device] = [PendingEvent(offer.type, offer.changes, turn.by, turn.at) for offer in offers]
        return more

    def _offer_starts(self, turn: Turn, slots: SessionSlots, lines: list[Line], budget: int) -> tuple[bool, list[Line]]:
        """Offer the first of all lines a free slot, one after the other: whether more could have one, and who is left."""
        firsts: list[tuple[Place, Line]] = [(line.heap[0], line) for line in lines]
        heapify(firsts)
        left: list[Line] = []
        while firsts and slots.room > 0 and budget > 0:
            place, line = heappop(firsts)
            free = [each for key in self._devices_for(line) if (each := slots.candidate(key)).taken < each.slots]
            if not free:
                left.append(line)
                continue
            self._offer_first(turn, slots, line, self._choose(free, place[-1], slots))
            budget -= 1
            if (first := self._first_of(line)) is not None:
                heappush(firsts, (first, line))
        return bool(firsts) and slots.room > 0, left + [line for _, line in firsts]

    def _offer_first(self, turn: Turn, slots: SessionSlots, line: Line, device: Candidate) -> None:
        """Offer the first of a line a slot of a device."""
        slots.take(device)
        self._offers.setdefault(device.id, []).append(self._offer_place(turn, device.id, line, heappop(line.heap)))

    def _join_queues(self, turn: Turn, slots: SessionSlots, lines: list[Line]) -> dict[int, SlotDemand]:
        """What those who found no slot want of full devices where others hold some, best placed first."""
        demands: dict[int, SlotDemand] = {}
        for line in sorted(lines, key=lambda line: line.heap[0]):
            devices = self._devices_for(line)
            # Who has begun is told when its device is back; only who may go anywhere has to look.
            self.waits_for_a_device |= line.wish is not None and not devices
            self.waits_beside_a_queue |= len(devices) > 1 and slots.room > 0
            waiting = min(len(line.heap), slots.room)
            for device in self._full_devices(line, devices, slots):
                if waiting <= 0:
                    break
                waiting -= self._ask_for(turn, slots, line, device, waiting, demands)
        return demands

    def _full_devices(self, line: Line, keys: list[int], slots: SessionSlots) -> Iterator[Candidate]:
        """Those in whose queues the session is, then the others as its strategy would take them, NEW_QUEUES at most."""
        full = [each for key in keys if (each := slots.candidate(key)).taken >= each.slots and slots.others(key) > 0]
        yield from (each for each in full if each.id in self._queued)
        rest = [each for each in full if each.id not in self._queued]
        for _ in range(NEW_QUEUES):
            if not (rest and line.heap):
                return
            chosen = self._choose(rest, line.heap[0][-1], slots)
            rest = [each for each in rest if each is not chosen]
            yield chosen

    def _ask_for(
        self, turn: Turn, slots: SessionSlots, line: Line, device: Candidate, most: int, demands: dict[int, SlotDemand]
    ) -> int:  # fmt: skip
        """Ask for slots of a full device, at most as many as it has: for how many of a line.

        Whoever joins a queue tries one start: the rows may say by now that there is room.
        """
        is_new = device.id not in self._queued and device.id not in demands and device.id not in self._offers
        held = self._held.get(device.id, 0)
        demand = demands.setdefault(device.id, SlotDemand(0, -line.heap[0][0], held))
        share = min(most, device.slots - device.mine - demand.waiting)
        if share <= 0:
            return 0
        if is_new:
            self._offer_first(turn, slots, line, device)
            self._first_of(line)
        demand.waiting += share - is_new
        slots.room -= share - is_new
        return share

    def _say_demands(self, turn: Turn, demands: dict[int, SlotDemand]) -> None:
        """Say to the queues what has changed: who joins, who leaves, who takes or gives back slots, who is more urgent now."""
        for device in {*self._queued, *demands}:
            demand = demands.get(device) or SlotDemand(0, 0, self._held.get(device, 0))
            # What starts now ranks with the session, too: else two sessions pass a slot to each other and neither takes it.
            starts = [-offer.place[0] for offer in self._offers.get(device, ())]
            demand.priority = max([demand.priority, *starts])
            known = self._queued.get(device)
            moves = device in self._offers or device in turn.frees
            if known is None or moves or not demand.waiting or demand.priority > known:
                turn.wants[device] = demand

    def _offer_place(self, turn: Turn, device: int, line: Line, place: Place) -> SlotOffer:
        """The record of a start: the task's transition, the new attempt, the new device agent, in one event."""
        node: Node = place[-1]
        context, row = self._context, node.row
        if returning := self._returning.get(row["id"]):
            key = returning.attempt["id"]
            told = {"attempt_id": key, "task_id": node.key, "set": {"attempt": {str(key): {"holds_slot": True}}}}
            return SlotOffer(line, place, returning, "attempt_resumed", told)
        profile = context.devices[device]
        agent: AgentRow = {  # type: ignore[typeddict-item]  # no more than its event says
            "id": turn.take(), "session_id": context.stream, "interaction_id": context.interaction["id"],
            "parent_id": context.agent["id"], "machine": DEVICE_AGENT.name,
            "name": f"{row['task_id']} on {profile['name']}"[:200],
            "platform": profile["platform"], "device_id": device, "state": DEVICE_AGENT.initial,
            "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        attempt: AttemptRow = {  # type: ignore[typeddict-item]  # the same
            "id": turn.take(), "task_id": row["id"], "number": row["attempt"] + 1, "agent_id": agent["id"],
            "device_id": device, "fence": context.token, "started_at": turn.at,
        }  # fmt: skip
        before = row.copy()
        told, changes = turn.step(TASK, before, "start", attempt=attempt["number"], device_id=device, started_at=turn.at)
        told["set"] = {"task": {str(row["id"]): changes}}
        add: Fields = {"agent": [agent], "attempt": [attempt]}
        told["add"] = add
        loop = new_loop(turn, agent["id"]) if needs_crew(context, row, profile) else None
        if loop is not None:
            add["loop"] = [loop]
        return SlotOffer(line, place, Start(node, agent, attempt, loop), "state_changed", told)

    # --- after the commit

    def settled(self, batch: Batch) -> list[Start]:
        """Starts and returns that are durable now; the others are ready as before."""
        begun: list[Start] = []
        for device, offers in self._offers.items():
            admitted = batch.admitted.get(device, 0)
            begun += [self._admit(offer) for offer in offers[:admitted]]
            for offer in offers[admitted:]:
                heappush(offer.line.heap, offer.place)
            self._held[device] = self._held.get(device, 0) + admitted
        self._offers.clear()
        for device in batch.admitted:
            if device in batch.queued:
                self._queued[device] = batch.wants[device].priority if device in batch.wants else self._queued.get(device, 0)
            else:
                self._queued.pop(device, None)
        return begun

    def _admit(self, offer: SlotOffer) -> Start:
        start, row = offer.start, offer.start.node.row
        self._places.pop(row["id"], None)
        if self._returning.pop(row["id"], None) is not None:
            start.attempt["holds_slot"] = True
        else:
            row.update(offer.changes["set"]["task"][str(row["id"])])
            start.agent["reason"] = ""
        return start

    def unsettled(self) -> None:
        """Nothing of the batch is written: whoever had an offer waits as before."""
        for offers in self._offers.values():
            for offer in offers:
                heappush(offer.line.heap, offer.place)
        self._offers.clear()

    def holds(self, device: int) -> None:
        """An attempt was found running there when the session was taken over."""
        self._held[device] = self._held.get(device, 0) + 1

    def queues(self, device: int) -> None:
        """The session was found in that device's queue; it looks there again, or leaves it."""
        self._queued.setdefault(device, 0)

    def free(self, turn: Turn, device: int) -> None:
        """An attempt gives its slot back, with the turn that records it."""
        turn.frees[device] = turn.frees.get(device, 0) + 1
        self._held[device] = max(self._held.get(device, 0) - 1, 0)

    def leave_queues(self, turn: Turn) -> None:
        """The session wants nothing any more: its places, and what was granted to it, go to the next."""
        for device in self._queued:
            turn.wants[device] = SlotDemand()
