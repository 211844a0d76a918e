"""The rule about changes that undo each other, judged on content."""

from collections.abc import Sequence

from agents.progress.evidence import UNKNOWN, Evidence
from agents.progress.remember import NAME_LENGTH
from agents.progress.rules.hits import Hit, identity_of, is_fresh, make_hit, quote_text
from agents.progress.settings import Settings
from agents.progress.state import Alteration, State

LONGEST = 2
"""A circle of up to this many times oscillation_window changes is recognised."""


def file_oscillation(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The last changes, of all files or of this one, end where they began, and no test ran between."""
    if not settings.oscillation_window or not state.alterations or state.alterations[-1].index != state.observed:
        return None
    own = [change for change in state.alterations if change.target == item.target[-NAME_LENGTH:]]
    for length in range(settings.oscillation_window, LONGEST * settings.oscillation_window + 1):
        for changes in (state.alterations, own):
            found = _circle(state, changes[-length:]) if len(changes) >= length else None
            if found:
                return found
    return None


def _circle(state: State, changes: Sequence[Alteration]) -> Hit | None:
    if changes[0].tests_run != changes[-1].tests_run or not _ends_where_it_began(changes):
        return None
    targets = sorted({change.target for change in changes})
    identity = identity_of("oscillation", *targets)
    if not is_fresh(state, identity, changes[0].index):
        return None
    names = ", ".join(map(quote_text, targets))
    sentence = f"The last {len(changes)} changes of {names} end where they began, with no test between."
    return make_hit("oscillation", identity, [change.index for change in changes], 1.0, sentence)


def _ends_where_it_began(changes: Sequence[Alteration]) -> bool:
    began: dict[str, str] = {}
    ended: dict[str, str] = {}
    for change in changes:
        began.setdefault(change.target, change.before)
        ended[change.target] = change.after
    return UNKNOWN not in began.values() and began == ended
