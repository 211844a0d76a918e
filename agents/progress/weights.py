"""How much one action speaks for a standstill: what is done again weighs, what is new takes away.

No action decides alone: the rule in agents.progress.rules.standstill adds the weights up. The figures are rough on purpose:
1 is "certainly again", a half is "again, or near it", and something new outweighs most of one repetition.
"""

from agents.progress.calls import is_gesture, is_paging
from agents.progress.evidence import Evidence
from agents.progress.state import ATTEMPT, CHANGE, INFORMATION, Action
from agents.progress.wording import asks_for_the_same, has_same_goal, is_reworded

AGAIN = 1.0
"""The same call with the same outcome; a failure with an error that was there before."""
ALIKE = 0.8
"""A call in other words with an answer that was there before; another failure on the way to the same goal."""
HALF = 0.5
"""A second look; a repeat whose counters moved; a silent deed in other words; the same gesture with another answer."""
LOOKED = 0.4
"""The same few words turned over, with an answer that was there before."""
LITTLE = 0.25
"""A failure that has nothing to do with those before; a look that is made again between other news."""
DEED = -0.25
"""A new deed that said nothing new: it may have done something nobody looked at."""
NEWS = -0.75
"""Something not seen before."""

NOTHING_SAID = (0.0, "")
ROUTINE = 2
"""Times a tool of unknown kind may give one answer and count as doing something."""


def weigh_action(item: Evidence, action: Action, since: tuple[Action, ...]) -> tuple[float, str]:
    """The weight of an action after those since the last change, and what makes it: again, reworded, failing or looking."""
    if action.gain == CHANGE or item.ordered or item.kind == "poll" or action.kind == "plan":
        return NOTHING_SAID
    same = [other for other in since if other.key == action.key]
    if same:
        return _weigh_repeat(action, same, since)
    if not action.success and item.error:
        return _weigh_failure(action, since)
    if is_gesture(item.tool, item.target) and any(other.call == action.call for other in since):
        return NOTHING_SAID if is_paging(item.tool, item.target) else (HALF, "again")
    known = bool(action.outcome) or not action.look
    answered = [other for other in since if known and other.success and other.outcome == action.outcome]
    looks = [other for other in answered if action.look and other.look]
    reworded = any(is_reworded(other, action) for other in answered) or any(asks_for_the_same(other, action) for other in looks)
    if reworded and action.kind != "change":
        return (ALIKE if action.outcome else HALF), "reworded"
    if action.gain == INFORMATION:
        return (NEWS if action.exact or not known else DEED), ""
    asked = [other for other in looks if other.tool == action.tool]
    if asked and set(action.words) <= {word for other in asked for word in other.words}:
        return LOOKED, "looking"
    return (DEED if action.gain == ATTEMPT else 0.0), ""


def _weigh_repeat(action: Action, same: list[Action], since: tuple[Action, ...]) -> tuple[float, str]:
    """The same call with the same outcome. It weighs nothing where its answer moves by itself, since it waits then, nor after
    a deed that may have changed something, since it looks then whether that helped; little as a habit between other news."""
    between = [other for other in since if other.index > same[-1].index]
    if any(other.call == action.call and other.key != action.key for other in since) or any(other.acts for other in between):
        return NOTHING_SAID
    if action.look and any(other.gain >= INFORMATION for other in between):
        return LITTLE, "again"
    counts = all(other.exact != action.exact for other in same)
    return (HALF if counts or (action.look and len(same) == 1) else AGAIN), "again"


def _weigh_failure(action: Action, since: tuple[Action, ...]) -> tuple[float, str]:
    """A failure like one before weighs fully, one on the way to the same goal nearly so, any other little. A new error after
    something was done about the old one is progress, and tests that fail are answers: neither weighs anything."""
    if action.kind == "test":
        return NOTHING_SAID
    failures = [other for other in since if other.error]
    if any((other.tool, other.error) == (action.tool, action.error) for other in failures):
        return AGAIN, "failing"
    tried = [other for other in failures if is_reworded(other, action) or has_same_goal(other, action)]
    if tried and any(other.acts for other in since if other.index > tried[-1].index):
        return NOTHING_SAID
    return (ALIKE if tried else LITTLE), "failing"


def may_have_changed(action: Action, before: tuple[Action, ...]) -> bool:
    """Whether an action did something that may have changed more than was seen: a new deed that went well, not in other words.

    A tool of unknown kind that has given this answer ROUTINE times may as well only take notes.
    """
    if (
        not action.success
        or action.look
        or action.gain < ATTEMPT
        or action.weight > 0
        or action.kind in ("look", "test", "plan")
    ):
        return False
    routine = sum((other.tool, other.outcome) == (action.tool, action.outcome) for other in before)
    return action.kind != "other" or not action.outcome or routine < ROUTINE
