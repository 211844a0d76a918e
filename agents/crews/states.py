"""The device agent's states: what an agent does in each, a stateless function registered by platform.

Each moves its agent as far as the next wait; the crew calls again as long as something was recorded. A platform or a state that
nobody registered is an error of the agent, never a silent default (docs/machines.md, "3. Device agent").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agents.crews.errand import CODING_AGENTS
from agents.crews.follow import forget_leave
from agents.crews.lasting import CALL, follow_lasting_call
from agents.crews.members.member import Member
from agents.crews.minds.wording import outcome_text
from agents.crews.script import CONFIRMED, Step
from agents.crews.strategies import MINDS, PIPES, VIEWS
from agents.devices.profiles.platforms import PLATFORMS
from agents.errors import AgentsError
from agents.gates import approvals
from agents.streams.row_types import ApprovalRow
from agents.streams.turn import Turn
from agents.tools.calls import VIOLATION, Outcome
from agents.tools.catalogue import INSTRUCTION

State = Callable[[Member, Turn, float], None]
STATES: dict[str, dict[str, State]] = {}
APPROVED = "approved"


def register_states(platform: str, states: dict[str, State]) -> None:
    STATES[platform] = states


def go_on(member: Member, turn: Turn, now: float) -> None:
    """CONTINUE: the task's gate first, then one step after the other through the four processing phases."""
    if not member.loop:
        member.begin(turn)
    if member.waits_at_gate:
        _ask_for_the_task(member, turn)
    elif member.position.done and member.state == "Idle":
        if member.position.met is False:
            member.become(turn, "fail", reason=member.position.error)
        else:
            member.become(turn, "finish")
    else:
        pipe = (MINDS if member.script.chooses else PIPES)[member.agent["platform"]].values()
        moved = all(strategy(member, turn, now) for phase in pipe for strategy in phase)
        # The last strategy may have ended the agent, or have it wait.
        if moved and member.agent["state"] == "CONTINUE":
            member.become(turn, "step")


def _ask_for_the_task(member: Member, turn: Turn) -> None:
    """Look first, so that whoever is asked sees what it is about."""
    look = member.last_outcome
    if look is None and member.gate.judge(member.look_act).decision == "allow":
        member.observe(turn)
        return
    assignment, observed = member.assignment, None if look is None else look.result
    action = member.next_act.action if assignment.plain else {"phases": list(assignment.script)}
    if (mission := assignment.mission) is not None and assignment.is_in_words:
        words = {"name": mission.name, "description": mission.description, "tips": list(mission.tips)}
        action = {"tool": INSTRUCTION, "arguments": words}
    member.ask(turn, "task", assignment.title, approvals.APPROVAL_S, action=action, observed=observed)
    member.become(turn, "ask", reason="waits for a person")


def take_screenshot(member: Member, turn: Turn, now: float) -> None:
    """SCREENSHOT: an observation, and nothing else: only DATA_COLLECTION runs, as the platform has it for looking."""
    all(strategy(member, turn, now) for strategy in VIEWS[member.agent["platform"]])


def wait_while_pending(member: Member, turn: Turn, now: float) -> None:
    """PENDING: until the time, the answer or the child is there; then the agent needs its slot back."""
    WAITS[member.position.waits](member, turn, now)


def wait_for_leave(member: Member, turn: Turn, now: float) -> None:
    """PENDING, of a program that works on while it waits: it may end meanwhile."""
    if member.outcome is not None and member.state == "AwaitingPermission":
        forget_leave(member, turn)
    else:
        wait_while_pending(member, turn, now)


def _wait_for_time(member: Member, turn: Turn, now: float) -> None:
    if member.position.until is not None and now >= member.position.until and member.claim_slot():
        position = replace(member.position, waits="over", until=None)
        step = member.step
        if member.state == "StreamingResponse" and step is not None and step["do"] == "wait":
            position = member.script.keep_result(replace(position, met=True, waits=""), "the time is over", failed=False)
        member.become(turn, "received", position)


def _wait_for_answer(member: Member, turn: Turn, now: float) -> None:
    approval = member.approval
    assert approval is not None
    if approval["state"] == "waiting":
        if approvals.has_expired(approval, now):
            approvals.expire_approval(turn, approval)
            why = f"nobody answered in time: {approval['title']}"
            if member.state == "AwaitingPermission":
                member.last_outcome = Outcome("failed", error=why, error_kind="denied", reason="expired")
                member.move(turn, "expired", reason="nobody decided")
            member.become(turn, "timeout", reason=why)
        return
    # An approval is used once, and not before the agent can do what it is for.
    if not member.claim_slot():
        return
    approvals.use_approval(turn, approval)
    well = approval["state"] == APPROVED
    position = replace(member.position, waits="", until=None)
    step = member.step
    if member.state == "StreamingResponse" and step is not None:  # the step itself was the question
        member.approval = None
        wrong = _save(member, turn, step, approval["answer"]) if well else approval["reason"] or "refused"
        position = replace(position, met=not wrong, tries=position.tries + 1, error=wrong)
        position = member.script.keep_result(position, wrong or _said(approval), failed=bool(wrong))
    member.become(turn, "received" if well else "failed", position, reason=approval["reason"])
    if approval["kind"] != "callback":
        said = {"said": approval["answer"]} | ({"answers": approval["id"]} if member.script.chooses else {})
        row = member.note(turn, kind="user", success=True, arguments=said)
        turn.record("window_began", agent_id=member.agent["id"], add={"evidence": [row]})


def _said(approval: ApprovalRow) -> str:
    """A person's answer, or the report from outside, as text."""
    answer = approval["answer"]
    return answer if isinstance(answer, str) and answer else json.dumps(answer, ensure_ascii=False)


def _wait_for_child(member: Member, turn: Turn, now: float) -> None:
    """The app agent has ended, however it ended: its host takes over again."""
    outcome, step = member.child_outcome, member.step
    if outcome is None or step is None or not member.claim_slot():
        return
    member.child_outcome = None
    wrong = outcome.error or outcome.outcome
    if outcome.outcome == "completed":
        wrong = _save(member, turn, step, outcome.result)
    elif step["on_failure"] == "fail":  # why it ended says whether another attempt makes sense
        member.last_outcome = outcome
    position = replace(member.position, waits="", met=not wrong, tries=member.position.tries + 1, error=wrong)
    if outcome.reason == VIOLATION:  # nobody goes on with a task in which that has happened
        member.last_outcome = outcome
        member.become(turn, "received", position, reason=wrong)
        member.become(turn, "fail", reason=wrong)
        return
    if member.script.chooses:
        position = member.script.keep_result(position, outcome_text(outcome, wrong), failed=bool(wrong))
    member.become(turn, "received", position, reason=wrong)


def _save(member: Member, turn: Turn, step: Step, value: Any) -> str:
    """Put what came where the step says; why that is not possible, empty when it is."""
    try:
        member.blackboard.save(turn, step["save"], value)
    except AgentsError as error:
        return str(error)
    return ""


WAITS: dict[str, State] = {
    "time": _wait_for_time, "approval": _wait_for_answer, "child": _wait_for_child, CALL: follow_lasting_call,
}  # fmt: skip


def wait_for_confirmation(member: Member, turn: Turn, now: float) -> None:
    """CONFIRM: a person decides about the task, exactly as it was shown."""
    approval = member.approval
    assert approval is not None
    if approval["state"] == "waiting":
        if approvals.has_expired(approval, now):
            approvals.expire_approval(turn, approval)
            _refuse(member, turn, "expired", "nobody decided in time")
    elif approval["state"] != APPROVED:
        approvals.use_approval(turn, approval)
        why = f"rejected by {approval['decided_by']}" + (f": {approval['reason']}" if approval["reason"] else "")
        _refuse(member, turn, "rejected", why, by=approval["decided_by"])
    elif member.claim_slot():
        approvals.use_approval(turn, approval)
        if approvals.is_intact(approval) and not member.waits_at_gate:  # a call that it wanted confirmed: exactly that is made
            member.become(turn, "approved", replace(member.position, waits=CONFIRMED), by=approval["decided_by"])
            return
        member.approval = None
        if approvals.is_intact(approval):
            member.pass_gate(approval)
            member.become(turn, "approved", by=approval["decided_by"])
        else:
            member.become(turn, "error", reason="what was approved is not what was asked for")


def _refuse(member: Member, turn: Turn, event: str, why: str, by: str = "") -> None:
    """Without the approval the task cannot be done, and is not tried again."""
    member.last_outcome = Outcome("failed", error=why, error_kind="denied", reason=event)
    member.become(turn, event, reason=why, by=by)


USUAL: dict[str, State] = {
    "CONTINUE": go_on,
    "PENDING": wait_while_pending,
    "CONFIRM": wait_for_confirmation,
    "SCREENSHOT": take_screenshot,
}
for name in PLATFORMS:  # what differs between them is in their pipes
    register_states(name, USUAL)
register_states(CODING_AGENTS, {**USUAL, "PENDING": wait_for_leave})
