"""What a prompt is rendered from: plain values, no database. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.streams.row_types import LiveDevice
from constellations.plan.schemas import EditorTool


@dataclass(frozen=True)
class Scene:
    """Everything that a prompt shows.

    `request` is the words of the interaction. `constellation` is None in creation; `tasks` are its rows in the graph's order,
    `dependencies` name their two tasks (`from`, `to`). `events` are the ends that an editing session takes, as
    `runs.planner.ended_task` has them. `memory` are the session's earlier interactions, oldest first, as
    `reads.memory.read_memory` has them. `instructions`: tasks in words may be planned.
    """

    request: str
    devices: Sequence[LiveDevice]
    tools: Sequence[EditorTool]
    constellation: Mapping[str, Any] | None = None
    tasks: Sequence[Mapping[str, Any]] = ()
    dependencies: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()
    memory: Sequence[Mapping[str, Any]] = ()
    instructions: bool = True
