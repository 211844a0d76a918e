"""Rules about work that brings nothing new."""

from collections import Counter
from itertools import takewhile

from agents.progress.calls import is_search
from agents.progress.evidence import Evidence
from agents.progress.remember import since_change
from agents.progress.rules.hits import Hit, identity_of, is_fresh, last_action, make_hit, name_call, window_of
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
FEW_WORDS = 0.75
"""Different words per question up to which the questions turn the same words over."""
FULL = 0.45
"""Weight that makes a standstill, as a share of progress_check_interval."""
WHYS = {
    "again": "calls that were made before",
    "reworded": "calls in other words with the answer that was there before",
    "failing": "failures with no success between",
    "looking": "questions with an answer that was there before",
}


def going_round(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The weights of the latest actions add up: repetitions, rewordings and failures, less what was new between them."""
    last = last_action(state)
    if last is None or last.weight <= 0 or not (settings.progress_check_interval and settings.stuck_threshold):
        return None
    identity = identity_of("going_round", str(state.window), str(state.milestones))
    told = max(state.steered.values(), default=0)
    total = 0.0
    rows: list[Action] = []
    for action in window_of(state, settings):
        if action.index <= told or (action.why == "failing" and not settings.max_recent_errors):
            continue
        total = max(0.0, total + action.weight)
        rows = [*rows, action] if total else []
    weighty = [action for action in rows if action.weight > 0]
    kinds = Counter(action.why for action in weighty).most_common()
    sentence = f"The last {len(rows)} actions went round: {', '.join(f'{count} {WHYS[why]}' for why, count in kinds)}."
    strength = total / (FULL * settings.progress_check_interval)
    return make_hit("going_round", identity, [action.index for action in weighty], strength, sentence)


def no_novelty(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """Nothing new in progress_check_interval actions, or next to nothing in a whole window."""
    last = last_action(state)
    if last is None or last.gain > ATTEMPT or not settings.progress_check_interval:
        return None
    identity = identity_of("no_novelty", str(state.window), str(state.milestones))
    actions = [action for action in since_change(state.actions) if is_fresh(state, identity, action.index)]
    stale = list(takewhile(lambda action: action.gain <= ATTEMPT, reversed(actions)))[::-1]
    strength = sum(ATTEMPT_WEIGHT if action.gain else 1 for action in stale) / settings.progress_check_interval
    if strength < 1 and _brings_little(actions, settings):
        return _standstill(identity, actions, 1.0, f"The last {len(actions)} actions brought next to nothing new")
    return _standstill(identity, stale, strength, f"The last {len(stale)} actions brought nothing new")


def _brings_little(actions: list[Action], settings: Settings) -> bool:
    full = settings.max_recent_actions and len(actions) >= settings.max_recent_actions
    return bool(full) and sum(action.gain > 0 for action in actions) * LITTLE <= len(actions)


def _standstill(identity: str, actions: list[Action], strength: float, what: str) -> Hit | None:
    sentence = f"{what}: no new file state, no better test result, no information not seen before."
    return make_hit("no_novelty", identity, [action.index for action in actions], strength, sentence)


def same_answer(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The questions move, the answer never does: SAME_ANSWERS looks with one tool, and nothing new between.

    An audit asks the same of one thing after another, and "all is well" is its answer. So the questions must turn the same few
    words over, or be searches, which should find other things for other words.
    """
    last = last_action(state)
    if last is None or not last.look or not settings.progress_check_interval:
        return None
    identity = identity_of("same_answer", last.tool, last.outcome)
    asked = [action for action in _with_one_answer(state, last) if is_fresh(state, identity, action.index)]
    words = {word for action in asked for word in action.words}
    again = len(words) <= FEW_WORDS * len(asked) or (last.exact and is_search(last.tool, last.program))
    if len({action.call for action in asked}) < QUESTIONS or not again:
        return None
    rows = [action.index for action in asked]
    sentence = f"{len(rows)} calls like {name_call(item)} all gave the same answer."
    return make_hit("same_answer", identity, rows, len(rows) / SAME_ANSWERS, sentence)


def _with_one_answer(state: State, last: Action) -> list[Action]:
    """The looks of the last one's tool and answer, back to the last action that brought something else."""
    asked: list[Action] = []
    for action in reversed(state.actions):
        if action.look and (action.tool, action.outcome) == (last.tool, last.outcome):
            asked.append(action)
        elif action.gain:
            break
    return asked[::-1]
