"""Files that are not read hold none of the tests that were asked for."""

import pytest

from tests.asked_files import may_hold_tests

FAST = "not browser and not attack"
PAGE = "import pytest\n\npytestmark = [pytest.mark.browser, pytest.mark.django_db]\n\n\ndef test_a(): ...\n"
OVER_LINES = (
    "pytestmark = [\n    pytest.mark.skipif(not there(), reason='none'),\n    pytest.mark.attack,\n]\n\n\ndef test_a(): ...\n"
)
ONE_OF_TWO = "def test_a(): ...\n\n\n@pytest.mark.attack\ndef test_b(): ...\n"
ONE_ROW = "CASES = [1, pytest.param(2, marks=pytest.mark.attack)]\npytestmark = pytest.mark.django_db\n"
ONE_DATABASE = "pytestmark = [pytest.mark.kill, pytest.mark.one_database]\n"


@pytest.mark.parametrize(
    ("text", "expression", "read"),
    [
        (PAGE, "browser", True),
        (PAGE, "attack or browser", True),
        (PAGE, "attack", False),
        (PAGE, "attack or kill", False),
        (PAGE, FAST, False),
        (PAGE, "not attack", True),
        (OVER_LINES, "attack or kill", True),
        (OVER_LINES, FAST, False),
        (ONE_OF_TWO, FAST, True),
        (ONE_OF_TWO, "attack or kill", True),
        (ONE_OF_TWO, "browser", False),
        (ONE_ROW, FAST, True),
        (ONE_ROW, "attack", True),
        (PAGE, "", True),
        (PAGE, "not (browser or attack)", True),
        (PAGE, "attack and not kill", True),
    ],
)
def test_a_file_is_read_where_one_of_its_tests_may_be_asked_for(text, expression, read):
    assert may_hold_tests(text, expression) is read


def test_what_is_left_out_on_a_second_database_is_not_read_there():
    assert may_hold_tests(ONE_DATABASE, "not browser")
    assert not may_hold_tests(ONE_DATABASE, "not browser", left_out=("one_database",))
