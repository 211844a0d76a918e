"""The agents that work on one attempt: a host, and the app agents it has delegated to, the last of which is at work.

A crew is driven by its owner (constellations.runs.run) in the turns of the session. It records what its agents do, says
which calls are to begin once that is durable, and whether it holds, wants or can do without its slot. All of it can be read
back from rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import orjson

from agents.crews.check import remember
from agents.crews.member import Member, Scene
from agents.crews.script import DELEGATIONS, Script, Step, call_of, single
from agents.crews.states import STATES
from agents.crews.ways import ENDINGS
from agents.errors import AgentsError
from agents.gates import approvals
from agents.gates.policies import Act
from agents.machines import DEVICE_AGENT
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.calls import Call, Outcome

BLACKBOARD_BYTES = 64_000
NAME = 200
"""Characters of an agent's name."""
ACTS = 64
"""Moves of a crew in one turn."""
INTERRUPTED = ("lost", "cancelled")

log = logging.getLogger(__name__)


class BlackboardFull(AgentsError):
    """The blackboard takes no more."""

    code = "blackboard_full"


class Crew:
    """`attempt` is its row. `end` is set when the host has ended, and says how the attempt ends."""

    def __init__(self, scene: Scene, attempt: Fields, host: Fields, loop: Fields):
        self.scene, self.attempt = scene, attempt
        self.members: list[Member] = [Member(self, host, Script(scene.script, scene.holds, plain=scene.plain))]
        self.host.loop = loop
        self.calls: list[Call] = []
        self.end: Outcome | None = None
        self.returned: Outcome | None = None
        self.printed = 0
        self.wants_slot = False
        self.more = False
        self._open = not scene.gate
        self._led_to: str | None = None

    # `returned`: how the child ended that the host waits for; `_open`: a person has let the task through, whose path led to
    # `_led_to`, if elsewhere than it reads.

    @property
    def host(self) -> Member:
        return self.members[0]

    @property
    def at_work(self) -> Member:
        return self.members[-1]

    @property
    def blackboard(self) -> Mapping[str, Any]:
        return self.host.agent["blackboard"]

    # --- driving

    def act(self, turn: Turn, now: float) -> None:
        """Go on until somebody has to be waited for; `more` says that only the turn was too short."""
        self.wants_slot = self.more = False
        for _ in range(ACTS):
            recorded = len(turn.drafts)
            self._act_once(turn, now)
            if self.end is not None or len(turn.drafts) == recorded:
                return
        self.more = True

    def _act_once(self, turn: Turn, now: float) -> None:
        member = self.at_work
        if member.ended:
            self._ended(turn, member)
            return
        for each in self.members:
            each.phases.look(turn, now)
        states = STATES.get(member.agent["platform"])
        if states is None:
            member.become(turn, "error", reason=f"there are no agents for the platform {member.agent['platform']}")
            return
        if member.agent["state"] in ("CONTINUE", "SCREENSHOT") and not self.has_slot():
            return
        try:
            states[member.agent["state"]](member, turn, now)
        except Exception as error:  # a bug in one agent ends that agent, and nothing else
            log.error("agent %s broke", member.agent["id"], exc_info=error)
            member.become(turn, "error", reason=f"{type(error).__name__}: {error}")

    def _ended(self, turn: Turn, member: Member) -> None:
        """An agent has ended: its host goes on, or the attempt is over."""
        outcome = self._how(member)
        self._close(turn, member, outcome.outcome == "completed", member.agent["reason"])
        if member is self.host:
            self.end = outcome
        else:
            self.members.pop()
            self.returned = outcome
            turn.record(
                "agent_returned", agent_id=member.agent["id"], host_id=self.at_work.agent["id"], outcome=outcome.outcome
            )

    def _how(self, member: Member) -> Outcome:
        said = member.said or Outcome("")
        if member.agent["state"] == "FINISH":
            is_whole = member is self.host and not member.script.plain and self.blackboard
            return Outcome("completed", result=dict(self.blackboard) if is_whole else said.result, exit_code=said.exit_code)
        if said.reason or (member.script.plain and said.outcome not in ("", "completed")):
            return said
        return Outcome("failed", error=member.agent["reason"], exit_code=said.exit_code, error_kind=said.error_kind)

    def _close(self, turn: Turn, member: Member, ended_well: bool, reason: str) -> None:
        """What an agent leaves open ends with it."""
        if not ended_well:
            member.phases.blocked_by_step(turn, reason or "its agent has ended")
        member.phases.complete(turn, ended_well=ended_well)
        if member.approval is not None and member.approval["state"] == "waiting":
            approvals.withdraw(turn, member.approval, reason)
        if member.loop and member.state not in ("Idle", "Halted"):
            member.move(turn, "halt", reason=reason or "its agent has ended")

    def cancel(self, turn: Turn, reason: str, why: str = "cancelled") -> None:
        """End all agents, the one at work first. `why` is what their transitions say."""
        for member in reversed(self.members):
            if member.row is not None:
                key, outcome = str(member.row["id"]), Outcome("cancelled", error=reason, error_kind="interrupted")
                turn.record("call_cancelled", set={"evidence": {key: member.end_row(turn, outcome, reason)}})
            if not member.ended:
                member.become(turn, "cancel", reason=why)
            self._close(turn, member, False, why)

    def out_of_time(self, turn: Turn) -> None:
        """The task has run for as long as it may."""
        why = f"stopped after {self.scene.timeout:g} s"
        self.cancel(turn, why, why)
        self.end = Outcome("timeout", error=why)

    def record_end(self, turn: Turn) -> None:
        """While the actor pauses or the runner ends: the end of the call under way, and nothing that follows from it."""
        member = self.at_work
        if member.outcome is None:
            return
        if member.state == "ExecutingTool" and member.agent["state"] == "CONTINUE":
            remember(member, turn, turn.ts)
        elif member.agent["state"] == "SCREENSHOT" and member.outcome.outcome not in INTERRUPTED:
            self._act_once(turn, turn.ts)

    # --- calls

    @property
    def body(self) -> int | None:
        """The key of the call under way."""
        row = self.at_work.row
        return None if row is None or self.at_work.outcome is not None else row["id"]

    def take(self, outcome: Outcome) -> None:
        """The call under way has ended."""
        kinds = {ending: kind for kind, ending in ENDINGS.items()}
        outcome.error_kind = outcome.error_kind or kinds.get(outcome.outcome, "")
        self.at_work.outcome = outcome
        self.printed = max(self.printed, outcome.printed)

    def has_slot(self) -> bool:
        """Whether the crew may go on; where it may not, it wants its slot back."""
        self.wants_slot = not self.attempt["holds_slot"]
        return not self.wants_slot

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

    # --- the task's gate

    def gate_is_shut(self, member: Member) -> bool:
        """Whether a person has yet to let the task begin; what has begun is judged call by call."""
        return member is self.host and not self._open and member.state == "Idle" and not member.at.done

    def whole_action(self) -> Fields:
        """What a person is asked about: the one call, or all steps."""
        if not self.scene.plain:
            return {"phases": list(self.scene.script)}
        return self.host.act_of(*call_of(self.scene.script[0]["steps"][0])).action

    def open_gate(self, member: Member, approval: Fields) -> None:
        """From now on exactly what was approved is done; an approver may have changed it."""
        self._open, self._led_to = True, approval["action"].get("leads_to")
        if approval["edited"]:
            action, old = approval["action"], self.scene.script[0]["steps"][0]
            phases = single(action["tool"], action["arguments"], old["timeout"])
            member.script = Script(phases, self.scene.holds, plain=True)

    def covers(self, critical: bool, act: Act) -> bool:
        """Whether a policy's `ask` has been answered at the task's gate: for the one call, and for what is critical.

        Not for a path that leads elsewhere than was said there.
        """
        is_same = act.action.get("leads_to") == self._led_to
        return self.scene.gate and self._open and (self.scene.plain or critical) and is_same

    # --- delegation and the blackboard

    def delegate(self, turn: Turn, member: Member, step: Step) -> None:
        """A child takes over; the agent waits until it has ended."""
        if len(self.members) > DELEGATIONS:
            raise AgentsError(f"agents would delegate {len(self.members)} deep; {DELEGATIONS} are allowed")
        row = {
            "id": turn.take(), "session_id": self.scene.stream, "interaction_id": self.scene.interaction,
            "parent_id": member.agent["id"], "machine": DEVICE_AGENT.name,
            "name": f"{step['name']} for {member.agent['name']}"[:NAME],
            "platform": member.agent["platform"], "device_id": member.agent["device_id"], "state": DEVICE_AGENT.initial,
            "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        member.wait(turn, "child", None, "delegated", event="delegate")
        turn.record("agent_created", add={"agent": [row]})
        self.take_on(TABLES["agent"].whole(row), step)

    def take_on(self, agent: Fields, step: Step) -> Member:
        """An app agent for a step that delegates; it is the one at work from now on."""
        phases = [{"description": "", "expected_duration": None, "steps": step["steps"]}]
        self.members.append(Member(self, agent, Script(phases, self.scene.holds)))
        return self.at_work

    def check_room(self, key: str, value: Any) -> None:
        """Raises BlackboardFull where `value` does not fit."""
        if len(orjson.dumps({**self.blackboard, key: value})) > BLACKBOARD_BYTES:
            raise BlackboardFull(f"{key} does not fit on the blackboard, which holds {BLACKBOARD_BYTES:,} bytes")

    def save(self, turn: Turn, key: str, value: Any) -> None:
        """Put something where all agents of the crew see it; raises BlackboardFull where it does not fit."""
        if key:
            self.check_room(key, value)
            board = {**self.blackboard, key: value}
            agent = self.host.agent
            turn.record("blackboard_changed", agent_id=agent["id"], set={"agent": {str(agent["id"]): {"blackboard": board}}})
            agent["blackboard"] = board

    # --- what others say

    def waits_for(self) -> list[Fields]:
        """The approvals that its agents wait for, to be updated by whoever reads what was decided."""
        return [member.approval for member in self.members if member.approval is not None]

    def accept(self, turn: Turn, agent: int, identity: str) -> bool:
        """A person says "go on anyway": this loop is none from now on. False when no agent here has that id."""
        for member in self.members:
            if member.agent["id"] == agent and member.loop and not member.ended:
                row = member.note(turn, kind="accept", target=identity, success=True)
                turn.record("identity_accepted", agent_id=agent, identity=identity, add={"evidence": [row]})
                return True
        return False
