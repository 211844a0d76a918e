"""A task in words, as its agents are told it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.llm.profiles import Profile


@dataclass(frozen=True)
class Mission:
    """What is to be done, in words, and what an agent is given to do it with.

    `profiles` chooses the models that may be asked, first the one to be asked first; it raises NoModelProfile.
    `upstream` are the tasks that it waited for ({task_id, name, state, result, error}), `earlier` the attempts before this one
    ({number, outcome, error}). `result_schema` is a JSON Schema, empty for any result.
    """

    profiles: Callable[[], tuple[Profile, ...]]
    name: str
    description: str = ""
    tips: Sequence[str] = ()
    upstream: Sequence[Mapping[str, Any]] = ()
    earlier: Sequence[Mapping[str, Any]] = ()
    result_schema: Mapping[str, Any] = field(default_factory=dict)
