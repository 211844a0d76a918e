"""The mind of an agent without a language model: the steps of its plan, one after the other. Pure.

A step is in the normal form that plans are read into (docs/plans.md, "Tasks in steps"). Where the script stands is a Position,
which is all that has to survive a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from agents.errors import AgentsError

if TYPE_CHECKING:
    from agents.streams.row_types import EvidenceRow
    from agents.tools.calls import Outcome

Step = Mapping[str, Any]
Holds = Callable[[str, Any], bool]
"""Whether a condition holds for a JSON value; raises AgentsError when that cannot be said."""
CONFIRMED = "confirmed"
"""What a position waits for no longer: a person has approved the call in turn, and it is made."""
LOOKED = "looked"
"""What it waits for no longer, too: the person who is to approve the call in turn can be shown what it is about."""
Course = Literal["next", "again", "start_phase", "phase_done", "done", "failed"]
DELEGATIONS = 3
"""App agents of one crew that work for one another, below the host that has the task: plans, crews and pages go by it."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where an agent stands in its script.

    phase, step   places in the script, from 0        met       how the last action of this step ended, None before it
    tries         of this step that have ended        error     and why it did not go well
    detour        place in the step's `recover`       fault     kind of the fault that is being recovered from
    faults        of this step that were recovered    stretch   factor on the step's time-out
    waits         what an agent that is PENDING waits for: time, approval, child, or nothing
    until         when that ends, in seconds since 1970
    detoured      the step's `recover` has been made

    Of an agent with a model, whose steps are the calls of the model's latest answer:

    chosen        number of the model call whose answer that is, 0 before the first
    results       what came of those calls, until the model is told: {call_id, tool, text, failed}
    told          number of the latest row of evidence when the model was asked last
    misfits       answers in a row that could not be used
    shorter       how often the conversation was made shorter than it usually is
    """

    phase: int = 0
    step: int = 0
    tries: int = 0
    detour: int = -1
    met: bool | None = None
    error: str = ""
    fault: str = ""
    faults: int = 0
    stretch: float = 1.0
    waits: str = ""
    until: float | None = None
    detoured: bool = False
    done: bool = False
    chosen: int = 0
    results: Sequence[Mapping[str, Any]] = ()
    told: int = 0
    misfits: int = 0
    shorter: int = 0

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the beginning."""
        return {name: value for name, value in asdict(self).items() if value != DEFAULTS[name]}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Position:
        return cls(**stored)


DEFAULTS = {field.name: field.default for field in fields(Position)}


class Script:
    """The phases of a task's steps. `total` is 0 where the work has no phases; `plain`: the one call is the task itself.

    `is_chosen`: a model chose the steps, when it planned or as it goes.
    """

    chooses = False
    """Whether a model says what the steps are (agents.crews.minds.mind)."""
    takes_hints = False
    """Whether a person's word goes to whoever works on it."""

    def __init__(
        self, phases: Sequence[Mapping[str, Any]], holds: Holds, *, plain: bool = False, is_chosen: bool = False
    ):  # fmt: skip
        self.phases, self._holds, self.plain, self.is_chosen = phases, holds, plain, is_chosen
        self.total = len(phases) if len(phases) > 1 or phases[0]["description"] else 0

    def pass_over(self, position: Position, blackboard: Mapping[str, Any]) -> Position:
        """Past the steps whose `if` is false; one that cannot be decided has failed, and is not tried."""
        while position.met is None and position.detour < 0 and (step := self.step(position)) is not None:
            try:
                if not step["if"] or position.tries or self._holds(step["if"], blackboard):
                    break
            except AgentsError as error:
                wrong = f"whether the step is wanted cannot be said: {error}"
                return replace(position, met=False, tries=step.get("tries", 1), error=wrong)
            position = Position(phase=position.phase, step=position.step + 1)
        return position

    def step(self, position: Position) -> Step | None:
        """The step in turn; None when the phase has no more."""
        if position.phase >= len(self.phases):
            return None
        steps = self.phases[position.phase]["steps"]
        if position.step >= len(steps):
            return None
        step: Step = steps[position.step]
        return step["recover"][position.detour] if position.detour >= 0 else step

    def choose_course(self, position: Position) -> tuple[Course, Position]:
        """What follows from how the last action ended, and where the agent stands then."""
        if position.detour >= 0:
            steps = self.phases[position.phase]["steps"][position.step]["recover"]
            if position.detour + 1 < len(steps):
                return "again", replace(position, met=None, detour=position.detour + 1)
            # The detour is over, and the step itself begins anew.
            return "again", replace(position, met=None, detour=-1, detoured=True, tries=0)
        step = self.step(position)
        if step is None or position.met is None:
            return self._go_further(replace(position, met=None))
        if not position.met and position.tries < step.get("tries", 1):
            return "again", replace(position, met=None)
        if not position.met and step.get("on_failure") != "continue":
            return "failed", replace(position, done=True)
        return self._go_further(Position(phase=position.phase, step=position.step + 1))

    def is_ordered(self, position: Position) -> bool:
        """Whether the call in turn is a retry that the plan orders: it says nothing about the agent.

        Until a step's `recover` has been made it is not: such a plan wants to be told that its agent is stuck here.
        """
        step = self.step(position)
        if step is None or position.detour >= 0 or (step.get("recover") and not position.detoured):
            return False
        return bool(0 < position.tries < step.get("tries", 1))

    def uses_up_tries(self, position: Position) -> bool:
        """Whether the call in turn is the last of several that its step may make."""
        step = self.step(position)
        return step is not None and position.detour < 0 and bool(1 < step.get("tries", 1) <= position.tries + 1)

    def _go_further(self, position: Position) -> tuple[Course, Position]:
        if self.step(position) is not None:
            return "next", position
        if self.total:
            return "phase_done", position
        return "done", replace(position, done=True)

    def next_phase(self, position: Position) -> Position | None:
        """The beginning of the next phase; None after the last."""
        return Position(phase=position.phase + 1) if position.phase + 1 < len(self.phases) else None

    def steer(self, position: Position) -> Position:
        """Told that it is stuck, the agent takes the step's detour if there is one; it knows nothing else to do."""
        step = self.step(position)
        detour = 0 if position.detour < 0 and step is not None and step.get("recover") else -1
        return replace(position, detour=detour, met=None)

    def keep_result(
        self, position: Position, text: str, *, failed: bool, picture: Mapping[str, Any] | None = None
    ) -> Position:  # fmt: skip
        """The position when the step in turn has brought `text`, for a mind that is told of it; a script's stays as it is."""
        return position

    def hear(self, row: EvidenceRow) -> None:
        """A row of evidence that is complete, for a mind that reads what others say; a script does not."""

    def find_shortfall(self, step: Step, outcome: Outcome) -> str:
        """What is missing from a call's outcome, by its `expect`; empty when nothing is."""
        expect: Mapping[str, Any] = step.get("expect") or {}
        # An exit code that is expected is the whole of how it has to end: 1 may be what is wanted.
        if "exit_code" in expect:
            if outcome.exit_code != expect["exit_code"]:
                return outcome.error or f"exit code {outcome.exit_code}, not {expect['exit_code']}"
        elif expect.get("fails"):
            if outcome.outcome == "completed":
                return "it went well, and should have failed"
        elif outcome.outcome != "completed":
            return outcome.error or outcome.outcome
        if "contains" in expect and expect["contains"] not in outcome.text and expect["contains"] not in str(outcome.result):
            return f"its output does not contain {expect['contains']!r}"
        if "result" in expect and not self._holds(expect["result"], outcome.result):
            return f"its result is not as expected: {expect['result']}"
        return ""


WHERE = ("device", "platform", "device_type", "capabilities")
"""Keys of a step that delegates which say where its app agent works; without any of them it is where its host is."""


def says_where(step: Step) -> bool:
    return any(step.get(key) for key in WHERE)


def call_of(step: Step, look: str = "observe") -> tuple[str, Mapping[str, Any]]:
    """The tool and the arguments of a step that policies judge: a call, or a look; `look` is what its platform looks with."""
    return (look, {}) if step["do"] == "observe" else (step["tool"], step["arguments"])


def plain_script(tool: str, arguments: Mapping[str, Any], timeout: float | None) -> list[dict[str, Any]]:
    """The script of a plain task: its one call."""
    step: dict[str, Any] = {
        "do": "call", "tool": tool, "arguments": dict(arguments), "kind": "", "expect": {}, "timeout": timeout, "tries": 1,
        "every": 0.0, "on_failure": "fail", "recover": [], "save": "", "writes": "", "confirm": False, "if": "",
    }  # fmt: skip
    return [{"description": "", "expected_duration": None, "steps": [step]}]


JUDGED = ("call", "observe")
"""What steps do that policies have a say in."""
