"""What all parts of an interaction at work look at: its rows, its graph, the attempts under way.

run.py builds it first and hands it to the parts. They change what is theirs in it, and answer what concerns another part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.gates.policies import Rule
from agents.llm.profiles import Profile
from agents.streams.row_types import AgentRow, InboxRow, LiveDevices, LoopRow, SessionRow
from agents.streams.tables import Fields, fold_rows
from constellations.limits import MODELS
from constellations.live.live import LiveGraph
from constellations.live.row_types import AttemptRow, ConstellationRow
from constellations.live.rows import Node
from constellations.plan.fitting import KnownDevices
from constellations.reads.devices import minds_of


@dataclass(slots=True)
class Start:
    """An attempt: the task, its device agent's row, the attempt's row; the agent's tool loop, if a crew works on it."""

    node: Node
    agent: AgentRow
    attempt: AttemptRow
    loop: LoopRow | None = None


@dataclass(slots=True)
class Context:
    """`interaction`, `agent` and `constellation` are rows; the last two are empty until the work has begun.

    `token` is the fence of the session's lease. `devices`, `policies` and `profiles` (of
    models, by name) are the runner's, and change under the work.
    `interrupt` ends the call of a key once the turn is durable, and `tell` tells one something then;
    the graph calls `on_ready` for each task that may start.
    `attempts` are those under way, by their ids. `editing_sessions` counts those of the agent so far, `memory` is what the
    session did before this interaction (`Scene.memory`), `said` is the model's last word where it has finished, None before.
    """

    stream: int
    token: int
    interaction: InboxRow
    devices: LiveDevices
    policies: Sequence[Rule]
    profiles: Mapping[str, Profile]
    interrupt: Callable[[int], None]
    tell: Callable[[int, str, Fields], None]
    on_ready: Callable[[Node], None]
    agent: AgentRow = field(default_factory=dict)  # type: ignore[assignment]  # empty: there is none
    constellation: ConstellationRow = field(default_factory=dict)  # type: ignore[assignment]
    live: LiveGraph | None = None
    attempts: dict[int, Start] = field(default_factory=dict)
    editing_sessions: int = 0
    memory: Sequence[Fields] = ()
    said: Any = None
    _session: SessionRow | None = None

    @property
    def session(self) -> SessionRow:
        """The session's own row, read when it is first asked for; what others change in it is taken up."""
        if self._session is None:
            self._session = fold_rows("session", "id = %s", self.stream)[0]
        return self._session

    @property
    def graph(self) -> LiveGraph:
        """The graph, for whoever is asked only while there is one."""
        assert self.live is not None
        return self.live

    @property
    def known_devices(self) -> KnownDevices:
        """What tasks may run on, as the editor looks at it: devices by name, and the models for tasks in words."""
        known = KnownDevices({row["name"]: dict(row) for row in self.devices.values()})
        named = {**self.constellation.get("model_profiles", {}), **self.interaction["payload"].get(MODELS, {})}
        known.minds = minds_of(self.profiles) | ({""} if named.get("device_agent") in self.profiles else frozenset())
        return known

    @property
    def scope(self) -> str:
        """Whose files its calls share."""
        return str(self.constellation["id"])

    @property
    def inherits(self) -> str:
        """Where those files begin, in a fork."""
        return str(self.constellation["forked_from_id"] or "")

    def attempt_of(self, node: Node) -> Start | None:
        """The attempt of a task that is under way."""
        return next((start for start in self.attempts.values() if start.node is node), None)
