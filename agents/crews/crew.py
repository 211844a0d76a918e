"""The agents that work on one attempt: a host, and the app agents it has delegated to, the last of which is at work.

A crew is driven by its owner (constellations.runs.attempts.crews) in the turns of the session. It records what its agents
do, says which calls are to begin once that is durable, and whether it wants its slot or can do without. All of it can be
read back from rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents.crews.apps import app_sentence
from agents.crews.check import remember_end
from agents.crews.errand import CODING_AGENTS, Errand
from agents.crews.evidence import CALLS
from agents.crews.lasting import CALL, follow_lasting_call
from agents.crews.members.assignment import Assignment, Blackboard, slot_device_of
from agents.crews.members.member import Member
from agents.crews.minds.mind import Mind
from agents.crews.script import Script, Step
from agents.crews.states import STATES
from agents.crews.think import take_answer
from agents.crews.ways import ENDINGS
from agents.gates import approvals
from agents.gates.gate import Gate
from agents.minds.calls import ended_fields
from agents.streams.row_types import AgentRow, ApprovalRow, LiveDevice, LoopRow
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from agents.tools.calls import GONE, Call, Outcome
from agents.tools.handing import INPUT

ACTS = 64
"""Moves of a crew in one turn."""
INTERRUPTED = ("lost", "cancelled")
UNSURE = (INPUT, "lost", "interrupted", "timeout")
"""Kinds of errors of calls that may have ended before their inputs were where they belong."""
KINDS = {ending: kind for kind, ending in ENDINGS.items()}
"""Of error, by how a call ended that says no kind itself."""

log = logging.getLogger(__name__)


def counts_as_call(kind: str, error_kind: str) -> bool:
    """Whether a call of that kind, which ended so, has found its inputs in its workspace."""
    return kind in CALLS and error_kind not in UNSURE


def _make_script(given: Assignment, step: Step | None, depth: int, app: Mapping[str, Any], board: Mapping[str, Any]) -> Script:
    """The mind or the script of the host, or of an agent that does what `step` delegates, held to its `app`; `given` is its own
    assignment, `board` what is on the blackboard.
    """
    instruction = "" if step is None else step.get("instruction", "")
    if given.mission is not None and given.device["kind"] == CODING_AGENTS:
        return Errand(given.mission, given.holds, given.scope if settings.MCP_URL else "", instruction, board)
    if given.mission is not None and given.is_in_words:
        if step is not None and (said := app_sentence(app, given.device["platform"])):
            instruction = f"{instruction}\n{said}"
        return Mind(given.mission, given.holds, instruction, depth, given.device, given.fleet.list_devices, app)
    if step is None:
        return Script(given.script, given.holds, plain=given.plain, is_chosen=given.is_chosen)
    return Script(
        [{"description": "", "expected_duration": None, "steps": step["steps"]}], given.holds, is_chosen=given.is_chosen
    )


def _move_assignment(given: Assignment, device: LiveDevice, on_lost: str) -> Assignment:
    """What an app agent on another device is given: the same work, and none of the task's files, which are its host's."""
    return replace(given, device=device, on_lost=on_lost, plain=False, is_gated=False, inputs=(), outputs=())


class Crew:
    """`assignment` is what its agents have to do. `end` is set when the host has ended, and says how the attempt ends."""

    def __init__(self, assignment: Assignment, host: AgentRow, loop: LoopRow):
        self.assignment, self.attempt = assignment, assignment.attempt
        self.blackboard = Blackboard(host)
        self.gate = Gate(
            assignment.device, assignment.rules, assignment.own, asks=assignment.is_gated, is_one_call=assignment.plain,
            unasked=assignment.unasked,
        )  # fmt: skip
        self.members = [Member(assignment, self.gate, self.blackboard, host, _make_script(assignment, None, 0, {}, {}))]
        self.host.loop = loop
        self.calls: list[Call] = []
        self.end: Outcome | None = None
        self.printed = 0
        self.more = False
        self.gate.inputs = {each["path"]: each.get("sha256", "") for each in assignment.inputs}

    @property
    def has_called(self) -> bool:
        """Whether a call has been made, and so the inputs are where they belong; a look at the workspace is no such call."""
        return not self.gate.inputs

    @property
    def host(self) -> Member:
        return self.members[0]

    @property
    def at_work(self) -> Member:
        return self.members[-1]

    @property
    def wants_slot(self) -> bool:
        return self.at_work.wants_slot

    # --- driving

    def act(self, turn: Turn, now: float) -> None:
        """Go on until somebody has to be waited for; `more` says that only the turn was too short."""
        self.more = False
        for _ in range(ACTS):
            recorded = len(turn.events)
            self._act_once(turn, now)
            if self.end is not None or len(turn.events) == recorded:
                return
        self.more = True

    def _act_once(self, turn: Turn, now: float) -> None:
        member = self.at_work
        if member.ended:
            self._end_member(turn, member)
            return
        for each in self.members:  # those that wait for a child too: their phases go on
            each.phases.look(turn, now)
        states = STATES.get(member.agent["platform"])
        if states is None:
            there = ", ".join(sorted(STATES))
            why = f"there are no agents for the platform {member.agent['platform']}; there are {there}"
            member.become(turn, "error", reason=why)
            return
        member.wants_slot = False
        # In PENDING and CONFIRM an agent claims the slot by itself, when what it waits for has come.
        if member.agent["state"] in ("CONTINUE", "SCREENSHOT") and not member.claim_slot():
            return
        try:
            states[member.agent["state"]](member, turn, now)
        except Exception as error:  # a bug in one agent ends that agent, and nothing else
            log.error("agent %s broke", member.agent["id"], exc_info=error)
            member.become(turn, "error", reason=f"{type(error).__name__}: {error}")
        if member.call is not None:
            # Only the crew knows what all agents of the attempt have printed, and who of them is the host.
            member.call.printed, member.call.agent = self.printed, self.host.agent["id"]
            member.call.resumes = self.assignment.resumes
            if not self.has_called and member.gate is self.gate:
                member.call.inputs = self.assignment.inputs
            self.calls.append(member.call)
            member.call = None
        if member.wants_slot and (why := self._why_no_slot_comes(member)):
            member.wants_slot = False
            member.become(turn, "error", reason=why)
        if member.child is not None:
            self.take_on(member.child)

    def _why_no_slot_comes(self, member: Member) -> str:
        """Why an app agent is not to wait for its device: that is gone, and its host decides; empty where it waits."""
        device = member.assignment.device
        if member.assignment.device["id"] == self.assignment.device["id"] or member.assignment.on_lost == "retry":
            return ""
        return "" if device["state"] == "connected" else f"its device {device['name']} is {device['state']}"

    def _end_member(self, turn: Turn, member: Member) -> None:
        """An agent has ended: its host goes on, or the attempt is over. Its state and its last call say how it did its work."""
        last = member.last_outcome or Outcome("")
        if member.agent["state"] == "FINISH":
            outcome = self._good_end(member, last)
        elif last.reason or (member.script.plain and last.outcome not in ("", "completed")) or member.is_lost:
            outcome = last
        else:
            error = member.agent["reason"]
            outcome = Outcome("failed", error=error, exit_code=last.exit_code, error_kind=last.error_kind)
            if member.script.chooses:  # what its last call gave is not why it ended
                outcome = Outcome("failed", error=error)
        self._close(turn, member, outcome.outcome == "completed", member.agent["reason"])
        if member is self.host:
            self.end = outcome
        else:
            self.members.pop()
            host = self.at_work
            host.child, host.child_outcome = None, outcome
            turn.record("agent_returned", agent_id=member.agent["id"], host_id=host.agent["id"], outcome=outcome.outcome)

    def _good_end(self, member: Member, last: Outcome) -> Outcome:
        """A mind says its result. A host's is all that its crew has saved; a plain task's, and a child's, what its last call
        gave.
        """
        if member.script.chooses:
            return Outcome("completed", result=None if member.step is None else member.step["result"])
        found = self.blackboard.values if member is self.host and not member.script.plain else {}
        return Outcome("completed", result=dict(found) if found else last.result, exit_code=last.exit_code)

    def _close(self, turn: Turn, member: Member, ended_well: bool, reason: str) -> None:
        """What an agent leaves open ends with it."""
        if not ended_well:
            member.block_phase(turn, reason or "its agent has ended")
        member.phases.complete(turn, ended_well=ended_well)
        if member.approval is not None and member.approval["state"] == "waiting":
            approvals.withdraw_approval(turn, member.approval, reason)
        if member.loop and member.state not in ("Idle", "Halted"):
            member.move(turn, "halt", reason=reason or "its agent has ended")

    def cancel(self, turn: Turn, reason: str, why: str = "cancelled") -> None:
        """End all agents, the one at work first. `why` is what their transitions say."""
        for member in reversed(self.members):
            if member.row is not None:
                key, outcome = str(member.row["id"]), Outcome("cancelled", error=reason, error_kind="interrupted")
                turn.record("call_cancelled", set={"evidence": {key: member.end_row(turn, outcome, reason)}})
            if member.asked is not None:
                fields = ended_fields(member.asked, Outcome("cancelled", error=reason), turn.at)
                turn.record(
                    "model_cancelled", agent_id=member.agent["id"], set={"model_call": {str(member.asked["id"]): fields}}
                )
                member.asked = member.answer = None
            if not member.ended:
                member.become(turn, "cancel", reason=why)
            self._close(turn, member, False, why)

    def out_of_time(self, turn: Turn) -> None:
        """The task has run for as long as it may."""
        why = f"stopped after {self.assignment.timeout:g} s"
        self.cancel(turn, why, why)
        self.end = Outcome("timeout", error=why)

    def record_end(self, turn: Turn) -> None:
        """While the actor pauses or the runner ends: the end of the call under way, and nothing that follows from it."""
        member = self.at_work
        if member.answer is not None:
            take_answer(member, turn)
        if member.outcome is None:
            return
        if member.agent["state"] == "PENDING" and member.position.waits == CALL:
            follow_lasting_call(member, turn, turn.ts)
        if member.state == "ExecutingTool" and member.agent["state"] == "CONTINUE":
            remember_end(member, turn, turn.ts)
        # A look that was cut off would be made again, which follows from its end; so it is left to whoever goes on.
        elif member.agent["state"] == "SCREENSHOT" and member.outcome.outcome not in INTERRUPTED:
            self._act_once(turn, turn.ts)

    # --- calls

    @property
    def body(self) -> int | None:
        """The key of the call under way."""
        member = self.at_work
        if member.asked is not None:
            return None if member.answer is not None else member.asked["id"]
        return None if member.row is None or member.outcome is not None else member.row["id"]

    def take(self, outcome: Outcome) -> None:
        """The call under way has ended."""
        if outcome.error_kind == GONE:
            outcome.outcome, outcome.error_kind = ("failed" if self.at_work.script.chooses else "lost"), ""
        outcome.error_kind = outcome.error_kind or KINDS.get(outcome.outcome, "")
        if self.at_work.asked is not None:
            self.at_work.answer = outcome
        else:
            self.at_work.outcome = outcome
            row = self.at_work.row
            if row is not None and self.at_work.gate is self.gate and counts_as_call(row["kind"], outcome.error_kind):
                self.gate.inputs = {}
        self.printed = max(self.printed, outcome.printed)

    def hear(self, kind: str, data: Mapping[str, Any]) -> None:
        """What the call under way tells before its end."""
        self.at_work.updates.append((kind, data))

    def take_told(self) -> list[tuple[int, str, Fields]]:
        """What its agents have decided to tell calls under way: the call's key, a kind, and what belongs to it."""
        told = [each for member in self.members for each in member.told]
        for member in self.members:
            member.told.clear()
        return told

    @property
    def rests(self) -> bool:
        """Nothing of it is under way, so that it needs no slot."""
        return self.body is None and not self.more and self.at_work.agent["state"] in ("PENDING", "CONFIRM")

    @property
    def is_short(self) -> bool:
        """Its device lacks something, and nothing but a look at the device says when it no longer does."""
        return bool(self.at_work.loop) and self.at_work.state == "ResourcePaused"

    def wake_at(self) -> float | None:
        """When it has something to decide by itself; a slot that it wants wakes it."""
        times = [member.phases.wake_at() for member in self.members]
        if not self.wants_slot:
            times.append(self.at_work.wake_at())
        return min((time for time in times if time is not None), default=None)

    # --- delegation

    def take_on(self, agent: AgentRow) -> None:
        """The agent that the one at work has delegated to; it is the one at work from now on."""
        host = self.at_work
        assert host.step is not None
        given, gate = self._place_for(host, agent["device_id"], host.step)
        host.child = agent
        script = _make_script(given, host.step, host.depth + 1, agent["app"], self.blackboard.values)
        self.members.append(Member(given, gate, self.blackboard, agent, script, host.depth + 1))

    def _place_for(self, host: Member, device: int | None, step: Step) -> tuple[Assignment, Gate]:
        """What an agent on that device is given, and the gate that it stands before: policies go by devices."""
        on_lost = step.get("on_lost", "")
        if device is None or device == host.assignment.device["id"]:
            return replace(host.assignment, on_lost=on_lost or host.assignment.on_lost), host.gate
        if device == self.assignment.device["id"]:  # an agent elsewhere has one work where the task is
            return replace(self.assignment, on_lost=on_lost or "fail"), self.gate
        given = _move_assignment(self.assignment, self.assignment.fleet.find_device(device), on_lost or "fail")
        gate = Gate(given.device, given.rules, given.own, asks=False, is_one_call=False, unasked=given.unasked)
        return given, gate

    @property
    def device(self) -> int:
        """The device of the agent at work, whose slot the attempt needs."""
        return self.at_work.assignment.device["id"]

    @property
    def devices(self) -> set[int]:
        """Of all of its agents."""
        return {member.assignment.device["id"] for member in self.members}

    @property
    def holds_slot_elsewhere(self) -> bool:
        """Whether its slot is none of the device where it works now."""
        return self.attempt["holds_slot"] and slot_device_of(self.attempt) != self.device

    # --- what others say

    def waits_for(self) -> list[ApprovalRow]:
        """The approvals that its agents wait for, to be updated by whoever reads what was decided."""
        return [member.approval for member in self.members if member.approval is not None]

    def accept(self, turn: Turn, agent: int, identity: str) -> bool:
        """A person says "go on anyway": this loop is none from now on. False when no agent here has that id."""
        member = self._find_at_work(agent)
        if member is not None:
            row = member.note(turn, kind="accept", target=identity, success=True)
            turn.record("identity_accepted", agent_id=agent, identity=identity, add={"evidence": [row]})
        return member is not None

    def hint(self, turn: Turn, agent: int, text: str) -> bool:
        """A person's word, which its model reads next; a new window begins. False as in `accept`, and without a model."""
        member = self._find_at_work(agent)
        if member is None or not member.script.takes_hints:
            return False
        row = member.note(turn, kind="user", success=True, arguments={"said": text})
        turn.record("window_began", agent_id=agent, add={"evidence": [row]})
        return True

    def rule_on_loop(self, turn: Turn, ruling: Fields) -> bool:
        """An arbiter has ruled on a suspicion; the agent takes it up when its action has ended. False as in `accept`."""
        agent = ruling["suspicion"]["agent_id"]
        member = self._find_at_work(agent)
        if member is not None:
            row = member.note(turn, kind="ruling", target=ruling["suspicion"]["identity"], success=True, arguments=ruling)
            told = {"stuck": ruling["stuck"], "why": ruling["why"], "arbiter": ruling["by"]}
            turn.record("ruled", agent_id=agent, **told, add={"evidence": [row]})
        return member is not None

    def _find_at_work(self, agent: int) -> Member | None:
        """The member whose agent has that id, if it has begun and not ended."""
        found = (member for member in self.members if member.agent["id"] == agent and member.loop and not member.ended)
        return next(found, None)
