"""Calls of tasks in steps that leave their marks in a file, and what these must agree with."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.db.models import QuerySet

from agents.models import Agent, Evidence
from constellations.models import Attempt

SCRIPT = (
    'echo "$ORRERY_ATTEMPT $2 start $(date +%s.%N)" >>"$0"; sleep "$1"; echo "$ORRERY_ATTEMPT $2 end $(date +%s.%N)" >>"$0"'
)


class Mark(NamedTuple):
    attempt: int
    name: str
    kind: str
    at: float


class StepMarks:
    """The file to which each call appends when it starts and when it ends; a call's name is its own within its attempt."""

    def __init__(self, folder: Path):
        self.path = folder / "step-marks"
        self.path.touch()

    def argv(self, name: str, seconds: float) -> list[str]:
        return ["sh", "-c", SCRIPT, str(self.path), f"{seconds:g}", name]

    def call(self, name: str, seconds: float, **more) -> dict:
        return {"command": self.argv(name, seconds), **more}

    def count(self, kind: str) -> int:
        return self.path.read_text().count(f" {kind} ")

    def found(self) -> list[Mark]:
        lines = (line.split() for line in self.path.read_text().splitlines())
        return [Mark(int(attempt), name, kind, float(at)) for attempt, name, kind, at in lines]

    def check(self) -> None:
        """Every mark was made within the one call that it belongs to, and no two calls of an attempt overlap."""
        marks = self.found()
        belonging = 0
        for attempt in Attempt.objects.all():
            rows = list(calls_of(attempt))
            check_one_after_the_other(rows)
            for row in rows:
                began, ended = row.started_at.timestamp(), row.ended_at.timestamp()
                mine = [mark for mark in marks if mark[:2] == (attempt.pk, name_of(row)) and began <= mark.at <= ended]
                check_marks(row, [mark.kind for mark in mine])
                belonging += len(mine)
        assert belonging == len(marks), "a call ran without its record"


def check_one_after_the_other(rows: list[Evidence]) -> None:
    for row in rows:
        assert row.ended_at is not None, f"{row} has no end"
    for one, other in pairwise(rows):
        assert one.ended_at <= other.started_at, f"{other} began before {one} had ended"


def check_marks(row: Evidence, kinds: list[str]) -> None:
    """A call that went well has started and ended once; one that was lost may have got anywhere."""
    if row.success:
        assert kinds == ["start", "end"], (row, kinds)
    else:
        assert row.error_kind == "lost", (row, row.raw_error)
        assert kinds in ([], ["start"], ["start", "end"]), (row, kinds)


def check_each_done_once(attempt: Attempt) -> None:
    """Nothing that went well was done again; whatever was not well was lost."""
    well = Counter(name_of(row) for row in calls_of(attempt) if row.success)
    assert all(count == 1 for count in well.values()), (attempt, well)


def calls_of(attempt: Attempt) -> QuerySet[Evidence]:
    """The calls of all agents of an attempt, in the order in which they began."""
    agents = family(attempt.agent_id)
    return Evidence.objects.filter(loop__agent__in=agents, tool="command").order_by("started_at", "id")


def family(agent: int) -> set[int]:
    """An agent and those it delegated to, and they in turn."""
    found, todo = {agent}, {agent}
    while todo := set(Agent.objects.filter(parent__in=todo).values_list("pk", flat=True)):
        found |= todo
    return found


def name_of(row: Evidence) -> str:
    return row.arguments["argv"][-1]
