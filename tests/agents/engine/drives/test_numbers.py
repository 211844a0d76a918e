"""Row numbers: those that came with the lease, then those that the stream has not counted yet; none is given out twice."""

from agents import ids
from agents.engine.drives.numbers import REFILL, RowNumbers
from agents.engine.leases import LeasedSession
from agents.streams.turn import Batch

STREAM = 7


def taken(numbers, count):
    return [numbers.take() - ids.row_id(STREAM, 0) for _ in range(count)]


def test_numbers_that_came_with_the_lease_are_used_first_and_then_those_after_them():
    numbers = RowNumbers(LeasedSession(STREAM, 1, 10, 12))
    assert taken(numbers, 4) == [11, 12, 13, 14]
    assert numbers.beyond == 2


def test_a_batch_brings_new_numbers_when_few_are_left():
    numbers = RowNumbers(LeasedSession(STREAM, 1, 10, 12))
    taken(numbers, 4)
    assert numbers.wanted() == 2 + REFILL
    numbers.settle(Batch(STREAM, 0, rows=numbers.wanted(), rows_after=14 + REFILL))
    assert (taken(numbers, 2), numbers.beyond) == ([15, 16], 0)
    assert numbers.unused() == (16, 14 + REFILL)
    assert numbers.wanted() == 0


def test_numbers_of_somebody_else_are_left_out():
    numbers = RowNumbers(LeasedSession(STREAM, 1, 0, 0))
    numbers.known = 40
    assert taken(numbers, 2) == [41, 42]
