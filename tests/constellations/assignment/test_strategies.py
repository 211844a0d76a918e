"""The strategies of assignment: what each prefers, and what is done about one that breaks."""

import pytest

from constellations.assignment.candidates import Candidate, SessionFacts
from constellations.assignment.strategies import STRATEGIES, StrategyUnknown, choose_device, find_strategy, least_loaded

SESSION = SessionFacts(id=1, owner=1, running=0, limit=10)
EMPTY = Candidate(1, "empty", slots=4)
HALF = Candidate(2, "half", slots=4, taken=2, mine=0)
MINE = Candidate(3, "mine", slots=100, taken=10, mine=10)
WAITED_FOR = Candidate(4, "waited-for", slots=4, taken=0, waiting=8)


@pytest.mark.parametrize(
    ("name", "candidates", "chosen"),
    [
        ("least_loaded", [HALF, MINE, EMPTY], EMPTY),
        ("least_loaded", [HALF, MINE], MINE),
        ("least_loaded", [HALF, WAITED_FOR], HALF),
        ("spread", [MINE, HALF], HALF),
        ("spread", [MINE, HALF, EMPTY], EMPTY),
        ("pack", [EMPTY, MINE, HALF], HALF),
    ],
)  # fmt: skip
def test_a_strategy_prefers(name, candidates, chosen):
    assert find_strategy(name)(candidates, {}, SESSION) is chosen


@pytest.mark.parametrize("name", STRATEGIES)
def test_of_equals_the_first_by_name_is_taken_whatever_their_order(name):
    equals = [Candidate(number, name, slots=4, taken=1) for number, name in enumerate("cab")]
    assert find_strategy(name)(equals, {}, SESSION).name == "a"


def test_an_installation_may_have_its_own():
    assert find_strategy("constellations.assignment.strategies.least_loaded") is least_loaded


@pytest.mark.parametrize("name", ["fastest", "no.such.module", "constellations.assignment.strategies.missing", "..x", ""])
def test_what_is_neither_a_name_nor_a_path_is_refused(name):
    with pytest.raises(StrategyUnknown, match="neither one of least_loaded, spread, pack nor the dotted path"):
        find_strategy(name)


def test_what_is_no_function_is_refused():
    with pytest.raises(StrategyUnknown, match="is no function"):
        find_strategy("constellations.assignment.strategies.STRATEGIES")


def breaks(candidates, task, session):
    raise RuntimeError("no idea")


@pytest.mark.parametrize("strategy", [breaks, lambda *asked: EMPTY, lambda *asked: None])
def test_a_strategy_that_breaks_or_names_another_stops_no_work(strategy, caplog):
    assert choose_device(strategy, [HALF, MINE], {}, SESSION) is MINE
    assert "the strategy" in caplog.text


def test_nobody_is_asked_where_there_is_no_choice():
    assert choose_device(breaks, [HALF], {}, SESSION) is HALF
