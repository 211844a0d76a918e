"""Rules about errors that come again."""

from agents.progress.digests import text_digest
from agents.progress.evidence import Evidence
from agents.progress.hits import Hit, identity_of, is_fresh, last_action, make_hit, quote_text
from agents.progress.settings import Settings
from agents.progress.state import Action, State

TOOL_PATIENCE = 2
"""One tool may fail with one error this many times stuck_threshold when its arguments change."""
RELIEF = 2
"""Failures of a tool that one success of it outweighs."""


def same_target_error(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """stuck_threshold failures of one target with one error since it last changed; reads between do not clear them."""
    if not item.error or not settings.stuck_threshold:
        return None
    target = text_digest(item.target or item.tool)
    identity = identity_of("same_target_error", target, item.error)
    rows = [
        failure.index
        for failure in state.failures
        if (failure.target, failure.error) == (target, item.error) and is_fresh(state, identity, failure.index)
    ]
    if len(rows) < settings.stuck_threshold or rows[-1] != state.observed:
        return None
    sentence = f"{quote_text(item.target or item.tool)} failed {len(rows)} times with the same error since it last changed: "
    return make_hit("same_target_error", identity, rows, sentence + quote_text(item.raw_error or item.error))


def same_tool_error(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The same tool failed with the same error again and again, each time with other arguments; its successes weigh against it.

    Tests that fail alike are answers, and one command failing alike after every change is work on it: neither counts.
    """
    last = last_action(state)
    if not item.error or last is None or item.kind in ("poll", "test") or not settings.max_recent_errors:
        return None
    identity = identity_of("same_tool_error", item.tool, item.error)
    rows = _outstanding([action for action in state.actions if is_fresh(state, identity, action.index)], last)
    needed = TOOL_PATIENCE * settings.stuck_threshold
    if not needed or len(rows) < needed:
        return None
    sentence = f"{item.tool} failed {len(rows)} times with the same error, whatever its arguments: "
    return make_hit("same_tool_error", identity, rows, sentence + quote_text(item.raw_error or item.error))


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
