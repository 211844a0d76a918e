"""One interaction at work: its constellation agent, its graph, the attempts that run (machines, sections 2, 3, 5, 6)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from agents.clock import from_iso, to_iso
from agents.engine.surroundings import READ_S
from agents.engine.tools import Call, Outcome
from agents.errors import AgentsError
from agents.machines import DEVICE_AGENT
from agents.storage import cursor, store
from agents.tables import TABLES, Fields
from agents.transient import pause
from agents.turns import Batch, Turn
from constellations import editing, planner
from constellations.crews import Crews
from constellations.dispatch import Dispatch, Start
from constellations.live import LiveGraph, Node
from constellations.lost import ASKS, LostTasks
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT, TASK
from constellations.machines.task import OPEN

if TYPE_CHECKING:
    from agents.engine.drive import Drive

EDITING_SESSIONS = 50
"""Of one interaction; reaching it fails the constellation agent."""
LONGEST_BACKOFF_S = 3600.0
ACCEPTED = 50
"""Loop identities that a task remembers as accepted."""
DEVICE_LOOK_S = 1.0
"""Between two looks for a device, while a task fits none that takes work."""
OPEN_ATTEMPTS = (
    "outcome = '' AND task_id IN (SELECT id FROM constellations_task WHERE constellation_id = %s AND state = 'RUNNING')"
)
OPEN_LOOPS = f"agent_id IN (SELECT agent_id FROM constellations_attempt WHERE {OPEN_ATTEMPTS})"
QUEUES = "SELECT device_id FROM agents_slotrequest WHERE session_id = %s"
AGENT_EVENT = {"completed": "finish", "failed": "fail", "timeout": "fail", "cancelled": "cancel", "lost": "error"}
"""How a device agent takes the end of its attempt."""
OUTCOME_OF = {"COMPLETED": "completed", "PARTIALLY_FAILED": "partially_failed", "FAILED": "failed", "CANCELLED": "cancelled"}


class ConstellationWork:
    """Implements `agents.engine.registry.Work` for one constellation."""

    def __init__(self, drive: Drive, interaction: Fields):
        self.drive, self.interaction = drive, interaction
        self.finished = False
        self.agent: Fields = {}
        self.constellation: Fields = {}
        self.live: LiveGraph | None = None
        self.dispatch = Dispatch(self)
        self.crews = Crews(self)
        self.lost = LostTasks(self)
        self.attempts: dict[int, Start] = {}
        self._timers: list[tuple[float, int, str]] = []
        self._look_at: float | None = None
        self._sessions = 0
        self._failure = ""
        self._answer: tuple[str, Fields] | None = None

    # --- beginning

    def begin(self, turn: Turn, prepared: planner.Prepared | AgentsError) -> None:
        turn.by = f"agent:{self._new_agent(turn)}"
        if isinstance(prepared, AgentsError):
            self._fail_creation(turn, str(prepared), prepared.problems)
            return
        self._new_constellation(turn, prepared.plan)
        assert self.live is not None
        self.live.build(turn, prepared.changes)
        for event in ("validated", "start"):
            turn.transition(CONSTELLATION, "constellation", self.constellation, event)
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "created")
        self._set_deadlines(self.live.nodes)

    def _new_agent(self, turn: Turn) -> int:
        self.agent = {
            "id": turn.take(), "session_id": self.drive.stream, "interaction_id": self.interaction["id"],
            "machine": CONSTELLATION_AGENT.name, "name": "constellation agent", "state": CONSTELLATION_AGENT.initial,
            "reason": "", "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        turn.record("agent_created", add={"agent": [dict(self.agent)]})
        return self.agent["id"]

    def _new_constellation(self, turn: Turn, plan) -> None:
        fields = {
            "id": turn.take(), "session_id": self.drive.stream, "interaction_id": self.interaction["id"],
            "agent_id": self.agent["id"], "name": plan.name, "rules": plan.rules, "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        self.constellation = TABLES["constellation"].whole(fields)
        turn.record("constellation_created", add={"constellation": [fields]})
        self.live = LiveGraph(self.constellation, self._wait_or_ready)

    def _fail_creation(self, turn: Turn, message: str, problems: list[Fields]) -> None:
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "creation_failed", reason=message[:2000])
        self._answer = "failed", {"summary": message, "problems": problems}
        self.finished = True

    def load(self) -> None:
        """From the rows, after another runner began it."""
        read, interaction = self.drive.read, self.interaction["id"]
        constellations = read("constellation", "interaction_id = %s", interaction)
        if not constellations:
            return
        self.constellation = constellations[-1]
        self.agent = read("agent", "id = %s", self.constellation["agent_id"])[0]
        self.live = LiveGraph(self.constellation, self._wait_or_ready)
        key = self.constellation["id"]
        self.live.load(read("task", "constellation_id = %s", key), read("dependency", "constellation_id = %s", key))
        self._sessions = len(read("edit", "constellation_id = %s AND author = 'planner'", key))
        self._load_attempts(read)
        for node in self.live.waiting():
            self._wait_or_ready(node)
        self._set_deadlines(self.live.nodes)

    def _load_attempts(self, read) -> None:
        assert self.live is not None
        loops = {row["agent_id"]: row for row in self.drive.find("loop", OPEN_LOOPS, self.constellation["id"])}
        for row in read("attempt", OPEN_ATTEMPTS, self.constellation["id"]):
            agent = read("agent", "id = %s", row["agent_id"])[0]
            start = Start(self.live.ids[row["task_id"]], agent, row, loops.get(row["agent_id"]))
            self.attempts[row["id"]] = start
            if row["holds_slot"]:
                self.dispatch.holds(row["device_id"])
            if start.loop is not None:
                self.crews.load(start)
        self.lost.load()
        for (device,) in store().execute(cursor(), QUEUES, (self.drive.stream,)).fetchall():
            self.dispatch.queues(device)

    def _wait_or_ready(self, node: Node) -> None:
        if node.row["retry_at"] is not None:
            heappush(self._timers, (from_iso(node.row["retry_at"]), node.row["id"], "retry"))
        elif node.row["reason"] != ASKS:
            self.dispatch.ready(node)

    def _set_deadlines(self, keys: Iterable[str]) -> None:
        assert self.live is not None
        start = from_iso(self.constellation["created_at"])
        for node in (self.live.nodes[key] for key in keys):
            if node.row["deadline"] is not None and not node.ended:
                heappush(self._timers, (start + node.row["deadline"], node.row["id"], "deadline"))

    # --- deciding

    def decide(self, turn: Turn, now: float, budget: int) -> bool:
        if self.live is None:
            return False
        turn.by = f"agent:{self.agent['id']}"
        self.live.settle_dirty(turn)
        self.lost.decide(turn)
        left = self._take_outcomes(turn, now, budget)
        self._fire_timers(turn, now)
        if self.drive.draining:
            self.crews.record_ends(turn)
        else:
            self.crews.act(turn, now)
        if self.live.news:
            self._replan(turn)
        if self._failure:
            self._give_up(turn)
            return False
        more = self.dispatch.offer(turn, left, draining=self.drive.draining)
        self._look_at = self._next_look(now)
        if not self.live.open and not self.live.news:
            self._close(turn, now)
        return more or (left <= 0 and bool(self.drive.outcomes))

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
                self._body_ended(turn, now, self.attempts[key], self.drive.consume(key))
            else:
                self.drive.discard(key)
                continue
            budget -= 1
        return budget

    def _body_ended(self, turn: Turn, now: float, start: Start, outcome: Outcome) -> None:
        """The one call of an attempt, and with it its device agent."""
        turn.transition(DEVICE_AGENT, "agent", start.agent, AGENT_EVENT[outcome.outcome], reason=outcome.error[:500])
        self.attempt_ended(turn, now, start, outcome)

    def attempt_ended(self, turn: Turn, now: float, start: Start, outcome: Outcome) -> None:
        """Attempt and task end with their device agent; what depends on the task follows in the same commit."""
        attempt, node = start.attempt, start.node
        del self.attempts[attempt["id"]]
        ended = {
            "outcome": outcome.outcome, "ended_at": turn.at, "result": outcome.result,
            "error": outcome.error, "exit_code": outcome.exit_code, "ran_s": attempt.get("ran_s"),
        }  # fmt: skip
        told = {name: value for name, value in ended.items() if value not in (None, "")}
        also = {"attempt": {str(attempt["id"]): told}}
        if outcome.outcome == "completed":
            fields = {} if outcome.result is None else {"result": outcome.result}
            if node.row["error"]:
                fields["error"] = ""
            turn.transition(TASK, "task", node.row, "succeed", also=also, ended_at=turn.at, **fields)
        elif outcome.outcome == "lost" and not outcome.reason:
            self._lost(turn, node, also, outcome)
        elif outcome.outcome == "cancelled":
            self._interrupted(turn, node, also)
        else:
            self._failed(turn, now, node, also, outcome)
        self._carry_out(turn, attempt)
        assert self.live is not None
        if node.ended:
            self.live.ended(turn, node)

    def _failed(self, turn: Turn, now: float, node: Node, also: Fields, outcome: Outcome) -> None:
        made = node.row["attempt"] - node.row["attempts_before"]
        if made >= node.row["max_attempts"] or outcome.reason:  # stuck or refused: the same again would end the same
            turn.transition(
                TASK, "task", node.row, "fail", {"attempts_left": False}, outcome.reason or outcome.outcome, also=also,
                error=outcome.error, ended_at=turn.at,
            )  # fmt: skip
            return
        at = now + pause(made, node.row["id"], node.row["backoff"], LONGEST_BACKOFF_S)
        turn.transition(
            TASK, "task", node.row, "fail", {"attempts_left": True}, outcome.outcome, also=also,
            error=outcome.error, retry_at=to_iso(at), device_id=None,
        )  # fmt: skip
        heappush(self._timers, (at, node.row["id"], "retry"))

    def _lost(self, turn: Turn, node: Node, also: Fields, outcome: Outcome) -> None:
        """Nobody knows how the attempt ended: `on_lost` decides."""
        choice = node.row["on_lost"]
        fields: Fields = {"error": outcome.error}
        fields.update({"ended_at": turn.at} if choice == "fail" else {"device_id": None})
        reason = ASKS if choice == "ask" else "lost"
        turn.transition(TASK, "task", node.row, "lost", {"on_lost": choice}, reason, also=also, **fields)
        if choice == "retry":
            self.dispatch.ready(node)
        elif choice == "ask":
            self.lost.ask(turn, node)

    def _interrupted(self, turn: Turn, node: Node, also: Fields) -> None:
        """A pause (`mode: immediate`) has cut the attempt off: it is made again, and does not count."""
        fields = {"attempts_before": node.row["attempts_before"] + 1, "device_id": None}
        turn.transition(TASK, "task", node.row, "lost", {"on_lost": "retry"}, "interrupted", also=also, **fields)
        self.dispatch.ready(node)

    def _carry_out(self, turn: Turn, attempt: Fields) -> None:
        """What the task's table says follows from the transition just made."""
        for effect in turn.effects:
            EFFECTS[effect](self, turn, attempt)

    def free_slot(self, turn: Turn, attempt: Fields) -> None:
        device = attempt["device_id"]
        turn.frees[device] = turn.frees.get(device, 0) + 1
        self.dispatch.freed(device)

    def _give_slot_back(self, turn: Turn, attempt: Fields) -> None:
        """Unless it waited, and gave it back before."""
        if attempt.get("holds_slot", True):
            self.free_slot(turn, attempt)

    def _kill(self, turn: Turn, attempt: Fields) -> None:
        """Once the decision is durable. A crew interrupts its own calls."""
        self.drive.interrupt(attempt["id"])

    def _fire_timers(self, turn: Turn, now: float) -> None:
        assert self.live is not None
        while self._timers and self._timers[0][0] <= now:
            _, key, kind = heappop(self._timers)
            node = self.live.ids.get(key)
            if node is None or node.ended:
                continue
            if kind == "deadline":
                if self._deadline_is_over(node, now):
                    self._cancel_task(turn, node, "deadline")
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

    # --- editing mode

    def _replan(self, turn: Turn) -> None:
        """One editing session over all ends that wait, if any rule of the plan answers to them."""
        assert self.live is not None
        proposals, notes = planner.propose(self.live)
        for note in notes:
            turn.record("condition_unknown", message=note)
        if not proposals:
            return
        if self._sessions >= EDITING_SESSIONS:
            self._failure = f"limit reached: {EDITING_SESSIONS} editing sessions"
            return
        self._sessions += 1
        for proposal in proposals:
            self._apply(turn, proposal)
        turn.transition(
            CONSTELLATION_AGENT, "agent", self.agent, "edited", reason="; ".join(p.rule for p in proposals)[:500],
            also={"constellation": {str(self.constellation["id"]): {"fired": self.constellation["fired"]}}},
        )  # fmt: skip

    def _apply(self, turn: Turn, proposal: planner.Proposal) -> None:
        assert self.live is not None
        count = self.constellation["fired"].get(proposal.rule, 0) + 1
        self.constellation["fired"] = {**self.constellation["fired"], proposal.rule: count}
        identity = {"id": turn.take(), "edit_id": f"rule:{proposal.rule}:{count}", "at": turn.at}
        devices = {row["name"]: row for row in self.drive.devices.values()}
        try:
            changes = editing.apply(self.live.snapshot(), proposal.operations, devices)
        except AgentsError as error:
            turn.record("edit_refused", rule=proposal.rule, message=str(error), problems=error.problems)
            return
        self.live.apply(turn, changes, planner.edit_row(self.live, proposal, changes, identity))
        self._set_deadlines([*(task["task_id"] for task in changes.added_tasks), *changes.updated_tasks])

    # --- ending

    def _close(self, turn: Turn, now: float) -> None:
        """Every task has ended and the planner has no more edits."""
        assert self.live is not None
        states = {node.row["state"] for node in self.live.nodes.values()}
        verdict = "all_done" if "FAILED" not in states else "some_failed" if "COMPLETED" in states else "none_completed"
        result = planner.summary(self.live, from_iso(self.constellation["created_at"]), now)
        state = turn.transition(
            CONSTELLATION, "constellation", self.constellation, "close", {"verdict": verdict}, result=result, ended_at=turn.at
        )
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "failed" if state == "FAILED" else "finished")
        self._finish(turn, OUTCOME_OF[state], result)

    def _give_up(self, turn: Turn) -> None:
        self._end_everything(turn, self._failure)
        turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "failed", reason=self._failure)
        self._finish(turn, "failed", {"summary": self._failure})

    def _finish(self, turn: Turn, outcome: str, result: Fields) -> None:
        self.dispatch.leave_queues(turn)
        self.lost.withdraw(turn)
        self._answer = outcome, result
        self.finished = True

    def answer(self) -> tuple[str, Fields]:
        assert self._answer is not None
        return self._answer

    def end(self, turn: Turn, reason: str) -> None:
        if self.live is not None:
            self._end_everything(turn, reason)
            turn.transition(CONSTELLATION_AGENT, "agent", self.agent, "cancel", reason="cancelled")
        self._finish(turn, "cancelled", {"summary": reason})

    def _end_everything(self, turn: Turn, reason: str) -> None:
        """Open tasks are cancelled, what runs is interrupted, the constellation is CANCELLED."""
        assert self.live is not None
        running = {start.node.key for start in self.attempts.values()}
        for start in list(self.attempts.values()):
            self._cancel_task(turn, start.node, reason)
        waiting = [n for n in self.live.nodes.values() if n.row["state"] in OPEN and n.key not in running]
        steps = [turn.step(TASK, node.row, "cancel", reason="cancelled", ended_at=turn.at) for node in waiting]
        turn.record_steps("tasks_cancelled", "task", steps)
        turn.transition(CONSTELLATION, "constellation", self.constellation, "cancel", reason=reason, ended_at=turn.at)

    def _cancel_task(self, turn: Turn, node: Node, reason: str) -> None:
        """Cancel one task; its attempt, if it runs, is fenced now and its body interrupted once that is durable."""
        also: Fields = {}
        start = next((start for start in self.attempts.values() if start.node is node), None)
        if start is not None:
            attempt = start.attempt
            del self.attempts[attempt["id"]]
            if attempt["id"] in self.crews:
                self.crews.cancel(turn, start, reason)
            else:
                turn.transition(DEVICE_AGENT, "agent", start.agent, "cancel", reason="cancelled")
            also = {"attempt": {str(attempt["id"]): {"outcome": "cancelled", "ended_at": turn.at, "error": reason}}}
        turn.transition(TASK, "task", node.row, "cancel", reason=f"cancelled: {reason}"[:500], also=also, ended_at=turn.at)
        if start is not None:
            self._carry_out(turn, start.attempt)
        assert self.live is not None
        if self.constellation["state"] == "EXECUTING" and reason == "deadline":
            self.live.ended(turn, node)

    # --- commands

    def pause(self, turn: Turn) -> bool:
        if self.live is None:
            return True
        turn.by = f"agent:{self.agent['id']}"
        self.live.settle_dirty(turn)
        self._take_outcomes(turn, turn.ts, len(self.drive.outcomes))
        self.crews.pause(turn)
        self.dispatch.leave_queues(turn)
        return not self.running()

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
            device=self.drive.devices[start.attempt["device_id"]], timeout=row["timeout"], scope=str(self.constellation["id"]),
        )  # fmt: skip

    def unsettled(self, batch: Batch) -> None:
        self.dispatch.unsettled()

    def absorb(self, data: Fields) -> None:
        if self.live is not None:
            self._set_deadlines(self.live.absorb(data))
            self.crews.absorb(data)
            self.lost.absorb(data)

    def running(self) -> dict[int, int]:
        if not self.crews:
            return {key: key for key in self.attempts}
        return {key: key for key in self.attempts if key not in self.crews} | self.crews.bodies()

    def wake_at(self) -> float | None:
        times = (self._timers[0][0] if self._timers else None, self._look_at, self.crews.wake_at())
        return min((time for time in times if time is not None), default=None)


EFFECTS = {"free_slot": ConstellationWork._give_slot_back, "kill": ConstellationWork._kill}
"""How the effects of the task's table are carried out."""
