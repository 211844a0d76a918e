"""Rules about failures that come again."""

from agents.progress.evidence import Evidence
from agents.progress.rules.hits import Hit, identity_of, is_fresh, last_action, make_hit, quote_text
from agents.progress.settings import Settings
from agents.progress.state import Action, State
from agents.progress.wording import is_reworded

TOOL_PATIENCE = 2
"""One tool may fail with one error this many times stuck_threshold when its arguments change."""
RELIEF = 2
"""Failures of a tool that one success of it outweighs."""
TRIALS = 2
"""A command fails less than this many times stuck_threshold, less one, when something was changed before each time."""


def same_target_error(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """stuck_threshold failures of one target with one error since it last changed; reads between do not clear them.

    A command depends on everything: a deed that went well between may have changed what it needs, seen or unseen. Such a row
    belongs to `same_failure`.
    """
    if not item.error or not settings.stuck_threshold or not state.failures or state.failures[-1].index != state.observed:
        return None
    last = state.failures[-1]
    identity = identity_of("same_target_error", last.target, item.error)
    rows = [
        failure.index
        for failure in state.failures
        if (failure.target, failure.error) == (last.target, item.error)
        and (not failure.command or failure.deeds == last.deeds)
        and is_fresh(state, identity, failure.index)
    ]
    sentence = f"{quote_text(item.target or item.tool)} failed {len(rows)} times with the same error since it last changed: "
    strength = len(rows) / settings.stuck_threshold
    return make_hit("same_target_error", identity, rows, strength, sentence + quote_text(item.raw_error or item.error))


def same_tool_error(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same tool failed with the same error again and again, each time with other arguments; its successes weigh against it.

    Tests that fail alike are answers, and one command failing alike after every change is work on it: neither counts.
    """
    last = last_action(state)
    if not item.error or last is None or item.kind in ("poll", "test") or not settings.max_recent_errors:
        return None
    identity = identity_of("same_tool_error", item.tool, item.error)
    fresh = [action for action in state.actions if is_fresh(state, identity, action.index)]
    rows = _outstanding(fresh, last)
    needed = settings.stuck_threshold + 1 if _in_a_row(fresh, last) >= len(rows) else TOOL_PATIENCE * settings.stuck_threshold
    if not settings.stuck_threshold or item.ordered:
        return None
    sentence = f"{item.tool} failed {len(rows)} times with the same error, whatever its arguments: "
    return make_hit("same_tool_error", identity, rows, len(rows) / needed, sentence + quote_text(item.raw_error or item.error))


def _in_a_row(actions: list[Action], last: Action) -> int:
    """How many of the last actions were this failure in other words, with nothing at all between."""
    count = 0
    for action in reversed(actions):
        if (action.tool, action.error) != (last.tool, last.error) or not is_reworded(action, last):
            break
        count += 1
    return count


def _outstanding(actions: list[Action], last: Action) -> list[int]:
    """Indices of the failures like the last one, one a call, that no success of the same tool has outweighed.

    In a shell only a success of a program that failed counts: `ls` going well says nothing about `ssh`.
    """
    rows: dict[str, int] = {}
    programs = {action.program for action in actions if (action.tool, action.error) == (last.tool, last.error)}
    for action in actions:
        if action.tool != last.tool:
            continue
        if action.error == last.error:
            rows[action.call] = action.index
        elif action.success and action.program in programs:
            rows = dict(list(rows.items())[RELIEF:])
    return sorted(rows.values())


def same_failure(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """A test or another command fails in the same way again and again, although something was changed before each time.

    Work on a failure moves it: fewer tests fail, another error comes. Two or three times the same is work, too.
    """
    last = last_action(state)
    if item.success or last is None or last.call not in state.trials or not settings.stuck_threshold:
        return None
    trial = state.trials[last.call]
    identity = identity_of("same_failure", last.call, *sorted(trial.failures))
    rows = [row for row in trial.rows if is_fresh(state, identity, row)]
    sentence = f"{quote_text(item.target or item.tool)} failed {len(rows)} times in the same way, whatever was changed between."
    if rows[-1:] != [state.observed]:
        return None
    return make_hit("same_failure", identity, rows, len(rows) / (TRIALS * settings.stuck_threshold - 1), sentence)
