"""What a task wishes for, and whether a device comes into question for it, by itself and for its session's owner. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from constellations.plan.fitting import fits_wish, server_tools
from constellations.plan.keys.calls import INSTRUCTION

NOT_OFFERED = "not offered"
NOT_ALLOWED = "not allowed"
NOT_FITTING = "not fitting"


class Wish(NamedTuple):
    """Where a task may run, as its row says (constellations.plan.fitting.DEVICE_FIELDS). Tasks of one wish wait together.

    `tools` are those of tool servers that it calls; `in_words`: an agent with a model carries it out.
    """

    wanted_device: str
    device_type: str
    capabilities: tuple[str, ...]
    not_device: tuple[str, ...]
    tools: tuple[str, ...] = ()
    in_words: bool = False

    @property
    def names_nothing(self) -> bool:
        """It wishes for no device: what it avoids is no wish."""
        return not (self.wanted_device or self.device_type or self.capabilities or self.tools)


def wish_of(task: Mapping[str, Any]) -> Wish:
    asked, avoided, tools = tuple(task["capabilities"]), tuple(task["not_device"]), tuple(sorted(server_tools(task)))
    return Wish(task["wanted_device"], task["device_type"], asked, avoided, tools, task["tool"] == INSTRUCTION)


def why_not(device: Mapping[str, Any], wish: Wish, users: Collection[int] | None, owner: int) -> str:
    """Why a device never gets tasks of such a wish: NOT_FITTING, NOT_ALLOWED or NOT_OFFERED; empty where it may.

    `users` are those who may use it (agents.access.use), None is everybody; `owner` is the session's.
    """
    if not fits_wish(device["name"], device, wish._asdict(), wish.tools, wish.in_words):
        return NOT_FITTING
    if users is not None and owner not in users:
        return NOT_ALLOWED
    return NOT_OFFERED if wish.names_nothing and not device["is_offered"] else ""
