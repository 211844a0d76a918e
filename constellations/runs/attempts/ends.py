"""How attempts end, and what becomes of their tasks (docs/machines.md, "5. Task")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.artifacts.recording import record_artifacts
from agents.clock import to_iso
from agents.crews.members.assignment import slot_device_of
from agents.faults import pause_seconds
from agents.machines import DEVICE_AGENT
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from agents.tools.calls import Outcome
from constellations.live.live import LiveGraph, reason_that_fits
from constellations.live.row_types import TaskRow
from constellations.live.rows import Node
from constellations.machines import TASK
from constellations.machines.task import OPEN, WITH_THE_RUN
from constellations.plan.error_kinds import EXIT_CODE
from constellations.runs.attempts.lost import ASKS, KILLED_AT_MOST, killed_too_often
from constellations.runs.context import Context, Start

LONGEST_BACKOFF_S = 3600.0
OVERDUE = "deadline"
"""Event of the task's table, and reason, of a task whose deadline has passed."""
KIND_LENGTH = 20
"""Characters of the kind of an error."""
AGENT_EVENT = {"completed": "finish", "failed": "fail", "timeout": "fail", "cancelled": "cancel", "lost": "error"}
"""How a device agent takes the end of its attempt."""
FREE_SLOT, KILL = "free_slot", "kill"
EFFECTS = (FREE_SLOT, KILL)
"""What the task's table lets follow from a transition, all of which `_end_task` carries out."""


@dataclass(slots=True)
class EndedAttempt:
    """What the end of an attempt leaves to others. `freed_device` is where a slot is free; one that waited had none."""

    node: Node
    freed_device: int | None = None


@dataclass(slots=True)
class CutOff:
    """Why a task ends before its time: event and fields for its table, how its attempt ends, what its agents are told.

    `with_all`: the whole constellation ends, so that nothing follows from the end of the task and nobody is told.
    """

    event: str
    fields: Fields
    outcome: str
    error: str
    agents_reason: str
    with_all: bool = False


def end_attempt(context: Context, turn: Turn, now: float, start: Start, outcome: Outcome) -> EndedAttempt:
    """End an attempt and its task, or this try of it; what depends on the task follows in the same commit.

    A crew has ended its agents by itself; the agent of one plain call ends with it.
    """
    node, graph = start.node, context.graph
    if start.loop is None:
        turn.transition(DEVICE_AGENT, "agent", start.agent, AGENT_EVENT[outcome.outcome], reason=outcome.error[:500])
        key = start.attempt["id"]
        record_artifacts(turn, context.stream, outcome.artifacts, attempt=key, call=key)
    told = {"outcome": outcome.outcome, "ended_at": turn.at}
    known = (outcome.result, outcome.error, outcome.exit_code, start.attempt.get("ran_s"))
    for name, value in zip(("result", "error", "exit_code", "ran_s"), known, strict=True):
        if value is not None and value != "":
            told[name] = value
    event, facts, reason, fields = _decide_end(graph, turn, now, node.row, outcome)
    ended = _end_task(context, turn, node, start, event, told, facts=facts, reason=reason, **fields)
    if node.ended:
        graph.ended(turn, node)
    return ended


def _decide_end(graph: LiveGraph, turn: Turn, now: float, row: TaskRow, outcome: Outcome) -> tuple[str, Fields, str, Fields]:
    """What the end of an attempt means for its task: event and facts for the task's table, the reason, the fields."""
    if outcome.outcome == "completed":
        fields = graph.end_fields(turn)
        if outcome.result is not None:
            fields["result"] = outcome.result
        if row["error"]:
            fields |= {"error": "", "error_kind": ""}
        return "succeed", {}, "", fields
    if outcome.outcome == "cancelled":  # a pause (`mode: immediate`) has cut it off: it is made again, and does not count
        again = {"attempts_before": row["attempts_before"] + 1, "device_id": None}
        return "lost", {"on_lost": "retry"}, "interrupted", again
    if outcome.outcome == "lost" and not outcome.reason:  # nobody knows how it ended
        choice, error = row["on_lost"], outcome.error
        if choice == "retry" and outcome.exit_code is not None and killed_too_often(row):
            choice, error = "fail", f"{error}; {KILLED_AT_MOST} attempts in a row have ended so"
        fields = graph.end_fields(turn) if choice == "fail" else {"device_id": None}
        return "lost", {"on_lost": choice}, ASKS if choice == "ask" else "lost", {"error": error, **fields}
    failed: Fields = {
        "error": outcome.error,
        # or its command said by its exit code that it failed
        "error_kind": outcome.error_kind[:KIND_LENGTH] or (EXIT_CODE if outcome.exit_code else ""),
    }
    made = row["attempt"] - row["attempts_before"]
    if made >= row["max_attempts"] or outcome.reason:  # stuck or refused: the same again would end the same
        return "fail", {"attempts_left": False}, outcome.reason or outcome.outcome, failed | graph.end_fields(turn)
    at = now + pause_seconds(made, row["id"], row["backoff"], LONGEST_BACKOFF_S)
    return "fail", {"attempts_left": True}, outcome.outcome, failed | {"retry_at": to_iso(at), "device_id": None}


def cancellation(context: Context, turn: Turn, reason: str, by: str = "", *, with_all: bool = False) -> CutOff:
    """One task is cancelled. Where somebody (`by`) asked for it, `reason` begins with the word "cancelled"."""
    fields = {"ended_at": turn.at} if with_all else context.graph.end_fields(turn)
    told = reason_that_fits(reason if by else f"{WITH_THE_RUN}{reason}")
    return CutOff("cancel", {"reason": told, "by": by, **fields}, "cancelled", reason, "cancelled", with_all)


def overdue(context: Context, turn: Turn, node: Node) -> CutOff:
    """The deadline of a task has passed: it has FAILED, whether it runs or still waits."""
    why = f"its deadline of {node.row['deadline']:g} s has passed"
    fields = {"reason": OVERDUE, **context.graph.end_fields(turn), "error": why, "retry_at": None}
    return CutOff(OVERDUE, fields, "timeout", why, OVERDUE)


def cut_off(context: Context, turn: Turn, node: Node, start: Start | None, cut: CutOff) -> EndedAttempt:
    """End a task before its time; its attempt `start`, if it runs, is fenced now and its body interrupted once that is durable.

    The agents of a crew have ended before.
    """
    if start is not None and start.loop is None:
        turn.transition(DEVICE_AGENT, "agent", start.agent, "cancel", reason=cut.agents_reason)
    told = {"outcome": cut.outcome, "ended_at": turn.at, "error": cut.error}
    ended = _end_task(context, turn, node, start, cut.event, told, **cut.fields)
    if not cut.with_all:
        context.graph.ended(turn, node)
    return ended


def _end_task(
    context: Context, turn: Turn, node: Node, start: Start | None, event: str, told: Fields, **fields: Any
) -> EndedAttempt:  # fmt: skip
    """Record the end of an attempt, if one is under way, with the transition of its task; do what the table says follows."""
    if start is None:
        turn.transition(TASK, "task", node.row, event, also={}, **fields)
        return EndedAttempt(node)
    attempt = start.attempt
    del context.attempts[attempt["id"]]
    effects = turn.transition(TASK, "task", node.row, event, also={"attempt": {str(attempt["id"]): told}}, **fields)
    if KILL in effects:  # a crew interrupts its own calls
        context.interrupt(attempt["id"])
    gives_back = FREE_SLOT in effects and attempt.get("holds_slot", True)  # one that waited gave it back before
    return EndedAttempt(node, slot_device_of(attempt) if gives_back else None)


def cancel_waiting(context: Context, turn: Turn, reason: str) -> None:
    """Cancel whatever is open and has no attempt under way: the run is about to end."""
    told = reason_that_fits(f"{WITH_THE_RUN}{reason}")
    waiting = [node for node in context.graph.nodes.values() if node.row["state"] in OPEN]
    steps = [turn.step(TASK, node.row, "cancel", reason=told, ended_at=turn.at) for node in waiting]
    turn.record_steps("tasks_cancelled", "task", steps)
