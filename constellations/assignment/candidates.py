"""What a strategy is told: the devices that have room, and the session whose task it is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Candidate:
    """A device that a task may run on now. Of its `slots` `taken` are in use, and `mine` of these by the task's own session.

    `waiting` sessions are in its queue. `readings` are in percent by resource (memory, disk, cpu), as far as they are known.
    """

    id: int
    name: str
    slots: int
    taken: int = 0
    mine: int = 0
    waiting: int = 0
    type: str = ""
    capabilities: Sequence[str] = ()
    labels: Sequence[str] = ()
    readings: Mapping[str, float] = field(default_factory=dict)

    @property
    def load(self) -> float:
        """Slots in use and sessions that wait, for each of its slots."""
        return (self.taken + self.waiting) / self.slots


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The session whose task it is: how many of its attempts have slots, and how many may."""

    id: int
    owner: int
    running: int
    limit: int


Strategy = Callable[[Sequence[Candidate], Mapping[str, Any], SessionFacts], Candidate]
"""Chooses one of at least two candidates for a task, a row of the table of tasks. It changes nothing."""
