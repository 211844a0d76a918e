"""The mind of an agent with a language model, in the place of a script: its steps are the calls of the latest answer.

Where it stands is a Position and the rows of its calls, which is all that has to survive a crash. It decides nothing that a
turn records; that is for agents.crews.think.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.crews.minds.choices import Choice, offered_tools, read_choice
from agents.crews.minds.mission import Mission
from agents.crews.minds.talk import (
    FULL,
    PICTURES,
    SUMMARY,
    USUAL_WINDOW,
    cut_talk,
    join_talk,
    shorten_results,
    talk_of,
    tokens_of,
    without_pictures,
)
from agents.crews.minds.wording import GO_ON, kept_result, summary_request, system_prompt, task_message, told_message
from agents.crews.script import Course, Holds, Position, Script, Step
from agents.llm.conversation import Message, read_conversation
from agents.llm.profiles import Profile
from agents.minds.question import Question
from agents.streams.row_types import EvidenceRow, ModelCallRow, PhaseRow

NOT_REACHED = "not done: you were stopped before it, because you go round in circles"
HEARD = 20
"""Messages of people and of the system that one question carries, the latest."""
ONE_PHASE: Mapping[str, Any] = {"description": "", "expected_duration": None, "steps": ()}
OWN_WORDS = ("start_phase", "complete_phase", "save", "finish", "fail", "wait", "ask")
"""Calls whose results are our own words, or those of the person who was asked, and need no marks."""


class Mind(Script):
    """`instruction` is what another agent has delegated; empty for the one that has the task. `depth` counts delegations.

    `app` is that of its agent's row.
    """

    chooses = takes_hints = True

    def __init__(
        self, mission: Mission, holds: Holds, instruction: str = "", depth: int = 0, device: Mapping[str, Any] | None = None,
        list_devices: Callable[[], Sequence[Mapping[str, Any]]] = tuple, app: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__([ONE_PHASE], holds, is_chosen=True)
        self.mission, self.instruction = mission, instruction
        self.app: Mapping[str, Any] = app or {}
        self.offered, self._list_devices = offered_tools(depth, device or {}, self.app.get("tools", ())), list_devices
        self.rows: list[ModelCallRow] = []
        self.wanted: Sequence[Step] = ()
        self._heard: list[tuple[int, str]] = []

    # `rows`: the agent's calls of models, oldest first; `wanted`: the steps of the answer that is acted on; `_heard`: what
    # people and the system have said, by the numbers of the rows that say so.

    # --- from rows

    def restore(self, position: Position, rows: Iterable[ModelCallRow], phases: Sequence[PhaseRow]) -> None:
        """As it was, from the rows of its calls and of its phases; what was heard is told again by `hear`."""
        self.rows = list(rows)
        for row in phases:
            self.plan_phase(row["number"], row["total"], row["description"], row["expected_s"])
        chosen = next((row for row in self.rows if position.chosen and row["number"] == position.chosen), None)
        self.wanted = self.read(chosen).steps if chosen is not None else ()

    def hear(self, row: EvidenceRow) -> None:
        """A word of a person or of the system, which the model reads next. What answers a question of its own is a result."""
        if row["kind"] not in ("user", "nudge") or row["arguments"].get("answers"):
            return
        said = row["arguments"].get("text") or row["arguments"].get("said")
        if said:
            by = "A person says" if row["kind"] == "user" else "You go round in circles"
            self._heard.append((row["number"], f"{by}: {said}"))

    # --- as a script

    def step(self, position: Position) -> Step | None:
        return self.wanted[position.step] if position.chosen and position.step < len(self.wanted) else None

    def choose_course(self, position: Position) -> tuple[Course, Position]:
        step = self.step(position)
        if step is not None and position.met and step["do"] == "start_phase":
            return "start_phase", position
        if step is not None and position.met and step["do"] == "complete_phase":
            return "phase_done", position
        return "next", self.go_further(position)

    def go_further(self, position: Position) -> Position:
        """Past the step in turn, if it has ended."""
        further = position.step + (position.met is not None and self.step(position) is not None)
        return replace(
            position, step=further, met=None, tries=0, error="", fault="", faults=0, stretch=1.0, waits="", until=None
        )  # fmt: skip

    def steer(self, position: Position) -> Position:
        """Told that it is stuck: what it wanted besides in this answer is not done, so that it reads that first."""
        kept = {result["call_id"] for result in position.results}
        left = [step for step in self.wanted if step["call_id"] not in kept]
        missed = [kept_result(step["call_id"], step["called"], NOT_REACHED, failed=True, trusted=True) for step in left]
        return replace(
            self.go_further(position), step=len(self.wanted), results=(*position.results, *missed), met=None
        )  # fmt: skip

    def keep_result(
        self, position: Position, text: str, *, failed: bool, picture: Mapping[str, Any] | None = None
    ) -> Position:  # fmt: skip
        step = self.step(position)
        if step is None:
            return position
        trusted = step["called"] in OWN_WORDS
        result = kept_result(step["call_id"], step["called"], text, failed=failed, trusted=trusted)
        if picture:
            result["picture"] = dict(picture)
        others = [each for each in position.results if each["call_id"] != step["call_id"]]
        return replace(position, results=(*others, result))

    def plan_phase(self, number: int, total: int, description: str, expected: float | None) -> None:
        """There is a phase of this number, and so many in all."""
        phases = [*self.phases, *[ONE_PHASE] * (number - len(self.phases))]
        phases[number - 1] = {"description": description, "expected_duration": expected, "steps": ()}
        self.phases, self.total = phases, max(self.total, total, number)

    # --- asking and reading

    @property
    def asks_next(self) -> int:
        """The number of its next call."""
        return len(self.rows) + 1

    def profiles(self) -> tuple[Profile, ...]:
        return self.mission.profiles()

    def next_question(
        self, position: Position, device: Mapping[str, Any], board: Mapping[str, Any]
    ) -> tuple[str, Question, list[Message]]:
        """What is to be asked now: its purpose, the question, and the messages that are new with it. Raises NoModelProfile."""
        profiles = self.profiles()
        window = (profiles[0].context_window or USUAL_WINDOW) * FULL / 2**position.shorter
        room = int(window) - self._fixed_tokens(device)
        talk, prompt = talk_of(self.rows), system_prompt(self.mission, device, self.app)
        told = told_message(position.results, self._news(position))
        if not talk:
            may_delegate = "delegate" in self.offered
            others = [each for each in self._list_devices() if each["name"] != device["name"]] if may_delegate else []
            told = [task_message(self.mission, self.instruction, board, others), *told]
        elif not told and talk[-1].role == "assistant":
            told = told_message((), (), GO_ON)
        shown_pictures = PICTURES if any(profile.sees for profile in profiles) else 0
        whole = shorten_results(without_pictures(join_talk(talk, told), shown_pictures), room)
        if tokens_of(whole) <= room or not self._can_shorten():
            tools = tuple(self.offered.values())
            return "device_agent", Question(profiles, prompt, tuple(whole), tools), told
        told = told_message(position.results, self._news(position), summary_request())
        shown = cut_talk(without_pictures(join_talk(talk, told)), room)
        return SUMMARY, Question(profiles, prompt, tuple(shown), tuple(self.offered.values()), "none"), told

    def _can_shorten(self) -> bool:
        """Whether there is more to sum up than was summed up last."""
        return len(self.rows) > 1 and not (self.rows[-1]["purpose"] == SUMMARY and self.rows[-1]["outcome"] == "answered")

    def _fixed_tokens(self, device: Mapping[str, Any]) -> int:
        """Of every question, whatever has been said."""
        return Question((), system_prompt(self.mission, device, self.app), (), tuple(self.offered.values())).input_tokens

    def _news(self, position: Position) -> list[str]:
        return [said for number, said in self._heard if number > position.told][-HEARD:]

    def read(self, row: ModelCallRow) -> Choice:
        """What an answer that has come wants; of a summary nothing."""
        if row["purpose"] == SUMMARY or not row["reply"]:
            return Choice()
        return read_choice(read_conversation(row["reply"])[0], self.offered)
