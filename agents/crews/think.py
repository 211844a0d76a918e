"""What an agent with a model is asked, and what it does of what the model wants: its strategies of LLM_INTERACTION.

In the place of those in `answer`. A call of the model is recorded, begun once that is durable, and waited for like a call of
a tool; what it wants becomes steps (agents.crews.minds.choices), which go down the pipe as those of a script do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from agents.crews.evidence import message_row
from agents.crews.members.member import Member
from agents.crews.minds.choices import find_misfit
from agents.crews.minds.controls import PHASES
from agents.crews.minds.mind import Mind
from agents.crews.minds.talk import SUMMARY
from agents.crews.script import JUDGED, Step
from agents.errors import AgentsError
from agents.gates.policies import target_of
from agents.minds.calls import begin_call, ended_fields
from agents.streams.row_types import ModelCallRow
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.calls import Outcome

REPROMPTS = 3
"""Answers in a row that could not be used, after which one more is the end of the agent."""
CALLS_OF_ONE = 500
"""Calls of models that one agent makes."""
BAD_ANSWER = "bad_answer"
"""The fault of an answer that cannot be used."""
SAID = 4_000
"""Characters of a model's words that are kept as evidence; all of them are in the row of its call."""


def mind_of(member: Member) -> Mind:
    return cast(Mind, member.script)


# Asking


def prompt_mind(member: Member, turn: Turn, now: float) -> bool:
    """The task becomes a prompt; a phase begins or ends as the model has said."""
    if member.state == "Idle":
        member.move(turn, "prompt")
    if member.state == "PhaseTransition":
        _turn_phase(member, turn)
    return True


def ask_mind(member: Member, turn: Turn, now: float) -> bool:
    """Ask the model where nothing is left to be done of what it wants, and wait for the answer."""
    if member.state not in ("ProcessingPrompt", "StreamingResponse"):
        return True
    if member.asked is not None:
        if member.answer is None:
            return False
        take_answer(member, turn)
        return member.agent["state"] == "CONTINUE"
    if member.step is None and member.position.met is None:
        return _ask(member, turn)
    if member.state == "ProcessingPrompt":  # a phase has begun in the middle of an answer
        member.move(turn, "responding")
    return True


def _ask(member: Member, turn: Turn) -> bool:
    """Record a question; it is asked once that is durable. True where there is none to ask."""
    mind, assignment = mind_of(member), member.assignment
    if mind.asks_next > CALLS_OF_ONE:
        member.become(turn, "error", reason=f"it has asked its model {CALLS_OF_ONE} times")
        return True
    try:
        purpose, question, told = mind.next_question(member.position, assignment.device, member.blackboard.values)
    except AgentsError as error:
        _fault(member, turn, error.code, str(error))
        return True
    question = replace(question, context={"task": assignment.task, "interaction": assignment.interaction})
    row, call = begin_call(
        turn, member.agent, mind.asks_next, purpose, question, told, attempt=assignment.attempt["id"],
        asked_again=member.position.misfits,
    )  # fmt: skip
    position = replace(member.position, results=(), told=member.memory.count, chosen=0, step=0)
    add = {"model_call": [TABLES["model_call"].told(row)]}
    turn.record("model_asked", agent_id=member.agent["id"], add=add, set=member.place_at(position))
    mind.rows.append(row)
    mind.wanted = ()
    member.asked, member.answer, member.call = row, None, call
    return False


# The answer


def take_answer(member: Member, turn: Turn) -> None:
    """Record the end of the model's call, and what it wants; what follows from that comes next."""
    row, outcome = member.asked, member.answer
    assert row is not None
    assert outcome is not None
    member.asked = member.answer = None
    if outcome.outcome in ("lost", "cancelled"):  # it is asked again, by a new row
        _record_end(member, turn, row, ended_fields(row, outcome, turn.at))
    elif outcome.outcome != "completed":
        fields = ended_fields(row, outcome, turn.at)
        if isinstance(outcome.result, dict) and "budget" in outcome.result:
            fields["result"] = row["result"] = {"budget": outcome.result["budget"]}
        _record_end(member, turn, row, fields)
        _fault(member, turn, outcome.error_kind, outcome.error)
    elif row["purpose"] == SUMMARY and not outcome.result["text"].strip():
        fields = ended_fields(row, outcome, turn.at, error_kind=BAD_ANSWER, error="there is no summary in it")
        fields["outcome"] = row["outcome"] = "rejected"
        _record_end(member, turn, row, fields)
        _fault(member, turn, BAD_ANSWER, row["error"])
    elif row["purpose"] == SUMMARY:
        _record_end(member, turn, row, ended_fields(row, outcome, turn.at))
        window = member.note(turn, kind="compaction", success=True)
        turn.record("conversation_shortened", agent_id=member.agent["id"], add={"evidence": [window]})
    else:
        _take_choice(member, turn, row, outcome)


def _record_end(member: Member, turn: Turn, row: ModelCallRow, fields: Fields, place: Fields | None = None) -> None:
    also = {"model_call": {str(row["id"]): fields}, **(place or {})}
    turn.record("model_answered", agent_id=member.agent["id"], outcome=row["outcome"], set=also)


def _take_choice(member: Member, turn: Turn, row: ModelCallRow, outcome: Outcome) -> None:
    mind = mind_of(member)
    fields = ended_fields(row, outcome, turn.at)
    choice = mind.read(row)
    fields |= {"thought": choice.said, "actions": [_action_of(step) for step in choice.steps]}
    if choice.flaws:
        fields |= {"outcome": "rejected", "error": choice.error, "error_kind": BAD_ANSWER}
    row.update(fields)  # type: ignore[typeddict-item]
    if choice.flaws:
        _record_end(member, turn, row, fields, member.place_at(replace(member.position, results=tuple(choice.flaws))))
        _reject(member, turn, choice.error)
        return
    mind.wanted = choice.steps
    tries = any(step["do"] != "finish" for step in choice.steps)
    position = replace(
        mind.go_further(member.position), chosen=row["number"], step=0, misfits=0 if tries else member.position.misfits
    )
    _record_end(member, turn, row, fields, member.place_at(position))
    if member.state == "ProcessingPrompt":
        member.move(turn, "responding")
    if not choice.steps:
        said = message_row(choice.said[:SAID])
        member.move(turn, "said", add={"evidence": [member.note(turn, **said)]})


def _action_of(step: Step) -> Fields:
    """A step as the record of a call says it: the tool, and what it is about."""
    about = target_of(step["tool"], step["arguments"]) if step["do"] == "call" else ""
    return {"tool": step["called"], "about": about[:SAID]}


def _reject(member: Member, turn: Turn, why: str) -> None:
    """An answer that cannot be used: the model is told why and asked again, a few times."""
    position = replace(member.position, misfits=member.position.misfits + 1, error=why[:2000])
    if position.misfits > REPROMPTS:
        member.become(turn, "error", position, reason=f"{position.misfits} answers in a row could not be used: {why}")
    elif member.state == "ProcessingPrompt":
        member.move(turn, "reprompt", position, reason=why)
    else:
        member.move(turn, "fault", replace(position, fault=BAD_ANSWER, faults=1), reason=why)


def _fault(member: Member, turn: Turn, code: str, why: str) -> None:
    error = f"{code.replace('_', ' ')}: {why}"[:2000]
    position = replace(member.position, fault=code, faults=member.position.faults + 1, error=error)
    member.move(turn, "fault", position, reason=error)


# What it wants


def do_as_wanted(member: Member, turn: Turn, now: float) -> bool:
    """What the model wants besides calls of tools, which go on down the pipe; False where the agent waits for something now."""
    step, position = member.step, member.position
    if member.state != "StreamingResponse" or (step is None and position.met is None):
        return True
    if position.met is not None:  # what it looked at, waited for or was refused has come
        member.move(turn, "said", reason=position.error)
        return True
    assert step is not None
    return step["do"] in JUDGED or WANTED[step["do"]](member, turn, step)


def _settle(member: Member, turn: Turn, text: str, *, failed: bool = False) -> bool:
    """A step that is over at once."""
    position = mind_of(member).keep_result(member.position, text, failed=failed)
    position = replace(position, met=not failed, error=text[:2000] if failed else "", tries=1)
    member.move(turn, "said", position, reason=position.error)
    return True


def _finish(member: Member, turn: Turn, step: Step) -> bool:
    mind = mind_of(member)
    schema = mind.mission.result_schema if not mind.instruction else {}
    wrong = find_misfit(step["result"], schema) if schema else ""
    if not wrong:
        member.move(turn, "done", replace(member.position, done=True, met=True, error=""))
        return True
    said = f"the result does not follow the schema of this task: {wrong}"
    member.position = replace(member.position, misfits=member.position.misfits + 1)
    if member.position.misfits > REPROMPTS:
        member.become(turn, "error", member.position, reason=f"{member.position.misfits} results in a row: {said}")
        return True
    return _settle(member, turn, said, failed=True)


def _fail(member: Member, turn: Turn, step: Step) -> bool:
    why = step["reason"][:2000]
    member.move(turn, "done", replace(member.position, done=True, met=False, error=why), reason=why)
    return True


def _save(member: Member, turn: Turn, step: Step) -> bool:
    try:
        member.blackboard.save(turn, step["key"], step["value"])
    except AgentsError as error:
        return _settle(member, turn, str(error), failed=True)
    return _settle(member, turn, "saved")


def _ask_person(member: Member, turn: Turn, step: Step) -> bool:
    member.ask(turn, "question", step["question"], step["timeout"], options=step["options"])
    member.wait(turn, "approval", step["timeout"], f"asks: {step['question']}")
    return False


def _wait(member: Member, turn: Turn, step: Step) -> bool:
    if step["seconds"] is not None:
        member.wait(turn, "time", step["seconds"], f"waits {step['seconds']:g} s")
    else:
        member.ask(turn, "callback", step["for"], step["timeout"])
        member.wait(turn, "approval", step["timeout"], f"waits for {step['for']}")
    return False


def _delegate(member: Member, turn: Turn, step: Step) -> bool:
    try:
        member.delegate(turn, step)
    except AgentsError as error:
        return _settle(member, turn, str(error), failed=True)
    return False


def _want_phase(member: Member, turn: Turn, step: Step) -> bool:
    """The next phase, or the present one anew; anything else is told what the next one is."""
    phases = mind_of(member)
    now = member.phases.last
    again = step["restart"] and step["n"] == now and member.phases.current is not None
    if again or (step["n"] == now + 1 and now < PHASES):
        phases.plan_phase(step["n"], step["total"], step["description"], step["expected_duration"])
        return _settle(member, turn, f"phase {step['n']} has begun")
    return _settle(member, turn, f"the next phase is {now + 1}; the present one can be begun anew with restart", failed=True)


def _end_phase(member: Member, turn: Turn, step: Step) -> bool:
    if member.phases.current is None:
        return _settle(member, turn, "there is no phase to complete", failed=True)
    return _settle(member, turn, f"phase {member.phases.current['number']} is complete")


WANTED: dict[str, Callable[[Member, Turn, Step], bool]] = {
    "finish": _finish, "fail": _fail, "save": _save, "ask": _ask_person, "wait": _wait, "delegate": _delegate,
    "start_phase": _want_phase, "complete_phase": _end_phase,
}  # fmt: skip


def _turn_phase(member: Member, turn: Turn) -> None:
    """PhaseTransition: what the step in turn says of the phases."""
    step, mind = member.step, mind_of(member)
    assert step is not None
    position = mind.go_further(member.position)
    if step["do"] == "complete_phase":
        member.phases.complete(turn, outcome=step["outcome"])
        member.move(turn, "check", position)
        return
    again = step["n"] == member.phases.last
    if not again:
        member.phases.complete(turn)
    # The row of the new window takes its phase from the position, so that has to be there before it is recorded.
    member.position = replace(position, phase=step["n"] - 1)
    if again:
        member.phases.restart(turn, step["description"], step["expected_duration"])
    else:
        member.phases.start(turn, mind, step["n"] - 1)
    window = member.note(turn, kind="phase", success=True)
    member.move(turn, "phase_started", add={"evidence": [window]})
