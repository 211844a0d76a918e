"""All rules, in the order in which they name a loop: the more exactly a rule can say what is wrong, the earlier it stands."""

from agents.progress.evidence import Control, Item
from agents.progress.remember import speaks
from agents.progress.rules.failures import same_failure, same_target_error, same_tool_error
from agents.progress.rules.hits import Hit
from agents.progress.rules.oscillation import file_oscillation
from agents.progress.rules.plans import plan_again, same_order
from agents.progress.rules.polls import endless_poll
from agents.progress.rules.repeats import exact_repeat, repeated_cycle, same_deed
from agents.progress.rules.standstill import going_round, no_novelty, same_answer
from agents.progress.rules.talk import compactions_in_a_row, only_talk, same_message
from agents.progress.settings import Settings
from agents.progress.state import State

CALL_RULES = (
    same_target_error, same_tool_error, same_failure, file_oscillation, exact_repeat, same_deed, repeated_cycle,
    endless_poll, plan_again, same_order, same_answer, no_novelty, going_round,
)  # fmt: skip
"""What is judged after a call."""
TALK_RULES = (same_message, only_talk, compactions_in_a_row)
"""What is judged after a message, a thought, a nudge or a compaction."""


def find_suspicions(state: State, item: Item, settings: Settings) -> list[Hit]:
    """What the rules find just after `item` was remembered, however weak, without the loops a person has accepted."""
    if isinstance(item, Control) or speaks(item, settings):
        answers = [rule(state, settings) for rule in TALK_RULES]
    else:
        answers = [rule(state, item, settings) for rule in CALL_RULES]
    found = [one for one in answers if one is not None]
    if any(one.identity in state.accepted and one.strength >= 1 for one in found):
        return []  # what goes on is what a person accepted
    return [one for one in found if one.identity not in state.accepted]
