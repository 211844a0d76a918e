"""Rules about an agent that talks, plans or is compacted, and does nothing."""

from agents.progress.rules.hits import Hit, identity_of, is_fresh, make_hit
from agents.progress.settings import Settings
from agents.progress.shapes import similar
from agents.progress.state import Saying, State

TALK = 2
"""An agent may say this many times stuck_threshold different things in a row with no call between."""


def same_message(state: State, settings: Settings) -> Hit | None:
    """The agent said the same, in these or other words, stuck_threshold times with no call between."""
    last = state.sayings[-1] if state.sayings else None
    if last is None or last.kind == "nudge" or last.index != state.observed or not settings.stuck_threshold:
        return None
    identity = identity_of("same_message", last.said)
    rows = [one.index for one in state.sayings if _alike(one, last) and is_fresh(state, identity, one.index)]
    sentence = f"The same message was said {len(rows)} times with no call between."
    return make_hit("same_message", identity, rows, len(rows) / settings.stuck_threshold, sentence)


def _alike(one: Saying, last: Saying) -> bool:
    return one.kind == last.kind and (one.said == last.said or similar(one.shape, last.shape))


def only_talk(state: State, settings: Settings) -> Hit | None:
    """Nothing but words: TALK times stuck_threshold messages and no call, or stuck_threshold nudges that led to none."""
    if not state.sayings or state.sayings[-1].index != state.observed or not settings.stuck_threshold:
        return None
    identity = identity_of("only_talk", str(state.window), str(state.calls))
    fresh = [one for one in state.sayings if is_fresh(state, identity, one.index)]
    said = [one.index for one in fresh if one.kind == "message"]
    nudged = sum(one.kind == "nudge" for one in fresh[:-1])
    strength = max(len(said) / (TALK * settings.stuck_threshold), nudged / settings.stuck_threshold if said else 0.0)
    sentence = f"{len(said)} messages were said with no call between" + (f", after {nudged} nudges." if nudged else ".")
    return make_hit("only_talk", identity, said, strength, sentence)


def compactions_in_a_row(state: State, settings: Settings) -> Hit | None:
    """The context was compacted stuck_threshold times and nothing new came between: what is left fills it again at once."""
    if not state.compactions or state.compactions[-1] != state.observed or not settings.stuck_threshold:
        return None
    identity = identity_of("compactions", str(state.window), str(state.milestones))
    rows = [row for row in state.compactions if is_fresh(state, identity, row)]
    sentence = f"The context was compacted {len(rows)} times, and nothing new came between."
    return make_hit("compactions", identity, rows, len(rows) / settings.stuck_threshold, sentence)
