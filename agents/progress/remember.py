"""How an item becomes memory: pure steps from one State to the next, no judgement."""

from dataclasses import replace

from agents.progress.calls import bare_code, is_answer_by_code, is_look, is_rewriting, is_sleep, kind_of_tool, run_programs
from agents.progress.digests import text_digest
from agents.progress.evidence import UNKNOWN, Control, Evidence
from agents.progress.novelty import (
    answer_mark,
    call_mark,
    exact_answer,
    file_key,
    found_content,
    is_change,
    known_states,
    measure_gain,
    outcome_mark,
    plain_answer,
)
from agents.progress.settings import Settings
from agents.progress.state import (
    ATTEMPT,
    CHANGE,
    FILES_LIMIT,
    INFORMATION,
    POLLS_LIMIT,
    SEEN_LIMIT,
    STATES_LIMIT,
    TESTS_LIMIT,
    TRIALS_LIMIT,
    Action,
    Alteration,
    Failure,
    Poll,
    Saying,
    State,
    Trial,
    with_newest,
)
from agents.progress.weights import may_have_changed, weigh_action
from agents.progress.wording import names_of, things_of, words_of

ALTERATIONS = 20
"""Changes of content kept for judging oscillation."""
FAILURES = 4
"""Ways of failing remembered of a command that is tried again after changes: a way that was there before is no progress."""
NOTHING_FOUND = "nothing"
"""What a look says that is known to have answered nothing; of one that nobody saw the answer of, nothing is known."""
ROWS = 64
"""Indices kept of a poll that says the same, of compactions, of plans."""
NAME_LENGTH = 200
"""Characters of a file's name that an alteration keeps."""


def seen_as(state: State, item: Evidence, settings: Settings) -> Evidence:
    """The item as the rules take it: a call after a sleep is a poll, an exit code that says "no" is an answer."""
    if item.error and not item.success and is_answer_by_code(item.tool, item.target, item.raw_error, settings):
        item = replace(item, success=True, error="", error_shape="", raw_error="", outcome=None, shape="")
    if item.error and bare_code(item.raw_error) is not None:  # it says nothing about another command
        item = replace(item, error=text_digest(f"{item.error} {item.target}"))
    if item.kind != "tool" or item.before is not None or kind_of_tool(item.tool, settings) == "change":
        return item
    poll = state.polls.get(call_mark(item))
    waits = state.slept and (state.slept == state.last_call or (poll is not None and poll.rows[-1] < state.slept))
    return replace(item, kind="poll") if waits else item


def after_control(state: State, control: Control) -> State:
    """After a control event: a person's message and a phase begin a new window, nudge and compaction reset nothing."""
    state = replace(state, observed=state.observed + 1)
    if control.kind == "nudge":
        return replace(state, sayings=(*state.sayings, Saying(state.observed, "nudge"))[-ROWS:])
    if control.kind == "compaction":
        return replace(state, compactions=(*state.compactions, state.observed)[-ROWS:])
    state = replace(
        state, window=state.window + 1, actions=(), failures=(), alterations=(), sayings=(), compactions=(), plans=(), polls={},
        trials={}, slept=0, consecutive_errors=0,
    )  # fmt: skip
    return replace(state, seen={}) if control.kind == "phase" else state


def speaks(item: Evidence, settings: Settings) -> bool:
    """Whether the agent only says something, to a person or to itself: no call that does or learns anything."""
    return item.kind == "message" or kind_of_tool(item.tool, settings) in ("think", "ask")


def after_saying(state: State, item: Evidence) -> State:
    """After a message of the agent, or a call that only speaks."""
    index, said = state.observed + 1, item.kind == "message"
    saying = Saying(index, "message" if said else "thought", item.call, (item.shape if said else item.call_shape) or "")
    return replace(state, observed=index, calls=state.calls + (not said), sayings=(*state.sayings, saying)[-ROWS:])


def after_call(state: State, item: Evidence, settings: Settings) -> State:
    """After a call that ended, well or not."""
    action = _action(state, item, settings)
    sleeps = is_sleep(item.tool, item.target, settings)
    state = replace(
        state,
        observed=action.index,
        calls=state.calls + 1,
        last_call=action.index,
        sayings=(),
        slept=action.index if sleeps else state.slept,
        consecutive_errors=0 if item.success else state.consecutive_errors + 1,
        milestones=state.milestones + (action.gain == CHANGE),
        tests_run=state.tests_run + (item.kind == "test"),
        compactions=() if action.gain >= INFORMATION else state.compactions,
        plans=_plans(state, action),
    )
    state = state if sleeps or action.kind == "plan" else _listed(state, action, item, settings)
    state = _failed(state, action, item, settings) if item.error and not item.ordered else state
    state = _tried(state, action, item)
    state = _changed(state, action, item) if is_change(item) else state
    if action.gain == CHANGE and not is_change(item) and item.kind == "tool":
        state = replace(state, trials={}, failures=())  # a step: what failed was about another thing
    return replace(_learnt(state, item), deeds=state.deeds + action.acts)


def _plans(state: State, action: Action) -> tuple[int, ...]:
    if action.kind == "plan":
        return (*state.plans, action.index)[-ROWS:]
    return state.plans if action.look and action.gain < ATTEMPT else ()


def _action(state: State, item: Evidence, settings: Settings) -> Action:
    kind = kind_of_tool(item.tool, settings)
    if item.kind == "test" or is_rewriting(item.tool, item.target, settings):
        kind = "test" if item.kind == "test" else "change"
    programs = run_programs(item.tool, item.target, settings)
    key, gained = outcome_mark(item), measure_gain(state, item, settings)
    look = item.success and item.kind == "tool" and is_look(item.tool, item.target, settings)
    action = Action(
        index=state.observed + 1,
        tool=item.tool,
        kind=kind,
        program=programs[0] if programs else "",
        call=call_mark(item),
        call_shape=item.call_shape,
        words=words_of(item.target),
        things=things_of(item.target),
        names=names_of(item.target, programs),
        key=key,
        success=item.success,
        error=item.error,
        outcome=plain_answer(item) or (NOTHING_FOUND if look and item.shape == "" else ""),
        exact=exact_answer(item),
        look=look,
        gain=gained,
        acts=False,
        needless=not gained and _nothing_new_since(state, key),
    )
    weight, why = weigh_action(item, action, since_change(state.actions))
    action = replace(action, weight=weight, why=why)
    return replace(action, acts=item.kind == "tool" and may_have_changed(action, state.actions))


def since_change(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The window's actions after the last new file state or better test result."""
    for place in range(len(actions) - 1, -1, -1):
        if actions[place].gain == CHANGE:
            return actions[place + 1 :]
    return actions


def _nothing_new_since(state: State, key: str) -> bool:
    """Whether the call was made before with this outcome, and nothing after that brought anything new."""
    for action in reversed(state.actions):
        if action.key == key:
            return True
        if action.gain >= INFORMATION or (action.gain and not action.look):
            return False
    return False


def _listed(state: State, action: Action, item: Evidence, settings: Settings) -> State:
    """Into the window; a poll that says nothing new is followed on its own instead, so that waiting is no standstill."""
    if item.kind == "poll":
        known = state.polls.get(action.call, Poll("", ()))
        stays = known.answer == action.outcome
        rows = (*known.rows, action.index)[-ROWS:] if stays else (action.index,)
        longest = known.longest if stays else max(known.longest, len(known.rows))
        state = replace(state, polls=with_newest(state.polls, action.call, Poll(action.outcome, rows, longest), POLLS_LIMIT))
        if not action.gain or not item.success:
            return state
    kept = max(settings.max_recent_actions, 2 * settings.progress_check_interval)
    return replace(state, actions=(*state.actions, action)[-kept:] if kept else ())


def _failed(state: State, action: Action, item: Evidence, settings: Settings) -> State:
    if item.kind == "poll" or not settings.max_recent_errors:
        return state
    command = action.kind not in ("change", "look")
    failure = Failure(action.index, text_digest(item.target or f"{item.tool} {item.call}"), item.error, command, state.deeds)
    return replace(state, failures=(*state.failures, failure)[-settings.max_recent_errors :])


def _tried(state: State, action: Action, item: Evidence) -> State:
    """A command that fails is followed over the changes between: one row for each time that it failed alike after another."""
    if item.kind == "poll" or item.ordered or action.kind in ("change", "look"):
        return state
    known = state.trials.get(action.call)
    if item.success:
        return (
            replace(state, trials={call: one for call, one in state.trials.items() if call != action.call}) if known else state
        )
    failure, deeds = item.error or action.outcome, state.deeds + state.milestones
    if known is None or failure not in known.failures:
        trial = Trial((*(known.failures if known else ()), failure)[-FAILURES:], (action.index,), deeds)
    elif known.deeds == deeds:
        return state
    else:
        trial = Trial(known.failures, (*known.rows, action.index)[-ROWS:], deeds)
    return replace(state, trials=with_newest(state.trials, action.call, trial, TRIALS_LIMIT))


def _changed(state: State, action: Action, item: Evidence) -> State:
    """A changed target's failures are forgotten; those of commands only by a state that is new."""
    before, after = found_content(state, item), item.outcome or UNKNOWN
    if after == before != UNKNOWN:
        return state
    target = text_digest(item.target)
    failures = tuple(
        failure for failure in state.failures if failure.target != target and not (failure.command and action.gain == CHANGE)
    )
    alteration = Alteration(action.index, item.target[-NAME_LENGTH:], before, after, state.tests_run)
    states = known_states(state, item)[-STATES_LIMIT:]
    return replace(
        state,
        failures=failures,
        alterations=(*state.alterations, alteration)[-ALTERATIONS:],
        files=with_newest(state.files, file_key(item), states, FILES_LIMIT) if states else state.files,
    )


def _learnt(state: State, item: Evidence) -> State:
    """What was seen is seen; a test that went well has passed. Old marks keep their age: only new ones are written."""
    seen = state.seen
    for mark in ("" if is_change(item) else answer_mark(item), call_mark(item), outcome_mark(item)):
        if mark and mark not in seen:
            seen = with_newest(seen, mark, True, SEEN_LIMIT)
    passed = state.passed
    if item.kind == "test" and item.success and call_mark(item) not in passed:
        passed = with_newest(passed, call_mark(item), True, TESTS_LIMIT)
    return replace(state, seen=seen, passed=passed)
