"""Rules about calls and messages that come again with the same outcome."""

from collections import Counter

from agents.progress.evidence import Evidence
from agents.progress.hits import Hit, actions_since_change, identity_of, is_fresh, last_action, make_hit, name_call
from agents.progress.settings import Settings
from agents.progress.state import Action, State

PERIODS = range(2, 6)
"""Lengths of a cycle, in calls."""
NOISE = 4
"""Fewer than one in this many actions between the calls of a cycle may bring something new."""
POLL_PATIENCE = 10
"""A poll may say the same this many times stuck_threshold."""


def exact_repeat(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same call with the same outcome, stuck_threshold needless times: nothing new had come since the time before.

    Errors are the error rules' own. A call whose answer has moved by itself since the last change waits for something: it is
    left to the standstill rule.
    """
    last = last_action(state)
    if last is None or not last.needless or item.error or not settings.stuck_threshold:
        return None
    identity = identity_of("exact_repeat", last.key)
    window = _window(state, settings)
    if any(action.call == last.call and action.key != last.key for action in window):
        return None
    rows = [action.index for action in window if action.key == last.key]
    needless = [
        action.index
        for action in window
        if action.key == last.key and action.needless and is_fresh(state, identity, action.index)
    ]
    if len(needless) < settings.stuck_threshold:
        return None
    return make_hit(
        "exact_repeat", identity, rows, f"{name_call(item)} was called {len(rows)} times, each time with the same outcome."
    )


def repeated_cycle(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same 2 to 5 calls with the same outcomes, stuck_threshold rounds; a little that is new between does not clear it."""
    if last_action(state) is None or not settings.stuck_threshold:
        return None
    window = _window(state, settings)
    times = Counter(action.key for action in window)
    again = [action for action in window if times[action.key] > 1]
    for period in PERIODS:
        found = _cycle_of(state, item, window, again[-period * settings.stuck_threshold :], period)
        if found and len(found.rows) == period * settings.stuck_threshold:
            return found
    return None


def _cycle_of(state: State, item: Evidence, window: tuple[Action, ...], tail: list[Action], period: int) -> Hit | None:
    keys = [action.key for action in tail]
    calls = frozenset(keys)
    if len(calls) < 2 or keys[period:] != keys[:-period] or tail[-1].index != state.observed:
        return None
    identity = identity_of("cycle", *sorted(calls))
    span = sum(action.index >= tail[0].index for action in window)
    if (span - len(tail)) * NOISE >= span or not is_fresh(state, identity, tail[0].index):
        return None
    rounds = len(tail) // period
    sentence = f"The same {period} calls went round {rounds} times with the same outcomes; the last was {name_call(item)}."
    return make_hit("cycle", identity, [action.index for action in tail], sentence)


def endless_poll(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """A poll has said the same POLL_PATIENCE times as often as another call may."""
    if item.kind != "poll" or not settings.stuck_threshold:
        return None
    for call, (answer, rows) in state.polls.items():
        identity = identity_of("endless_poll", call, answer)
        told = [row for row in rows if is_fresh(state, identity, row)]
        if rows[-1] == state.observed and len(told) >= POLL_PATIENCE * settings.stuck_threshold:
            return make_hit("endless_poll", identity, told, f"{name_call(item)} has said the same {len(told)} times.")
    return None


def same_message(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The agent said the same stuck_threshold times with no call between."""
    if item.kind != "message" or not settings.stuck_threshold:
        return None
    identity = identity_of("same_message", item.call)
    rows = [index for index, said in state.messages if said == item.call and is_fresh(state, identity, index)]
    if len(rows) < settings.stuck_threshold:
        return None
    return make_hit("same_message", identity, rows, f"The same message was said {len(rows)} times with no call between.")


def _window(state: State, settings: Settings) -> tuple[Action, ...]:
    return actions_since_change(state)[-settings.max_recent_actions :] if settings.max_recent_actions else ()
