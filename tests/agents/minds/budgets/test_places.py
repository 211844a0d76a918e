"""What a try counts for, what budgets say of it, and when a profile has room again. Pure."""

from __future__ import annotations

import pytest

from agents.minds.budgets.places import (
    Account,
    BudgetRule,
    Counted,
    Limits,
    Need,
    Place,
    Traffic,
    judge_need,
    say_amount,
    say_place,
)

FIFTY = Need(50, None)
DAY = "2026-11-22"
ACCOUNT = Account((7, 3), 2, 9)


def budget(scope="session", subject=None, tokens=100, micros=None, per="total", then="stop") -> BudgetRule:
    return BudgetRule(1, scope, subject, tokens, micros, per, then)


def judged(rule, need=FIFTY, **counted):
    places = {Place(*key): found for key, found in counted.get("at", {}).items()}
    return judge_need(need, ACCOUNT, DAY, [rule], places)


def test_a_try_counts_for_its_session_and_all_that_it_was_started_from():
    places = set(ACCOUNT.places(DAY))
    assert {Place("session", 7, ""), Place("session", 3, ""), Place("session", 3, DAY), Place("user", 2, DAY)} <= places
    assert {Place("installation", 0, ""), Place("task", 9, "")} <= places
    assert Place("task", 9, DAY) not in places


@pytest.mark.parametrize(("used", "fits"), [(0, True), (50, True), (51, False)])
def test_a_budget_has_room_up_to_its_last_token(used, fits):
    found = judged(budget(), at={("session", 7, ""): Counted(used_tokens=used)})
    assert (found.short is None) == fits


def test_the_budget_of_a_session_above_counts_too():
    found = judged(budget(), at={("session", 3, ""): Counted(used_tokens=80)})
    assert (found.short["key"], found.short["needed"], found.short["left"]) == (3, 50, 20)


def test_a_budget_of_one_user_is_nobody_elses():
    assert judged(budget("user", subject=4, tokens=1)).short is None
    assert judged(budget("user", subject=2, tokens=1)).short["scope"] == "user"


def test_a_day_has_its_own_account():
    rule = budget("user", per="day")
    assert judged(rule, at={("user", 2, ""): Counted(used_tokens=1_000)}).short is None
    assert judged(rule, at={("user", 2, DAY): Counted(used_tokens=90)}).short["period"] == DAY


def test_money_counts_only_where_prices_are_known():
    rule = budget(tokens=None, micros=10)
    assert judged(rule, Need(50, None)).short is None
    assert judged(rule, Need(50, 11)).short["unit"] == "micros"


def test_what_people_added_is_part_of_the_budget():
    counted = Counted(used_tokens=100, raised_tokens=50)
    assert judged(budget(), at={("session", 7, ""): counted}).short is None


def test_a_budget_of_a_call_looks_at_nothing_else():
    assert judged(budget("call", tokens=49)).short["left"] == 49
    assert judged(budget("call", tokens=50), at={("session", 7, ""): Counted(used_tokens=9_999)}).short is None


def test_four_fifths_of_a_budget_are_told_once():
    (warning,) = judged(budget(), at={("session", 7, ""): Counted(used_tokens=30)}).warnings
    assert warning[:3] == (Place("session", 7, ""), "tokens", 100)
    assert judged(budget(), at={("session", 7, ""): Counted(used_tokens=30, warned_tokens=100)}).warnings == []
    assert judged(budget(), at={("session", 7, ""): Counted(used_tokens=29)}).warnings == []


def test_calls_in_flight_wait_for_one_to_end():
    assert Traffic([], 2).wait_s(Limits(None, None, 2), 10, 1000.0) is None
    assert Traffic([], 1).wait_s(Limits(None, None, 2), 10, 1000.0) == 0


def test_requests_of_a_minute_wait_until_the_oldest_is_over():
    traffic = Traffic([(950.0, 1), (990.0, 1)], 0)
    assert traffic.wait_s(Limits(2, None, None), 10, 1000.0) == 10
    assert traffic.wait_s(Limits(1, None, None), 10, 1000.0) == 50
    assert traffic.wait_s(Limits(3, None, None), 10, 1000.0) == 0


def test_tokens_of_a_minute_wait_until_enough_are_over():
    traffic = Traffic([(950.0, 60), (990.0, 30)], 0)
    assert traffic.wait_s(Limits(None, 100, None), 10, 1000.0) == 0
    assert traffic.wait_s(Limits(None, 100, None), 20, 1000.0) == 10
    assert traffic.wait_s(Limits(None, 100, None), 80, 1000.0) == 50


def test_more_than_a_minutes_worth_goes_where_nothing_else_is():
    assert Traffic([], 0).wait_s(Limits(None, 100, None), 500, 1000.0) == 0
    assert Traffic([(990.0, 1)], 0).wait_s(Limits(None, 100, None), 500, 1000.0) == 50


def test_amounts_and_places_are_said_in_words():
    assert say_amount("tokens", 12_000) == "12,000 tokens"
    assert say_amount("micros", 1_250_000) == "1.25 of money"
    assert say_place({"scope": "user", "key": 2, "period": DAY}) == f"user 2 on {DAY}"
    assert say_place({"scope": "installation", "key": 0, "period": ""}) == "the installation"
