"""What the constellation agent's model is shown: the run as it is now, as a scene for the prompter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.streams.tables import Fields
from constellations.prompts.scene import Scene
from constellations.runs.context import Context
from constellations.services.dispatcher import list_tools

DEVICES = 200
"""Whose rows a call keeps, as the prompt showed them."""
KEPT = ("name", "type", "capabilities", "labels", "state", "max_concurrent", "used")


def creation_scene(context: Context) -> Scene:
    """Nothing is planned yet."""
    return Scene(
        _request(context), list(context.devices.values()), list_tools(), memory=context.memory,
        instructions=_takes_instructions(context),
    )  # fmt: skip


def editing_scene(context: Context, events: Sequence[Fields]) -> Scene:
    """The graph as it is now, and the ends that the editing session has taken."""
    live = context.graph
    return Scene(
        _request(context), list(context.devices.values()), list_tools(), context.constellation,
        [live.nodes[str(key)].row for key in live.graph.topological_order()], [edge.row for edge in live.edges.values()],
        events, context.memory, _takes_instructions(context),
    )  # fmt: skip


def devices_shown(context: Context) -> list[Fields]:
    """What the row of a call keeps of the devices."""
    rows: list[Any] = sorted(context.devices.values(), key=lambda row: row["name"])
    return [{key: row[key] for key in KEPT if key in row} for row in rows[:DEVICES]]


def _request(context: Context) -> str:
    """The words of the interaction; of one that brought a plan, what that is called."""
    said = context.interaction["payload"].get("request")
    return said if isinstance(said, str) else context.constellation.get("name", "")


def _takes_instructions(context: Context) -> bool:
    """Whether a model is there for tasks in words."""
    return "" in context.known_devices.minds
