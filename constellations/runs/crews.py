"""The attempts of one constellation that crews work on: their beginning, their slots, their wake-ups, their ends.

An attempt is worked on by a crew (agents.crews) when its task is in steps, waits for a person's approval, or makes a call that
a policy has something to say about. Every other attempt is one plain call.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from django.conf import settings

from agents.crews import load as reading
from agents.crews.crew import Crew
from agents.crews.member import Scene
from agents.crews.script import call_of
from agents.engine.outputs import durable
from agents.gates.judging import act_on
from agents.gates.policies import Judgement, Site, concerns, judge
from agents.progress.settings import Settings
from agents.streams.tables import TABLES, Fields, fold_rows
from agents.streams.turn import Turn
from agents.tools.calls import Call, Outcome
from agents.tools.catalogue import PATHS
from constellations import conditions
from constellations.plan.script import calls_of, rule_of, script_of
from constellations.plan.tasks import STEPS
from constellations.runs.placing import Start

if TYPE_CHECKING:
    from constellations.runs.run import ConstellationWork

RECORDS = 256
"""Of crews in one turn of a session, beyond which the others wait for the next; one crew adds to it what its own turn takes."""


class Crews:
    """By the ids of their attempts."""

    def __init__(self, work: ConstellationWork):
        self._work = work
        self._crews: dict[int, tuple[Crew, Start]] = {}
        self._awake: dict[int, None] = {}
        self._bodies: dict[int, Crew] = {}
        self._timers: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._low: dict[int, str] = {}

    # `_awake`: those with something to decide; `_bodies`: by the keys of calls under way; `_since`: when each got its slot;
    # `_due`: of each the one of its timers that counts.

    def __contains__(self, attempt: int) -> bool:
        return attempt in self._crews

    def __bool__(self) -> bool:
        return bool(self._crews)

    # --- who needs one

    def wanted(self, task: Fields, device: Fields) -> bool:
        """Whether a task is more than one plain call."""
        if task["tool"] == STEPS or task["confirm"]:
            return True
        if not (self._work.drive.policies or task["policies"]):
            return False
        return self._binds(task, device) or self._judged(task, task["tool"], task["arguments"], device).decision != "allow"

    def _binds(self, task: Fields, device: Fields) -> bool:
        """Whether a path is judged, so that the call has to be held to where it led."""
        if task["tool"] not in PATHS:
            return False
        rules, site = [*self._work.drive.policies, *map(rule_of, task["policies"])], Site.of(device)
        return any(rule.pattern and concerns(rule, task["tool"], site) for rule in rules)

    def _judged(self, task: Fields, tool: str, arguments: Mapping[str, Any], device: Fields, writes: str = "") -> Judgement:
        own = [rule_of(row) for row in task["policies"]]
        return judge(self._work.drive.policies, own, act_on(device, tool, arguments, writes), Site.of(device))

    def _is_gated(self, task: Fields, device: Fields) -> bool:
        """Whether a person is asked before anything is done: the plan says so, or a policy calls one of its calls critical."""
        if task["confirm"]:
            return True
        steps = calls_of(script_of(task))
        judged = [self._judged(task, *call_of(step), device, step.get("writes", "")) for step in steps]
        return any(each.decision == "ask" and each.critical for each in judged)

    def _scene(self, start: Start) -> Scene:
        task, drive = start.node.row, self._work.drive
        device = drive.devices[start.attempt["device_id"]]
        return Scene(
            stream=drive.stream, interaction=self._work.interaction["id"], device=device, task=task["id"],
            title=task["name"] or task["task_id"], scope=self._work.scope, inherits=self._work.inherits, script=script_of(task),
            plain=task["tool"] != STEPS, gate=self._is_gated(task, device), timeout=task["timeout"], on_lost=task["on_lost"],
            settings=Settings.of({**settings.PROGRESS, **task["progress"]}),
            accepted=task["accepted"], own=[rule_of(row) for row in task["policies"]],
            rules=lambda: drive.policies, holds=holds,
        )  # fmt: skip

    # --- beginnings

    def begin(self, start: Start) -> None:
        """The attempt has its slot, for the first time or again, and that is durable."""
        key = start.attempt["id"]
        if key not in self._crews:
            start.agent = TABLES["agent"].whole(start.agent)
            start.attempt = TABLES["attempt"].whole(start.attempt)
            self._crews[key] = self._crew(start), start
        self._since.pop(key, None)
        self._awake[key] = None

    def _crew(self, start: Start) -> Crew:
        assert start.loop is not None
        return Crew(self._scene(start), start.attempt, start.agent, TABLES["loop"].whole(start.loop))

    def load(self, start: Start) -> None:
        """From rows, after another runner began it."""
        key, crew = start.attempt["id"], self._crew(start)
        reading.load(crew, fold_rows)
        crew.printed = durable(key)
        self._crews[key] = crew, start
        if crew.body is not None:
            self._bodies[crew.body] = crew
        self._awake[key] = None

    # --- driving

    def act(self, turn: Turn, now: float) -> None:
        """Every crew with something to decide goes on until it has to wait."""
        self._feel_pressure()
        while (at := self.wake_at()) is not None and at <= now:
            _, key = heappop(self._timers)
            del self._due[key]
            self._awake[key] = None
        most = len(turn.drafts) + RECORDS
        while self._awake and len(turn.drafts) < most:
            key = next(iter(self._awake))
            del self._awake[key]
            if key in self._crews:
                self._act_one(turn, now, key, *self._crews[key])

    def _act_one(self, turn: Turn, now: float, key: int, crew: Crew, start: Start) -> None:
        self._since.setdefault(key, now)
        if self._is_out_of_time(key, crew, now):
            self._interrupt(crew)
            crew.out_of_time(turn)
        else:
            crew.act(turn, now)
        self._note_body(crew)
        if crew.end is not None:
            self._ended(turn, now, key, crew, start)
        elif crew.more:
            self._awake[key] = None
        elif crew.wants_slot:
            self._work.dispatch.returns(start)
        elif crew.rests:
            self._release(turn, crew)
        self._set_timer(key, crew)

    def _note_body(self, crew: Crew) -> None:
        if crew.body is not None:
            self._bodies[crew.body] = crew

    def _ended(self, turn: Turn, now: float, key: int, crew: Crew, start: Start) -> None:
        assert crew.end is not None
        self._forget(key, start)
        if crew.attempt["holds_slot"]:
            self._count_time(crew, turn.ts)
        self._since.pop(key, None)
        self._work.ends.attempt(turn, now, start, crew.end)

    def wake_all(self) -> None:
        self._awake.update(dict.fromkeys(self._crews))

    def _feel_pressure(self) -> None:
        """Devices that have become low, or are no more, concern every crew on them."""
        low = {key: row.get("low", "") for key, row in self._work.drive.devices.items()} if self._crews else self._low
        changed = {key for key, reason in low.items() if bool(reason) != bool(self._low.get(key))}
        self._low = low
        for key, (_, start) in self._crews.items() if changed else ():
            if start.attempt["device_id"] in changed:
                self._awake[key] = None

    # --- slots and time

    def _release(self, turn: Turn, crew: Crew) -> None:
        """It waits, for whatever: others may have its slot."""
        attempt = crew.attempt
        if not attempt["holds_slot"]:
            return
        self._count_time(crew, turn.ts)
        fields = {"holds_slot": False, "ran_s": attempt["ran_s"]}
        turn.record("attempt_waits", attempt_id=attempt["id"], set={"attempt": {str(attempt["id"]): fields}})
        attempt["holds_slot"] = False
        self._work.ends.free_slot(turn, attempt)

    def _count_time(self, crew: Crew, now: float) -> None:
        since = self._since.pop(crew.attempt["id"], now)
        crew.attempt["ran_s"] = round(crew.attempt["ran_s"] + max(0.0, now - since), 3)

    def _time_ends(self, key: int, crew: Crew) -> float | None:
        """When a task in steps has run for as long as it may; waiting does not count. One call has a time-out of its own."""
        if crew.scene.plain or crew.scene.timeout is None or not crew.attempt["holds_slot"]:
            return None
        return self._since[key] + crew.scene.timeout - crew.attempt["ran_s"]

    def _is_out_of_time(self, key: int, crew: Crew, now: float) -> bool:
        ends = self._time_ends(key, crew)
        return ends is not None and now >= ends

    def _set_timer(self, key: int, crew: Crew) -> None:
        if key not in self._crews:
            return
        times = [time for time in (crew.wake_at(), self._time_ends(key, crew)) if time is not None]
        if not times:
            self._due.pop(key, None)
        elif self._due.get(key) != min(times):
            self._due[key] = min(times)
            heappush(self._timers, (min(times), key))

    def wake_at(self) -> float | None:
        """When a crew has something to decide by itself; while the runner ends, nothing is."""
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heappop(self._timers)
        return self._timers[0][0] if self._timers and not self._work.drive.draining else None

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

    def pause(self, turn: Turn) -> None:
        """What runs ends; whoever has no call under way is frozen where it is, and gives up its slot."""
        for key in list(self._awake):
            if key in self._crews:
                self._crews[key][0].record_end(turn)
        for crew, _ in self._crews.values():
            if crew.body is None:
                self._release(turn, crew)

    def record_ends(self, turn: Turn) -> None:
        """While the runner ends: nothing that follows from the end of a call."""
        for key in self._awake:
            if key in self._crews:
                self._crews[key][0].record_end(turn)

    def cancel(self, turn: Turn, start: Start, reason: str, why: str = "cancelled") -> None:
        """End an attempt's agents, and what runs for it once that is durable. `why` is what their transitions say."""
        crew, _ = self._crews[start.attempt["id"]]
        self._forget(start.attempt["id"], start)
        self._since.pop(start.attempt["id"], None)
        self._interrupt(crew)
        crew.cancel(turn, reason, why)

    def _forget(self, key: int, start: Start) -> None:
        del self._crews[key]
        self._due.pop(key, None)
        self._work.dispatch.forget(start.node)

    def _interrupt(self, crew: Crew) -> None:
        """End the call under way once the decision to do so is durable."""
        if crew.body is not None:
            self._work.drive.interrupt(crew.body)
            self._bodies.pop(crew.body, None)

    def absorb(self, data: Fields) -> None:
        """Somebody has decided about an approval."""
        decided = data.get("set", {}).get("approval", {})
        for key, (crew, _) in self._crews.items() if decided else ():
            for approval in crew.waits_for():
                if fields := decided.get(str(approval["id"])):
                    approval.update(fields)
                    self._awake[key] = None

    def go_on(self, turn: Turn, agent: int, identity: str) -> Start | None:
        """A person says "go on anyway"; the attempt whose agent it is."""
        for crew, start in self._crews.values():
            if crew.accept(turn, agent, identity):
                return start
        return None

    def start_of(self, task: int) -> Start | None:
        """The attempt of a task that a crew works on."""
        return next((start for _, start in self._crews.values() if start.node.row["id"] == task), None)


def holds(condition: str, value: Any) -> bool:
    return conditions.evaluate_condition(condition, value, {})
