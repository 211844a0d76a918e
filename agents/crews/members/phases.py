"""Records of an agent's phases: begun once, completed once (docs/plans.md, "Phases")."""

from __future__ import annotations

from typing import Any

from agents.clock import from_iso
from agents.crews.script import Script, Step
from agents.gates.policies import target_of
from agents.streams.row_types import EvidenceRow, PhaseRow
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn

FILES = 500
TESTS = 200
BLOCKERS = 50
"""Entries a record keeps."""
TEXT = 500
"""Characters of a blocker or of a test's name."""
STEP_NAME = 100
"""Characters of a blocker that say what its step does."""


class Phases:
    """The phases of one agent; `current` is the one it works in."""

    def __init__(self, agent: int):
        self._agent = agent
        self.current: PhaseRow | None = None
        self.last = 0
        self._warnings = 0

    # `last`: the number of the latest phase, 0 before the first. `_warnings`: how often it has been recorded that the present
    # phase takes longer than expected.

    def load(self, rows: list[PhaseRow]) -> None:
        self.current = next((row for row in rows if row["ended_at"] is None), None)
        self.last = rows[-1]["number"] if rows else 0
        if self.current is not None:
            self._warnings = 2 if self._overdue_blocker(self.current) in self.current["blockers"] else 0

    def start(self, turn: Turn, script: Script, place: int) -> None:
        """Begin the phase in this place of the script, counted from 0."""
        phase = script.phases[place]
        fields = {
            "id": turn.take(), "agent_id": self._agent, "number": place + 1, "total": script.total,
            "description": phase["description"], "expected_s": phase["expected_duration"], "started_at": turn.at,
        }  # fmt: skip
        self.current, self.last, self._warnings = TABLES["phase"].whole(fields), place + 1, 0
        turn.record("phase_started", number=fields["number"], add={"phase": [TABLES["phase"].told(fields)]})

    def restart(self, turn: Turn, description: str, expected: float | None) -> None:
        """Begin the present phase anew: what is in its record is of the last time that it was begun."""
        assert self.current is not None
        self._warnings = 0
        begun: Fields = {"description": description, "expected_s": expected, "started_at": turn.at}
        self._set(turn, "phase_restarted", **begun, files_changed=[], tests=[], blockers=[])

    def complete(self, turn: Turn, *, ended_well: bool = True, outcome: str = "") -> None:
        """End the present phase: success when its tests passed last and nothing blocked it, unless an `outcome` is given."""
        if self.current is None:
            return
        tests_pass = all(test["passed"] for test in self.current["tests"])
        well = ended_well and tests_pass and not self.current["blockers"]
        outcome = outcome or ("success" if well else "completed_with_issues")
        self._set(turn, "phase_ended", ended_at=turn.at, outcome=outcome)
        self.current = None

    def note_call(self, turn: Turn, row: EvidenceRow) -> None:
        """What a call that has ended means for the present phase: a file changed, a test run."""
        if self.current is None:
            return
        fields: Fields = {}
        path, files = row["target"], self.current["files_changed"]
        if row["before"] is not None and row["before"] != row["outcome"] and path not in files and len(files) < FILES:
            fields["files_changed"] = [*files, path]
        if row["kind"] == "test":
            name = path[:TEXT]
            others = [test for test in self.current["tests"] if test["name"] != name][: TESTS - 1]
            fields["tests"] = [*others, {"name": name, "passed": bool(row["success"])}]
        if fields:
            self._set(turn, "phase_changed", **fields)

    def block_by_step(self, turn: Turn, place: int, step: Step | None, why: str) -> None:
        """The step in this place stands in the way; the blocker says what it does: `step 2 (command make test): ...`."""
        if step is None:
            self.block(turn, why)
            return
        if step["do"] == "call":
            does = f"{step['tool']} {target_of(step['tool'], step['arguments'])}"
        else:
            about = step.get("question") or step.get("name") or step.get("for") or step.get("text") or ""
            does = f"{step['do']} {about}".rstrip()
        self.block(turn, f"step {place + 1} ({does[:STEP_NAME]}): {why}")

    def block(self, turn: Turn, why: str) -> None:
        if self.current is not None and len(self.current["blockers"]) < BLOCKERS:
            self._set(turn, "phase_blocked", blockers=[*self.current["blockers"], why[:TEXT]])

    def look(self, turn: Turn, now: float) -> None:
        """Past its expected duration: an event; past twice that: a blocker. It is never ended for it."""
        due = self.wake_at()
        if self.current is None or due is None or now < due:
            return
        self._warnings += 1
        turn.record("phase_overdue", agent_id=self._agent, number=self.current["number"], factor=self._warnings)
        if self._warnings == 2:
            self.block(turn, self._overdue_blocker(self.current))

    @staticmethod
    def _overdue_blocker(phase: PhaseRow) -> str:
        return f"it takes more than twice the expected {phase['expected_s'] or 0:g} s"

    def wake_at(self) -> float | None:
        """When the present phase has to be looked at."""
        if self.current is None or not self.current["expected_s"] or self._warnings >= 2:
            return None
        return from_iso(self.current["started_at"]) + (self._warnings + 1) * self.current["expected_s"]

    def _set(self, turn: Turn, event: str, **fields: Any) -> None:
        assert self.current is not None
        turn.record(event, number=self.current["number"], set={"phase": {str(self.current["id"]): fields}})
        self.current.update(fields)  # type: ignore[typeddict-item]
