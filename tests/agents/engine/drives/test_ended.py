"""Outcomes of calls wait for a decision, and after it until that is durable."""

import pytest

from agents.engine.drives.ended import Ended
from agents.tools.calls import Outcome


@pytest.fixture
def ended():
    ended = Ended()
    ended.update({1: Outcome("completed"), 2: Outcome("failed"), 3: Outcome("lost")})
    return ended


def test_what_is_consumed_is_not_offered_again_and_stays_until_it_is_durable(ended):
    assert ended.consume(2).outcome == "failed"
    assert (ended.unconsumed(), list(ended)) == ([1, 3], [1, 2, 3])
    ended.settle()
    assert (ended.unconsumed(), list(ended)) == ([1, 3], [1, 3])


def test_what_is_decided_anew_is_offered_again(ended):
    ended.consume(1)
    ended.restore()
    ended.settle()
    assert ended.unconsumed() == [1, 2, 3]


def test_what_is_discarded_is_gone_at_once_and_may_be_gone_before(ended):
    ended.discard(3)
    ended.discard(3)
    assert ended.unconsumed() == [1, 2]
