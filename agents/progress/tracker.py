"""The tracker: what an agent does goes in one by one, a verdict comes out when it is stuck (docs/stuck.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from agents.progress.calls import is_infrastructure
from agents.progress.evidence import Control, Evidence, Item
from agents.progress.remember import after_call, after_control, after_saying, seen_as, speaks
from agents.progress.rules.hits import Hit
from agents.progress.rules.order import find_suspicions
from agents.progress.settings import Settings
from agents.progress.state import STEERED_LIMIT, State, Suspicion, with_newest

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
    state, found = judge_item(state, item, settings)
    hits = [one for one in found if one.strength >= 1]
    if hits:
        return _ladder(replace(state, suspicion=None), hits, settings)
    if not found:
        return replace(state, suspicion=None), None
    worst = max(found, key=lambda one: one.strength)
    suspected = Suspicion(worst.rule, round(worst.strength, 3), worst.identity, worst.rows, worst.sentence)
    return replace(state, suspicion=suspected), None


def judge_item(state: State, item: Item, settings: Settings = DEFAULTS) -> tuple[State, list[Hit]]:
    """The state after `item`, and what the rules find with it, suspicions with the rest; nobody is told."""
    if isinstance(item, Control):
        state = after_control(state, item)
        silent = item.kind in ("user", "phase")
    elif is_infrastructure(item.error_kind):
        state, silent = replace(state, observed=state.observed + 1), True
    elif is_ordered_failure(item):
        errors = state.consecutive_errors + 1
        state, silent = replace(state, observed=state.observed + 1, calls=state.calls + 1, consecutive_errors=errors), True
    elif speaks(item, settings):
        state, silent = after_saying(state, item), False
    else:
        item, silent = seen_as(state, item, settings), False
        state = after_call(state, item, settings)
    return state, [] if silent or not settings.enable else find_suspicions(state, item, settings)


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


def suspicion(state: State) -> Suspicion | None:
    """What a judge could be asked about: what came nearest to a verdict with the last item; None where nothing did."""
    return state.suspicion


def confirm_suspicion(state: State, suspected: Suspicion, settings: Settings = DEFAULTS) -> tuple[State, Verdict]:
    """Somebody who was asked says that what was suspected is so: as if a rule had found it."""
    return _ladder(state, [Hit(suspected.rule, suspected.identity, suspected.rows, suspected.sentence, 1.0)], settings)


def accept_loop(state: State, identity: str) -> State:
    """A person says "go on anyway": this loop is none from now on."""
    return replace(state, accepted=with_newest(state.accepted, identity, True, STEERED_LIMIT))


def is_progress_due(state: State, settings: Settings = DEFAULTS) -> bool:
    """Whether OnProgress fires now: every progress_check_interval calls."""
    return bool(settings.progress_check_interval and state.calls and state.calls % settings.progress_check_interval == 0)


def count_progress(state: State) -> Progress:
    well = sum(action.success for action in state.actions)
    return Progress(len(state.files), well, len(state.actions) - well, state.consecutive_errors)
