"""Which calls are made: the strategies of ACTION_EXECUTION. Policies decide, and people about what these leave open."""

from __future__ import annotations

from dataclasses import replace

from agents.crews.apps import why_not_of_app
from agents.crews.evidence import call_row, ended_fields
from agents.crews.lasting import begin_to_last
from agents.crews.members.member import Member
from agents.crews.platforms import look_tool
from agents.crews.script import CONFIRMED, JUDGED, LOOKED, Step
from agents.gates import approvals
from agents.gates.chosen import why_different
from agents.gates.policies import Act, Judgement
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
    if member.position.waits == CONFIRMED:
        _follow_decision(member, turn, "tool_allowed", "tool_denied")
        return
    act = member.next_act
    if why := _why_not_of_app(member, act):
        _refuse(member, turn, "tool_denied", act, why)
        return
    judgement = judge_call(member, act)
    if judgement.decision == "deny":
        _refuse(member, turn, "tool_denied", act, f"denied by policy: {judgement.note or act.tool}")
    elif step.get("gate"):
        _confirm(member, turn, step, act)
    elif (judgement.decision == "ask" and not _is_covered(member, act, judgement)) or step.get("confirm"):
        title = f"{member.assignment.title}: {judgement.note or 'may it call ' + act.tool + '?'}"
        member.move(turn, "tool_asks", reason=judgement.note)
        member.ask(turn, "tool", title, approvals.APPROVAL_S, action=act.action)
        member.wait(turn, "approval", approvals.APPROVAL_S, "waits for permission")
    elif step["do"] == "observe":
        member.observe(turn)
    else:
        member.perform(turn, "tool_allowed", act)


def _why_not_of_app(member: Member, act: Act) -> str:
    """Why the app that it is held to does not offer the call; empty where it does. To look is its platform's own."""
    platform = member.agent["platform"]
    if act.tool == look_tool(platform):
        return ""
    return why_not_of_app(member.agent["app"], platform, act.tool, act.argv)


def _confirm(member: Member, turn: Turn, step: Step, act: Act) -> None:
    """CONFIRM for one call. Look first, where nobody has to be asked about that, so that the person sees what it is about."""
    has_looked = member.position.waits == LOOKED
    if not has_looked and judge_call(member, member.look_act).decision == "allow":
        member.observe(turn)
        return
    look = member.last_outcome if has_looked else None
    title = f"{member.assignment.title}: {step['gate']}"
    observed = None if look is None else look.result
    member.ask(turn, "task", title, approvals.APPROVAL_S, action=act.action, observed=observed)
    member.become(turn, "ask", reason="waits for a person")


def judge_call(member: Member, act: Act) -> Judgement:
    """What the policies say of a call, and where a model chose it, what it may choose without asking."""
    return member.gate.judge_chosen(act) if member.script.is_chosen else member.gate.judge(act)


def _is_covered(member: Member, act: Act, judgement: Judgement) -> bool:
    """Whether who let the task begin has answered this, too. They have seen a model's task, and none of its calls."""
    return not member.script.chooses and member.gate.covers(act, judgement.critical)


def _follow_decision(member: Member, turn: Turn, approved: str = "approved", denied: str = "denied") -> None:
    """A person has decided about a call; the events are those of the loop's state."""
    approval, member.approval = member.approval, None
    assert approval is not None
    action = approval["action"]
    act = member.act_of(action["tool"], action["arguments"])
    if approval["state"] != "approved":
        why = f"refused by {approval['decided_by']}" + (f": {approval['reason']}" if approval["reason"] else "")
        _refuse(member, turn, denied, act, why)
    elif why := _why_not_of_app(member, act):  # an approver may have changed the call
        _refuse(member, turn, denied, act, why)
    # Policies and paths may have changed since the person was asked, and an approver cannot allow what a policy denies.
    elif not approvals.is_intact(approval) or member.gate.judge(act).decision == "deny":
        _refuse(member, turn, denied, act, "what was approved is not what may be done")
    elif changed := why_different(action, act, is_edited=approval["edited"]):
        _refuse(member, turn, denied, act, f"what was approved is not what would be done: {changed}")
    else:
        member.perform(turn, approved, act)


def _refuse(member: Member, turn: Turn, event: str, act: Act, why: str) -> None:
    """A call that must not be made is a failed action, and goes back to whoever wanted it."""
    begun = call_row(act.tool, act.arguments, "", member.memory.settings)
    ended = ended_fields({**begun, "error": ""}, Outcome("failed", error_kind="denied"), why, turn.at)
    row = member.note(turn, **{**begun, **ended}, ordered=member.script.is_ordered(member.position))
    if member.script.plain:  # the same call again would be refused again
        member.last_outcome = Outcome("failed", error=why, error_kind="denied", reason="denied")
    position = replace(member.position, met=False, error=why, tries=member.position.tries + 1, waits="")
    position = member.script.keep_result(position, why, failed=True)
    member.move(turn, event, position, reason=why, add={"evidence": [row]})


def wait_for_call(member: Member, turn: Turn, now: float) -> bool:
    """Wait for the call under way; one that lasts is waited for in PENDING."""
    if member.state != "ExecutingTool" or member.outcome is not None:
        return True
    begin_to_last(member, turn)
    return False


def is_free(member: Member, act: Act) -> bool:
    """Whether a call needs nobody's leave."""
    step = member.step
    return judge_call(member, act).decision == "allow" and step is not None and not step.get("confirm")
