"""What an action brings that was not there before (docs/plans.md, "Progress")."""

from agents.progress.calls import is_look
from agents.progress.digests import text_digest
from agents.progress.evidence import UNKNOWN, Evidence
from agents.progress.settings import Settings
from agents.progress.state import ATTEMPT, CHANGE, INFORMATION, NOTHING, State


def measure_gain(state: State, item: Evidence, settings: Settings) -> int:
    """NOTHING, ATTEMPT, INFORMATION or CHANGE."""
    if is_new_state(state, item) or is_better_test(state, item):
        return CHANGE
    if is_change(item):
        return NOTHING
    answer = answer_mark(item)
    if answer and answer not in state.seen:
        return INFORMATION
    if not _acts(item, settings) or call_mark(item) in state.seen:
        return NOTHING
    return ATTEMPT if answer else INFORMATION


def _acts(item: Evidence, settings: Settings) -> bool:
    """Whether the call did something beside what it said; silence is what a deed that went well says."""
    only_says = item.kind in ("test", "poll") or is_look(item.tool, item.target, settings)
    return item.success and (item.outcome is None or not only_says)


def found_content(state: State, item: Evidence) -> str:
    """The content a change found: as observed, else as last left by a change."""
    if item.before == UNKNOWN and item.target in state.files:
        return state.files[item.target][-1]
    return item.before or UNKNOWN


def is_change(item: Evidence) -> bool:
    return item.success and item.before is not None


def is_new_state(state: State, item: Evidence) -> bool:
    """Whether a file now has a content it never had, as far as is remembered; a change nobody looked at is new by its call."""
    if not is_change(item):
        return False
    if item.outcome is None:
        return call_mark(item) not in state.seen
    return item.outcome != item.before and item.outcome not in state.files.get(item.target, ())


def is_better_test(state: State, item: Evidence) -> bool:
    return item.kind == "test" and item.success and call_mark(item) not in state.passed


def answer_mark(item: Evidence) -> str:
    """What the call said: its error, else its answer; empty for nothing observed."""
    if not item.success and item.error:
        return f"error {item.tool} {item.error}"
    return "" if item.outcome is None else f"answer {item.outcome}"


def call_mark(item: Evidence) -> str:
    """A call by its tool, target and arguments."""
    return text_digest(f"{item.tool}\0{item.target}\0{item.call}")


def known_states(state: State, item: Evidence) -> tuple[str, ...]:
    """The states of the changed file, the newest last."""
    states = state.files.get(item.target, ())
    before = found_content(state, item)
    if before != UNKNOWN and (not states or states[-1] != before):
        states = (*states, before)
    return states if item.outcome is None else (*states, item.outcome)
