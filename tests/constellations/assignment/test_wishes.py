"""Which devices come into question: by what a task wishes for, for whom they are, and whether they are offered."""

import pytest

from constellations.assignment.wishes import NOT_ALLOWED, NOT_FITTING, NOT_OFFERED, Wish, why_not, wish_of

CALLS = {"tool": "noop", "arguments": {}, "phases": []}
NOTHING = {"wanted_device": "", "device_type": "", "capabilities": [], "not_device": [], **CALLS}
ANNA, BERT = 1, 2


def device(**more) -> dict:
    return {"name": "pi", "kind": "local", "tools": [], "type": "arm", "capabilities": ["camera"], "is_offered": True, **more}


@pytest.mark.parametrize(
    ("wish", "offered", "users", "why"),
    [
        ({}, True, None, ""),
        ({}, False, None, NOT_OFFERED),
        ({"not_device": ["laptop"]}, False, None, NOT_OFFERED),
        ({"wanted_device": "pi"}, False, None, ""),
        ({"device_type": "arm"}, False, None, ""),
        ({"capabilities": ["camera"]}, False, None, ""),
        ({"capabilities": ["gpu"]}, True, None, NOT_FITTING),
        ({"wanted_device": "laptop"}, True, None, NOT_FITTING),
        ({"not_device": ["pi"]}, True, None, NOT_FITTING),
        ({}, True, {ANNA}, ""),
        ({}, True, {BERT}, NOT_ALLOWED),
        ({"wanted_device": "pi"}, False, {BERT}, NOT_ALLOWED),
        ({"wanted_device": "pi"}, False, set(), NOT_ALLOWED),
        ({}, False, {BERT}, NOT_ALLOWED),
    ],
)  # fmt: skip
def test_a_device_comes_into_question_or_not(wish, offered, users, why):
    assert why_not(device(is_offered=offered), wish_of({**NOTHING, **wish}), users, ANNA) == why


def test_tasks_that_wish_for_the_same_wait_together():
    assert wish_of({**NOTHING, "capabilities": ["a", "b"]}) == Wish("", "", ("a", "b"), ())
    assert len({wish_of({**NOTHING, "capabilities": ["a"]}) for _ in range(3)}) == 1
