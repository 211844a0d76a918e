"""What a program does that carries out an instruction, as its agent follows it: evidence, leave, its plan, the end.

The program tells what happens in numbered updates. What one means is recorded with its number, so that after a crash none is
taken twice. What it asks leave for is judged like a call that a model chose; it hears the answer once that is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from agents.crews.check import STUCK
from agents.crews.errand import Errand, with_answer
from agents.crews.evidence import call_row, ended_fields, message_row
from agents.crews.members.member import Member
from agents.crews.permit import permit_call
from agents.devices.command_lines import NotPlain, split_line
from agents.gates import approvals
from agents.gates.policies import Act
from agents.progress.digests import text_digest
from agents.streams.turn import Turn
from agents.tools.calls import Outcome
from agents.tools.catalogue import INSTRUCTION

Told = Mapping[str, Any]
THOUGHT = 4_000
"""Characters of a thought that an event says."""
TOOLS = {
    "read": "read_file",
    "edit": "edit_file",
    "delete": "delete_file",
    "move": "move_file",
    "fetch": "fetch",
    "search": "search",
}
"""What calls of a kind are judged as; commands and others have names of their own."""
COMMANDS = ("command", "cmd")
"""Arguments of programs that hold the line, or the words, of a command."""
BROKEN = "broken"
"""The kind of an error after which nothing can be done: the program does not keep to its protocol."""


def act_of(member: Member, told: Told) -> Act:
    """A program's call as policies see it."""
    tool, arguments = call_judged(told)
    return member.gate.describe_call(tool, arguments, is_chosen=True)


def call_judged(told: Told) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments that a program's call is judged, shown and compared by."""
    given = dict(told["arguments"])
    if told["kind"] == "execute":
        line = next((given[key] for key in COMMANDS if given.get(key)), told["title"])
        return "command", {"argv": _words_of(line)}
    if told["kind"] in TOOLS:
        return TOOLS[told["kind"]], {**given, "path": told["path"]} if told["path"] else given
    return told["title"][:80] or told["kind"], given


def _words_of(line: Any) -> list[str]:
    """A command's words; a line that a shell would do more with than split is that shell's."""
    if isinstance(line, list) and line:
        return [str(word) for word in line]
    try:
        return split_line(str(line)) or [str(line)]
    except NotPlain:
        return ["sh", "-c", str(line)]


def permit_errand(member: Member, turn: Turn, now: float) -> bool:
    """Whether the instruction may be given at all, as of any call; leave that is asked for later is taken up in its order."""
    return permit_call(member, turn, now) if member.row is None else True


def follow_errand(member: Member, turn: Turn, now: float) -> bool:
    """What the program has told, in its order, and its end; False while it works, or waits for leave."""
    if member.row is None or member.row["tool"] != INSTRUCTION:
        return True
    if member.state == "AwaitingPermission":
        _follow_decision(member, turn)
    for said in cast(Errand, member.script).take_heard():
        _tell(member, "prompt", text=said)
    while member.updates and member.agent["state"] == "CONTINUE" and member.state != "AwaitingPermission":
        kind, told = member.updates.pop(0)
        if told["n"] <= member.position.told:
            _tell_again(member, told)
        elif kind in TAKEN:
            TAKEN[kind](member, turn, told)
    if member.agent["state"] != "CONTINUE" or member.outcome is None:
        return False
    _end(member, turn)
    return True


def _tell(member: Member, kind: str, **data: Any) -> None:
    assert member.row is not None
    member.told.append((member.row["id"], kind, data))


def _tell_again(member: Member, told: Told) -> None:
    """An update of which an earlier owner knew: whether the program has heard the answer, nobody knows."""
    for answer in member.position.results:
        if answer["ask"] == told["n"]:
            _tell(member, "answer", **answer)


# Calls of its tools


def _take_tool(member: Member, turn: Turn, told: Told) -> None:
    """A call has ended: it becomes evidence, and the rules judge it."""
    tool, arguments = call_judged(told)
    outcome = _outcome_of(told)
    writes = told["path"] if told["before"] is not None else ""
    begun = call_row(tool, arguments, "", member.memory.settings, writes)
    ended = ended_fields({**begun, "error": ""}, outcome, outcome.error, turn.at)
    row = member.note(turn, **{**begun, **ended})
    if member.state == "StreamingResponse":
        member.move(turn, "tool_allowed", _place(member, told))
    member.move(turn, "returned", _place(member, told), reason=outcome.error, add={"evidence": [row]})
    _check(member, turn)


def _outcome_of(told: Told) -> Outcome:
    """Its digest is that of the file it changed, else that of what it brought."""
    text, code = str(told["text"]), told["exit_code"]
    digest = (
        told["after"] if told["before"] is not None else text_digest(f"{code} {text}") if text or code is not None else None
    )
    kind = "denied" if told["leave"] is False else ""
    return Outcome(
        "failed" if told["error"] else "completed", error=str(told["error"]), exit_code=code, error_kind=kind, digest=digest,
        before=told["before"], text=text,
    )  # fmt: skip


def _place(member: Member, told: Told) -> Any:
    return replace(member.position, told=told["n"])


def _check(member: Member, turn: Turn) -> None:
    """ProgressCheck: on with it, or it goes round in circles."""
    verdict = member.memory.verdict
    if verdict is None:
        member.move(turn, "progress")
    elif verdict.action == "halt":
        member.halt(turn, verdict)
    else:
        member.move(turn, "stuck", replace(member.position, fault=STUCK), reason=verdict.sentence)
        _steer(member, turn, verdict.sentence)


def _steer(member: Member, turn: Turn, why: str) -> None:
    """What it did becomes its next prompt: its turn is broken off for that."""
    member.memory.verdict = None
    nudge = member.note(turn, kind="nudge", success=True, arguments={"text": why})
    member.move(turn, "steer", replace(member.position, fault=""), reason=why, add={"evidence": [nudge]})
    _tell(member, "steer", text=f"You go round in circles: {why} Do something else than before.")


# Leave


def _take_leave(member: Member, turn: Turn, told: Told) -> None:
    """It asks before it does something: policies decide, and a person about what they leave open."""
    act = act_of(member, told)
    judgement = member.gate.judge_chosen(act)
    if judgement.decision == "ask" and told["can_allow"]:
        _ask_a_person(member, turn, told, act, judgement.note)
        return
    leave = judgement.decision == "allow" and told["can_allow"]
    why = judgement.note or ("" if told["can_allow"] else "it offers no way to allow this once")
    position = with_answer(_place(member, told), told["n"], leave)
    event = "leave_given" if leave else "leave_refused"
    turn.record(
        event, agent_id=member.agent["id"], call=told["call"], tool=act.tool, target=act.target[:THOUGHT], reason=why,
        set=member.place_at(position),
    )  # fmt: skip
    _tell(member, "answer", ask=told["n"], leave=leave)


def _ask_a_person(member: Member, turn: Turn, told: Told, act: Act, why: str) -> None:
    """What they are shown is all that is known of it; another call, or the same one again, is asked about anew."""
    about = {key: told[key] for key in ("call", "kind", "title", "arguments", "cwd", "diffs")}
    device, session = member.assignment.device["name"], member.assignment.stream
    action = {**act.action, "about": {**about, "ask": told["n"], "device": device, "session": session}}
    if member.state == "ExecutingTool":
        member.move(turn, "streamed")
    member.move(turn, "tool_asks", _place(member, told), reason=why)
    title = f"{member.assignment.title}: {device} wants leave: {told['title'] or act.tool}"
    member.ask(turn, "tool", title, approvals.APPROVAL_S, action=action)
    member.wait(turn, "approval", approvals.APPROVAL_S, "waits for permission")


def _follow_decision(member: Member, turn: Turn) -> None:
    """A person has decided; what was asked for is done so, or not at all."""
    approval, member.approval = member.approval, None
    assert approval is not None
    action = approval["action"]
    act = member.gate.describe_call(action["tool"], action["arguments"], is_chosen=True)
    why = ""
    if approval["state"] != "approved":
        why = f"refused by {approval['decided_by']}" + (f": {approval['reason']}" if approval["reason"] else "")
    elif approval["edited"]:
        why = "a coding agent's call cannot be changed; say what to do instead as a hint"
    elif not approvals.is_intact(approval) or member.gate.judge(act).decision == "deny":
        why = "what was approved is not what may be done"
    ask = action["about"]["ask"]
    member.move(turn, "denied" if why else "approved", with_answer(member.position, ask, not why), reason=why)
    _tell(member, "answer", ask=ask, leave=not why)


# What else it tells


def _take_words(member: Member, turn: Turn, told: Told) -> None:
    """A whole message is evidence: the same again and again gets nobody anywhere."""
    row = member.note(turn, **message_row(told["text"]))
    if member.state == "StreamingResponse":
        member.move(turn, "said", _place(member, told), add={"evidence": [row]})
        _check(member, turn)
    else:
        set_ = member.place_at(_place(member, told))
        turn.record("agent_said", agent_id=member.agent["id"], set=set_, add={"evidence": [row]})


def _record(event: str, *keys: str) -> Callable[[Member, Turn, Told], None]:
    """An event that says these of what was told, and changes nothing."""

    def record(member: Member, turn: Turn, told: Told) -> None:
        data = {key: told[key][:THOUGHT] if isinstance(told[key], str) else told[key] for key in keys}
        turn.record(event, agent_id=member.agent["id"], **data, set=member.place_at(_place(member, told)))

    return record


def _take_plan(member: Member, turn: Turn, told: Told) -> None:
    """The whole plan is in the agent's row; the event says how far it is."""
    entries = told["entries"]
    done = [each for each in entries if each["status"] == "completed"]
    now = next((each["content"] for each in entries if each["status"] == "in_progress"), "")
    member.agent["plan"] = entries
    changed = {"agent": {str(member.agent["id"]): {"plan": entries}}, **member.place_at(_place(member, told))}
    turn.record("agent_planned", agent_id=member.agent["id"], done=len(done), of=len(entries), now=now, set=changed)


TAKEN: dict[str, Callable[[Member, Turn, Told], None]] = {
    "tool": _take_tool, "leave": _take_leave, "said": _take_words, "thought": _record("agent_thought", "text"),
    "plan": _take_plan, "turn": _record("agent_turn_ended", "stop"),
    "violation": _record("violation", "call", "title", "why"),
}  # fmt: skip


# The end


def _end(member: Member, turn: Turn) -> None:
    """The program has ended its turn, or has ended itself."""
    outcome, row = member.outcome, member.row
    assert outcome is not None
    assert row is not None
    found, wrong = cast(Errand, member.script).result_of(outcome)
    wrong = wrong or ("" if outcome.outcome == "completed" else outcome.error or outcome.outcome)
    fields = member.end_row(turn, outcome, wrong)
    member.memory.verdict = None
    member.last_outcome = replace(outcome, result=found)
    also = {"evidence": {str(row["id"]): fields}}
    # Another try begins another conversation, whose updates are numbered anew.
    position = replace(member.position, met=not wrong, error=wrong[:2000], told=0, results=(), waits="")
    if outcome.error_kind == BROKEN:
        member.become(turn, "error", position, reason=wrong, also=also)
    elif outcome.error_kind in ("lost", "interrupted", "timeout"):
        position = replace(position, fault=outcome.error_kind, faults=position.faults + 1)
        member.move(turn, "fault", position, reason=wrong, also=also)
    else:
        if member.state == "ExecutingTool":
            member.move(turn, "returned", also=also)
            also = {}
        member.move(turn, "done", replace(position, done=True), reason=wrong, also=also)


def forget_leave(member: Member, turn: Turn) -> None:
    """The program is gone that asked for leave, so there is nobody to grant it to."""
    if member.approval is not None and member.approval["state"] == "waiting":
        approvals.withdraw_approval(turn, member.approval, "who asked has ended")
    member.approval = None
    member.become(turn, "failed", replace(member.position, waits="", until=None), reason="who asked has ended")
    member.move(turn, "denied", reason="who asked has ended")
