"""Steps and phases of a task: their normal form, and what keeps them from having one. Pure.

A step is written by its one telling key (`say: text`) or, where a plan was read before, in its normal form, which has `do`
instead; both come out the same. Findings lead to the part as it is written: phases[1].steps[3].recover[0].expct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from agents.crews.script import DELEGATIONS, says_where
from constellations.plan.keys import calls
from constellations.plan.keys.calls import STEPS
from constellations.plan.keys.kinds import readers_of
from constellations.plan.keys.step_keys import (
    ALL_WRITTEN,
    DEFAULTS,
    EXPECTED,
    INNER,
    MAX_STEPS,
    NEEDED,
    NORMAL,
    PHASE,
    RENAMED,
    TELLING,
    WAIT_S,
    WRITTEN,
)
from constellations.plan.values import (
    SHOWN,
    Finding,
    Path,
    Reader,
    Row,
    choice_reader,
    did_you_mean,
    findings_under,
    read_fields,
    value_kind,
)

__all__ = ["STEPS", "read_phases"]

PHASE_READERS = readers_of(PHASE)


def read_phases(fields: Row) -> tuple[list[Row], list[Finding]]:
    """The phases that a task's `steps` or `phases` are, and findings; `steps` are one phase without a description."""
    reading = _Reading()
    if "steps" in fields:
        steps = reading.steps(("steps",), fields["steps"], 0)
        return [{"description": "", "expected_duration": None, "steps": steps}], reading.findings
    written = fields["phases"]
    rows = [reading.phase(("phases", place), value, len(written)) for place, value in enumerate(written)]
    return rows, reading.findings


@dataclass(slots=True)
class _Reading:
    """The steps of one task while they are read: how many they are, and what is wrong where."""

    findings: list[Finding] = field(default_factory=list)
    count: int = 0

    def find(self, path: Path, message: str) -> None:
        self.findings.append((path, message))

    def fields(self, path: Path, value: Any, readers: Mapping[str, Reader]) -> Row:
        fields, found = read_fields(value, readers)
        self.findings += findings_under(path, found)
        return fields

    def phase(self, path: Path, value: Any, of: int) -> Row:
        """One of `of` phases. A description may be missing where there is one phase only."""
        if isinstance(value, str) or (isinstance(value, Mapping) and value.get("steps") is None):
            self.find(path, "a phase needs steps")
        fields = {} if isinstance(value, str) else self.fields(path, value, PHASE_READERS)
        description = fields.get("description", "")
        if isinstance(value, Mapping) and not value.get("description") and of > 1:
            self.find(path, "a phase needs a description where there are several")
        steps = self.steps((*path, "steps"), fields.get("steps", ()), 0)
        return {"description": description, "expected_duration": fields.get("expected_duration"), "steps": steps}

    def steps(self, path: Path, written: Sequence[Any], depth: int, recovering: bool = False) -> list[Row]:
        """`depth` is how many agents have delegated so far."""
        rows: list[Row] = []
        for place, value in enumerate(written):
            self.count += 1
            if self.count > MAX_STEPS:
                if self.count == MAX_STEPS + 1:
                    self.find((*path, place), f"is one step too many; {MAX_STEPS:,} are allowed in a task")
                break
            rows.append(self.step((*path, place), value, depth, recovering))
        return rows

    def step(self, path: Path, value: Any, depth: int, recovering: bool) -> Row:
        """A step in normal form; an empty row where nobody can say what it does."""
        do = self._kind(path, value)
        if recovering and do not in ("call", ""):
            self.find(path, "only calls recover: a command or a tool")
        if not do or (recovering and do != "call"):
            return {}
        before = len(self.findings)
        inner, fields = self._fields(path, do, value)
        if len(self.findings) == before:
            self._check_whole(inner, do, fields)
        if do == "call":
            self._call(path, fields, depth, recovering)
        elif do == "delegate":
            written_steps = fields.get("steps", ())
            fields["steps"] = []
            if depth < DELEGATIONS:
                fields["steps"] = self.steps((*inner, "steps"), written_steps, depth + 1)
            else:
                self.find((*inner, "steps"), f"agents would delegate {depth + 1} deep; {DELEGATIONS} are allowed")
        return {"do": do, **deepcopy(DEFAULTS[do]), **fields}

    def _kind(self, path: Path, value: Any) -> str:
        """What a step does; empty, with a finding, where it says nothing or more than one thing."""
        if not isinstance(value, Mapping):
            self.find(path, f"a step is an object with one of {', '.join(TELLING)}, not {value_kind(value)}")
            return ""
        if value.get("do") is not None:
            return str(self.fields(path, {"do": value["do"]}, {"do": choice_reader(tuple(DEFAULTS))}).get("do", ""))
        told = [key for key in TELLING if value.get(key) is not None]
        if len(told) == 1:
            return TELLING[told[0]]
        if told:
            self.find(path, f"a step does one thing, and here are {', '.join(told)}")
        elif strange := [key for key in value if key not in ALL_WRITTEN]:
            word = str(strange[0])[:SHOWN]
            self.find((*path, strange[0]), f"there is no step {word}{did_you_mean(word, TELLING)}")
        else:
            self.find(path, f"a step has one of {', '.join(TELLING)}; this one has none")
        return ""

    def _fields(self, path: Path, do: str, value: Mapping[str, Any]) -> tuple[Path, Row]:
        """The fields of the normal form, less defaults, and where those of the telling key's object are written."""
        is_normal = value.get("do") is not None
        fields = self.fields(path, value, {"do": str, **NORMAL[do]} if is_normal else WRITTEN[do])
        if do == "call":
            self.findings += findings_under(path, calls.make_call(fields, "step"))
        elif is_normal:
            return path, fields
        elif do in INNER:
            path = (*path, do)
            fields |= self.fields(path, fields.pop(do, {}), INNER[do])
        elif do in RENAMED and do in fields:
            fields[RENAMED[do]] = fields.pop(do)
        fields.pop("observe", None)
        return path, fields

    def _check_whole(self, path: Path, do: str, fields: Row) -> None:
        for key in NEEDED.get(do, ()):
            if key not in fields:
                self.find(path, f"`{key}` is missing")
        if do == "delegate":
            self._check_delegated(path, fields)
        if do != "wait":
            return
        if ("seconds" in fields) == bool(fields.get("for")):
            self.find(path, "a wait has either `seconds` or `for`")
        elif "seconds" in fields and fields.get("timeout", WAIT_S) != WAIT_S:
            self.find((*path, "timeout"), "only a wait for a call-back (`for`) has a timeout")

    def _check_delegated(self, path: Path, fields: Row) -> None:
        """What an agent is told to do: steps, or of a coding agent words."""
        if bool(fields.get("steps")) == bool(fields.get("instruction")):
            self.find(path, "a delegate has either `steps` or an `instruction`")
        elif not fields.get("instruction"):
            return
        elif not says_where(fields):
            where = "`device`, `device_type` or `capabilities`"
            self.find((*path, "instruction"), f"is for a coding agent, and none is asked for: say which by {where}")
        elif fields.get("app"):
            self.find((*path, "app"), "is for steps: a coding agent, which an instruction is for, is held to no app")

    def _call(self, path: Path, fields: Row, depth: int, recovering: bool) -> None:
        if "expect" in fields:
            fields["expect"] = self.fields((*path, "expect"), fields["expect"], EXPECTED)
        if recovering and fields.get("recover"):
            self.find((*path, "recover"), "a call that recovers has no recover of its own")
        elif fields.get("recover"):
            fields["recover"] = self.steps((*path, "recover"), fields["recover"], depth, recovering=True)
