"""An agent's calls of its tools, put together from its updates by their ids: some are asked about before they are announced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CALLS = 2_000
"""Calls of one conversation; what comes beyond them ends it."""
TEXT = 8_000
"""Characters of what a call has brought that are kept."""
ARGUMENTS = 40_000
"""Characters of all its arguments together that are kept."""
WORDS = 500
"""Characters of an id, a title, a path."""
CHANGES = ("edit", "delete", "move", "execute")
"""Kinds of calls that write or run something: none of them may end well without leave."""
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
ENDS = ("completed", "failed")
DIFFS = 20


@dataclass
class ToolCall:
    """`given` are its arguments from all updates, `leave` whether it was granted (None: nobody was asked), `asked_for` what
    they were then. `before` is the state of the file it changes, as it was found first.
    """

    id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    given: dict[str, Any] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    diffs: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    raw: Any = None
    leave: bool | None = None
    asked_for: dict[str, Any] = field(default_factory=dict)
    before: str | None = None

    @property
    def has_ended(self) -> bool:
        return self.status in ENDS

    def update(self, told: Mapping[str, Any]) -> None:
        """Take up what an update, or a request for leave, tells of it; what is no value of its kind is passed over."""
        if isinstance(title := told.get("title"), str) and title:
            self.title = title[:WORDS]
        if (kind := told.get("kind")) in KINDS:
            self.kind = str(kind)
        if isinstance(status := told.get("status"), str) and not self.has_ended:
            self.status = status[:WORDS]
        if isinstance(given := told.get("rawInput"), Mapping):
            self._merge(given)
        if isinstance(places := told.get("locations"), list):
            found = [one["path"][:WORDS] for one in places if isinstance(one, Mapping) and isinstance(one.get("path"), str)]
            self.paths = found[:DIFFS] or self.paths
        if isinstance(content := told.get("content"), list):
            self._take_content(content)
        if "rawOutput" in told:
            self.raw = told["rawOutput"]

    def _merge(self, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            merged = {**self.given, str(key)[:WORDS]: value}
            if len(repr(merged)) <= ARGUMENTS:
                self.given = merged

    def _take_content(self, content: list[Any]) -> None:
        texts: list[str] = []
        diffs: list[dict[str, Any]] = []
        for part in content:
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "diff" and isinstance(part.get("path"), str):
                old, new = (str(part.get(key) or "")[:TEXT] for key in ("oldText", "newText"))
                diffs.append({"path": part["path"][:WORDS], "old": old, "new": new})
            elif isinstance(inner := part.get("content"), Mapping) and isinstance(inner.get("text"), str):
                texts.append(inner["text"])
        self.diffs = diffs[:DIFFS] or self.diffs
        self.text = "\n".join(texts)[:TEXT] or self.text


class TooManyCalls(Exception):
    """The agent has called more tools than one conversation may."""


class ToolCalls:
    """Those of one conversation, by their ids."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def upsert(self, told: Mapping[str, Any]) -> ToolCall | None:
        """The call that an update is about, brought up to date; None where it names none. Raises TooManyCalls."""
        key = told.get("toolCallId")
        if not isinstance(key, str) or not key:
            return None
        key = key[:WORDS]
        if key not in self._calls:
            if len(self._calls) >= CALLS:
                raise TooManyCalls(f"it has called more than {CALLS:,} tools")
            self._calls[key] = ToolCall(key)
        self._calls[key].update(told)
        return self._calls[key]

    def find(self, key: str) -> ToolCall | None:
        return self._calls.get(key[:WORDS])
