"""The rule about waiting for something that does not come."""

from agents.progress.evidence import Evidence
from agents.progress.rules.hits import Hit, identity_of, is_fresh, make_hit, name_call
from agents.progress.settings import Settings
from agents.progress.state import State

PATIENCE = 10
"""A poll whose answer has never moved may say the same this many times stuck_threshold."""
RHYTHM = 3
"""A poll whose answer has moved may stay this many times as long as it ever did, and no less than this many times
stuck_threshold."""


def endless_poll(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """A poll has said the same for longer than its own rhythm lets one expect."""
    if item.kind != "poll" or not settings.stuck_threshold:
        return None
    for call, poll in state.polls.items():
        if not poll.rows or poll.rows[-1] != state.observed:
            continue
        identity = identity_of("endless_poll", call, poll.answer)
        rows = [row for row in poll.rows if is_fresh(state, identity, row)]
        patience = PATIENCE * settings.stuck_threshold
        if poll.longest:
            patience = min(patience, RHYTHM * max(settings.stuck_threshold, poll.longest))
        return make_hit(
            "endless_poll", identity, rows, len(rows) / patience, f"{name_call(item)} has said the same {len(rows)} times."
        )
    return None
