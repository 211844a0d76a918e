"""Which calls are made: the strategies of ACTION_EXECUTION. Policies decide, and people about what these leave open."""

from __future__ import annotations

from dataclasses import replace

from agents.crews.evidence import call_row, ended_fields
from agents.crews.members.member import Member
from agents.crews.script import JUDGED, Step
from agents.gates import approvals
from agents.gates.chosen import why_different
from agents.gates.policies import Act
from agents.streams.turn import Turn
from agents.tools.calls import Outcome


def permit_call(member: Member, turn: Turn, now: float) -> bool:
    """Policies decide about the call in turn; a person about what they leave open."""
    if member.state == "AwaitingPermission":
        _follow_decision(member, turn)
    elif member.state == "StreamingResponse" and member.position.met is None and (step := member.step) and step["do"] in JUDGED:
        _follow_policies(member, turn, step)
    return member.agent["state"] == "CONTINUE"


def _follow_policies(member: Member, turn: Turn, step: Step) -> None:
    act = member.next_act
    judgement = member.gate.judge(act)
    if judgement.decision == "deny":
        _refuse(member, turn, "tool_denied", act, f"denied by policy: {judgement.note or act.tool}")
    elif (judgement.decision == "ask" and not member.gate.covers(act, judgement.critical)) or step.get("confirm"):
        title = f"{member.assignment.title}: {judgement.note or 'may it call ' + act.tool + '?'}"
        member.move(turn, "tool_asks", reason=judgement.note)
        member.ask(turn, "tool", title, approvals.APPROVAL_S, action=act.action)
        member.wait(turn, "approval", approvals.APPROVAL_S, "waits for permission")
    elif step["do"] == "observe":
        member.observe(turn)
    else:
        member.perform(turn, "tool_allowed", act)


def _follow_decision(member: Member, turn: Turn) -> None:
    """A person has decided about a call."""
    approval, member.approval = member.approval, None
    assert approval is not None
    action = approval["action"]
    act = member.act_of(action["tool"], action["arguments"])
    if approval["state"] != "approved":
        why = f"refused by {approval['decided_by']}" + (f": {approval['reason']}" if approval["reason"] else "")
        _refuse(member, turn, "denied", act, why)
    # Policies and paths may have changed since the person was asked, and an approver cannot allow what a policy denies.
    elif not approvals.is_intact(approval) or member.gate.judge(act).decision == "deny":
        _refuse(member, turn, "denied", act, "what was approved is not what may be done")
    elif changed := why_different(action, act, is_edited=approval["edited"]):
        _refuse(member, turn, "denied", act, f"what was approved is not what would be done: {changed}")
    else:
        member.perform(turn, "approved", act)


def _refuse(member: Member, turn: Turn, event: str, act: Act, why: str) -> None:
    """A call that must not be made is a failed action, and goes back to whoever wanted it."""
    begun = call_row(act.tool, act.arguments, "", member.memory.settings)
    ended = ended_fields({**begun, "error": ""}, Outcome("failed", error_kind="denied"), why, turn.at)
    row = member.note(turn, **{**begun, **ended}, ordered=member.script.is_ordered(member.position))
    if member.script.plain:  # the same call again would be refused again
        member.last_outcome = Outcome("failed", error=why, error_kind="denied", reason="denied")
    position = replace(member.position, met=False, error=why, tries=member.position.tries + 1)
    member.move(turn, event, position, reason=why, add={"evidence": [row]})


def wait_for_call(member: Member, turn: Turn, now: float) -> bool:
    """Wait for the call under way."""
    return member.state != "ExecutingTool" or member.outcome is not None


def is_free(member: Member, act: Act) -> bool:
    """Whether a call needs nobody's leave."""
    step = member.step
    return member.gate.judge(act).decision == "allow" and step is not None and not step.get("confirm")
