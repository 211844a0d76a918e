"""Rules about work that brings nothing new."""

from itertools import takewhile

from agents.progress.evidence import Evidence
from agents.progress.hits import Hit, actions_since_change, identity_of, is_fresh, last_action, make_hit, name_call
from agents.progress.settings import Settings
from agents.progress.state import ATTEMPT, Action, State

LITTLE = 4
"""A full window in which no more than one in this many actions is new, and none changes anything, is a standstill too."""
ATTEMPT_WEIGHT = 0.5
"""A new deed that says nothing new counts half: it may have done something nobody looked at."""
SAME_ANSWERS = 8
"""Looks in a row with one tool and one answer, whatever they asked for."""
QUESTIONS = 3
"""Different questions among those."""


def no_novelty(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """Nothing new in progress_check_interval actions, or next to nothing in a whole window."""
    last = last_action(state)
    if last is None or last.gain > ATTEMPT or not settings.progress_check_interval:
        return None
    identity = identity_of("no_novelty", str(state.window), str(state.milestones))
    actions = [action for action in actions_since_change(state) if is_fresh(state, identity, action.index)]
    stale = list(takewhile(lambda action: action.gain <= ATTEMPT, reversed(actions)))[::-1]
    if sum(ATTEMPT_WEIGHT if action.gain else 1 for action in stale) >= settings.progress_check_interval:
        return _standstill(identity, stale, f"The last {len(stale)} actions brought nothing new")
    if _brings_little(actions, settings):
        return _standstill(identity, actions, f"The last {len(actions)} actions brought next to nothing new")
    return None


def _brings_little(actions: list[Action], settings: Settings) -> bool:
    full = settings.max_recent_actions and len(actions) >= settings.max_recent_actions
    return bool(full) and sum(action.gain > 0 for action in actions) * LITTLE <= len(actions)


def _standstill(identity: str, actions: list[Action], what: str) -> Hit:
    sentence = f"{what}: no new file state, no better test result, no information not seen before."
    return make_hit("no_novelty", identity, [action.index for action in actions], sentence)


def same_answer(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The questions move, the answer never does: SAME_ANSWERS looks with one tool, and nothing new between."""
    last = last_action(state)
    if last is None or not last.look or not settings.progress_check_interval:
        return None
    identity = identity_of("same_answer", last.tool, last.outcome)
    asked = [action for action in _with_one_answer(state, last) if is_fresh(state, identity, action.index)]
    if len(asked) < SAME_ANSWERS or len({action.call for action in asked}) < QUESTIONS:
        return None
    rows = [action.index for action in asked]
    return make_hit("same_answer", identity, rows, f"{len(rows)} calls like {name_call(item)} all gave the same answer.")


def _with_one_answer(state: State, last: Action) -> list[Action]:
    """The looks of the last one's tool and answer, back to the last action that brought something else."""
    asked: list[Action] = []
    for action in reversed(state.actions):
        if action.look and (action.tool, action.outcome) == (last.tool, last.outcome):
            asked.append(action)
        elif action.gain:
            break
    return asked[::-1]
