"""All rules, in the order in which they name a loop: the more exactly a rule can say what is wrong, the earlier it stands."""

from agents.progress.errors import same_target_error, same_tool_error
from agents.progress.evidence import Evidence
from agents.progress.hits import Hit, Rule
from agents.progress.oscillation import file_oscillation
from agents.progress.repeats import endless_poll, exact_repeat, repeated_cycle, same_message
from agents.progress.settings import Settings
from agents.progress.standstill import no_novelty, same_answer
from agents.progress.state import State

RULES: tuple[Rule, ...] = (
    same_target_error, same_tool_error, file_oscillation, exact_repeat, repeated_cycle, same_message, endless_poll, same_answer,
    no_novelty,
)  # fmt: skip


def find_hits(state: State, item: Evidence, settings: Settings) -> list[Hit]:
    """What the rules find just after `item` was remembered, without the loops a person has accepted."""
    found = (rule(state, item, settings) for rule in RULES)
    return [one for one in found if one is not None and one.identity not in state.accepted]
