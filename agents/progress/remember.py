"""How an item becomes memory: pure steps from one State to the next, no judgement."""

from dataclasses import replace

from agents.progress.calls import is_look, program_name
from agents.progress.digests import text_digest
from agents.progress.evidence import UNKNOWN, Control, Evidence
from agents.progress.novelty import answer_mark, call_mark, found_content, is_change, known_states, measure_gain
from agents.progress.settings import Settings
from agents.progress.state import (
    CHANGE,
    FILES_LIMIT,
    POLLS_LIMIT,
    SEEN_LIMIT,
    STATES_LIMIT,
    TESTS_LIMIT,
    Action,
    Alteration,
    Failure,
    State,
    with_newest,
)

ALTERATIONS = 20
"""Changes of content kept for judging oscillation."""
POLL_ROWS = 64
"""Indices kept of a poll that says the same."""


def after_control(state: State, control: Control) -> State:
    """After a control event: a person's message and a phase begin a new window, nudge and compaction reset nothing."""
    state = replace(state, observed=state.observed + 1)
    if control.kind not in ("user", "phase"):
        return state
    state = replace(
        state, window=state.window + 1, actions=(), failures=(), alterations=(), messages=(), polls={}, consecutive_errors=0
    )
    return replace(state, seen={}) if control.kind == "phase" else state


def after_message(state: State, item: Evidence, settings: Settings) -> State:
    """After a message of the agent."""
    index = state.observed + 1
    kept = (*state.messages, (index, item.call))[-max(settings.max_recent_actions, settings.stuck_threshold) :]
    return replace(state, observed=index, messages=kept)


def after_call(state: State, item: Evidence, settings: Settings) -> State:
    """After a call that ended, well or not."""
    action = _action(state, item, settings)
    state = replace(
        state,
        observed=action.index,
        calls=state.calls + 1,
        messages=(),
        consecutive_errors=0 if item.success else state.consecutive_errors + 1,
        milestones=state.milestones + (action.gain == CHANGE),
        tests_run=state.tests_run + (item.kind == "test"),
    )
    state = _listed(state, action, item, settings)
    state = _failed(state, action, item, settings) if item.error else state
    state = _changed(state, action, item) if is_change(item) else state
    return _learnt(state, item)


def _action(state: State, item: Evidence, settings: Settings) -> Action:
    call = call_mark(item)
    outcome = f"{'' if item.success else 'failed '}{item.error or item.outcome}"
    key = text_digest(f"{call} {outcome}")
    gained = measure_gain(state, item, settings)
    return Action(
        index=state.observed + 1, tool=item.tool, program=program_name(item.tool, item.target, settings), call=call, key=key,
        success=item.success, error=item.error, outcome=outcome, gain=gained,
        look=item.success and item.kind == "tool" and is_look(item.tool, item.target, settings),
        needless=not gained and _nothing_new_since(state, key),
    )  # fmt: skip


def _nothing_new_since(state: State, key: str) -> bool:
    """Whether the call was made before with this outcome, and nothing after that brought anything new."""
    for action in reversed(state.actions):
        if action.key == key:
            return True
        if action.gain:
            return False
    return False


def _listed(state: State, action: Action, item: Evidence, settings: Settings) -> State:
    """Into the window; a poll that says nothing new is followed on its own instead, so that waiting is no standstill."""
    if item.kind == "poll":
        answer, rows = state.polls.get(action.call, ("", ()))
        rows = (*rows, action.index)[-POLL_ROWS:] if answer == action.outcome else (action.index,)
        state = replace(state, polls=with_newest(state.polls, action.call, (action.outcome, rows), POLLS_LIMIT))
        if not action.gain:
            return state
    kept = max(settings.max_recent_actions, 2 * settings.progress_check_interval)
    return replace(state, actions=(*state.actions, action)[-kept:] if kept else ())


def _failed(state: State, action: Action, item: Evidence, settings: Settings) -> State:
    if item.kind == "poll" or not settings.max_recent_errors:
        return state
    command = item.kind == "test" or item.tool in settings.shell_tools
    failure = Failure(action.index, text_digest(item.target or item.tool), item.error, command)
    return replace(state, failures=(*state.failures, failure)[-settings.max_recent_errors :])


def _changed(state: State, action: Action, item: Evidence) -> State:
    """A changed target's failures are forgotten; those of commands only by a state that is new."""
    before, after = found_content(state, item), item.outcome or UNKNOWN
    if after == before != UNKNOWN:
        return state
    target = text_digest(item.target)
    failures = tuple(
        failure for failure in state.failures if failure.target != target and not (failure.command and action.gain == CHANGE)
    )
    alteration = Alteration(action.index, item.target, before, after, state.tests_run)
    states = known_states(state, item)[-STATES_LIMIT:]
    return replace(
        state,
        failures=failures,
        alterations=(*state.alterations, alteration)[-ALTERATIONS:],
        files=with_newest(state.files, item.target, states, FILES_LIMIT) if states else state.files,
    )


def _learnt(state: State, item: Evidence) -> State:
    """What was seen is seen; a test that went well has passed. Old marks keep their age: only new ones are written."""
    seen = state.seen
    for mark in ("" if is_change(item) else answer_mark(item), call_mark(item)):
        if mark and mark not in seen:
            seen = with_newest(seen, mark, True, SEEN_LIMIT)
    passed = state.passed
    if item.kind == "test" and item.success and call_mark(item) not in passed:
        passed = with_newest(passed, call_mark(item), True, TESTS_LIMIT)
    return replace(state, seen=seen, passed=passed)
