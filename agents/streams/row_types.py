"""The rows of the tables of the fold, key by key, as `fold_rows` gives them.

Times are texts. Columns of JSON are `Any`: what they hold is checked where it comes in, and no type could say it. A row that
this process has made, and that no commit has been read back from, may lack keys that have a default.
"""

from __future__ import annotations

from typing import Any, TypedDict


class StatefulRow(TypedDict):
    """What every row has that a machine moves."""

    id: int
    state: str
    entered_at: str


class SessionRow(TypedDict):
    """A session."""

    id: int
    owner_id: int
    title: str
    created_at: str
    token_key: str
    parent_id: int | None
    depth: int
    model_profiles: Any
    start: str
    max_concurrent: int


class DeviceRow(TypedDict):
    """A device, as the fold has it."""

    id: int
    name: str
    kind: str
    platform: str
    os: str
    type: str
    capabilities: Any
    labels: Any
    recipes: Any
    metadata: Any
    facts: Any
    host: str
    connection: Any
    tools: Any
    owner_id: int | None
    used_by: Any
    apps: Any
    is_offered: bool
    is_off: bool
    limits: Any
    unasked: Any
    max_concurrent: int
    state: str
    reason: str
    created_at: str
    entered_at: str


class ActorRow(TypedDict):
    """An incarnation of a session's actor."""

    id: int
    session_id: int
    epoch: int
    state: str
    reason: str
    pausing: bool
    held_from: int
    created_at: str
    entered_at: str
    active_at: str


class InboxRow(TypedDict):
    """A request of a session: an interaction or a command."""

    id: int
    session_id: int
    client_id: str
    kind: str
    payload: Any
    by: str
    state: str
    outcome: str
    result: Any
    created_at: str
    started_at: str | None
    ended_at: str | None


class AgentRow(TypedDict):
    """An agent."""

    id: int
    session_id: int
    interaction_id: int
    parent_id: int | None
    machine: str
    name: str
    platform: str
    device_id: int | None
    state: str
    reason: str
    blackboard: Any
    plan: Any
    app: Any
    created_at: str
    entered_at: str


class LoopRow(TypedDict):
    """An agent's tool loop."""

    id: int
    agent_id: int
    state: str
    reason: str
    left: str
    position: Any
    label: Any
    created_at: str
    entered_at: str


class EvidenceRow(TypedDict):
    """What a tool loop has done or seen: one call, message or verdict."""

    id: int
    loop_id: int
    number: int
    phase: int
    kind: str
    tool: str
    target: str
    arguments: Any
    call: str
    call_shape: str
    ordered: bool
    success: bool | None
    error: str
    error_shape: str
    error_kind: str
    raw_error: str
    outcome: str | None
    shape: str | None
    before: str | None
    result: Any
    exit_code: int | None
    verdict: Any
    started_at: str
    ended_at: str | None


class PhaseRow(TypedDict):
    """The record of an agent's phase."""

    id: int
    agent_id: int
    number: int
    total: int
    description: str
    expected_s: float | None
    started_at: str
    ended_at: str | None
    outcome: str
    files_changed: Any
    tests: Any
    blockers: Any


class ApprovalRow(TypedDict):
    """What waits, or waited, for a decision."""

    id: int
    session_id: int
    agent_id: int | None
    kind: str
    subject_id: int
    title: str
    action: Any
    digest: str
    observed: Any
    options: Any
    state: str
    asked_at: str
    expires_at: str | None
    decided_at: str | None
    decided_by: str
    reason: str
    answer: Any
    edited: bool
    used_at: str | None


class PolicyRow(TypedDict):
    """One of the installation's policies."""

    id: int
    order: int
    tool: str
    pattern: str
    device: str
    label: str
    decision: str
    critical: bool
    note: str
    created_at: str


class ModelProfileRow(TypedDict):
    """One of the installation's model profiles."""

    id: int
    name: str
    provider: str
    model: str
    base_url: str
    key: str
    context_window: int | None
    max_output_tokens: int | None
    price_input: float | None
    price_cached_input: float | None
    price_output: float | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    calls_in_flight: int | None
    temperature: float | None
    thinking: str
    sees: bool
    fallbacks: Any
    purposes: Any
    created_at: str


class ModelCallRow(TypedDict):
    """One call of a language model."""

    id: int
    session_id: int
    interaction_id: int
    agent_id: int
    number: int
    purpose: str
    editing_session: int
    asked_again: int
    taken: Any
    profile: str
    model: str
    prompt_digest: str
    prompt_version: str
    added: Any
    reply: Any
    observation: str
    thought: str
    status: str
    actions: Any
    result: Any
    reserved_tokens: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost: float | None
    first_token_s: float | None
    call_s: float | None
    planning_s: float | None
    tries: Any
    devices: Any
    version_before: int | None
    version_after: int | None
    outcome: str
    error: str
    error_kind: str
    started_at: str
    ended_at: str | None


class BudgetRow(TypedDict):
    """One of the budgets for calls of language models."""

    id: int
    scope: str
    subject: int | None
    tokens: int | None
    money: float | None
    per: str
    then: str
    owned: bool
    created_at: str


class ArtifactRow(TypedDict):
    """What an attempt, or somebody's upload, has left in the store."""

    id: int
    session_id: int
    attempt_id: int | None
    call_id: int | None
    name: str
    kind: str
    media_type: str
    size: int
    sha256: str
    is_kept: bool
    created_at: str
    removed_at: str | None


class LiveDevice(DeviceRow):
    """A device as a runner holds it: its slots in use, its queue, and why work on it pauses ("" where it does not).

    `users` are those who may use it, None is everybody. `readings` are in percent by resource, as far as they are known.
    """

    used: int
    queued: int
    low: str
    users: frozenset[int] | None
    readings: dict[str, float]


class LiveDevices(dict[int, LiveDevice]):
    """All devices by their ids, as a runner holds them; `version` grows when anything but slots and readings changes."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self._names: tuple[int, dict[str, LiveDevice]] = -1, {}

    def named(self, name: str) -> LiveDevice | None:
        """The device of a name."""
        if self._names[0] != self.version:
            self._names = self.version, {row["name"]: row for row in self.values()}
        return self._names[1].get(name)


class HeldAttempt(TypedDict):
    """What a crew looks at of the attempt that it works on. The rest of the row belongs to whoever owns the table."""

    id: int
    device_id: int
    holds_slot: bool
    slot_device_id: int | None
    ran_s: float
