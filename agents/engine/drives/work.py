"""Who drives an interaction. Agents know nothing of graphs: `constellations` registers itself here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agents.engine.drives.ended import Ended
    from agents.gates.policies import Rule
    from agents.llm.profiles import Profile
    from agents.models import Agent
    from agents.streams.row_types import InboxRow, LiveDevices
    from agents.streams.tables import Fields
    from agents.streams.turn import Batch, Turn
    from agents.tools.calls import Call


class OwnedSession(Protocol):
    """The session that a work is part of, as far as the work knows it: its runner owns the stream by the fence `token`.

    `profiles` are the installation's model profiles by name. `printed` gives the last that the call under way of an attempt
    has printed. `draining`: nothing more starts. `woken`: somebody asked for a look since the last turn.
    """

    stream: int
    token: int
    devices: LiveDevices
    policies: Sequence[Rule]
    profiles: Mapping[str, Profile]
    printed: Callable[[int], str]
    outcomes: Ended
    draining: bool
    woken: bool

    def read(self, table: str, where: str, *parameters: Any) -> list[Any]:
        """Rows of the fold, which are known from now on. Whoever reads them says which type of row they are."""
        ...

    def interrupt(self, key: int) -> None:
        """End a call's body once the decision to do so is durable."""

    def tell(self, key: int, kind: str, data: Fields) -> None:
        """Tell a call under way what was decided, once that is durable."""

    def may_decide_of_all(self) -> bool:
        """Whether this turn may decide about everything there is, or has to be asked again under the stream's lock."""
        ...

    def decides_of_all(self) -> None:
        """What this turn decides is about everything there is: it does not hold where others have recorded more meanwhile."""


class Work(Protocol):
    """One interaction being worked on, in the memory of the runner that owns its session.

    Decisions go into the turn they are handed; nothing else outlives the process.
    """

    interaction: InboxRow
    finished: bool

    @property
    def subject(self) -> int:
        """Row of what is worked on; 0 when there is none. A command to the work names it."""
        ...

    def begin(self, turn: Turn, prepared: Any, took: float) -> None:
        """Start on the interaction, or once more; `prepared` is what the handler's `prepare` returned in `took` seconds, or
        its error.
        """

    def begins(self) -> bool:
        """Whether it waits to begin once more, and for what the handler prepares for that."""
        ...

    def restart(self, turn: Turn, reason: str) -> bool:
        """Cancel everything that is open and begin once more; False when that is not possible (any more)."""
        ...

    def decide(self, turn: Turn, now: float, budget: int) -> bool:
        """Decide up to `budget` things; True when there is more to decide at once."""

    def answer(self) -> tuple[str, Fields]:
        """Outcome and result of the interaction, once `finished`."""
        ...

    def apply_foreign(self, data: Fields) -> None:
        """Take up a change that another process made to the session's rows."""

    def pause(self, turn: Turn) -> bool:
        """Start nothing more and take up what ends; True when nothing runs any longer."""
        ...

    def partial_response(self) -> str:
        """What the calls under way have printed so far, bounded: all that is left of them when they are cut off."""
        ...

    def resume(self, turn: Turn) -> None:
        """Go on after a pause."""

    def go_on(self, turn: Turn, item: InboxRow) -> bool:
        """A person says "go on anyway" to an agent that seems to be stuck; False when there is no such agent."""
        ...

    def rule_on_loop(self, turn: Turn, item: InboxRow) -> bool:
        """An arbiter says whether an agent is stuck that the rules suspect; False when there is no such agent."""
        ...

    def cancel_task(self, turn: Turn, item: InboxRow) -> bool:
        """End the one task that the request names; False when it has ended already."""
        ...

    def end(self, turn: Turn, reason: str) -> None:
        """Cancel everything that is open."""

    def settled(self, batch: Batch) -> list[Call]:
        """The batch is durable: the bodies that may begin now."""
        ...

    def unsettled(self, batch: Batch) -> None:
        """The batch was refused: take back the starts it offered."""

    def hear(self, key: int, kind: str, data: Mapping[str, Any]) -> None:
        """What a call under way tells before its end; decided about in the next turn."""

    def running(self) -> dict[int, int]:
        """Calls under way: the key of each (Call.key), and the attempt that it belongs to."""
        ...

    def wake_at(self) -> float | None:
        """When there is something to decide although nothing happens, in seconds since 1970."""


class InHand:
    """What a session works on; `prepared` are requests that were read, by their ids, and the seconds that each took."""

    __slots__ = ("prepared", "work")

    def __init__(self) -> None:
        self.work: Work | None = None
        self.prepared: dict[int, tuple[Any, float]] = {}


class Checked(Protocol):
    """A payload that was read, and that can begin."""

    @property
    def payload(self) -> Fields: ...

    def name(self) -> str:
        """What a session is called that begins with it and has no title of its own; may be empty."""
        ...

    def runs_commands(self) -> bool:
        """Whether it would run commands, as far as can be known."""
        ...

    def refuse_for(self, owner: int) -> None:
        """Raise PayloadRejected, or a subclass of AgentsError, where it names devices that `owner`, a user, may not use."""

    def lets_unasked(self) -> str:
        """What it would let models do without asking, in words; empty where it does so with nothing."""
        ...

    def keep(self, interaction: int) -> None:
        """Write down what was read, in the transaction that makes the interaction: `prepare` need not read it again."""


class Handler(Protocol):
    """Knows how interactions are worked on."""

    def check(self, payload: Fields) -> Checked:
        """Refuse a payload that cannot begin; raises PayloadRejected or a subclass of AgentsError."""
        ...

    def prepare(self, item: InboxRow) -> Any:
        """What the interaction asks for, read and validated; runs in a thread because it may be large."""

    def open(self, session: OwnedSession, interaction: InboxRow) -> Work:
        """Work on an interaction that is about to begin."""

    def load(self, session: OwnedSession, interaction: InboxRow) -> Work:
        """Work on an interaction that had begun, from its rows; runs in a thread."""

    def preview_drain(self, device: int, user: Any) -> Fields:
        """What would become of the work of a device that is drained, as far as `user` sees it; None sees all."""
        ...

    def count_queued(self) -> dict[int, int]:
        """How many ready tasks wait for a slot of each device, by the devices' ids; none where it is left out."""
        ...

    def held_sessions(self, sessions: list[int]) -> dict[int, str]:
        """Those of the sessions in which nothing starts, and why: "paused" or "review"."""
        ...

    def subjects(self, agent: Agent) -> list[tuple[datetime, int]]:
        """Rows of what an agent has worked on, each with the time from which on it did, oldest first."""
        ...


_HANDLER: list[Handler] = []


def register_handler(handler: Handler) -> Handler:
    _HANDLER[:] = [handler]
    return handler


def registered_handler() -> Handler:
    """The registered handler of interactions."""
    return _HANDLER[0]
