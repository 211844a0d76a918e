"""Ready tasks and the devices they run on: assignment, order, offers of starts (docs/engine.md, "Slots")."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from agents.crews.members.member import new_loop
from agents.machines import DEVICE_AGENT
from agents.streams.row_types import AgentRow, LiveDevice
from agents.streams.tables import Fields
from agents.streams.turn import Batch, PendingEvent, SlotDemand, Turn
from constellations.limits import SESSION_LIMIT
from constellations.live.row_types import AttemptRow, TaskRow
from constellations.live.rows import Node
from constellations.machines import TASK
from constellations.plan.fitting import device_fits
from constellations.plan.tasks import IN_WORDS
from constellations.runs.attempts.assignments import needs_crew
from constellations.runs.context import Context, Start

Place = tuple[int, float, int, Node]
"""In a heap: priority, length of the way to an end, age, the task."""


@dataclass(slots=True)
class SlotOffer:
    """A start, or the return of an attempt that waited, until it has its slot and its commit; only then memory changes."""

    place: Place
    start: Start
    type: str
    changes: Fields


class Dispatch:
    """Per device the ready tasks of one constellation, by priority, critical path, age."""

    def __init__(self, context: Context):
        self._context = context
        self._ready: dict[int, list[Place]] = {}
        self._homeless: dict[int, Node] = {}
        self._returning: dict[int, Start] = {}
        self._places: dict[int, int] = {}
        self._offers: dict[int, list[SlotOffer]] = {}
        self._held: dict[int, int] = {}
        self._queued: set[int] = set()
        self._age = 0

    # `_places`: of each ready task the age of its one place that counts; an edit may have left others in the heaps.
    # `_returning`: attempts that have waited, by their tasks; they want their slot back, on the device they are on.

    # --- who waits where

    def ready(self, node: Node) -> None:
        """`node` may start: it goes to its device's heap, or waits until some device fits it. One in words alone may not."""
        if node.row["tool"] == IN_WORDS:
            return
        device = self._device_for(node.row)
        self._age += 1
        self._places[node.row["id"]] = self._age
        if device is None:
            self._homeless[node.row["id"]] = node
            return
        self._homeless.pop(node.row["id"], None)
        heappush(self._ready.setdefault(device, []), (-node.row["priority"], -node.rank, self._age, node))

    def returns(self, start: Start) -> None:
        """An attempt has waited long enough: it goes on when it has a slot, before others of its priority."""
        row = start.node.row
        if row["id"] not in self._returning:
            self._age += 1
            self._returning[row["id"]], self._places[row["id"]] = start, self._age
            heap = self._ready.setdefault(row["device_id"], [])  # type: ignore[arg-type]  # it runs there
            heappush(heap, (-row["priority"], -inf, self._age, start.node))

    def forget(self, node: Node) -> None:
        """The attempt has ended, perhaps while it wanted its slot back."""
        self._returning.pop(node.row["id"], None)
        self._places.pop(node.row["id"], None)

    def _device_for(self, task: TaskRow) -> int | None:
        """The named device if it takes work; else of those that fit the least loaded."""

        def load(device: LiveDevice) -> tuple[float, str]:
            waiting = len(self._ready.get(device["id"], ()))
            return (device["used"] + waiting) / device["max_concurrent"], device["name"]

        rows = self._context.devices.values()
        fitting = [row for row in rows if row["state"] == "ONLINE" and device_fits(row["name"], row, task)]
        return min(fitting, key=load)["id"] if fitting else None

    def _house(self) -> None:
        """Tasks without a device may have one now; those of a device that takes no work any more have none."""
        devices = self._context.devices
        gone = [device for device, heap in self._ready.items() if heap and devices[device]["state"] != "ONLINE"]
        gone = [device for device in gone if any(self._may_move(place) for place in self._ready[device])]
        homeless = [node for node in self._homeless.values() if self._is_ready(node)]
        self._homeless.clear()
        for device in gone:
            homeless += [place[-1] for place in self._ready[device] if self._may_move(place)]
            self._ready[device] = [place for place in self._ready[device] if place[-1].row["id"] in self._returning]
        for node in homeless:
            self.ready(node)

    def _may_move(self, place: Place) -> bool:
        """Whether what is ready could be so on another device: what has begun stays where it is."""
        return self._startable(place) and place[-1].row["id"] not in self._returning

    @property
    def waits_for_a_device(self) -> bool:
        return bool(self._homeless)

    # --- starting

    def offer(self, turn: Turn, budget: int, *, draining: bool, paused: bool, woken: bool) -> bool:
        """Offer starts as far as budget and slots seem to go; True when more could start at once.

        `paused`: only what has begun gets its slot back. `woken`: somebody asked for a look since the last turn.
        """
        self._house()
        if draining:
            return False
        if paused:
            return self._offer_returns(turn, budget, woken)
        more = False
        for device, heap in self._ready.items():
            while heap and not self._startable(heap[0]):  # an edit may have blocked, moved or removed what was ready
                heappop(heap)
            if (heap and self._context.devices[device]["state"] == "ONLINE") or device in self._queued:
                more |= self._offer_on(turn, device, heap, budget, woken)
        return more

    def _offer_returns(self, turn: Turn, budget: int, woken: bool) -> bool:
        more = False
        for device, heap in self._ready.items():
            back = sorted(place for place in heap if place[-1].row["id"] in self._returning and self._startable(place))
            if back or device in self._queued:
                self._ready[device] = sorted(place for place in heap if place not in back)
                more |= self._offer_on(turn, device, back, budget, woken)
                for place in back:
                    heappush(self._ready[device], place)
        return more

    def _startable(self, place: Place) -> bool:
        return self._places.get(place[-1].row["id"]) == place[2] and self._is_ready(place[-1])

    def _is_ready(self, node: Node) -> bool:
        live = self._context.live
        waits = node.row["state"] == "PENDING" and node.row["tool"] != IN_WORDS
        begins = waits or node.row["id"] in self._returning
        return begins and live is not None and live.nodes.get(node.key) is node

    def _offer_on(self, turn: Turn, device: int, heap: list[Place], budget: int, woken: bool) -> bool:
        """Starts for the slots that seem free; where others hold the rest, a place in the queue.

        With nothing free one start is tried when the session is new to the queue or was woken: slots may be granted.
        """
        row, held, freed = self._context.devices[device], self._held.get(device, 0), turn.frees.get(device, 0)
        free, others = row["max_concurrent"] - row["used"] + freed, row["used"] - freed - held
        knock = others > 0 and (device not in self._queued or woken)
        room = min(budget, SESSION_LIMIT - sum(self._held.values()))
        count = min(len(heap), max(free, int(knock)), room)
        waiting = len(heap) - count if others > 0 else 0
        offers, left = self._offers.setdefault(device, []), count
        while left > 0 and heap:
            place = heappop(heap)
            if self._startable(place):
                offers.append(self._offer_place(turn, device, place))
                left -= 1
        if offers:
            turn.starts[device] = [PendingEvent(offer.type, offer.changes, turn.by, turn.at) for offer in offers]
        if (device in self._queued and (count or freed or not waiting or knock)) or (waiting and count >= free and knock):
            turn.wants[device] = SlotDemand(waiting, -heap[0][0] if heap else 0, held)
        return bool(heap) and count < free

    def _offer_place(self, turn: Turn, device: int, place: Place) -> SlotOffer:
        """The record of a start: the task's transition, the new attempt, the new device agent, in one event."""
        node: Node = place[-1]
        context, row = self._context, node.row
        if returning := self._returning.get(row["id"]):
            key = returning.attempt["id"]
            told = {"attempt_id": key, "task_id": node.key, "set": {"attempt": {str(key): {"holds_slot": True}}}}
            return SlotOffer(place, returning, "attempt_resumed", told)
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
        return SlotOffer(place, Start(node, agent, attempt, loop), "state_changed", told)

    # --- after the commit

    def settled(self, batch: Batch) -> list[Start]:
        """Starts and returns that are durable now; the others are ready as before."""
        begun: list[Start] = []
        for device, offers in self._offers.items():
            admitted = batch.admitted.get(device, 0)
            for offer in offers[:admitted]:
                start, row = offer.start, offer.start.node.row
                self._places.pop(row["id"], None)
                if self._returning.pop(row["id"], None) is not None:
                    start.attempt["holds_slot"] = True
                else:
                    row.update(offer.changes["set"]["task"][str(row["id"])])
                    start.agent["reason"] = ""
                begun.append(start)
            for offer in offers[admitted:]:
                heappush(self._ready.setdefault(device, []), offer.place)
            self._held[device] = self._held.get(device, 0) + admitted
        self._offers.clear()
        for device in batch.admitted:
            (self._queued.add if device in batch.queued else self._queued.discard)(device)
        return begun

    def unsettled(self) -> None:
        for device, offers in self._offers.items():
            for offer in offers:
                heappush(self._ready.setdefault(device, []), offer.place)
        self._offers.clear()

    def holds(self, device: int) -> None:
        """An attempt was found running there when the session was taken over."""
        self._held[device] = self._held.get(device, 0) + 1

    def queues(self, device: int) -> None:
        """The session was found in that device's queue; it looks there again, or leaves it."""
        self._queued.add(device)
        self._ready.setdefault(device, [])

    def free(self, turn: Turn, device: int) -> None:
        """An attempt gives its slot back, with the turn that records it."""
        turn.frees[device] = turn.frees.get(device, 0) + 1
        self._held[device] = max(self._held.get(device, 0) - 1, 0)

    def leave_queues(self, turn: Turn) -> None:
        """The session wants nothing any more: its places, and what was granted to it, go to the next."""
        for device in self._queued:
            turn.wants[device] = SlotDemand()
