"""The four processing phases of a device agent's step, as pipes of small strategies registered by platform.

A strategy moves the tool loop on from the states it knows and leaves all others alone, so a pipe can be entered anew at any
time: after a crash, a pause, an approval. It returns False where the agent has to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agents.acting import asking
from agents.acting.member import Member
from agents.acting.memory import call_row, ended_fields, message_row
from agents.acting.recovery import FAULTS, FIRST_S, LONGEST_S, STRETCH, way_out
from agents.acting.script import Position, Step
from agents.engine.tools import Outcome
from agents.errors import AgentsError
from agents.machines.device_agent import PROCESSING_PHASES
from agents.machines.tool_loop import WORKING
from agents.tables import Fields
from agents.transient import pause
from agents.turns import Turn

Strategy = Callable[[Member, Turn, float], bool]
Pipe = dict[str, tuple[Strategy, ...]]
PIPES: dict[str, Pipe] = {}
STUCK = "stuck"
AGAIN, SKIP, GIVE_UP = "try again", "skip it", "give up"
"""What a person may answer when something is missing."""


def register(platform: str, pipe: Pipe) -> None:
    """The pipe of a platform; raises ValueError for one that leaves a processing phase out."""
    if tuple(pipe) != PROCESSING_PHASES:
        raise ValueError(f"the pipe of {platform} must have the phases {', '.join(PROCESSING_PHASES)}, in this order")
    PIPES[platform] = pipe


# DATA_COLLECTION


def note_resources(member: Member, turn: Turn, now: float) -> bool:
    """Stop working while the device is short of memory, disk or processor; go on where it stopped."""
    low = member.crew.scene.device.get("low", "")
    if low and member.state in WORKING and member.row is None:
        member.move(turn, "resources_low", left=member.state, reason=low)
    elif not low and member.state == "ResourcePaused":
        member.move(turn, "resources_ok", left="")
    return member.state != "ResourcePaused"


# LLM_INTERACTION


def prompt(member: Member, turn: Turn, now: float) -> bool:
    """The task, or its next phase, becomes a prompt; a script answers at once."""
    if member.state == "Idle":
        member.move(turn, "start_phase" if member.script.total else "prompt")
    if member.state == "PhaseTransition":
        _next_phase(member, turn)
    if member.state == "ProcessingPrompt":
        member.move(turn, "responding")
    return member.state != "Idle"


def _next_phase(member: Member, turn: Turn) -> None:
    at: Position | None = member.at
    if member.phases.now is not None:
        member.phases.complete(turn)
        at = member.script.next_phase(member.at)
    if at is None:
        member.move(turn, "all_done", replace(member.at, done=True))
        return
    member.at = at
    member.phases.start(turn)
    window = member.note(turn, kind="phase", success=True)
    member.move(turn, "phase_started", add={"evidence": [window]})


def answer(member: Member, turn: Turn, now: float) -> bool:
    """What the agent does next. Calls go on down the pipe; what else it does, it does here."""
    if member.state != "StreamingResponse":
        return True
    at, step = _next_step(member)
    if at.met is not None or step is None:
        member.move(turn, "said", at, reason=at.error)
        return True
    member.at = at
    return step["do"] == "call" or DO[step["do"]](member, turn, step)


def _next_step(member: Member) -> tuple[Position, Step | None]:
    at = member.script.pass_over(member.at, member.crew.blackboard)
    return at, member.script.step(at)


def _say(member: Member, turn: Turn, step: Step) -> bool:
    row = member.note(turn, **message_row(step["text"]))
    member.move(turn, "said", replace(member.at, met=True), add={"evidence": [row]})
    return True


def _ask(member: Member, turn: Turn, step: Step) -> bool:
    member.ask(turn, "question", step["question"], step["timeout"], options=step["options"])
    member.wait(turn, "approval", step["timeout"], f"asks: {step['question']}")
    return False


def _observe(member: Member, turn: Turn, step: Step) -> bool:
    member.observe(turn)
    return False


def _wait(member: Member, turn: Turn, step: Step) -> bool:
    if step["seconds"] is not None:
        member.wait(turn, "time", step["seconds"], f"waits {step['seconds']:g} s")
    else:
        member.ask(turn, "callback", step["for"], step["timeout"])
        member.wait(turn, "approval", step["timeout"], f"waits for {step['for']}")
    return False


def _delegate(member: Member, turn: Turn, step: Step) -> bool:
    member.crew.delegate(turn, member, step)
    return False


DO: dict[str, Callable[[Member, Turn, Step], bool]] = {
    "say": _say, "ask": _ask, "observe": _observe, "wait": _wait, "delegate": _delegate,
}  # fmt: skip
"""What an agent does besides calling tools."""


# ACTION_EXECUTION


def permit(member: Member, turn: Turn, now: float) -> bool:
    """Policies decide about the call in turn; a person about what they leave open."""
    if member.state == "AwaitingPermission":
        _decided(member, turn)
    elif member.state == "StreamingResponse" and member.at.met is None and (step := member.step) and step["do"] == "call":
        _judge(member, turn, step)
    return member.agent["state"] == "CONTINUE"


def _judge(member: Member, turn: Turn, step: Step) -> None:
    action = member.action()
    judgement = member.judged(action)
    if judgement.decision == "deny":
        _refused(member, turn, "tool_denied", action, f"denied by policy: {judgement.note or action['tool']}")
    elif (judgement.decision == "ask" and not member.crew.covers(judgement.critical)) or step["confirm"]:
        title = f"{member.crew.scene.title}: {judgement.note or 'may it call ' + action['tool'] + '?'}"
        member.move(turn, "tool_asks", reason=judgement.note)
        member.ask(turn, "tool", title, asking.APPROVAL_S, action=action)
        member.wait(turn, "approval", asking.APPROVAL_S, "waits for permission")
    else:
        member.perform(turn, "tool_allowed", action)


def _decided(member: Member, turn: Turn) -> None:
    """A person has decided about a call."""
    approval, member.approval = member.approval, None
    assert approval is not None
    action = approval["action"]
    if approval["state"] != "approved":
        said = f"refused by {approval['decided_by']}" + (f": {approval['reason']}" if approval["reason"] else "")
        _refused(member, turn, "denied", action, said)
    elif not asking.intact(approval) or member.judged(action).decision == "deny":
        _refused(member, turn, "denied", action, "what was approved is not what may be done")
    else:
        member.perform(turn, "approved", action)


def _refused(member: Member, turn: Turn, event: str, action: Fields, why: str) -> None:
    """A call that must not be made is a failed action, and goes back to whoever wanted it."""
    known = call_row(action["tool"], action["arguments"], "", member.memory.settings)
    ended = ended_fields({**known, "error": ""}, Outcome("failed", error_kind="denied"), why, turn.at)
    row = member.note(turn, **{**known, **ended})
    if member.script.plain:  # the same call again would be refused again
        member.said = Outcome("failed", error=why, error_kind="denied", reason="denied")
    at = replace(member.at, met=False, error=why, tries=member.at.tries + 1)
    member.move(turn, event, at, reason=why, add={"evidence": [row]})


def perform(member: Member, turn: Turn, now: float) -> bool:
    """Wait for the call under way."""
    return member.state != "ExecutingTool" or member.outcome is not None


# MEMORY_UPDATE


def remember(member: Member, turn: Turn, now: float) -> bool:
    """The end of a call becomes evidence; what it found goes to the blackboard and into the record of the phase."""
    outcome, row, step = member.outcome, member.row, member.step
    if member.state != "ExecutingTool" or outcome is None or row is None or step is None:
        return True
    wrong = _wrong(member, step, outcome)
    at = replace(member.at, met=not wrong, error=wrong[:2000], tries=member.at.tries + 1, waits="")
    faulty = bool(wrong) and outcome.error_kind in FAULTS
    if faulty:
        at = replace(at, fault=outcome.error_kind, faults=at.faults + 1)
    fields = member.end_row(turn, outcome, wrong)
    also = {"evidence": {str(row["id"]): fields}}
    member.move(turn, "fault" if faulty else "returned", at, reason=wrong, also=also)
    member.phases.changed(turn, row)
    if step["save"] and not wrong:
        member.crew.save(turn, step["save"], outcome.result if outcome.result is not None else outcome.text)
    return True


def _wrong(member: Member, step: Step, outcome: Outcome) -> str:
    """What was missing from a call, by the step's expectation; empty when nothing was."""
    try:
        wrong = member.script.shortfall(step, outcome)
        if step["save"] and not wrong:
            member.crew.check_room(step["save"], outcome.result if outcome.result is not None else outcome.text)
    except AgentsError as error:
        return str(error)
    return wrong


def check_progress(member: Member, turn: Turn, now: float) -> bool:
    """Stuck or not, and what comes next."""
    if member.state != "ProgressCheck":
        return True
    verdict = member.memory.verdict
    if verdict is not None:
        _stuck(member, turn)
        return True
    before = member.at
    course, at = member.script.course(before)
    at = replace(at, waits="")
    if before.met is False and before.detour < 0 and course in ("next", "phase_done", "done"):
        member.phases.blocked(turn, before.error)
    if course == "again":
        return _again(member, turn, before, at)
    event = {"next": "progress", "failed": "done"}.get(course, course)
    member.move(turn, event, at, reason=before.error if course == "failed" else "")
    return True


def _again(member: Member, turn: Turn, before: Position, at: Position) -> bool:
    """The same step once more: after its pause, at once, or by way of an answer."""
    step = member.script.step(at)
    if step is not None and step.get("every") and before.detour < 0:
        member.wait(turn, "time", step["every"], f"looks again in {step['every']:g} s", at=at)
        return False
    member.at = at
    if before.detour < 0 and _is_free(member, member.action()):
        member.perform(turn, "next_call", member.action(), at)
    else:
        member.move(turn, "progress", at)
    return True


def _stuck(member: Member, turn: Turn) -> None:
    verdict = member.memory.verdict
    assert verdict is not None
    if verdict.action == "halt":
        member.halt(turn, verdict)
    else:
        member.move(turn, "stuck", replace(member.at, fault=STUCK), reason=verdict.sentence)


def recover(member: Member, turn: Turn, now: float) -> bool:
    """What follows from being stuck, or from a fault, by its kind."""
    if member.state != "ErrorRecovery":
        return True
    if member.memory.verdict is not None and member.memory.verdict.action == "halt":
        member.halt(turn, member.memory.verdict)
        return True
    if member.at.fault == STUCK:
        _steer(member, turn)
        return True
    step = member.step
    assert step is not None
    if member.script.plain:  # the task's own attempts and `on_lost` decide
        return _give_up(member, turn)
    own = step.get("tries", 1) > 1 or step.get("on_failure") == "continue"
    detour = bool(step.get("recover")) and member.at.detour < 0
    way = way_out(member.at.fault, member.at.faults, on_lost=_on_lost(member), detour=detour, own=own)
    return WAYS[way](member, turn)


def _on_lost(member: Member) -> str:
    """What a person has let through at the task's gate is not repeated without asking."""
    scene = member.crew.scene
    return "ask" if scene.gate and scene.on_lost == "retry" else scene.on_lost


def _steer(member: Member, turn: Turn) -> bool:
    """Told what it did, the agent goes on: with the next step, or the detour this one names, or as before."""
    said = member.memory.verdict.sentence if member.memory.verdict else member.at.error
    member.memory.verdict = None
    nudge = member.note(turn, kind="nudge", success=True, arguments={"text": said})
    if member.at.met:
        member.move(turn, "check", replace(member.at, fault=""), reason=said, add={"evidence": [nudge]})
    else:
        at = replace(member.script.steered(member.at), fault="", met=None)
        member.move(turn, "steer", at, reason=said, add={"evidence": [nudge]})
    return True


def _retry(member: Member, turn: Turn, stretch: float = 1.0) -> bool:
    """The same call again. What was allowed by a person was allowed once, and is asked for anew."""
    member.memory.verdict = None
    at = replace(member.at, met=None, fault="", waits="", stretch=member.at.stretch * stretch)
    if _is_free(member, member.action()):
        member.perform(turn, "retry", member.action(), at)
    else:
        member.move(turn, "steer", at, reason="asks again")
    return True


def _is_free(member: Member, action: Fields) -> bool:
    """Whether a call needs nobody's leave."""
    step = member.step
    return member.judged(action).decision == "allow" and step is not None and not step["confirm"]


def _longer(member: Member, turn: Turn) -> bool:
    return _retry(member, turn, STRETCH)


def _wait_first(member: Member, turn: Turn) -> bool:
    if member.at.waits == "over":
        return _retry(member, turn)
    seconds = pause(member.at.faults, member.agent["id"], FIRST_S, LONGEST_S)
    member.wait(turn, "time", seconds, f"tries again in {seconds:.1f} s after {member.at.fault}")
    return False


def _check(member: Member, turn: Turn) -> bool:
    member.move(turn, "check", replace(member.at, fault=""))
    return True


def _give_up(member: Member, turn: Turn) -> bool:
    if member.at.fault == "lost" and not member.script.plain:  # `on_lost` has ruled out another attempt as well
        member.said = Outcome("lost", error=member.at.error, error_kind="lost", reason="lost")
    at = replace(member.at, met=False, done=True)
    member.move(turn, "give_up", at, reason=f"{member.at.fault}: {member.at.error}")
    return True


def _ask_a_person(member: Member, turn: Turn) -> bool:
    """Something is missing, or must not be touched, or nobody knows how it ended: somebody may know better."""
    approval, member.approval = member.approval, None
    if approval is None:
        title = f"{member.crew.scene.title}: {member.at.error}"
        lost = member.at.fault == "lost"
        seconds = None if lost else asking.WAIT_S
        member.ask(turn, "question", title, seconds, options=(AGAIN, SKIP, GIVE_UP))
        member.wait(turn, "approval", seconds, "asks what to do now")
        return False
    said = approval["answer"] if approval["state"] == "approved" else GIVE_UP
    if said == AGAIN:
        return _retry(member, turn)
    if said == SKIP:
        member.phases.blocked(turn, member.at.error)
        member.move(turn, "check", replace(member.at, met=True, fault="", error=""))
        return True
    return _give_up(member, turn)


WAYS: dict[str, Callable[[Member, Turn], bool]] = {
    "retry": _retry, "wait": _wait_first, "longer": _longer, "steer": _steer, "ask": _ask_a_person, "check": _check,
    "give_up": _give_up,
}  # fmt: skip

SHELL: Pipe = {
    "DATA_COLLECTION": (note_resources,),
    "LLM_INTERACTION": (prompt, answer),
    "ACTION_EXECUTION": (note_resources, permit, perform),
    "MEMORY_UPDATE": (remember, check_progress, recover),
}
register("shell", SHELL)
