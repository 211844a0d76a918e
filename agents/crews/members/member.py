"""One agent of a crew: the rows of the agent, its tool loop and its phases, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from agents.artifacts.recording import record_artifacts
from agents.clock import from_iso
from agents.crews.apps import app_row, call_app
from agents.crews.evidence import LoopMemory, arbiter_of, call_row, ended_fields, tries_verdict, verdict_json
from agents.crews.members.assignment import Assignment, Blackboard, slot_device_of
from agents.crews.members.phases import Phases
from agents.crews.platforms import look_of, look_tool
from agents.crews.script import DELEGATIONS, Position, Script, Step, call_of, plain_script, says_where
from agents.crews.ways import FAULTS, way_out
from agents.devices.profiles.connections import is_volatile
from agents.errors import AgentsError
from agents.gates import approvals
from agents.gates.gate import Gate
from agents.gates.policies import Act
from agents.machines import DEVICE_AGENT, TOOL_LOOP
from agents.progress.tracker import Verdict, count_progress, is_progress_due
from agents.streams.row_types import AgentRow, ApprovalRow, EvidenceRow, LoopRow, ModelCallRow
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.calls import SECONDS, Call, Outcome

NAME = 200
"""Characters of an agent's name."""
REASON = 500
"""Characters of a transition's reason."""
AWAY = ("disconnected", "connecting")
"""States of a device that no call reaches, and that may end by themselves."""


class Member:
    """A device agent and its tool loop. Whatever moves it records what it does in the turn it is handed.

    `assignment` says what it is to do, `gate` what it may do, `blackboard` what its fellows have found. `depth` counts the
    delegations above it: the host's is 0.
    """

    def __init__(
        self, assignment: Assignment, gate: Gate, blackboard: Blackboard, agent: AgentRow, script: Script, depth: int = 0
    ):
        self.assignment, self.gate, self.blackboard = assignment, gate, blackboard
        self.agent, self.script, self.depth = agent, script, depth
        self.loop = cast(LoopRow, {})
        self.position = Position()
        self.memory = LoopMemory(assignment.settings, assignment.accepted)
        self.phases = Phases(agent["id"])
        self.approval: ApprovalRow | None = None
        self.row: EvidenceRow | None = None
        self.call: Call | None = None
        self.updates: list[tuple[str, Mapping[str, Any]]] = []
        self.told: list[tuple[int, str, Fields]] = []
        self.outcome: Outcome | None = None
        self.last_outcome: Outcome | None = None
        self.asked: ModelCallRow | None = None
        self.answer: Outcome | None = None
        self.child: AgentRow | None = None
        self.child_outcome: Outcome | None = None
        self.wants_slot = False

    # `approval`: what the agent waits for, or has been given and not used. `row`: the evidence of the call under way; `call`:
    # that call, until the crew takes it to begin it; `outcome`: how it ended, until that is recorded; `last_outcome`: how the
    # last call ended. `updates`: what the call under way has told and nobody has taken up; `told`: what calls are told once the
    # turn is durable. `asked`: the call of its model under way; `answer`: how that ended, until recorded. `child`: the agent
    # it has delegated to, while that works; `child_outcome`: how it ended, until recorded.

    @property
    def state(self) -> str:
        return self.loop["state"]

    @property
    def ended(self) -> bool:
        return DEVICE_AGENT.is_terminal(self.agent["state"])

    @property
    def step(self) -> Step | None:
        return self.script.step(self.position)

    def begin(self, turn: Turn) -> None:
        """Give the agent its tool loop."""
        row = new_loop(turn, self.agent["id"])
        self.loop = TABLES["loop"].whole(row)
        turn.record("loop_created", add={"loop": [row]})

    # --- transitions

    def move(self, turn: Turn, event: str, position: Position | None = None, *, reason: str = "", **more: Any) -> None:
        """A transition of the tool loop; `position` is where its script stands from then on."""
        facts = {"left": self.loop["left"]} if event == "resources_ok" else {}
        turn.transition(TOOL_LOOP, "loop", self.loop, event, facts, reason[:REASON], **more, **self._store_position(position))

    def become(self, turn: Turn, event: str, position: Position | None = None, *, reason: str = "", **more: Any) -> None:
        """A transition of the device agent."""
        if fields := self._store_position(position):  # in the same event, so that neither is ever stored without the other
            self.loop.update(fields)  # type: ignore[typeddict-item]
            more.setdefault("also", {})["loop"] = {str(self.loop["id"]): fields}
        turn.transition(DEVICE_AGENT, "agent", self.agent, event, reason=reason[:REASON], **more)

    def _store_position(self, position: Position | None) -> Fields:
        """The loop's field for a position that is not recorded yet."""
        self.position = self.position if position is None else position
        stored = self.position.to_json()
        return {} if stored == self.loop.get("position", {}) else {"position": stored}

    def place_at(self, position: Position) -> Fields:
        """It stands at `position` from now on: what is to be set where that comes with no transition."""
        fields = self._store_position(position)
        self.loop.update(fields)  # type: ignore[typeddict-item]
        return {"loop": {str(self.loop["id"]): fields}} if fields else {}

    def halt(self, turn: Turn, verdict: Verdict) -> None:
        """Stuck again: the loop is halted, and the task cannot be done."""
        self.memory.verdict = None
        self.move(turn, "halt", reason=verdict.reason)
        self.last_outcome = Outcome("failed", error=verdict.sentence, error_kind="stuck", reason=verdict.reason)
        self.become(turn, "fail", reason=f"{verdict.reason}: {verdict.sentence}")

    # --- evidence

    def _new_row(self, turn: Turn, **fields: Any) -> Fields:
        """A new row of evidence, not yet recorded."""
        number = self.memory.count = self.memory.count + 1
        return {
            "id": turn.take(), "loop_id": self.loop["id"], "number": number,
            "phase": self.position.phase + 1 if self.script.total else 0, "started_at": turn.at, **fields,
        }  # fmt: skip

    def note(self, turn: Turn, **fields: Any) -> Fields:
        """Something that is complete as it happens: a message, a refused call, a new window."""
        row: EvidenceRow = TABLES["evidence"].whole(self._new_row(turn, **{"ended_at": turn.at, **fields}))
        self._judge_row(turn, row)
        return TABLES["evidence"].told(row)

    def _judge_row(self, turn: Turn, row: EvidenceRow) -> None:
        """Have the rules judge a row that is complete; the verdict, if there is one, goes into the row."""
        self.script.hear(row)
        if verdict := self.memory.take(row):
            row["verdict"] = verdict_json(verdict) | arbiter_of(row)
            if verdict.first:
                turn.record("stuck", agent_id=self.agent["id"], **row["verdict"])
        elif self._has_used_up_tries(row) and (step := self.step) is not None:
            row["verdict"] = tries_verdict(row, self.memory.called, step["tries"], step["on_failure"])
        if self.assignment.has_arbiter and (suspected := self.memory.suspicion) is not None:
            turn.record("suspected", agent_id=self.agent["id"], **asdict(suspected))
        if row["kind"] in ("tool", "test", "poll") and is_progress_due(self.memory.state, self.memory.settings):
            turn.record("progress", agent_id=self.agent["id"], **vars(count_progress(self.memory.state)))

    def _has_used_up_tries(self, row: EvidenceRow) -> bool:
        """Whether a call that has failed was its step's last try, and no recovery makes it once more."""
        if row["success"] is not False or not self.script.uses_up_tries(self.position):
            return False
        kind, on_lost = row["error_kind"], self.assignment.on_lost
        return kind not in FAULTS or way_out(kind, self.position.faults + 1, on_lost=on_lost, own=True) == "check"

    def end_row(self, turn: Turn, outcome: Outcome, wrong: str) -> Fields:
        """The call under way has ended: the fields of its row, and what the rules say of it."""
        row = self.row
        assert row is not None
        fields = ended_fields(row, outcome, wrong, turn.at)
        row.update(fields)  # type: ignore[typeddict-item]
        self._judge_row(turn, row)
        if row["verdict"] is not None:
            fields["verdict"] = row["verdict"]
        self._keep_artifacts(turn, row["id"], outcome)
        self._note_process(turn, outcome)
        self.row, self.call, self.outcome, self.last_outcome = None, None, None, outcome
        return fields

    def _note_process(self, turn: Turn, outcome: Outcome) -> None:
        """Record where its app lives, as its platform has told with a call; it may end and another begin."""
        app = self.agent["app"]
        if not app or not outcome.process or app["process"] == outcome.process:
            return
        number, told = self.agent["id"], {**app, "process": dict(outcome.process)}
        turn.record("app_process", agent_id=number, **outcome.process, set={"agent": {str(number): {"app": told}}})
        self.agent["app"] = told

    def _keep_artifacts(self, turn: Turn, call: int, outcome: Outcome) -> None:
        """Record what a call has kept, but what is as it was after an earlier one."""
        kept = self.assignment.kept
        fresh = [each for each in outcome.artifacts if kept.get(each.get("name", "")) != each.get("sha256")]
        rows = record_artifacts(
            turn, self.assignment.stream, fresh, attempt=self.assignment.attempt["id"], call=call
        )  # fmt: skip
        kept.update({row["name"]: row["sha256"] for row in rows})

    # --- the gate

    @property
    def waits_at_gate(self) -> bool:
        """Whether a person has yet to let the task begin; what has begun is judged call by call."""
        return self.depth == 0 and self.gate.is_shut and self.state == "Idle" and not self.position.done

    def pass_gate(self, approval: ApprovalRow) -> None:
        """From now on exactly what was approved is done; an approver may have changed it."""
        action = approval["action"]
        self.gate.open(action.get("leads_to"))
        if approval["edited"] and self.script.plain:
            timeout = self.assignment.script[0]["steps"][0]["timeout"]
            self.script = Script(
                plain_script(action["tool"], action["arguments"], timeout),
                self.assignment.holds,
                plain=True,
                is_chosen=self.script.is_chosen,
            )

    # --- calls

    def claim_slot(self) -> bool:
        """Whether the attempt has a slot of the agent's own device; where it has not, the agent wants one."""
        attempt = self.assignment.attempt
        self.wants_slot = not (attempt["holds_slot"] and slot_device_of(attempt) == self.assignment.device["id"])
        return not self.wants_slot

    @property
    def next_act(self) -> Act:
        """The call in turn, as policies and approvals see it."""
        step = self.step
        assert step is not None
        return self.act_of(*call_of(step, look_tool(self.agent["platform"])))

    @property
    def stands_on_device(self) -> bool:
        """Whether it cannot go on when its device is lost: what a script has made there, as pages, ended with that."""
        return not self.script.chooses and is_volatile(self.assignment.device["kind"])

    @property
    def why_away(self) -> str:
        """Why no call reaches its device for now; "" where one does, or where it will not come back."""
        device = self.assignment.device
        if device["state"] not in AWAY:
            return ""
        return f"{device['name']} is {device['state']}" + (f": {device['reason']}" if device["reason"] else "")

    @property
    def is_lost(self) -> bool:
        """Whether it has ended because of that: `on_lost` says whether there is another attempt."""
        return self.stands_on_device and self.last_outcome is not None and self.last_outcome.outcome == "lost"

    @property
    def look_act(self) -> Act:
        """An observation, as policies see it."""
        return self.act_of(look_tool(self.agent["platform"]), {})

    def act_of(self, tool: str, arguments: Mapping[str, Any]) -> Act:
        """A call in the place of the one in turn."""
        writes = self.step.get("writes", "") if self.step is not None else ""
        return self.gate.describe_call(tool, arguments, writes, is_chosen=self.script.is_chosen)

    def perform(self, turn: Turn, event: str, act: Act, position: Position | None = None) -> None:
        """The record that a call begins; the call itself begins when that is durable."""
        step = self.step
        assert step is not None
        writes = step.get("writes", "")
        begun = call_row(act.tool, act.arguments, step.get("kind", ""), self.memory.settings, writes)
        row = self._begin_row(turn, **begun, ordered=self.script.is_ordered(position or self.position))
        self.move(turn, event, position, add={"evidence": [row]})
        seconds = step.get("timeout") or SECONDS.get(act.tool)
        self.call = Call(
            attempt=self.assignment.attempt["id"], session=self.assignment.stream, tool=act.tool, arguments=act.arguments,
            device=self.assignment.device, timeout=seconds * self.position.stretch if seconds else seconds,
            scope=self.assignment.scope, inherits=self.assignment.inherits, key=row["id"], writes=writes,
            blackboard=self.blackboard.values, place=act.place, app=call_app(self.agent["app"]),
            outputs=[*self.assignment.outputs, *step.get("outputs", ())],
        )  # fmt: skip

    def observe(self, turn: Turn) -> None:
        """Look at what the agent works on, with its platform's own tool: SCREENSHOT, and a call that only looks."""
        self.become(turn, "observe", add={"evidence": [self._look(turn)]})

    def look_again(self, turn: Turn) -> None:
        """The look was lost with its runner; it does no harm twice."""
        turn.record("looks_again", agent_id=self.agent["id"], add={"evidence": [self._look(turn)]})

    def _look(self, turn: Turn) -> Fields:
        look = look_of(self.agent["platform"])
        row = self._begin_row(turn, kind="observe", tool=look.tool)
        self.call = Call(
            attempt=self.assignment.attempt["id"], session=self.assignment.stream, tool=look.tool, arguments={},
            device=self.assignment.device, timeout=look.seconds, scope=self.assignment.scope,
            inherits=self.assignment.inherits, key=row["id"], body=look.body, app=call_app(self.agent["app"]),
        )  # fmt: skip
        return row

    def _begin_row(self, turn: Turn, **fields: Any) -> Fields:
        """The row of a call that begins, as it is to be recorded."""
        row = self._new_row(turn, **fields)
        self.row, self.outcome = TABLES["evidence"].whole(row), None
        return TABLES["evidence"].told(row)

    def delegate(self, turn: Turn, step: Step) -> None:
        """Have a child do the steps of this one, and wait until it has ended. Raises AgentsError where no device fits,
        or its app is none of the agent's.
        """
        if self.depth >= DELEGATIONS:
            raise AgentsError(f"agents would delegate {self.depth + 1} deep; {DELEGATIONS} are allowed")
        own = self.assignment.device
        device = self.assignment.fleet.choose_device(step) if says_where(step) else own
        app = app_row(step, device, self.agent["app"])
        place = "" if device["id"] == own["id"] else f" on {device['name']}"
        child = {
            "id": turn.take(), "session_id": self.assignment.stream, "interaction_id": self.assignment.interaction,
            "parent_id": self.agent["id"], "machine": DEVICE_AGENT.name,
            "name": f"{step['name']}{place} for {self.agent['name']}"[:NAME],
            "platform": device["platform"], "device_id": device["id"], "state": DEVICE_AGENT.initial,
            "app": app, "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        self.wait(turn, "child", None, "delegated", event="delegate")
        turn.record("agent_created", device=device["name"], add={"agent": [child]})
        self.child = TABLES["agent"].whole(child)

    def block_phase(self, turn: Turn, why: str) -> None:
        """The step in turn stands in the way of its phase."""
        self.phases.block_by_step(turn, self.position.step, self.step, why)

    # --- waiting

    def wait(
        self, turn: Turn, waits: str, seconds: float | None, reason: str, *,
        position: Position | None = None, event: str = "wait",
    ) -> None:  # fmt: skip
        """PENDING: nothing of the agent is held anywhere but in its rows."""
        until = None if seconds is None else turn.ts + seconds
        self.become(turn, event, replace(position or self.position, waits=waits, until=until), reason=reason)

    def ask(self, turn: Turn, kind: str, title: str, seconds: float | None, **more: Any) -> None:
        """Put something into the inbox of the people (or programs) who may decide it."""
        self.approval = approvals.open_approval(
            turn, self.assignment.stream, self.assignment.task, kind, title, seconds, agent=self.agent["id"], **more
        )

    def wake_at(self) -> float | None:
        """When the agent has something to decide by itself."""
        if self.agent["state"] == "PENDING":
            return self.position.until
        if self.agent["state"] == "CONFIRM" and self.approval is not None and self.approval["expires_at"]:
            return from_iso(self.approval["expires_at"])
        return None


def new_loop(turn: Turn, agent: int) -> LoopRow:
    """The row of an agent's tool loop, not yet recorded."""
    told = {"id": turn.take(), "agent_id": agent, "created_at": turn.at, "entered_at": turn.at}
    return told  # type: ignore[return-value]  # an event says no more
