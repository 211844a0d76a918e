"""One interaction at work: its constellation agent, its graph, the attempts that run (docs/machines.md)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from agents.clock import from_iso
from agents.engine.environment import READ_S
from agents.streams.garbage import made, nothing_collected
from agents.streams.statements import cursor, store
from agents.streams.tables import Fields, fold_rows
from agents.streams.turn import Batch, Turn
from agents.tools.calls import Call
from constellations.editor.replacing import not_made_good
from constellations.limits import REOPEN, RESTARTS
from constellations.live.live import LiveGraph
from constellations.live.rows import Node, RowsOf
from constellations.live.verdict import verdict_of
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT
from constellations.machines.constellation import GIVEN_UP
from constellations.reads.waited import waited_s
from constellations.runs import planner
from constellations.runs.begin import begin
from constellations.runs.crews import Crews
from constellations.runs.ends import AttemptEnds
from constellations.runs.lost import ASKS, LostTasks
from constellations.runs.placing import Dispatch, Start
from constellations.runs.proposals import Proposals
from constellations.runs.replanning import Replanning

if TYPE_CHECKING:
    from agents.engine.drive import Drive

RESTARTED = "restarted"
ACCEPTED = 50
"""Loop identities that a task remembers as accepted."""
PARTS = 20
"""Calls whose partial answers are kept when all are cut off..."""
PARTIAL_CHARACTERS = 8_000
"""...and how much of them altogether."""
DEVICE_LOOK_S = 1.0
"""Between two looks for a device, while a task fits none that takes work."""
OPEN_ATTEMPTS = (
    "outcome = '' AND task_id IN (SELECT id FROM constellations_task WHERE constellation_id = %s AND state = 'RUNNING')"
)
OPEN_LOOPS = f"agent_id IN (SELECT agent_id FROM constellations_attempt WHERE {OPEN_ATTEMPTS})"
QUEUES = "SELECT device_id FROM agents_slotrequest WHERE session_id = %s"
OUTCOME_OF = {"COMPLETED": "completed", "PARTIALLY_FAILED": "partially_failed", "FAILED": "failed", "CANCELLED": "cancelled"}


class ConstellationWork:
    """Implements `agents.engine.work.Work` for one constellation."""

    def __init__(self, drive: Drive, interaction: Fields):
        self.drive, self.interaction = drive, interaction
        self.finished = False
        self.agent: Fields = {}
        self.constellation: Fields = {}
        self.live: LiveGraph | None = None
        self.dispatch = Dispatch(self)
        self.crews = Crews(self)
        self.lost = LostTasks(self)
        self.proposals = Proposals(self)
        self.replanning = Replanning(self)
        self.ends = AttemptEnds(self)
        self.attempts: dict[int, Start] = {}
        self._timers: list[tuple[float, int, str]] = []
        self._look_at: float | None = None
        self._restarts = 0
        self._answer: tuple[str, Fields] | None = None

    # --- beginning

    @property
    def subject(self) -> int:
        return self.constellation.get("id", 0)

    @property
    def scope(self) -> str:
        """Whose files its calls share."""
        return str(self.constellation["id"])

    @property
    def inherits(self) -> str:
        """Where those files begin, in a fork."""
        return str(self.constellation["forked_from_id"] or "")

    def begin(self, turn: Turn, prepared: Any, took: float) -> None:
        with nothing_collected():
            begin(self, turn, prepared, took)

    def begins(self) -> bool:
        return self.live is None and not self.finished

    def is_filled(self) -> None:
        """The graph is there."""
        assert self.live is not None
        made(len(self.live.nodes))
        self.set_deadlines(self.live.nodes)

    def restart(self, turn: Turn, reason: str) -> bool:
        """The open constellation is CANCELLED; the next is made from the same request, once that is read again."""
        if self.live is None or REOPEN in self.interaction["payload"] or self._restarts >= RESTARTS:
            return False
        self._restarts += 1
        self._end_everything(turn, RESTARTED)
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "restart", reason=reason or RESTARTED)
        self._leave(turn)
        self.live, self._timers, self._look_at = None, [], None
        return True

    def load(self) -> None:
        """From the rows, after another runner began it."""
        read, interaction = self.drive.read, self.interaction["id"]
        constellations = read("constellation", "interaction_id = %s", interaction)
        if not constellations:
            return
        self.constellation, self._restarts = constellations[-1], len(constellations) - 1
        self.agent = read("agent", "id = %s", self.constellation["agent_id"])[0]
        self.replanning.load()
        if self.agent["state"] == CONSTELLATION_AGENT.initial:  # it was about to begin once more
            return
        self.live = LiveGraph(self.constellation, self.wait_or_ready)
        key = self.constellation["id"]
        with nothing_collected():
            self.live.load(read("task", "constellation_id = %s", key), read("dependency", "constellation_id = %s", key))
            made(len(self.live.nodes))
        self._load_attempts(read)
        for node in self.live.waiting():
            self.wait_or_ready(node)
        self.set_deadlines(self.live.nodes)

    def _load_attempts(self, read) -> None:
        assert self.live is not None
        loops = {row["agent_id"]: row for row in fold_rows("loop", OPEN_LOOPS, self.constellation["id"])}
        for row in read("attempt", OPEN_ATTEMPTS, self.constellation["id"]):
            agent = read("agent", "id = %s", row["agent_id"])[0]
            start = Start(self.live.ids[row["task_id"]], agent, row, loops.get(row["agent_id"]))
            self.attempts[row["id"]] = start
            if row["holds_slot"]:
                self.dispatch.holds(row["device_id"])
            if start.loop is not None:
                self.crews.load(start)
        self.lost.load()
        self.proposals.load()
        for (device,) in store().execute(cursor(), QUEUES, (self.drive.stream,)).fetchall():
            self.dispatch.queues(device)

    def wait_or_ready(self, node: Node) -> None:
        if node.row["retry_at"] is not None:
            heappush(self._timers, (from_iso(node.row["retry_at"]), node.row["id"], "retry"))
        elif node.row["reason"] != ASKS:
            self.dispatch.ready(node)

    def wake_for_retry(self, at: float, node: Node) -> None:
        heappush(self._timers, (at, node.row["id"], "retry"))

    def set_deadlines(self, keys: Iterable[str]) -> None:
        assert self.live is not None
        start = from_iso(self.constellation["created_at"])
        for node in (self.live.nodes[key] for key in keys):
            if node.row["deadline"] is not None and not node.ended:
                heappush(self._timers, (start + node.row["deadline"], node.row["id"], "deadline"))

    # --- deciding

    def decide(self, turn: Turn, now: float, budget: int) -> bool:
        if self.live is None:
            self._discard_outcomes()
            return False
        turn.by = f"agent:{self.agent['id']}"
        paused = self.constellation["state"] == "PAUSED"
        self.live.settle_dirty(turn)
        self.lost.decide(turn)
        self.proposals.expire(turn)
        left = self._take_outcomes(turn, now, budget)
        self._fire_timers(turn, now)
        if self.drive.draining:
            self.crews.record_ends(turn)
        else:
            self.crews.act(turn, now)
        if self.live.news:
            self.replanning.session(turn)
        if self.replanning.failure:
            self._give_up(turn, now)
            return False
        if self.replanning.ending:
            self._follow_rule(turn, now, self.replanning.ending)
            return False
        more = self.dispatch.offer(turn, left, draining=self.drive.draining, paused=paused)
        self._look_at = None if paused else self._next_look(now)
        if not (self.live.open or self.live.news or paused) and self.drive.may_decide_of_all():
            self._close(turn, now)
        return more or (left <= 0 and bool(self.drive.outcomes))

    def _discard_outcomes(self) -> None:
        """Of calls that a restart has cut off."""
        for key in list(self.drive.unconsumed()):
            self.drive.discard(key)

    def _next_look(self, now: float) -> float | None:
        """Where only a look at the devices tells when there is something to decide."""
        if self.dispatch.waits_for_a_device:
            return now + DEVICE_LOOK_S
        return now + READ_S if self.crews.are_short else None

    def _take_outcomes(self, turn: Turn, now: float, budget: int) -> int:
        """Decide about bodies that have ended; returns what is left of the budget."""
        for key in self.drive.unconsumed():
            if budget <= 0:
                break
            if self.crews.take(key, self.drive.outcomes[key]):
                self.drive.consume(key)
            elif key in self.attempts and key not in self.crews:
                self.ends.body(turn, now, self.attempts[key], self.drive.consume(key))
            else:
                self.drive.discard(key)
                continue
            budget -= 1
        return budget

    def _fire_timers(self, turn: Turn, now: float) -> None:
        assert self.live is not None
        while self._timers and self._timers[0][0] <= now:
            _, key, kind = heappop(self._timers)
            node = self.live.ids.get(key)
            if node is None or node.ended:
                continue
            if kind == "deadline":
                if self._deadline_is_over(node, now):
                    self.ends.overdue(turn, node)
            elif self._retry_is_due(node, now):
                turn.record("retry_due", set={"task": {str(key): {"retry_at": None}}}, task_id=node.key)
                node.row["retry_at"] = None
                self.dispatch.ready(node)

    def _deadline_is_over(self, node: Node, now: float) -> bool:
        """An edit may have given it more time, or all the time there is."""
        deadline = node.row["deadline"]
        return deadline is not None and from_iso(self.constellation["created_at"]) + deadline <= now

    def _retry_is_due(self, node: Node, now: float) -> bool:
        at = node.row["retry_at"]
        return node.row["state"] == "PENDING" and at is not None and from_iso(at) <= now

    # --- ending

    def _close(self, turn: Turn, now: float, reason: str = "", *, given_up: bool = False) -> None:
        """Every task has ended and the planner has no more edits, or a rule (for a reason) says that this is the end."""
        assert self.live is not None
        counted = not_made_good(RowsOf(self.live.nodes))
        judged = GIVEN_UP if given_up else verdict_of(counted)
        waited = waited_s(self.constellation["id"], turn)
        result = planner.summary(self.live, from_iso(self.constellation["created_at"]), now, waited)
        if reason:
            result["summary"] += f"; {reason}"
        state = turn.transition(
            CONSTELLATION, "constellation", self.constellation, "close", {"verdict": judged}, reason, result=result,
            ended_at=turn.at,
        )  # fmt: skip
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "failed" if state == "FAILED" else "finished", reason=reason)
        self._finish(turn, OUTCOME_OF[state], result)

    def _follow_rule(self, turn: Turn, now: float, ending: planner.Proposal) -> None:
        """A rule ends the run, or begins it once more."""
        self.replanning.ending = None
        if ending.does != "restart":
            self._close_early(turn, now, ending.reason, given_up=ending.does == "fail")
        elif not self.restart(turn, ending.reason):
            self.replanning.failure = f"limit reached: {RESTARTS} restarts"
            self._give_up(turn, now)

    def _close_early(self, turn: Turn, now: float, reason: str, *, given_up: bool) -> None:
        """The run ends whatever is open in it."""
        if self.constellation["state"] == "PAUSED":  # nothing in it will start any more
            turn.transition(CONSTELLATION, "constellation", self.constellation, "resume", reason=reason)
        self.ends.cancel_open(turn, reason)
        self._close(turn, now, reason, given_up=given_up)

    def _give_up(self, turn: Turn, now: float) -> None:
        """A limit has been reached. What became of the tasks stays, so that a person may mend them and go on."""
        self._close_early(turn, now, self.replanning.failure, given_up=True)

    def _finish(self, turn: Turn, outcome: str, result: Fields) -> None:
        self._leave(turn)
        self.conclude(outcome, result)

    def _leave(self, turn: Turn) -> None:
        """What the work has open elsewhere is given back; a retry or a proposal that comes first is part of it."""
        self.drive.decides_of_all()
        self.dispatch.leave_queues(turn)
        self.lost.withdraw(turn)
        self.proposals.withdraw(turn)

    def conclude(self, outcome: str, result: Fields) -> None:
        """How the interaction ends."""
        self._answer = outcome, result
        self.finished = True

    def answer(self) -> tuple[str, Fields]:
        assert self._answer is not None
        return self._answer

    def end(self, turn: Turn, reason: str) -> None:
        if self.live is not None:
            self._end_everything(turn, reason)
        if self.agent:
            turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "cancel", reason="cancelled")
        self._finish(turn, "cancelled", {"summary": reason})

    def _end_everything(self, turn: Turn, reason: str) -> None:
        """Open tasks are cancelled, what runs is interrupted, the constellation is CANCELLED."""
        self.ends.cancel_open(turn, reason)
        turn.transition(CONSTELLATION, "constellation", self.constellation, "cancel", reason=reason, ended_at=turn.at)

    # --- commands

    def pause(self, turn: Turn) -> bool:
        if self.live is None or self.finished:
            return True
        turn.by = f"agent:{self.agent['id']}"
        self.live.settle_dirty(turn)
        self._take_outcomes(turn, turn.ts, len(self.drive.outcomes))
        self.crews.pause(turn)
        self.dispatch.leave_queues(turn)
        return not self.running()

    def partial_response(self) -> str:
        """Of several calls each with the task that it is for."""
        told = [(self.attempts[attempt].node.key, self.drive.printed(attempt)) for attempt in set(self.running().values())]
        printed = sorted((task, text) for task, text in told if text)[:PARTS]
        if len(printed) < 2:
            return "".join(text for _, text in printed)
        most = PARTIAL_CHARACTERS // len(printed)
        return "\n".join(f"{task}:\n{text[-most:]}" for task, text in printed)

    def resume(self, turn: Turn) -> None:
        """What is ready stayed ready; crews go on from where they were frozen."""
        self.crews.wake_all()

    def go_on(self, turn: Turn, item: Fields) -> bool:
        """A person says "go on anyway": the loop identity is none for this task from now on, also in its next attempts."""
        identity = str(item["payload"].get("identity", ""))
        start = self.crews.go_on(turn, int(item["payload"].get("agent", 0)), identity)
        if start is None:
            return False
        row = start.node.row
        accepted = [*row["accepted"], identity][-ACCEPTED:]
        turn.record(
            "task_changed", by=item["by"], task_id=row["task_id"], set={"task": {str(row["id"]): {"accepted": accepted}}}
        )
        row["accepted"] = accepted
        return True

    def cancel_task(self, turn: Turn, item: Fields) -> bool:
        if self.live is None:
            return False
        turn.by = f"agent:{self.agent['id']}"
        self.live.settle_dirty(turn)
        return self.ends.cancel_asked(turn, item)

    # --- the engine's side

    def settled(self, batch: Batch) -> list[Call]:
        calls = self.crews.calls() if self.crews else []
        for start in self.dispatch.settled(batch):
            self.attempts[start.attempt["id"]] = start
            if start.loop is not None:
                self.crews.begin(start)
            else:
                calls.append(self._call(start))
        return calls

    def _call(self, start: Start) -> Call:
        row = start.node.row
        return Call(
            attempt=start.attempt["id"], session=self.drive.stream, tool=row["tool"], arguments=row["arguments"],
            device=self.drive.devices[start.attempt["device_id"]], timeout=row["timeout"], scope=self.scope,
            inherits=self.inherits,
        )  # fmt: skip

    def unsettled(self, batch: Batch) -> None:
        self.dispatch.unsettled()

    def absorb(self, data: Fields) -> None:
        if self.live is not None:
            self.set_deadlines(self.live.apply_foreign(data))
            self.crews.absorb(data)
            self.lost.absorb(data)
            self.proposals.absorb(data)

    def running(self) -> dict[int, int]:
        if not self.crews:
            return {key: key for key in self.attempts}
        return {key: key for key in self.attempts if key not in self.crews} | self.crews.bodies()

    def wake_at(self) -> float | None:
        times = [self._look_at, self.crews.wake_at(), self.lost.wake_at(), self.proposals.wake_at()]
        times += [self._timers[0][0]] if self._timers else []
        return min((time for time in times if time is not None), default=None)
