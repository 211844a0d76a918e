"""What is remembered of an agent: bounded, made of plain values, the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")

SEEN_LIMIT = 512
"""Answers, errors and calls remembered of a phase; older ones count as new again (a loop is far shorter)."""
FILES_LIMIT = 256
"""Changed files remembered."""
STATES_LIMIT = 8
"""Latest states remembered of each file."""
TESTS_LIMIT = 256
"""Tests remembered to have passed."""
POLLS_LIMIT = 16
"""Polls followed at once."""
STEERED_LIMIT = 64
"""Loop identities remembered after a steer, and as many accepted ones."""

NOTHING, ATTEMPT, INFORMATION, CHANGE = 0, 1, 2, 3
"""What an action brought: nothing new; a new deed that said nothing new; something not seen in this phase; a new file state or
a better test result."""


@dataclass(frozen=True)
class Action:
    """One remembered action; `index` counts all items observed from 1. `key` is call and outcome, `call` the call alone."""

    index: int
    tool: str
    program: str
    call: str
    key: str
    success: bool
    error: str
    outcome: str
    look: bool
    gain: int
    needless: bool
    """The same call with the same outcome, and nothing new since the last time."""


@dataclass(frozen=True)
class Failure:
    """One remembered failed action; `target` is a digest; `command`: it is a command line, which depends on every file."""

    index: int
    target: str
    error: str
    command: bool


@dataclass(frozen=True)
class Alteration:
    """One remembered change of content, and how many tests had run by then."""

    index: int
    target: str
    before: str
    after: str
    tests_run: int


@dataclass(frozen=True)
class State:
    """Everything remembered. A new window empties actions, failures, alterations, messages, polls; a phase also `seen`."""

    observed: int = 0
    calls: int = 0
    window: int = 0
    actions: tuple[Action, ...] = ()
    failures: tuple[Failure, ...] = ()
    alterations: tuple[Alteration, ...] = ()
    messages: tuple[tuple[int, str], ...] = ()
    """Index and digest of the messages since the last action."""
    polls: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Poll > its last answer and the indices at which it said so."""
    seen: Mapping[str, bool] = field(default_factory=dict)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passed: Mapping[str, bool] = field(default_factory=dict)
    tests_run: int = 0
    milestones: int = 0
    """New file states and better test results so far."""
    consecutive_errors: int = 0
    steered: Mapping[str, int] = field(default_factory=dict)
    """Loop identity > index of the item after which the agent was last told of it."""
    steers: int = 0
    accepted: Mapping[str, bool] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(vars(self), default=vars, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> State:
        """The state `to_json` wrote; raises ValueError for text that is not JSON, TypeError for another shape."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            **data
            | {
                "actions": tuple(Action(**row) for row in data["actions"]),
                "failures": tuple(Failure(**row) for row in data["failures"]),
                "alterations": tuple(Alteration(**row) for row in data["alterations"]),
                "messages": tuple((index, said) for index, said in data["messages"]),
                "polls": {call: (answer, tuple(rows)) for call, (answer, rows) in data["polls"].items()},
                "files": {target: tuple(states) for target, states in data["files"].items()},
            }
        )


def with_newest(known: Mapping[str, Value], key: str, value: Value, limit: int) -> dict[str, Value]:
    """`known` with `key` as its newest entry, and no more than `limit` entries."""
    kept = {other: kept_value for other, kept_value in known.items() if other != key}
    kept[key] = value
    for oldest in list(kept)[: max(0, len(kept) - limit)]:
        del kept[oldest]
    return kept
