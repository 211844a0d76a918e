"""What an agent knows and what it does next: the strategies of DATA_COLLECTION and LLM_INTERACTION."""

from __future__ import annotations

from dataclasses import replace

from agents.crews.evidence import message_row
from agents.crews.members.member import Member
from agents.crews.script import JUDGED, Position, Step
from agents.errors import AgentsError
from agents.machines.tool_loop import WORKING
from agents.streams.turn import Turn


def note_resources(member: Member, turn: Turn, now: float) -> bool:
    """Stop working while the device is short of memory, disk or processor; go on where it stopped.

    Who waits to make a lost call again (agents.crews.recover) goes on when the device is there.
    """
    low = member.assignment.device.get("low", "")
    if member.state == "ResourcePaused" and member.position.fault == "lost":
        low = low or member.why_away
    # A call under way goes on; the agent stops before the next one.
    if low and member.state in WORKING and member.row is None and member.asked is None:
        member.move(turn, "resources_low", left=member.state, reason=low)
    elif not low and member.state == "ResourcePaused":
        member.move(turn, "resources_ok", left="")
    return member.state != "ResourcePaused"


def prompt_agent(member: Member, turn: Turn, now: float) -> bool:
    """The task, or its next phase, becomes a prompt; a script answers at once."""
    if member.state == "Idle":
        member.move(turn, "start_phase" if member.script.total else "prompt")
    if member.state == "PhaseTransition":
        position: Position | None = member.position
        if member.phases.current is not None:
            member.phases.complete(turn)
            position = member.script.next_phase(member.position)
        if position is None:
            member.move(turn, "all_done", replace(member.position, done=True))
        else:
            # The row of the new window takes its phase from the position, so that has to be there before it is recorded.
            member.position = position
            member.phases.start(turn, member.script, position.phase)
            window = member.note(turn, kind="phase", success=True)
            member.move(turn, "phase_started", add={"evidence": [window]})
    if member.state == "ProcessingPrompt":
        member.move(turn, "responding")
    return member.state != "Idle"


def answer_prompt(member: Member, turn: Turn, now: float) -> bool:
    """What the agent does next. Calls go on down the pipe; what else it does, it does here."""
    if member.state != "StreamingResponse":
        return True
    position = member.script.pass_over(member.position, member.blackboard.values)
    step = member.script.step(position)
    if position.met is not None or step is None:
        member.move(turn, "said", position, reason=position.error)
        return True
    member.position = position
    return step["do"] in JUDGED or _do_without_a_tool(member, turn, step)


def _do_without_a_tool(member: Member, turn: Turn, step: Step) -> bool:
    """What an agent does besides calling tools and looking, which are judged first; False where it waits for something now."""
    if step["do"] == "say":
        row = member.note(turn, **message_row(step["text"]), ordered=True)
        member.move(turn, "said", replace(member.position, met=True), add={"evidence": [row]})
        return True
    if step["do"] == "ask":
        member.ask(turn, "question", step["question"], step["timeout"], options=step["options"])
        member.wait(turn, "approval", step["timeout"], f"asks: {step['question']}")
    elif step["do"] == "delegate":
        return _delegate_step(member, turn, step)
    elif step["seconds"] is not None:  # it waits, for a time or for somebody's word
        member.wait(turn, "time", step["seconds"], f"waits {step['seconds']:g} s")
    else:
        member.ask(turn, "callback", step["for"], step["timeout"])
        member.wait(turn, "approval", step["timeout"], f"waits for {step['for']}")
    return False


def _delegate_step(member: Member, turn: Turn, step: Step) -> bool:
    """Where there is no device for the app agent the step has failed, and its plan says what then."""
    try:
        member.delegate(turn, step)
    except AgentsError as error:
        position = replace(member.position, met=False, tries=member.position.tries + 1, error=str(error)[:2000])
        member.move(turn, "said", position, reason=str(error))
        return True
    return False
