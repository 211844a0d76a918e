"""Rules about calls that come again with the same outcome, or whatever their outcome."""

from collections import Counter
from itertools import takewhile

from agents.progress.calls import is_gesture, is_paging, is_watching
from agents.progress.evidence import Evidence
from agents.progress.rules.hits import Hit, identity_of, is_fresh, last_action, make_hit, name_call, window_of
from agents.progress.settings import Settings
from agents.progress.state import Action, State

PERIODS = range(2, 6)
"""Lengths of a cycle, in calls."""
NOISE = 4
"""Fewer than one in this many actions between the calls of a cycle may bring something new."""
RUNS = 2
"""A program may be run less than this many times stuck_threshold in a row."""
NUMBERS = 2
"""A call whose answer moves in its numbers alone may be made this many times as often."""


def exact_repeat(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same call with the same outcome, stuck_threshold needless times: nothing new had come since the time before.

    Errors are the error rules' own. A call whose answer has moved by itself since the last change waits for something: it is
    left to the standstill rule.
    """
    last = last_action(state)
    if last is None or not last.needless or item.error or not settings.stuck_threshold:
        return None
    identity = identity_of("exact_repeat", last.key)
    window = window_of(state, settings)
    if any(action.call == last.call and action.key != last.key for action in window):
        return None
    same = [action for action in window if action.key == last.key]
    needless = [action for action in same if action.needless and is_fresh(state, identity, action.index)]
    counting = len({action.exact for action in same}) > 1
    needed = settings.stuck_threshold * (NUMBERS if counting and last.look else 1)
    rows = [action.index for action in same]
    sentence = f"{name_call(item)} was called {len(rows)} times, each time with the same outcome" + (
        " but for numbers." if counting else "."
    )
    return make_hit("exact_repeat", identity, rows, len(needless) / needed, sentence)


def same_deed(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same deed in a row, whatever its answer seems to say: a click stuck_threshold + 1 times, a program RUNS times
    stuck_threshold.

    A look may be repeated while what it looks at moves, and paging asks for the next part. A deed that is done again at once
    has not done what it should.
    """
    last = last_action(state)
    if last is None or not settings.stuck_threshold or item.ordered or is_paging(item.tool, item.target):
        return None
    if item.kind == "poll":  # it waits, and has a rule of its own
        return None
    gesture = is_gesture(item.tool, item.target)
    if not gesture and (last.kind not in ("shell", "test") or last.look or is_watching(item.target)):
        return None
    identity = identity_of("same_deed", last.call)
    row = takewhile(lambda one: one.call == last.call and is_fresh(state, identity, one.index), reversed(state.actions))
    rows = [action.index for action in row][::-1]
    needed = settings.stuck_threshold + 1 if gesture else RUNS * settings.stuck_threshold
    sentence = f"{name_call(item)} was done {len(rows)} times in a row, whatever it answered."
    return make_hit("same_deed", identity, rows, len(rows) / needed, sentence)


def repeated_cycle(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same 2 to 5 calls with the same outcomes, stuck_threshold rounds; a little that is new between does not clear it."""
    last = last_action(state)
    if last is None or not settings.stuck_threshold:
        return None
    window = window_of(state, settings)
    times = Counter(action.key for action in window)
    if times[last.key] < settings.stuck_threshold:
        return None
    again = [action for action in window if times[action.key] > 1]
    found = (
        _cycle_of(state, item, window, again[-period * settings.stuck_threshold :], period, settings) for period in PERIODS
    )
    return next((one for one in found if one), None)


def _cycle_of(
    state: State, item: Evidence, window: tuple[Action, ...], tail: list[Action], period: int, settings: Settings
) -> Hit | None:
    keys = [action.key for action in tail]
    if len(set(keys)) < 2 or len(keys) < period * settings.stuck_threshold or keys[period:] != keys[:-period]:
        return None
    identity = identity_of("cycle", *sorted(set(keys)))
    span = sum(action.index >= tail[0].index for action in window)
    if tail[-1].index != state.observed or (span - len(tail)) * NOISE >= span or not is_fresh(state, identity, tail[0].index):
        return None
    rounds = len(tail) // period
    sentence = f"The same {period} calls went round {rounds} times with the same outcomes; the last was {name_call(item)}."
    return make_hit("cycle", identity, [action.index for action in tail], rounds / settings.stuck_threshold, sentence)
