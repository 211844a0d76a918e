"""The tracker: what an agent does goes in one by one, a verdict comes out when it is stuck (docs/plans.md, "Progress")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from agents.progress.calls import is_infrastructure
from agents.progress.evidence import Control, Evidence, Item
from agents.progress.hits import Hit
from agents.progress.remember import after_call, after_control, after_message
from agents.progress.rules import find_hits
from agents.progress.settings import Settings
from agents.progress.state import STEERED_LIMIT, State, with_newest

DEFAULTS = Settings()


@dataclass(frozen=True)
class Verdict:
    """An agent is stuck. `action` is what follows: steer (ErrorRecovery, with `sentence` as the message) or halt (Halted).

    `rows` are indices of items, from 1 in the order of `observe_item`. `first` is true once per identity: OnStuck fires.
    """

    rule: str
    identity: str
    rows: tuple[int, ...]
    sentence: str
    action: Literal["steer", "halt"]
    first: bool

    @property
    def reason(self) -> str:
        """As a failed task gives it."""
        return f"stuck:{self.rule}"


@dataclass(frozen=True)
class Progress:
    """What OnProgress carries."""

    files_modified: int
    recent_successes: int
    recent_failures: int
    consecutive_errors: int


def observe_item(state: State, item: Item, settings: Settings = DEFAULTS) -> tuple[State, Verdict | None]:
    """The state after `item`, and a verdict when the agent is stuck with it; faults of the infrastructure are no evidence."""
    state = remember_item(state, item, settings)
    if isinstance(item, Control) or not settings.enable or is_infrastructure(item.error_kind) or is_ordered_failure(item):
        return state, None
    found = find_hits(state, item, settings)
    return _ladder(state, found, settings) if found else (state, None)


def remember_item(state: State, item: Item, settings: Settings = DEFAULTS) -> State:
    """The state after `item`, without a judgement."""
    if isinstance(item, Control):
        return after_control(state, item)
    if is_infrastructure(item.error_kind):
        return replace(state, observed=state.observed + 1)
    if is_ordered_failure(item):
        return replace(
            state, observed=state.observed + 1, calls=state.calls + 1, consecutive_errors=state.consecutive_errors + 1
        )
    return after_message(state, item, settings) if item.kind == "message" else after_call(state, item, settings)


def is_ordered_failure(item: Evidence) -> bool:
    """Whether a retry that the plan ordered failed too: it is counted, and says nothing about the agent."""
    return item.ordered and not item.success


def _ladder(state: State, found: list[Hit], settings: Settings) -> tuple[State, Verdict]:
    """A loop found for the first time is steered, within the budget; one found again halts."""
    again = [one for one in found if one.identity in state.steered]
    hit = (again or found)[0]
    halts = bool(again) or state.steers >= settings.steer_budget
    verdict = Verdict(hit.rule, hit.identity, hit.rows, hit.sentence, "halt" if halts else "steer", first=not again)
    steered = with_newest(state.steered, hit.identity, state.observed, STEERED_LIMIT)
    return replace(state, steered=steered, steers=state.steers + (not halts)), verdict


def accept_loop(state: State, identity: str) -> State:
    """A person says "go on anyway": this loop is none from now on."""
    return replace(state, accepted=with_newest(state.accepted, identity, True, STEERED_LIMIT))


def is_progress_due(state: State, settings: Settings = DEFAULTS) -> bool:
    """Whether OnProgress fires now: every progress_check_interval calls."""
    return bool(settings.progress_check_interval and state.calls and state.calls % settings.progress_check_interval == 0)


def count_progress(state: State) -> Progress:
    well = sum(action.success for action in state.actions)
    return Progress(len(state.files), well, len(state.actions) - well, state.consecutive_errors)
