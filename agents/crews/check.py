"""What a call brought, and what comes next: the first strategies of MEMORY_UPDATE."""

from __future__ import annotations

from dataclasses import replace

from agents.crews.evidence import TRIES_USED_UP
from agents.crews.members.member import Member
from agents.crews.minds.wording import is_part, outcome_text
from agents.crews.permit import is_free
from agents.crews.script import Position
from agents.crews.ways import FAULTS
from agents.errors import AgentsError
from agents.streams.turn import Turn

STUCK = "stuck"
"""The fault of an agent that gets nowhere."""


def remember_end(member: Member, turn: Turn, now: float) -> bool:
    """The end of a call becomes evidence; what it found goes to the blackboard and into the record of the phase."""
    outcome, row, step = member.outcome, member.row, member.step
    if member.state != "ExecutingTool" or outcome is None or row is None or step is None:
        return True
    found = outcome.result if outcome.result is not None else outcome.text
    try:
        wrong = member.script.find_shortfall(step, outcome)
        # Before anything is recorded: a result that cannot be kept has not come.
        if step["save"] and not wrong:
            member.blackboard.check_room(step["save"], found)
    except AgentsError as error:
        wrong = str(error)
    position = replace(member.position, met=not wrong, error=wrong[:2000], tries=member.position.tries + 1, waits="")
    if member.script.chooses:
        position = member.script.keep_result(position, outcome_text(outcome, wrong), failed=bool(wrong))
    faulty = bool(wrong) and outcome.error_kind in FAULTS
    if faulty:
        position = replace(position, fault=outcome.error_kind, faults=position.faults + 1)
    fields = member.end_row(turn, outcome, wrong)
    if row["verdict"] and row["verdict"]["rule"] == TRIES_USED_UP:
        wrong = f"tried {step['tries']} of {step['tries']} times; the last error: {wrong}"
        position = replace(position, error=wrong[:2000])
    also = {"evidence": {str(row["id"]): fields}}
    event = "fault" if faulty else "returned"
    if member.script.chooses and is_part(outcome) and not wrong and member.memory.verdict is None:
        event, position = "streamed", member.script.choose_course(position)[1]
    member.move(turn, event, position, reason=wrong, also=also)
    member.phases.note_call(turn, row)
    if not wrong:
        member.blackboard.save(turn, step["save"], found)
    return True


def check_progress(member: Member, turn: Turn, now: float) -> bool:
    """Stuck or not, and what comes next."""
    if member.state != "ProgressCheck":
        return True
    verdict = member.memory.verdict
    if verdict is not None:
        if verdict.action == "halt":
            member.halt(turn, verdict)
        else:
            member.move(turn, "stuck", replace(member.position, fault=STUCK), reason=verdict.sentence)
        return True
    before = member.position
    course, position = member.script.choose_course(before)
    position = replace(position, waits="")
    # Going on although a step failed is the plan's wish, but the phase has not gone well; a detour is no step of its own.
    if before.met is False and before.detour < 0 and course in ("next", "phase_done", "done") and not member.script.chooses:
        member.block_phase(turn, before.error)
    if course == "again":
        return _try_again(member, turn, before, position)
    event = {"next": "progress", "failed": "done"}.get(course, course)
    member.move(turn, event, position, reason=before.error if course == "failed" else "")
    return True


def _try_again(member: Member, turn: Turn, before: Position, position: Position) -> bool:
    """The same step once more: after its pause, at once, or by way of an answer."""
    step = member.script.step(position)
    if step is not None and step.get("every") and before.detour < 0:
        member.wait(turn, "time", step["every"], f"looks again in {step['every']:g} s", position=position)
        return False
    member.position = position
    act = member.next_act
    if before.detour < 0 and is_free(member, act):
        member.perform(turn, "next_call", act, position)
    else:
        member.move(turn, "progress", position)
    return True
