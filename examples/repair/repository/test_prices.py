"""What a basket costs, by example."""

import unittest

from prices import total


class TotalTest(unittest.TestCase):
    def test_a_basket_costs_the_sum_of_its_prices(self):
        assert total([1.5, 2.5]) == 4.0

    def test_a_discount_is_taken_off(self):
        assert total([10, 20], discount=0.1) == 27.0


if __name__ == "__main__":
    unittest.main()
