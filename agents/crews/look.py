"""What an observation brought: the strategies of DATA_COLLECTION in SCREENSHOT, which also goes before CONFIRM."""

from __future__ import annotations

from dataclasses import replace

from agents.crews.members.member import Member
from agents.crews.minds.wording import outcome_text, picture_of
from agents.crews.script import LOOKED
from agents.errors import AgentsError
from agents.streams.turn import Turn


def wait_for_look(member: Member, turn: Turn, now: float) -> bool:
    """Wait for the observation under way; one that was lost is made again, where there is still something to be seen."""
    outcome, row = member.outcome, member.row
    if outcome is None or row is None:
        return False
    if outcome.outcome == "cancelled" or (outcome.outcome == "lost" and not member.stands_on_device):
        fields = member.end_row(turn, outcome, outcome.error or outcome.outcome)
        turn.record("look_lost", agent_id=member.agent["id"], set={"evidence": {str(row["id"]): fields}})
        member.look_again(turn)
        return False
    return True


def take_look(member: Member, turn: Turn, now: float) -> bool:
    """What was seen becomes evidence, and the result of a step that is about nothing else."""
    outcome, row, step = member.outcome, member.row, member.step
    assert outcome is not None
    assert row is not None
    wrong = "" if outcome.outcome == "completed" else outcome.error or outcome.outcome
    also = {"evidence": {str(row["id"]): member.end_row(turn, outcome, wrong)}}
    is_step = step is not None and step["do"] == "observe" and not member.waits_at_gate
    if wrong and not (is_step and member.script.chooses):
        if outcome.outcome == "lost":  # as by any other call (agents.crews.recover)
            member.last_outcome = outcome
        member.become(turn, "error", reason=f"capture failed: {wrong}", also=also)
        return False
    position = member.position
    if step is not None and is_step:
        try:
            if not wrong:
                member.blackboard.save(turn, step["save"], outcome.result)
        except AgentsError as error:
            wrong = str(error)
        position = replace(position, met=not wrong, tries=position.tries + 1, error=wrong)
        if member.script.chooses:
            position = member.script.keep_result(
                position, outcome_text(outcome, wrong), failed=bool(wrong), picture=picture_of(outcome)
            )
    elif step is not None and step.get("gate") and not member.waits_at_gate:
        position = replace(position, waits=LOOKED)
    member.become(turn, "captured", position, also=also)
    return True
