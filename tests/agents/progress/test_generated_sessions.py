"""The rules hold on sessions nobody looked at when they were written. Tuned on seeds 1 and 2, asserted on another."""

import pytest

from agents.progress.settings import Settings
from agents.progress.state import State
from agents.progress.traces import items_of
from agents.progress.tracker import observe_item
from tests.agents.progress.generator import LOOPS, benign
from tests.agents.progress.loops import loop

SEED = 90_210_000
SESSIONS = 400
LOOPS_EACH = 60
ALARMS_SHARE = 0.01
CAUGHT_SHARE = 0.95


def verdicts_of(trace):
    """(index, verdict) of the whole session, as the live system would judge it."""
    state, found = State(), []
    for index, item in enumerate(items_of(trace, Settings()), 1):
        state, verdict = observe_item(state, item)
        if verdict:
            found.append((index, verdict))
    return found


def test_at_most_one_benign_session_in_a_hundred_is_even_steered():
    alarmed = [trace["name"] for trace in (benign(SEED + n) for n in range(SESSIONS)) if verdicts_of(trace)]
    assert len(alarmed) <= ALARMS_SHARE * SESSIONS, alarmed


@pytest.mark.parametrize("kind", LOOPS)
def test_nearly_every_loop_is_caught_and_then_halted(kind):
    missed, unhalted = [], []
    for n in range(LOOPS_EACH):
        trace = loop(kind, SEED + n)
        found = verdicts_of(trace)
        if not found or found[0][0] < trace["stuck_from"]:
            missed.append(trace["name"])
        if not any(verdict.action == "halt" for _, verdict in found):
            unhalted.append(trace["name"])
    assert len(missed) <= (1 - CAUGHT_SHARE) * LOOPS_EACH, missed
    assert len(unhalted) <= (1 - CAUGHT_SHARE) * LOOPS_EACH, unhalted


def test_the_same_seed_makes_the_same_session():
    assert benign(5) == benign(5)
    assert loop("cycle", 5) == loop("cycle", 5) != loop("cycle", 6)
