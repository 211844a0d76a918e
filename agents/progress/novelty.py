"""What an action brings that was not there before (docs/stuck.md)."""

from agents.progress.calls import is_look, is_step
from agents.progress.digests import text_digest
from agents.progress.evidence import UNKNOWN, Evidence
from agents.progress.settings import Settings
from agents.progress.shapes import kept_part, numbered_part
from agents.progress.state import ATTEMPT, CHANGE, INFORMATION, NOTHING, State


def measure_gain(state: State, item: Evidence, settings: Settings) -> int:
    """NOTHING, ATTEMPT, INFORMATION or CHANGE."""
    if is_new_state(state, item) or is_better_test(state, item):
        return CHANGE
    if is_change(item):
        return NOTHING
    answer = answer_mark(item)
    if item.success and answer not in state.seen and is_step(item.tool, item.target, settings):
        return CHANGE
    if answer and answer not in state.seen and outcome_mark(item) not in state.seen:
        return INFORMATION
    if call_mark(item) in state.seen or not item.success:
        return NOTHING
    return ATTEMPT if answer or not _acts(item, settings) else INFORMATION


def _acts(item: Evidence, settings: Settings) -> bool:
    """Whether the call did something beside what it said; silence is what a deed that went well says."""
    only_says = item.kind in ("test", "poll") or is_look(item.tool, item.target, settings)
    return item.success and (item.outcome is None or not only_says)


def found_content(state: State, item: Evidence) -> str:
    """The content a change found: as observed, else as last left by a change."""
    if item.before == UNKNOWN and file_key(item) in state.files:
        return state.files[file_key(item)][-1]
    return item.before or UNKNOWN


def is_change(item: Evidence) -> bool:
    return item.success and item.before is not None


def is_new_state(state: State, item: Evidence) -> bool:
    """Whether a file now has a content it never had, as far as is remembered; a change nobody looked at is new by its call."""
    if not is_change(item):
        return False
    if item.outcome is None:
        return call_mark(item) not in state.seen
    return item.outcome != item.before and item.outcome not in state.files.get(file_key(item), ())


def is_better_test(state: State, item: Evidence) -> bool:
    return item.kind == "test" and item.success and call_mark(item) not in state.passed


def file_key(item: Evidence) -> str:
    return text_digest(item.target)


def call_mark(item: Evidence) -> str:
    """A call by its tool, target and arguments."""
    return text_digest(f"{item.tool}\0{item.target}\0{item.call}")


def exact_answer(item: Evidence) -> str:
    """What the call said, its counters with it: its error, else its answer; empty for nothing observed."""
    if not item.success and item.error:
        return f"failed {item.error}"
    said = (numbered_part(item.shape) if item.shape and not is_change(item) else "") or item.outcome or ""
    return said if item.success or not said else f"failed {said}"


def plain_answer(item: Evidence) -> str:
    """What the call said, without the numbers in it where its shape is known; polls and tests are asked for their numbers."""
    if not item.shape or is_change(item) or item.kind in ("poll", "test") or (item.error and not item.success):
        return exact_answer(item)
    said = kept_part(item.shape)
    return said if item.success else f"failed {said}"


def answer_mark(item: Evidence) -> str:
    """What the call said, as a mark that no other tool's error shares; empty for nothing observed."""
    said = exact_answer(item)
    return text_digest(f"{item.tool} {said}" if said.startswith("failed ") else said) if said else ""


def outcome_mark(item: Evidence) -> str:
    """The call together with what it said, counters left open."""
    return text_digest(f"{call_mark(item)} {'' if item.success else 'failed '}{plain_answer(item)}")


def known_states(state: State, item: Evidence) -> tuple[str, ...]:
    """The states of the changed file, the newest last."""
    states = state.files.get(file_key(item), ())
    before = found_content(state, item)
    if before != UNKNOWN and (not states or states[-1] != before):
        states = (*states, before)
    return states if item.outcome is None else (*states, item.outcome)
