"""What an agent asks leave for, until somebody has answered. Answered is once, by what an option means, never by its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.coding.tool_calls import ToolCall

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
"""The answer that grants nothing and names no option."""
ONCE = {True: "allow_once", False: "reject_once"}
"""The kinds of options that an answer may choose; those that would stay are never chosen."""


@dataclass(frozen=True)
class Ask:
    """A request for leave: its number of JSON-RPC, the call it is about, and its options by kind."""

    request: Any
    call: ToolCall
    options: Mapping[str, str]

    def answer(self, leave: bool) -> dict[str, Any]:
        """The result that is sent: CANCELLED where there is no option of the kind."""
        chosen = self.options.get(ONCE[leave])
        return CANCELLED if chosen is None else {"outcome": {"outcome": "selected", "optionId": chosen}}

    def can_allow(self) -> bool:
        return ONCE[True] in self.options


def read_options(said: Any) -> dict[str, str]:
    """Ids of options by kind, the first of each kind; what is no option is passed over."""
    found: dict[str, str] = {}
    for one in said if isinstance(said, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("kind"), str) and isinstance(one.get("optionId"), str):
            found.setdefault(one["kind"], one["optionId"])
    return found


class Asks:
    """Those of one conversation that wait, by our own numbers."""

    def __init__(self) -> None:
        self._open: dict[int, Ask] = {}

    def put(self, number: int, ask: Ask) -> None:
        self._open[number] = ask

    def take(self, number: Any) -> Ask | None:
        """The ask of that number, which waits no longer; None where it does not wait, as for a second answer."""
        return self._open.pop(number, None)

    def take_all(self) -> list[Ask]:
        found = list(self._open.values())
        self._open.clear()
        return found
