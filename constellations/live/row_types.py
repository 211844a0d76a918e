"""The rows of the constellations' tables of the fold, key by key (agents/streams/row_types.py says how they are to be read)."""

from __future__ import annotations

from typing import Any, TypedDict


class ConstellationRow(TypedDict):
    """A constellation."""

    id: int
    session_id: int
    interaction_id: int
    agent_id: int
    replaces_id: int | None
    name: str
    state: str
    reason: str
    version: int
    rules: Any
    fired: Any
    added: int
    gates: Any
    model_profiles: Any
    max_concurrent: int
    assignment: str
    forked_from_id: int | None
    forked_at: int | None
    result: Any
    created_at: str
    entered_at: str
    ended_at: str | None


class TaskRow(TypedDict):
    """A task."""

    id: int
    constellation_id: int
    chosen: bool
    accepted: Any
    state: str
    reason: str
    version: int
    attempt: int
    attempts_before: int
    device_id: int | None
    result: Any
    error: str
    error_kind: str
    created_at: str
    entered_at: str
    started_at: str | None
    ended_at: str | None
    retry_at: str | None
    condition_failed: bool
    untold: bool
    task_id: str
    name: str
    description: str
    tips: Any
    wanted_device: str
    device_type: str
    capabilities: Any
    not_device: Any
    labels: Any
    tool: str
    arguments: Any
    priority: int
    timeout: float | None
    deadline: float | None
    max_attempts: int
    backoff: float
    confirm: bool
    phases: Any
    policies: Any
    progress: Any
    on_lost: str
    model: str
    result_schema: Any
    unasked: Any
    inputs: Any
    outputs: Any
    replaces: str


class DependencyRow(TypedDict):
    """A dependency, as the fold has it."""

    id: int
    constellation_id: int
    upstream_id: int
    downstream_id: int
    dependency_id: str
    type: str
    condition: str
    description: str


class AttemptRow(TypedDict):
    """One try of a task."""

    id: int
    task_id: int
    number: int
    agent_id: int
    device_id: int
    fence: int
    holds_slot: bool
    slot_device_id: int | None
    ran_s: float
    started_at: str
    ended_at: str | None
    outcome: str
    exit_code: int | None
    result: Any
    error: str


class EditRow(TypedDict):
    """An edit of a constellation."""

    id: int
    constellation_id: int
    edit_id: str
    author: str
    reason: str
    undoes_id: int | None
    based_on: int
    version: int
    operations: Any
    before: Any
    after: Any
    diff: Any
    at: str


_Ends = TypedDict("_Ends", {"from": str, "to": str})


class LinkedDependency(DependencyRow, _Ends):
    """A dependency in a graph in memory: it names its two tasks as plans do."""
