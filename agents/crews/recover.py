"""ErrorRecovery: what an agent does after a fault, and when it is told that it is stuck."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agents.crews.check import STUCK
from agents.crews.members.member import Member
from agents.crews.permit import is_free
from agents.crews.think import mind_of
from agents.crews.ways import FIRST_S, LONGEST_S, STRETCH, model_way, way_out
from agents.faults import pause_seconds
from agents.gates import approvals
from agents.minds.budgets.more import asks, open_budget_approval
from agents.streams.turn import Turn
from agents.tools.calls import Outcome

AGAIN, SKIP, GIVE_UP = "try again", "skip it", "give up"
"""What a person may answer when something is missing."""


def recover_agent(member: Member, turn: Turn, now: float) -> bool:
    """What follows from being stuck, or from a fault, by its kind."""
    if member.state != "ErrorRecovery":
        return True
    if member.memory.verdict is not None and member.memory.verdict.action == "halt":
        member.halt(turn, member.memory.verdict)
        return True
    if member.position.fault == STUCK:
        _steer(member, turn)
        return True
    step = member.step
    if step is None:  # it is the call of its model that went wrong
        return MODEL_WAYS[model_way(member.position.fault, member.position.faults)](member, turn)
    is_over = member.position.fault == "lost" and member.stands_on_device
    if member.script.plain or is_over:  # the task's own attempts and `on_lost` decide
        return _give_up(member, turn)
    own = step.get("tries", 1) > 1 or step.get("on_failure") == "continue"
    detour = bool(step.get("recover")) and member.position.detour < 0
    on_lost = member.assignment.on_lost
    if member.gate.asks and on_lost == "retry":  # what a person has let through at the gate is not repeated without asking
        on_lost = "ask"
    way = way_out(member.position.fault, member.position.faults, on_lost=on_lost, detour=detour, own=own)
    return WAYS[way](member, turn)


def _steer(member: Member, turn: Turn) -> bool:
    """Told what it did, the agent goes on: with the next step, or the detour this one names, or as before."""
    why = member.memory.verdict.sentence if member.memory.verdict else member.position.error
    member.memory.verdict = None
    nudge = member.note(turn, kind="nudge", success=True, arguments={"text": why})
    if member.position.met and not member.script.chooses:
        member.move(turn, "check", replace(member.position, fault=""), reason=why, add={"evidence": [nudge]})
    else:
        position = replace(member.script.steer(member.position), fault="", met=None)
        member.move(turn, "steer", position, reason=why, add={"evidence": [nudge]})
    return True


def _retry(member: Member, turn: Turn, stretch: float = 1.0) -> bool:
    """The same call again. What was allowed by a person was allowed once, and is asked for anew.

    What was lost with its device is made when that is back: a call to a device that is away would only be lost as well.
    """
    if member.position.fault == "lost" and (why := member.why_away):
        member.move(turn, "resources_low", left=member.state, reason=why)
        return False
    member.memory.verdict = None
    position = replace(member.position, met=None, fault="", waits="", stretch=member.position.stretch * stretch)
    act = member.next_act
    if is_free(member, act):
        member.perform(turn, "retry", act, position)
    else:
        member.move(turn, "steer", position, reason="asks again")
    return True


def _retry_longer(member: Member, turn: Turn) -> bool:
    return _retry(member, turn, STRETCH)


def _wait_first(member: Member, turn: Turn) -> bool:
    """The same call again after a pause, which is longer after each fault."""
    if member.position.waits == "over":
        return _retry(member, turn)
    return _pause(member, turn)


def _pause(member: Member, turn: Turn) -> bool:
    seconds = pause_seconds(member.position.faults, member.agent["id"], FIRST_S, LONGEST_S)
    member.wait(turn, "time", seconds, f"tries again in {seconds:.1f} s after {member.position.fault}")
    return False


def _check(member: Member, turn: Turn) -> bool:
    """The step has an answer of its own to a failure."""
    member.move(turn, "check", replace(member.position, fault=""))
    return True


def _give_up(member: Member, turn: Turn) -> bool:
    if member.position.fault == "lost" and not member.script.plain:
        # `on_lost` was about the call, and has ruled out another attempt as well; or it is still to be asked about the attempt.
        reason = "" if member.stands_on_device else "lost"
        member.last_outcome = Outcome("lost", error=member.position.error, error_kind="lost", reason=reason)
    position = replace(member.position, met=False, done=True)
    member.move(turn, "give_up", position, reason=f"{member.position.fault}: {member.position.error}")
    return True


def _ask_a_person(member: Member, turn: Turn) -> bool:
    """Something is missing, or must not be touched, or nobody knows how it ended: somebody may know better."""
    # Nobody can say how soon a person finds out what became of a lost call, so that question does not expire.
    seconds = None if member.position.fault == "lost" else approvals.WAIT_S
    choice = _answer_of_a_person(member, turn, seconds, (AGAIN, SKIP, GIVE_UP))
    if not choice:
        return False
    if choice == AGAIN:
        return _retry(member, turn)
    if choice == SKIP:
        member.block_phase(turn, member.position.error)
        member.move(turn, "check", replace(member.position, met=True, fault="", error=""))
        return True
    return _give_up(member, turn)


def _answer_of_a_person(member: Member, turn: Turn, seconds: float | None, options: tuple[str, ...]) -> str:
    """Which of the options a person has chosen; empty where nobody has yet, and the agent waits."""
    approval, member.approval = member.approval, None
    if approval is None:
        member.ask(turn, "question", f"{member.assignment.title}: {member.position.error}", seconds, options=options)
        member.wait(turn, "approval", seconds, "asks what to do now")
        return ""
    return str(approval["answer"]) if approval["state"] == "approved" else GIVE_UP


WAYS: dict[str, Callable[[Member, Turn], bool]] = {
    "retry": _retry, "wait": _wait_first, "longer": _retry_longer, "steer": _steer, "ask": _ask_a_person, "check": _check,
    "give_up": _give_up,
}  # fmt: skip


# Faults of an agent's model


def _ask_again(member: Member, turn: Turn) -> bool:
    member.move(turn, "steer", replace(member.position, fault="", waits="", met=None), reason="asks its model again")
    return True


def _ask_later(member: Member, turn: Turn) -> bool:
    return _ask_again(member, turn) if member.position.waits == "over" else _pause(member, turn)


def _ask_shorter(member: Member, turn: Turn) -> bool:
    member.position = replace(member.position, shorter=member.position.shorter + 1)
    return _ask_again(member, turn)


def _ask_whether(member: Member, turn: Turn) -> bool:
    """A person can mend it: a key, a quota, a profile."""
    choice = _answer_of_a_person(member, turn, approvals.APPROVAL_S, (AGAIN, GIVE_UP))
    if not choice:
        return False
    return _ask_again(member, turn) if choice == AGAIN else _give_up(member, turn)


def _ask_for_more(member: Member, turn: Turn) -> bool:
    """Its budget is used up. Where that says so, a person may raise it, which is done in the commit of the decision."""
    facts = (mind_of(member).rows[-1]["result"] or {}).get("budget")
    approval, member.approval = member.approval, None
    if approval is None:
        if facts is None or not asks(facts):
            return _give_up(member, turn)
        member.approval = open_budget_approval(
            turn, member.assignment.stream, member.assignment.task, facts, agent=member.agent["id"]
        )
        member.wait(turn, "approval", approvals.APPROVAL_S, "asks for more of its budget")
        return False
    return _ask_again(member, turn) if approval["state"] == "approved" else _give_up(member, turn)


MODEL_WAYS: dict[str, Callable[[Member, Turn], bool]] = {
    "wait": _ask_later, "steer": _ask_again, "shorten": _ask_shorter, "ask": _ask_whether, "more": _ask_for_more,
    "give_up": _give_up,
}  # fmt: skip
