"""How attempts end, and what becomes of their tasks (docs/machines.md, "5. Task")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.clock import to_iso
from agents.faults import pause
from agents.machines import DEVICE_AGENT
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from agents.tools.calls import Outcome
from constellations.live.live import LiveGraph, reason_that_fits
from constellations.live.rows import Node
from constellations.machines import TASK
from constellations.machines.task import OPEN, WITH_THE_RUN
from constellations.plan.error_kinds import EXIT_CODE
from constellations.runs.lost import ASKS, KILLED_AT_MOST, killed_too_often
from constellations.runs.placing import Start

if TYPE_CHECKING:
    from constellations.runs.run import ConstellationWork

LONGEST_BACKOFF_S = 3600.0
OVERDUE = "deadline"
"""Event of the task's table, and reason, of a task whose deadline has passed."""
KIND_LENGTH = 20
"""Characters of the kind of an error."""
AGENT_EVENT = {"completed": "finish", "failed": "fail", "timeout": "fail", "cancelled": "cancel", "lost": "error"}
"""How a device agent takes the end of its attempt."""


class AttemptEnds:
    """Ends attempts of one constellation."""

    def __init__(self, work: ConstellationWork):
        self._work = work

    def body(self, turn: Turn, now: float, start: Start, outcome: Outcome) -> None:
        """The one call of an attempt, and with it its device agent."""
        turn.transition(DEVICE_AGENT, "agent", start.agent, AGENT_EVENT[outcome.outcome], reason=outcome.error[:500])
        self.attempt(turn, now, start, outcome)

    def attempt(self, turn: Turn, now: float, start: Start, outcome: Outcome) -> None:
        """Attempt and task end with their device agent; what depends on the task follows in the same commit."""
        attempt, node, live = start.attempt, start.node, self._live
        del self._work.attempts[attempt["id"]]
        ended = {
            "outcome": outcome.outcome, "ended_at": turn.at, "result": outcome.result,
            "error": outcome.error, "exit_code": outcome.exit_code, "ran_s": attempt.get("ran_s"),
        }  # fmt: skip
        told = {name: value for name, value in ended.items() if value not in (None, "")}
        also = {"attempt": {str(attempt["id"]): told}}
        if outcome.outcome == "completed":
            fields = {} if outcome.result is None else {"result": outcome.result}
            if node.row["error"]:
                fields |= {"error": "", "error_kind": ""}
            effects = turn.transition(TASK, "task", node.row, "succeed", also=also, **live.end_fields(turn), **fields)
        elif outcome.outcome == "lost" and not outcome.reason:
            effects = self._lost(turn, node, also, outcome)
        elif outcome.outcome == "cancelled":
            effects = self._interrupted(turn, node, also)
        else:
            effects = self._failed(turn, now, node, also, outcome)
        self._carry_out(turn, attempt, effects)
        if node.ended:
            live.ended(turn, node)

    @property
    def _live(self) -> LiveGraph:
        assert self._work.live is not None
        return self._work.live

    def _failed(self, turn: Turn, now: float, node: Node, also: Fields, outcome: Outcome) -> tuple[str, ...]:
        made = node.row["attempt"] - node.row["attempts_before"]
        if made >= node.row["max_attempts"] or outcome.reason:  # stuck or refused: the same again would end the same
            return turn.transition(
                TASK, "task", node.row, "fail", {"attempts_left": False}, outcome.reason or outcome.outcome, also=also,
                error=outcome.error, error_kind=_kind_of(outcome), **self._live.end_fields(turn),
            )  # fmt: skip
        at = now + pause(made, node.row["id"], node.row["backoff"], LONGEST_BACKOFF_S)
        effects = turn.transition(
            TASK, "task", node.row, "fail", {"attempts_left": True}, outcome.outcome, also=also,
            error=outcome.error, error_kind=_kind_of(outcome), retry_at=to_iso(at), device_id=None,
        )  # fmt: skip
        self._work.wake_for_retry(at, node)
        return effects

    def _lost(self, turn: Turn, node: Node, also: Fields, outcome: Outcome) -> tuple[str, ...]:
        """Nobody knows how the attempt ended: `on_lost` decides."""
        choice, error = node.row["on_lost"], outcome.error
        if choice == "retry" and outcome.exit_code is not None and killed_too_often(self._work.drive, node):
            choice, error = "fail", f"{error}; {KILLED_AT_MOST} attempts in a row have ended so"
        fields: Fields = {"error": error}
        fields.update(self._live.end_fields(turn) if choice == "fail" else {"device_id": None})
        reason = ASKS if choice == "ask" else "lost"
        effects = turn.transition(TASK, "task", node.row, "lost", {"on_lost": choice}, reason, also=also, **fields)
        if choice == "retry":
            self._work.dispatch.ready(node)
        elif choice == "ask":
            self._work.lost.ask(turn, node)
        return effects

    def _interrupted(self, turn: Turn, node: Node, also: Fields) -> tuple[str, ...]:
        """A pause (`mode: immediate`) has cut the attempt off: it is made again, and does not count."""
        fields = {"attempts_before": node.row["attempts_before"] + 1, "device_id": None}
        effects = turn.transition(
            TASK, "task", node.row, "lost", {"on_lost": "retry"}, "interrupted", also=also, **fields
        )  # fmt: skip
        self._work.dispatch.ready(node)
        return effects

    def _carry_out(self, turn: Turn, attempt: Fields, effects: tuple[str, ...]) -> None:
        """What the task's table says follows from a transition."""
        for effect in effects:
            EFFECTS[effect](self, turn, attempt)

    def free_slot(self, turn: Turn, attempt: Fields) -> None:
        device = attempt["device_id"]
        turn.frees[device] = turn.frees.get(device, 0) + 1
        self._work.dispatch.freed(device)

    def _give_slot_back(self, turn: Turn, attempt: Fields) -> None:
        """Unless it waited, and gave it back before."""
        if attempt.get("holds_slot", True):
            self.free_slot(turn, attempt)

    def _kill(self, turn: Turn, attempt: Fields) -> None:
        """Once the decision is durable. A crew interrupts its own calls."""
        self._work.drive.interrupt(attempt["id"])

    def cancel(self, turn: Turn, node: Node, reason: str, *, by: str = "", with_all: bool = False) -> None:
        """Cancel one task. Where somebody (`by`) asked for it, `reason` begins with the word "cancelled".

        `with_all`: the whole constellation ends, so that nothing follows from it and nobody is told.
        """
        fields = {"ended_at": turn.at} if with_all else self._live.end_fields(turn)
        said = reason_that_fits(reason if by else f"{WITH_THE_RUN}{reason}")
        self._cut_off(turn, node, "cancel", "cancelled", reason, "cancelled", reason=said, by=by, **fields)
        if not with_all:
            self._live.ended(turn, node)

    def overdue(self, turn: Turn, node: Node) -> None:
        """The deadline of a task has passed: it has FAILED, whether it runs or still waits."""
        why = f"its deadline of {node.row['deadline']:g} s has passed"
        fields = self._live.end_fields(turn) | {"error": why, "retry_at": None}
        self._cut_off(turn, node, OVERDUE, "timeout", why, OVERDUE, reason=OVERDUE, **fields)
        self._live.ended(turn, node)

    def _cut_off(
        self, turn: Turn, node: Node, event: str, outcome: str, why: str, agents_reason: str, **fields: Any
    ) -> None:  # fmt: skip
        """End a task by `event`; its attempt, if it runs, is fenced now and its body interrupted once that is durable."""
        also: Fields = {}
        start = next((start for start in self._work.attempts.values() if start.node is node), None)
        if start is not None:
            attempt = start.attempt
            del self._work.attempts[attempt["id"]]
            if attempt["id"] in self._work.crews:
                self._work.crews.cancel(turn, start, why, agents_reason)
            else:
                turn.transition(DEVICE_AGENT, "agent", start.agent, "cancel", reason=agents_reason)
            also = {"attempt": {str(attempt["id"]): {"outcome": outcome, "ended_at": turn.at, "error": why}}}
        effects = turn.transition(TASK, "task", node.row, event, also=also, **fields)
        if start is not None:
            self._carry_out(turn, start.attempt, effects)

    def cancel_asked(self, turn: Turn, item: Fields) -> bool:
        """Somebody cancels one task, and what depends on it follows; False where it has ended already."""
        live, asked = self._work.live, item["payload"]
        node = None if live is None else live.nodes.get(asked["task"])
        if live is None or node is None or node.ended:
            return False
        self.cancel(turn, node, asked["reason"], by=item["by"])
        return True

    def cancel_open(self, turn: Turn, reason: str) -> None:
        """Whatever is open is cancelled, what runs is interrupted: the run is about to end."""
        work = self._work
        assert work.live is not None
        running = {start.node.key for start in work.attempts.values()}
        for start in list(work.attempts.values()):
            self.cancel(turn, start.node, reason, with_all=True)
        waiting = [n for n in work.live.nodes.values() if n.row["state"] in OPEN and n.key not in running]
        told = reason_that_fits(f"{WITH_THE_RUN}{reason}")
        steps = [turn.step(TASK, node.row, "cancel", reason=told, ended_at=turn.at) for node in waiting]
        turn.record_steps("tasks_cancelled", "task", steps)


def _kind_of(outcome: Outcome) -> str:
    """What kind of fault an attempt has ended by, or that its command said so by its exit code."""
    return outcome.error_kind[:KIND_LENGTH] or (EXIT_CODE if outcome.exit_code else "")


EFFECTS = {"free_slot": AttemptEnds._give_slot_back, "kill": AttemptEnds._kill}
"""How the effects of the task's table are carried out."""
