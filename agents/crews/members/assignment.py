"""What all agents of one attempt are given: the assignment, and the blackboard that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from agents.crews.minds.mission import Mission
from agents.crews.script import Holds, Step
from agents.errors import AgentsError
from agents.gates.policies import Rule
from agents.progress.settings import Settings
from agents.streams.row_types import AgentRow, HeldAttempt, LiveDevice
from agents.streams.turn import Turn

BLACKBOARD_BYTES = 64_000


class BlackboardFull(AgentsError):
    """The blackboard takes no more."""

    code = "blackboard_full"


class Fleet(Protocol):
    """The devices that agents of an attempt may reach besides the one that its task is on."""

    def find_device(self, key: int) -> LiveDevice:
        """The live row of a device."""

    def choose_device(self, step: Step) -> LiveDevice:
        """Where the app agent of a step that says where is to work. Raises AgentsError where there is no such device."""

    def list_devices(self) -> Sequence[Mapping[str, Any]]:
        """What may be reached now: {name, platform, type, capabilities} of each."""


@dataclass(frozen=True)
class Assignment:
    """What a crew is to do, and where.

    `attempt` and `device` are the live rows. `script` are the phases of the task's steps; `plain`: they are one call, which is
    the task itself. `rules` gives the installation's policies, `own` are the task's, as is what `unasked` says of calls that a
    model chooses; `is_chosen` says that one chose the steps. `is_gated` says that a person is asked before the task begins,
    `has_arbiter` that somebody is asked about suspicions of being stuck. `mission` is the task in words, for agents with a
    model and coding agents; None where the script is all. `is_in_words`: its host works by it, and not by the script.
    `inputs` are what its first call finds in its workspace, `outputs` what is kept of it after each; `kept` are digests of
    what has been, by name. `resumes` is the host of the attempt before this one, where that matters to the device, else 0.
    `fleet`: where else its agents may have others work for them.
    """

    stream: int
    interaction: int
    attempt: HeldAttempt
    device: LiveDevice
    task: int
    title: str
    scope: str
    inherits: str
    script: Sequence[Mapping[str, Any]]
    plain: bool
    is_gated: bool
    timeout: float | None
    on_lost: str
    settings: Settings
    accepted: Sequence[str]
    has_arbiter: bool
    own: Sequence[Rule]
    unasked: Mapping[str, Any]
    is_chosen: bool
    rules: Callable[[], Sequence[Rule]]
    holds: Holds
    fleet: Fleet
    mission: Mission | None = None
    is_in_words: bool = False
    inputs: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[str] = ()
    resumes: int = 0
    kept: dict[str, str] = field(default_factory=dict)


def slot_device_of(attempt: HeldAttempt) -> int:
    """The device whose slot an attempt has, or wants: where the one of its agents is that works."""
    return attempt.get("slot_device_id") or attempt["device_id"]


class Blackboard:
    """Named values that all agents of an attempt see. They are kept in the row of the host, `agent`."""

    __slots__ = ("_agent",)

    def __init__(self, agent: AgentRow):
        self._agent = agent

    @property
    def values(self) -> Mapping[str, Any]:
        values: Mapping[str, Any] = self._agent["blackboard"]
        return values

    def check_room(self, key: str, value: Any) -> None:
        """Raises BlackboardFull where `value` does not fit."""
        if len(orjson.dumps({**self.values, key: value})) > BLACKBOARD_BYTES:
            raise BlackboardFull(f"{key} does not fit on the blackboard, which holds {BLACKBOARD_BYTES:,} bytes")

    def save(self, turn: Turn, key: str, value: Any) -> None:
        """Put a value under its name; one without a name is not kept. Raises BlackboardFull where it does not fit."""
        if not key:
            return
        self.check_room(key, value)
        number, board = self._agent["id"], {**self.values, key: value}
        turn.record("blackboard_changed", agent_id=number, set={"agent": {str(number): {"blackboard": board}}})
        self._agent["blackboard"] = board
