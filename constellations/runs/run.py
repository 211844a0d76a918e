"""One interaction at work: its constellation agent, its graph, the attempts that run (docs/machines.md).

The parts (begin, takeover, placing, crews, timers, ends, lost, replanning, weaving, proposals, close) know the context and not
each other's state. What they answer is passed on here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents.crews.members.assignment import slot_device_of
from agents.engine.environment import READ_S
from agents.errors import AgentsError
from agents.streams.garbage import note_rows_made, nothing_collected
from agents.streams.row_types import InboxRow
from agents.streams.tables import Fields
from agents.streams.turn import Batch, Turn
from agents.tools.calls import Call
from constellations.limits import REOPEN, RESTARTS
from constellations.live.rows import Node
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT
from constellations.runs.attempts.crews import Crews
from constellations.runs.attempts.ends import CutOff, EndedAttempt, cancel_waiting, cancellation, cut_off, end_attempt, overdue
from constellations.runs.attempts.inputs import inputs_of
from constellations.runs.attempts.lost import ASKS, LostTasks
from constellations.runs.attempts.placing import Dispatch
from constellations.runs.attempts.timers import Timers
from constellations.runs.begin import begin_plan, begin_run, fail_creation
from constellations.runs.close import close
from constellations.runs.context import Context, Start
from constellations.runs.planner import ReplanResult
from constellations.runs.proposals import Proposals
from constellations.runs.replanning import Replanning
from constellations.runs.takeover import load_context, queued_devices
from constellations.runs.weaving.creating import Creating
from constellations.runs.weaving.editing import ModelEditing
from constellations.runs.weaving.model_calls import CREATION, GivenUp, ModelCalls
from constellations.services.plans import Words

if TYPE_CHECKING:
    from agents.engine.drives.work import OwnedSession

RESTARTED = "restarted"
PLANNER = "(planner)"
"""Whose the partial answer is that is no task's."""
HELD = {"PAUSED": "resume", "READY": "start"}
"""States of a constellation in which nothing starts: paused, and before its review; what leads on from each."""
ACCEPTED = 50
"""Loop identities that a task remembers as accepted."""
PARTS = 20
"""Calls whose partial answers are kept when all are cut off..."""
PARTIAL_CHARACTERS = 8_000
"""...and how much of them altogether."""
DEVICE_LOOK_S = 1.0
"""Between two looks for a device, while a task fits none that takes work."""
QUEUE_LOOK_S = 5.0
"""Between two looks for a free slot, while a task may run on more devices than those in whose queues its session is."""


class ConstellationWork:
    """Implements `agents.engine.drives.work.Work` for one constellation."""

    def __init__(self, drive: OwnedSession, interaction: InboxRow):
        self.drive, self.interaction = drive, interaction
        self.context = context = Context(
            drive.stream, drive.token, interaction, drive.devices, drive.policies, drive.profiles, drive.interrupt,
            drive.tell, self.wait_or_ready,
        )  # fmt: skip
        self.finished = False
        self.dispatch = Dispatch(context)
        self.crews = Crews(context)
        self.timers = Timers(context)
        self.lost = LostTasks(context)
        self.proposals = Proposals(context)
        self.replanning = Replanning(context)
        self.calls = ModelCalls(context)
        self.creating = Creating(context, self.calls)
        self.editing = ModelEditing(context, self.calls)
        self._look_at: float | None = None
        self._restarts = 0
        self._answer: tuple[str, Fields] | None = None

    # --- beginning

    @property
    def subject(self) -> int:
        return self.context.constellation.get("id", 0)

    def begin(self, turn: Turn, prepared: Any, took: float) -> None:
        with nothing_collected():
            error = begin_run(self.context, turn, prepared, took)
            if error is not None:
                self._conclude("failed", {"summary": str(error), "problems": error.problems})
            elif isinstance(prepared, Words):
                self.creating.begin(turn, prepared)
            else:
                self._has_begun()

    def _has_begun(self) -> None:
        note_rows_made(len(self.context.graph.nodes))
        self.timers.set_deadlines(self.context.graph.nodes)

    def begins(self) -> bool:
        return self.context.live is None and not self.finished and not self.calls.busy

    def restart(self, turn: Turn, reason: str) -> bool:
        """The open constellation is CANCELLED; the next is made from the same request, once that is read again."""
        if self.context.live is None or REOPEN in self.interaction["payload"] or self._restarts >= RESTARTS:
            return False
        self._restarts += 1
        self.creating.remember(reason or RESTARTED)
        self._end_everything(turn, RESTARTED)
        turn.transition(CONSTELLATION_AGENT, "agent", self.context.agent, "restart", reason=reason or RESTARTED)
        self._leave(turn)
        self.timers.clear()
        self.context.live = self._look_at = None
        return True

    def load(self, read_words: Callable[[], Words | AgentsError], read_memory: Callable[[], Sequence[Fields]]) -> None:
        """From the rows, after another runner began it. Where a model makes the plan, or edits, what it is told is read too."""
        context = self.context
        self._restarts = load_context(context, self.drive, self.wait_or_ready)
        if context.agent:
            self.replanning.load()
            self.calls.load()
        if self.calls.purpose == CREATION:
            self.creating.load(read_words())
        elif self.editing.listens:
            self.editing.load()
            context.memory = read_memory()
        live = context.live
        if live is None:
            return
        for start in context.attempts.values():
            if start.attempt["holds_slot"]:
                self.dispatch.holds(slot_device_of(start.attempt))
            if start.loop is not None:
                self.crews.load(start)
        self.lost.load()
        self.proposals.load()
        for device in queued_devices(context.stream):
            self.dispatch.queues(device)
        for node in live.waiting():
            self.wait_or_ready(node)
        self.timers.set_deadlines(live.nodes)

    def wait_or_ready(self, node: Node) -> None:
        """A task waits for nothing it depends on: it starts now, or at its time, or once a person has said so."""
        if node.row["retry_at"] is not None:
            self.timers.set_retry(node)
        elif node.row["reason"] != ASKS:
            self.dispatch.ready(node)

    # --- deciding

    def decide(self, turn: Turn, now: float, budget: int) -> bool:
        context, drive, live = self.context, self.drive, self.context.live
        if live is None:
            return self._create(turn, now)
        turn.by = f"agent:{context.agent['id']}"
        paused = context.constellation["state"] in HELD
        live.settle_dirty(turn)
        for node in self.lost.decide(turn):
            self.dispatch.ready(node)
        self.proposals.expire(turn)
        left = self._take_outcomes(turn, now, budget)
        for node, is_over in self.timers.take_due(turn, now):
            if is_over:
                self._cut_off(turn, node, overdue(context, turn, node))
            else:
                self.dispatch.ready(node)
        if drive.draining:
            self.crews.record_ends(turn)
        else:
            self._move_crews(turn, now)
        if self._edit(turn, now):
            return False
        waits = self.editing.listens and (paused or drive.draining)  # where nothing may start, no model is asked either
        if live.news and not (self.calls.busy or waits) and self._replan(turn, now):
            return False
        more = self.dispatch.offer(turn, left, draining=drive.draining, paused=paused, woken=drive.woken)
        self._look_at = None
        if not paused:  # where only a look at the devices tells when there is something to decide
            if self.dispatch.waits_for_a_device:
                self._look_at = now + DEVICE_LOOK_S
            elif self.dispatch.waits_beside_a_queue:
                self._look_at = now + QUEUE_LOOK_S
            elif self.crews.are_short:
                self._look_at = now + READ_S
        if not (live.open or live.news or paused or self.calls.busy) and drive.may_decide_of_all():
            self._finish(turn, *close(context, turn, now))
        return more or (left <= 0 and bool(drive.outcomes))

    def _create(self, turn: Turn, now: float) -> bool:
        """No graph is there: a model makes the first plan, or the run is about to begin once more."""
        self._take_outcomes(turn, now, len(self.drive.outcomes))
        if not self.calls.busy:
            return False
        turn.by = f"agent:{self.context.agent['id']}"
        if self.drive.draining:
            self.calls.record_end(turn)
            return False
        try:
            plan = self.creating.decide(turn, now)
        except GivenUp as error:
            fail_creation(self.context, turn, error)
            self._leave(turn)
            self._conclude("failed", {"summary": str(error), "problems": error.problems})
            return False
        if plan is not None:
            with nothing_collected():
                words = self.creating.words
                begin_plan(self.context, turn, plan, words.model_profiles, waits=words.waits, by_model=True)
                self._has_begun()
        return plan is not None

    def _take_outcomes(self, turn: Turn, now: float, budget: int) -> int:
        """Decide about bodies that have ended; returns what is left of the budget. Of calls that were cut off none counts."""
        drive, attempts, crews = self.drive, self.context.attempts, self.crews
        for key in drive.outcomes.unconsumed():
            if budget <= 0:
                break
            if self.calls.take(turn, key, drive.outcomes[key]):
                drive.outcomes.consume(key)
                continue
            start = attempts.get(key)
            if start is not None and start.loop is None:
                self._pass_on(turn, end_attempt(self.context, turn, now, start, drive.outcomes.consume(key)))
            elif crews.take(key, drive.outcomes[key]):
                drive.outcomes.consume(key)
            else:
                drive.outcomes.discard(key)
                continue
            budget -= 1
        return budget

    def _pass_on(self, turn: Turn, ended: EndedAttempt) -> None:
        """What the end of an attempt means elsewhere: its slot is free, and its task may begin again."""
        node = ended.node
        if ended.freed_device is not None:
            self.dispatch.free(turn, ended.freed_device)
        if node.row["state"] == "PENDING":
            if node.row["reason"] == ASKS:
                self.lost.ask(turn, node)
            else:
                self.wait_or_ready(node)

    def _move_crews(self, turn: Turn, now: float) -> None:
        for moved in self.crews.act(turn, now):
            if moved.end is not None:
                self.dispatch.forget(moved.start.node)
                self._pass_on(turn, end_attempt(self.context, turn, now, moved.start, moved.end))
                continue
            if moved.freed_device is not None:
                self.dispatch.free(turn, moved.freed_device)
            if moved.is_elsewhere:
                self.dispatch.forget(moved.start.node)
            if moved.wants_slot:
                self.dispatch.returns(moved.start)

    def _replan(self, turn: Turn, now: float) -> bool:
        """Let rules answer to the ends that wait, then a model; True when the run is over, or begins once more."""
        replanned = self.replanning.session(turn)
        if self.editing.listens and not (replanned.failure or replanned.ending):
            try:
                self.editing.begin(turn, replanned.taken)
            except GivenUp as error:
                replanned.failure = str(error)
        return self._follow_replan(turn, now, replanned)

    def _edit(self, turn: Turn, now: float) -> bool:
        """What a model has answered to the ends that it was told; True as in `_replan`."""
        if self.drive.draining:
            self.calls.record_end(turn)
            return False
        try:
            replanned = self.editing.decide(turn, now)
        except GivenUp as error:
            replanned = ReplanResult(failure=str(error))
        return replanned is not None and self._follow_replan(turn, now, replanned)

    def _follow_replan(self, turn: Turn, now: float, replanned: ReplanResult) -> bool:
        self.timers.set_deadlines(replanned.timed)
        if replanned.failure:
            self._give_up(turn, now, replanned.failure)
        elif (ending := replanned.ending) is not None:
            if ending.does != "restart":
                self._close_early(turn, now, ending.reason, given_up=ending.does == "fail")
            elif not self.restart(turn, ending.reason):
                self._give_up(turn, now, f"limit reached: {RESTARTS} restarts")
        return bool(replanned.failure or replanned.ending)

    # --- ending

    def _cut_off(self, turn: Turn, node: Node, cut: CutOff) -> None:
        """End a task before its time, the agents of its crew first."""
        start = self.context.attempt_of(node)
        if start is not None and start.attempt["id"] in self.crews:
            self.crews.cancel(turn, start, cut.error, cut.agents_reason)
            self.dispatch.forget(node)
        self._pass_on(turn, cut_off(self.context, turn, node, start, cut))

    def _cancel_open(self, turn: Turn, reason: str) -> None:
        """Whatever is open is cancelled, what runs is interrupted: the run is about to end."""
        for start in list(self.context.attempts.values()):
            self._cut_off(turn, start.node, cancellation(self.context, turn, reason, with_all=True))
        cancel_waiting(self.context, turn, reason)

    def _close_early(self, turn: Turn, now: float, reason: str, *, given_up: bool) -> None:
        """The run ends whatever is open in it."""
        constellation = self.context.constellation
        if (onward := HELD.get(constellation["state"])) is not None:  # nothing in it will start any more
            turn.transition(CONSTELLATION, "constellation", constellation, onward, reason=reason)
        self._cancel_open(turn, reason)
        self.replanning.take_ends(turn)  # what ended while a model thought: nothing follows from it any more
        self._finish(turn, *close(self.context, turn, now, reason, given_up=given_up))

    def _give_up(self, turn: Turn, now: float, failure: str) -> None:
        """A limit has been reached. What became of the tasks stays, so that a person may mend them and go on."""
        self._close_early(turn, now, failure, given_up=True)

    def _finish(self, turn: Turn, outcome: str, result: Fields) -> None:
        self._leave(turn)
        self._conclude(outcome, result)

    def _leave(self, turn: Turn) -> None:
        """What the work has open elsewhere is given back; a retry or a proposal that comes first is part of it."""
        self.drive.decides_of_all()
        self.calls.drop(turn)
        self.dispatch.leave_queues(turn)
        self.lost.withdraw(turn)
        self.proposals.withdraw(turn)

    def _conclude(self, outcome: str, result: Fields) -> None:
        """How the interaction ends."""
        self._answer = outcome, result
        self.finished = True

    def answer(self) -> tuple[str, Fields]:
        assert self._answer is not None
        return self._answer

    def end(self, turn: Turn, reason: str) -> None:
        if self.context.live is not None:
            self._end_everything(turn, reason)
        if self.context.agent:
            turn.transition(CONSTELLATION_AGENT, "agent", self.context.agent, "cancel", reason="cancelled")
        self._finish(turn, "cancelled", {"summary": reason})

    def _end_everything(self, turn: Turn, reason: str) -> None:
        """Open tasks are cancelled, what runs is interrupted, the constellation is CANCELLED."""
        self._cancel_open(turn, reason)
        row = self.context.constellation
        turn.transition(CONSTELLATION, "constellation", row, "cancel", reason=reason, ended_at=turn.at)

    # --- commands

    def pause(self, turn: Turn) -> bool:
        if self.finished or not self.context.agent:
            return True
        turn.by = f"agent:{self.context.agent['id']}"
        if self.context.live is not None:
            self.context.live.settle_dirty(turn)
        self._take_outcomes(turn, turn.ts, len(self.drive.outcomes))
        self.calls.record_end(turn)
        for device in self.crews.pause(turn):
            self.dispatch.free(turn, device)
        self.dispatch.leave_queues(turn)
        return not self.running()

    def partial_response(self) -> str:
        """Of several calls each with the task that it is for, or that it is the planner's."""
        attempts = self.context.attempts
        told = [
            (attempts[key].node.key if key in attempts else PLANNER, self.drive.printed(key))
            for key in set(self.running().values())
        ]
        printed = sorted((task, text) for task, text in told if text)[:PARTS]
        if len(printed) < 2:
            return "".join(text for _, text in printed)
        most = PARTIAL_CHARACTERS // len(printed)
        return "\n".join(f"{task}:\n{text[-most:]}" for task, text in printed)

    def resume(self, turn: Turn) -> None:
        """What is ready stayed ready; crews go on from where they were frozen."""
        self.crews.wake_all()

    def go_on(self, turn: Turn, item: InboxRow) -> bool:
        """A person says "go on anyway": the loop identity is none for this task from now on, also in its next attempts.

        Or a person gives a hint, which the agent's model reads next.
        """
        agent, identity = int(item["payload"].get("agent", 0)), str(item["payload"].get("identity", ""))
        if text := item["payload"].get("text"):
            return self.crews.hint(turn, agent, str(text))
        start = self.crews.go_on(turn, agent, identity)
        if start is None:
            return False
        row = start.node.row
        accepted = [*row["accepted"], identity][-ACCEPTED:]
        turn.record(
            "task_changed", by=item["by"], task_id=row["task_id"], set={"task": {str(row["id"]): {"accepted": accepted}}}
        )
        row["accepted"] = accepted
        return True

    def rule_on_loop(self, turn: Turn, item: InboxRow) -> bool:
        """An arbiter's ruling goes to the agent that it is about, and is kept with its evidence."""
        return self.crews.rule_on_loop(turn, item["payload"])

    def cancel_task(self, turn: Turn, item: InboxRow) -> bool:
        """Somebody cancels one task, and what depends on it follows."""
        context, asked = self.context, item["payload"]
        if context.live is None:
            return False
        turn.by = f"agent:{context.agent['id']}"
        context.live.settle_dirty(turn)
        node = context.live.nodes.get(asked["task"])
        if node is None or node.ended:
            return False
        self._cut_off(turn, node, cancellation(context, turn, asked["reason"], item["by"]))
        return True

    # --- the engine's side

    def settled(self, batch: Batch) -> list[Call]:
        context = self.context
        calls = self.calls.take_calls() + (self.crews.calls() if self.crews else [])
        for start in self.dispatch.settled(batch):
            attempt, row = start.attempt, start.node.row
            context.attempts[attempt["id"]] = start
            if start.loop is not None:
                self.crews.begin(start)
                continue
            calls.append(
                Call(
                    attempt=attempt["id"], session=context.stream, tool=row["tool"], arguments=row["arguments"],
                    device=context.devices[attempt["device_id"]], timeout=row["timeout"], scope=context.scope,
                    inherits=context.inherits, inputs=self._inputs_of(start), outputs=row["outputs"],
                )
            )  # fmt: skip
        return calls

    def _inputs_of(self, start: Start) -> Sequence[Fields]:
        """What the one call of an attempt finds in its workspace."""
        row, context = start.node.row, self.context
        return inputs_of(context, row, context.devices[start.attempt["device_id"]]) if row["inputs"] else ()

    def unsettled(self, batch: Batch) -> None:
        self.dispatch.unsettled()

    def apply_foreign(self, data: Fields) -> None:
        self.context.session.update(data.get("set", {}).get("session", {}).get(str(self.context.stream), {}))
        self.calls.apply_foreign(data)
        if self.context.live is not None:
            self.timers.set_deadlines(self.context.live.apply_foreign(data))
            self.crews.apply_foreign(data)
            self.lost.apply_foreign(data)
            self.proposals.apply_foreign(data)

    def hear(self, key: int, kind: str, data: Mapping[str, Any]) -> None:
        self.crews.hear(key, kind, data)

    def running(self) -> dict[int, int]:
        asked = self.calls.running()
        if not self.crews:
            return {key: key for key in self.context.attempts} | asked
        return {key: key for key in self.context.attempts if key not in self.crews} | self.crews.bodies() | asked

    def wake_at(self) -> float | None:
        times = [self._look_at, self.timers.wake_at(), self.lost.wake_at(), self.proposals.wake_at(), self.calls.wake_at()]
        if not self.drive.draining:  # while the runner ends, crews decide nothing
            times.append(self.crews.wake_at())
        return min((time for time in times if time is not None), default=None)
