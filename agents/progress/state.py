"""What is remembered of an agent: bounded, made of plain values, the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")

SEEN_LIMIT = 512
"""Answers, errors and calls remembered of a phase; older ones count as new again (a loop is far shorter)."""
FILES_LIMIT = 256
"""Changed files remembered."""
STATES_LIMIT = 6
"""Latest states remembered of each file."""
TESTS_LIMIT = 256
"""Tests remembered to have passed."""
POLLS_LIMIT = 16
"""Polls followed at once."""
TRIALS_LIMIT = 16
"""Failing commands followed at once while things change."""
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
    kind: str
    """The kind of tool (agents.progress.kinds.tools), `test`, or `change` for a shell that gives a file another content."""
    program: str
    call: str
    call_shape: str
    words: tuple[int, ...]
    """Numbers that stand for the words of its target, the things it is about, and the names in it (agents.progress.wording)."""
    things: tuple[int, ...]
    names: tuple[int, ...]
    key: str
    success: bool
    error: str
    outcome: str
    exact: str
    """As `outcome`, but a counter that moved makes a difference."""
    look: bool
    gain: int
    acts: bool
    """Whether it did something that may have changed more than was seen."""
    needless: bool
    """The same call with the same outcome, and nothing new since the last time."""
    weight: float = 0.0
    """How much it speaks for a standstill; negative: against one."""
    why: str = ""
    """What speaks for a standstill: see agents.progress.weights."""


@dataclass(frozen=True)
class Failure:
    """One remembered failed action; `target` is a digest; `command`: it is a command line, which depends on every file."""

    index: int
    target: str
    error: str
    command: bool
    deeds: int = 0
    """Deeds that may have changed something by then."""


@dataclass(frozen=True)
class Alteration:
    """One remembered change of content, and how many tests had run by then."""

    index: int
    target: str
    before: str
    after: str
    tests_run: int


@dataclass(frozen=True)
class Poll:
    """A poll, its last answer, and the indices at which it said so; `longest`: how often an answer stayed before it moved."""

    answer: str
    rows: tuple[int, ...]
    longest: int = 0


@dataclass(frozen=True)
class Trial:
    """A command that fails in ways known before while things change: the rows, each after another change, the deeds by then."""

    failures: tuple[str, ...]
    rows: tuple[int, ...]
    deeds: int


@dataclass(frozen=True)
class Saying:
    """A message, a thought (a call that only speaks to oneself) or a nudge (`kind`) since the last call."""

    index: int
    kind: str
    said: str = ""
    shape: str = ""


@dataclass(frozen=True)
class Suspicion:
    """What speaks most for being stuck without being enough: `score` is from a half up to, but not, 1."""

    rule: str
    score: float
    identity: str
    rows: tuple[int, ...]
    sentence: str


@dataclass(frozen=True)
class State:
    """Everything remembered. A new window empties what is about actions, failures and sayings; a phase also `seen`."""

    observed: int = 0
    calls: int = 0
    window: int = 0
    actions: tuple[Action, ...] = ()
    failures: tuple[Failure, ...] = ()
    alterations: tuple[Alteration, ...] = ()
    sayings: tuple[Saying, ...] = ()
    compactions: tuple[int, ...] = ()
    """Indices of the compactions since something new came."""
    plans: tuple[int, ...] = ()
    """Indices of the plans written since something was done."""
    polls: Mapping[str, Poll] = field(default_factory=dict)
    trials: Mapping[str, Trial] = field(default_factory=dict)
    slept: int = 0
    """Index of the last call that did nothing but wait."""
    last_call: int = 0
    """Index of the last call of all."""
    seen: Mapping[str, bool] = field(default_factory=dict)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passed: Mapping[str, bool] = field(default_factory=dict)
    tests_run: int = 0
    deeds: int = 0
    """Deeds that went well and may have changed something, seen or unseen."""
    milestones: int = 0
    """New file states and better test results so far."""
    consecutive_errors: int = 0
    steered: Mapping[str, int] = field(default_factory=dict)
    """Loop identity > index of the item after which the agent was last told of it."""
    steers: int = 0
    accepted: Mapping[str, bool] = field(default_factory=dict)
    suspicion: Suspicion | None = None
    """Of the last item."""

    def to_json(self) -> str:
        return json.dumps(vars(self), default=vars, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> State:
        """The state `to_json` wrote; raises ValueError for text that is not JSON, TypeError for another shape."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            **data
            | {
                "actions": tuple(_with_tuples(Action, row) for row in data["actions"]),
                "failures": tuple(Failure(**row) for row in data["failures"]),
                "alterations": tuple(Alteration(**row) for row in data["alterations"]),
                "sayings": tuple(Saying(**row) for row in data["sayings"]),
                "compactions": tuple(data["compactions"]),
                "plans": tuple(data["plans"]),
                "polls": {call: _with_tuples(Poll, row) for call, row in data["polls"].items()},
                "trials": {call: _with_tuples(Trial, row) for call, row in data["trials"].items()},
                "suspicion": data["suspicion"] and _with_tuples(Suspicion, data["suspicion"]),
                "files": {target: tuple(states) for target, states in data["files"].items()},
            }
        )


def _with_tuples(kind: Callable[..., Value], row: Mapping[str, Any]) -> Value:
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})


def with_newest(known: Mapping[str, Value], key: str, value: Value, limit: int) -> dict[str, Value]:
    """`known` with `key` as its newest entry, and no more than `limit` entries."""
    kept = {other: kept_value for other, kept_value in known.items() if other != key}
    kept[key] = value
    for oldest in list(kept)[: max(0, len(kept) - limit)]:
        del kept[oldest]
    return kept
