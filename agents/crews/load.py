"""A crew read back from its rows, as far as it had come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import ids
from agents.crews.crew import Crew, counts_as_call
from agents.crews.members.member import Member
from agents.crews.minds.mind import Mind
from agents.crews.script import CONFIRMED, Position
from agents.crews.ways import ENDINGS
from agents.streams.row_types import AgentRow, ApprovalRow, EvidenceRow, LoopRow, PhaseRow
from agents.tools.calls import Outcome

Read = Callable[..., list[Any]]
"""Reads rows of a table of the fold: (table, condition, *parameters), oldest first. The reader says which type they are."""
CALLS = ("tool", "test", "poll", "observe")
"""Kinds of evidence that calls leave."""


def load_crew(crew: Crew, read: Read) -> None:
    """Fill `crew`, which has its host and nothing else."""
    member = crew.host
    _load_member(member, read)
    if not crew.has_called and _has_called(crew, read):
        crew.gate.inputs = {}
    while member.position.waits == "child":
        key = member.agent["id"]
        children: list[AgentRow] = read(
            "agent", "id > %s AND id < %s AND parent_id = %s", key, ids.row_range(crew.assignment.stream)[1], key
        )
        if not children or member.step is None:
            break
        crew.take_on(children[-1])
        member = crew.at_work
        _load_member(member, read)


def _has_called(crew: Crew, read: Read) -> bool:
    """Whether one of its agents, also one that has ended, has made a call."""
    beyond = ids.row_range(crew.assignment.stream)[1]
    agents: list[AgentRow] = [crew.host.agent]
    for agent in agents:  # which grows by those that each has delegated to
        agents += read("agent", "id > %s AND id < %s AND parent_id = %s", agent["id"], beyond, agent["id"])
    here = [agent["id"] for agent in agents if agent["device_id"] == crew.host.agent["device_id"]]
    loops = [row["id"] for agent in here for row in read("loop", "agent_id = %s", agent)]
    ended = [row for loop in loops for row in read("evidence", "loop_id = %s", loop) if row["ended_at"] is not None]
    return any(counts_as_call(row["kind"], row["error_kind"]) for row in ended)


def _load_member(member: Member, read: Read) -> None:
    loops: list[LoopRow] = [member.loop] if member.loop else read("loop", "agent_id = %s", member.agent["id"])
    if not loops:
        return
    member.loop = loops[0]
    member.position = Position.of(member.loop["position"])
    rows: list[EvidenceRow] = read("evidence", "loop_id = %s", member.loop["id"])
    phases: list[PhaseRow] = read("phase", "agent_id = %s", member.agent["id"])
    asked = _load_mind(member, read, rows, phases)
    open_row = member.memory.read(rows)
    member.row = None if open_row is None else open_row.copy()
    member.phases.load(phases)
    calls = [row for row in rows if row["ended_at"] is not None and row["kind"] in CALLS]
    member.last_outcome = _read_outcome(member, calls[-1]) if calls else None
    _load_approvals(member, read, max(asked, calls[-1]["ended_at"] or "" if calls else ""))


def _load_mind(member: Member, read: Read, rows: list[EvidenceRow], phases: list[PhaseRow]) -> str:
    """What the agent and its model have said to each other; when the last of it was said."""
    mind = member.script
    if not isinstance(mind, Mind):
        return ""
    mind.restore(member.position, read("model_call", "agent_id = %s", member.agent["id"]), phases)
    for row in sorted(rows, key=lambda row: row["number"]):
        if row["ended_at"] is not None:
            mind.hear(row)
    last = mind.rows[-1] if mind.rows else None
    if last is None:
        return ""
    member.asked = last if not last["outcome"] else None
    return last["ended_at"] or last["started_at"]


def _load_approvals(member: Member, read: Read, since: str) -> None:
    """`since`: when the last call ended, of a tool or of the model. What was used before it was given for something else."""
    approvals: list[ApprovalRow] = read(
        "approval", "session_id = %s AND agent_id = %s", member.assignment.stream, member.agent["id"]
    )
    # A gate that a person has opened stays open for this attempt.
    for approval in approvals:
        if approval["kind"] == "task" and approval["used_at"] and approval["state"] == "approved":
            member.pass_gate(approval)
    state, last = member.loop["left"] or member.state, approvals[-1] if approvals else None
    if last is not None and (
        last["used_at"] is None
        or state == "AwaitingPermission"
        or member.position.waits == CONFIRMED
        or (state == "ErrorRecovery" and last["asked_at"] >= since)
    ):
        member.approval = last


def _read_outcome(member: Member, row: EvidenceRow) -> Outcome:
    """How the last call ended, and what that means for the attempt: the reason, which no row has, is told anew."""
    outcome, reason = "completed" if row["success"] else ENDINGS.get(row["error_kind"], "failed"), ""
    if row["error_kind"] == "denied" and member.script.plain:
        reason = "denied"
    elif row["error_kind"] == "lost" and member.position.done and not (member.script.plain or member.stands_on_device):
        reason = "lost"
    elif row["verdict"] is not None and row["verdict"]["action"] == "halt" and member.state == "Halted":
        reason = f"stuck:{row['verdict']['rule']}"
    return Outcome(
        outcome, result=row["result"], error=row["raw_error"], exit_code=row["exit_code"], error_kind=row["error_kind"],
        reason=reason,
    )  # fmt: skip
