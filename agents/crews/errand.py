"""The mind of an agent that is a program of its own: one step, an instruction, which that program carries out as it sees fit.

In the place of a script. What the program does meanwhile is followed by agents.crews.follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agents.crews.minds.choices import find_misfit
from agents.crews.minds.mission import Mission
from agents.crews.minds.wording import errand_prompt
from agents.crews.script import Holds, Position, Script, Step, plain_script
from agents.streams.row_types import EvidenceRow
from agents.tools.calls import Outcome
from agents.tools.catalogue import INSTRUCTION

CODING_AGENTS = "acp"
"""The kind of devices that are such programs, and their platform."""
ANSWERS_KEPT = 50
"""Latest answers that a position remembers, in case whoever was to hear them has not."""


class Errand(Script):
    """`mission` is the task in words, `constellation` the number of the one it may propose edits of, empty for none.

    `instruction` is the part that another agent has delegated, `board` what it is told of the blackboard; empty where the
    program has the whole task.
    """

    takes_hints = True

    def __init__(
        self, mission: Mission, holds: Holds, constellation: str = "", instruction: str = "",
        board: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        self._prompt = partial(errand_prompt, mission, constellation, instruction, dict(board or {}))
        super().__init__(plain_script(INSTRUCTION, {"prompt": self._prompt()}, None), holds)
        self._schema: Mapping[str, Any] = {} if instruction else mission.result_schema
        self._heard: list[str] = []

    def step(self, position: Position) -> Step | None:
        """The one step; one that was broken off is told so."""
        step = super().step(position)
        if step is None or not position.faults:
            return step
        return {**step, "arguments": {"prompt": self._prompt(resumed=True)}}

    def hear(self, row: EvidenceRow) -> None:
        """A person's word, which goes to the program as its next prompt."""
        if row["kind"] == "user" and isinstance(row["arguments"].get("said"), str) and "answers" not in row["arguments"]:
            self._heard.append(row["arguments"]["said"])

    def take_heard(self) -> list[str]:
        """What people have said that the program has not been told."""
        heard, self._heard = self._heard, []
        return heard

    def result_of(self, outcome: Outcome) -> tuple[Any, str]:
        """What the task's result is, and why there is none: where a schema is asked for, it is the JSON it ended with."""
        if not self._schema or outcome.outcome != "completed":
            return outcome.result, ""
        value = _last_json(str((outcome.result or {}).get("said", "")))
        wrong = find_misfit(value, self._schema)
        return value, f"its last words are no result of this task: {wrong}" if wrong else ""


def _last_json(text: str) -> Any:
    """The JSON on the last line of a text that has any; None where there is none."""
    for line in reversed(text.strip().splitlines()):
        try:
            return json.loads(line)
        except ValueError:
            continue
    return None


def with_answer(position: Position, ask: int, leave: bool) -> Position:
    """The position when the program's request of that number has been answered."""
    kept: Sequence[Mapping[str, Any]] = [*position.results, {"ask": ask, "leave": leave}]
    return replace(position, results=tuple(kept[-ANSWERS_KEPT:]))
