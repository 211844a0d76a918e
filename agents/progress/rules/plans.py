"""Rules about an agent that plans again, or sends out a helper again, and gets no further."""

from itertools import takewhile

from agents.progress.evidence import Evidence
from agents.progress.rules.hits import Hit, identity_of, is_fresh, last_action, make_hit, quote_text
from agents.progress.settings import Settings
from agents.progress.state import CHANGE, Action, State
from agents.progress.wording import is_about_the_same, is_reworded


def plan_again(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """The plan was written stuck_threshold + 1 times, and nothing was done or learnt between."""
    if not state.plans or state.plans[-1] != state.observed or not settings.stuck_threshold:
        return None
    identity = identity_of("plan_again", str(state.window), str(state.milestones))
    rows = [row for row in state.plans if is_fresh(state, identity, row)]
    sentence = f"The plan was written {len(rows)} times, and nothing was done or learnt between."
    return make_hit("plan_again", identity, rows, len(rows) / (settings.stuck_threshold + 1), sentence)


def same_order(state: State, item: Evidence, settings: Settings) -> Hit | None:
    """A helper was given the same order stuck_threshold + 1 times, in these or other words, and nothing changed between.

    Helpers that are sent out one after the other with different work have different words.
    """
    last = last_action(state)
    if last is None or last.kind != "delegate" or not settings.stuck_threshold or item.ordered:
        return None
    identity = identity_of("same_order", last.tool)
    since = takewhile(lambda action: action.gain != CHANGE and is_fresh(state, identity, action.index), reversed(state.actions))
    rows = [action.index for action in since if action.kind == "delegate" and _is_same_order(action, last)][::-1]
    sentence = f"{item.tool} was given much the same order {len(rows)} times; the last was {quote_text(item.target)}."
    return make_hit("same_order", identity, rows, len(rows) / (settings.stuck_threshold + 1), sentence)


def _is_same_order(one: Action, other: Action) -> bool:
    """Orders are free texts: two that name the same things are the same order, however they put it."""
    return is_reworded(one, other) or (bool(one.things) and one.tool == other.tool and is_about_the_same(one, other))
