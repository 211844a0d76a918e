"""One agent of a crew: the rows of the agent, its tool loop and its phases, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agents.clock import from_iso
from agents.crews.evidence import Memory, call_row, ended_fields, verdict_json
from agents.crews.phases import Phases
from agents.crews.script import Holds, Position, Script, Step, call_of
from agents.gates import approvals
from agents.gates.judging import act_on
from agents.gates.policies import Act, Judgement, Rule, Site, judge
from agents.machines import DEVICE_AGENT, TOOL_LOOP
from agents.progress.settings import Settings
from agents.progress.tracker import Verdict, progress, progress_due
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.calls import SECONDS, Call, Outcome

if TYPE_CHECKING:
    from agents.crews.crew import Crew

REASON = 500
"""Characters of a transition's reason."""


@dataclass(frozen=True)
class Scene:
    """Where a crew works, and what it is to do.

    `script` are the phases of its steps, `plain`: they are one call, which is the task itself. `device` is the live row.
    `rules` gives the installation's policies, `own` are the task's. `gate` says whether the task waits for a person first.
    """

    stream: int
    interaction: int
    device: Mapping[str, Any]
    task: int
    title: str
    scope: str
    inherits: str
    script: Sequence[Mapping[str, Any]]
    plain: bool
    gate: bool
    timeout: float | None
    on_lost: str
    settings: Settings
    accepted: Sequence[str]
    own: Sequence[Rule]
    rules: Callable[[], Sequence[Rule]]
    holds: Holds


class Member:
    """A device agent and its tool loop. Whatever moves it records what it does in the turn it is handed."""

    def __init__(self, crew: Crew, agent: Fields, script: Script):
        self.crew, self.agent, self.script = crew, agent, script
        self.loop: Fields = {}
        self.at = Position()
        self.memory = Memory(crew.scene.settings, crew.scene.accepted)
        self.phases = Phases(self)
        self.approval: Fields | None = None
        self.row: Fields | None = None
        self.call: Call | None = None
        self.outcome: Outcome | None = None
        self.said: Outcome | None = None

    # `row`: the evidence of the call under way; `outcome`: how it ended, until that is recorded; `said`: how the last call
    # ended; `approval`: what the agent waits for, or has been given and not used.

    @property
    def state(self) -> str:
        return self.loop["state"]

    @property
    def ended(self) -> bool:
        return DEVICE_AGENT.is_terminal(self.agent["state"])

    @property
    def step(self) -> Step | None:
        return self.script.step(self.at)

    def begin(self, turn: Turn) -> None:
        """Give the agent its tool loop."""
        row = new_loop(turn, self.agent["id"])
        self.loop = TABLES["loop"].whole(row)
        turn.record("loop_created", add={"loop": [row]})

    # --- transitions

    def move(self, turn: Turn, event: str, at: Position | None = None, *, reason: str = "", **more: Any) -> None:
        """A transition of the tool loop; `at` is where its script stands from then on."""
        facts = {"left": self.loop["left"]} if event == "resources_ok" else {}
        turn.transition(TOOL_LOOP, "loop", self.loop, event, facts, reason[:REASON], **more, **self._stands(at))

    def become(self, turn: Turn, event: str, at: Position | None = None, *, reason: str = "", **more: Any) -> None:
        """A transition of the device agent."""
        if stands := self._stands(at):
            self.loop.update(stands)
            more.setdefault("also", {})["loop"] = {str(self.loop["id"]): stands}
        turn.transition(DEVICE_AGENT, "agent", self.agent, event, reason=reason[:REASON], **more)

    def _stands(self, at: Position | None) -> Fields:
        """The loop's field for a position that is not recorded yet."""
        self.at = self.at if at is None else at
        position = self.at.to_json()
        return {} if position == self.loop.get("position", {}) else {"position": position}

    def halt(self, turn: Turn, verdict: Verdict) -> None:
        """Stuck again: the loop is halted, and the task cannot be done."""
        self.memory.verdict = None
        self.move(turn, "halt", reason=verdict.reason)
        self.said = Outcome("failed", error=verdict.sentence, error_kind="stuck", reason=verdict.reason)
        self.become(turn, "fail", reason=f"{verdict.reason}: {verdict.sentence}")

    # --- evidence

    def evidence(self, turn: Turn, **fields: Any) -> Fields:
        """A new row of evidence, not yet recorded."""
        number = self.memory.count = self.memory.count + 1
        return {
            "id": turn.take(), "loop_id": self.loop["id"], "number": number,
            "phase": self.at.phase + 1 if self.script.total else 0, "started_at": turn.at, **fields,
        }  # fmt: skip

    def note(self, turn: Turn, **fields: Any) -> Fields:
        """Something that is complete as it happens: a message, a refused call, a new window."""
        row = TABLES["evidence"].whole(self.evidence(turn, **{"ended_at": turn.at, **fields}))
        self.learn(turn, row)
        return TABLES["evidence"].told(row)

    def learn(self, turn: Turn, row: Fields) -> None:
        """What the rules say of a row that is complete; the verdict, if there is one, goes into the row."""
        if verdict := self.memory.take(row):
            row["verdict"] = verdict_json(verdict)
            if verdict.first:
                turn.record("stuck", agent_id=self.agent["id"], **row["verdict"])
        if row["kind"] in ("tool", "test", "poll") and progress_due(self.memory.state, self.memory.settings):
            turn.record("progress", agent_id=self.agent["id"], **vars(progress(self.memory.state)))

    def end_row(self, turn: Turn, outcome: Outcome, wrong: str) -> Fields:
        """The call under way has ended: the fields of its row, and what the rules say of it."""
        row = self.row
        assert row is not None
        fields = ended_fields(row, outcome, wrong, turn.at)
        row.update(fields)
        self.learn(turn, row)
        if row["verdict"] is not None:
            fields["verdict"] = row["verdict"]
        self.row, self.call, self.outcome, self.said = None, None, None, outcome
        return fields

    # --- calls

    def act(self) -> Act:
        """The call in turn, as policies and approvals see it."""
        step = self.step
        assert step is not None
        return self.act_of(*call_of(step))

    def act_of(self, tool: str, arguments: Mapping[str, Any]) -> Act:
        """A call in the place of the one in turn."""
        writes = self.step.get("writes", "") if self.step is not None else ""
        return act_on(self.crew.scene.device, tool, arguments, writes)

    def judged(self, act: Act) -> Judgement:
        scene = self.crew.scene
        return judge(scene.rules(), scene.own, act, Site.of(scene.device))

    def perform(self, turn: Turn, event: str, act: Act, at: Position | None = None) -> None:
        """The record that a call begins; the call itself begins when that is durable."""
        step = self.step
        assert step is not None
        known = call_row(act.tool, act.arguments, step.get("kind", ""), self.memory.settings, step.get("writes", ""))
        row = self.evidence(turn, **known)
        self.row = TABLES["evidence"].whole(row)
        self.outcome = None
        self.move(turn, event, at, add={"evidence": [row]})
        self.call = self._call(row["id"], act, step)
        self.crew.calls.append(self.call)

    def _call(self, key: int, act: Act, step: Step) -> Call:
        scene = self.crew.scene
        seconds = step.get("timeout") or SECONDS.get(act.tool)
        return Call(
            attempt=self.crew.attempt["id"], session=scene.stream, tool=act.tool, arguments=act.arguments,
            device=scene.device, timeout=seconds * self.at.stretch if seconds else seconds, scope=scene.scope,
            inherits=scene.inherits, key=key, writes=step.get("writes", ""), blackboard=self.crew.blackboard,
            printed=self.crew.printed, place=act.place,
        )  # fmt: skip

    def observe(self, turn: Turn) -> None:
        """Look at the workspace and the system: SCREENSHOT, and a call that only looks."""
        self.become(turn, "observe", add={"evidence": [self._look_in(turn)]})

    def look_again(self, turn: Turn) -> None:
        """The look was lost with its runner; it does no harm twice."""
        turn.record("looks_again", agent_id=self.agent["id"], add={"evidence": [self._look_in(turn)]})

    def _look_in(self, turn: Turn) -> Fields:
        row = self.evidence(turn, kind="observe", tool="observe")
        self.row = TABLES["evidence"].whole(row)
        self.outcome = None
        scene = self.crew.scene
        self.call = Call(
            attempt=self.crew.attempt["id"], session=scene.stream, tool="observe", arguments={}, device=scene.device,
            timeout=OBSERVE_S, scope=scene.scope, inherits=scene.inherits, key=row["id"], printed=self.crew.printed,
        )  # fmt: skip
        self.crew.calls.append(self.call)
        return row

    # --- waiting

    def wait(
        self, turn: Turn, waits: str, seconds: float | None, reason: str, *, at: Position | None = None, event: str = "wait"
    ) -> None:
        """PENDING: nothing of the agent is held anywhere but in its rows."""
        until = None if seconds is None else turn.ts + seconds
        self.become(turn, event, replace(at or self.at, waits=waits, until=until), reason=reason)

    def ask(self, turn: Turn, kind: str, title: str, seconds: float | None, **more: Any) -> None:
        """Put something into the inbox of the people (or programs) who may decide it."""
        self.approval = approvals.new(
            turn, self.crew.scene.stream, self.crew.scene.task, kind, title, seconds, agent=self.agent["id"], **more
        )

    def wake_at(self) -> float | None:
        """When the agent has something to decide by itself."""
        if self.agent["state"] == "PENDING":
            return self.at.until
        if self.agent["state"] == "CONFIRM" and self.approval is not None and self.approval["expires_at"]:
            return from_iso(self.approval["expires_at"])
        return None


def new_loop(turn: Turn, agent: int) -> Fields:
    """The row of an agent's tool loop, not yet recorded."""
    return {"id": turn.take(), "agent_id": agent, "created_at": turn.at, "entered_at": turn.at}


OBSERVE_S = 30.0
"""Time of an observation."""
