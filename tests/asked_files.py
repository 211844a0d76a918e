"""Which files can hold tests that were asked for. Importing the others takes longer than some suites do."""

import re

OWN_MARKS = re.compile(r"^pytestmark = (?:\[\n.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)
"""What a file says of all its tests."""


def names_mark(text: str, mark: str) -> bool:
    return re.search(rf"\bmark\.{mark}\b", text) is not None


def may_hold_tests(text: str, expression: str, *, left_out: tuple[str, ...] = ()) -> bool:
    """Whether a file of this text can hold a test that `-m expression` keeps.

    Two forms are understood, "a or b" and "not a and not b"; of any other each file is read. `left_out` are marks
    whose tests are left out whatever the expression says.
    """
    unasked = set(left_out)
    if re.fullmatch(r"\w+( or \w+)*", expression) and "not" not in expression.split():
        if not any(names_mark(text, mark) for mark in expression.split(" or ")):
            return False
    elif re.fullmatch(r"not \w+( and not \w+)*", expression):
        unasked.update(part.removeprefix("not ") for part in expression.split(" and "))
    of_all = OWN_MARKS.search(text)
    return of_all is None or not any(names_mark(of_all[0], mark) for mark in unasked)
