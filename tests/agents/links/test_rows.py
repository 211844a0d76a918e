"""Calls as rows: each is taken once, ends once, and only for whom it is whose."""

from __future__ import annotations

import pytest

from agents.links import holders, rows
from agents.links.rows import Ends, Wishes
from agents.models import DeviceCall, DeviceCallMessage
from agents.tools.calls import Outcome
from tests.agents.links.conftest import FENCE

pytestmark = pytest.mark.django_db(transaction=True)


def place(*calls):
    return rows.write_wishes(Wishes(calls=list(calls)))


def test_a_call_goes_to_whoever_holds_its_device_and_its_outcome_comes_back(make_call, held, far):
    assert place(make_call(7, blackboard={"a": 1}, scope="5")) == []
    due = rows.take_due(held, {})
    (call,) = due.begin
    assert (call.key, call.tool, call.arguments, call.scope, call.blackboard) == (7, "noop", {"result": 7}, "5", {"a": 1})
    assert (call.device["name"], call.timeout) == ("far", 5.0)
    assert rows.take_due(held, {7: 0}).begin == []
    assert rows.write_ends(Ends(outcomes=[(7, held[far.pk], Outcome("completed", result={"x": 1}))])) == []
    assert rows.read_news({7: 0}).ended == {7: Outcome("completed", result={"x": 1})}


def test_what_a_session_wants_that_somebody_else_owns_by_now_is_not_made(make_call, held):
    assert place(make_call(7, fence=FENCE - 1), make_call(8)) == [7]
    assert [call.key for call in rows.take_due(held, {}).begin] == [8]


def test_who_holds_a_device_no_more_takes_nothing_and_ends_nothing(make_call, held, far):
    place(make_call(7), make_call(8))
    rows.take_due({far.pk: held[far.pk]}, {})
    newer = holders.take_link(far.pk)
    assert newer > held[far.pk]
    place(make_call(9))
    assert rows.take_due(held, {}).begin == []
    assert [call.key for call in rows.calls_left_by_others(far.pk, newer)] == [7, 8]
    assert rows.write_ends(Ends(outcomes=[(7, held[far.pk], Outcome("completed"))])) == [7]
    assert rows.write_ends(Ends(outcomes=[(7, newer, Outcome("failed", error="no"))])) == []
    assert rows.read_news({7: 0}).ended[7].error == "no"


def test_an_end_that_comes_after_the_device_was_lost_counts_for_nothing(make_call, held, far):
    place(make_call(7), make_call(8))
    rows.take_due(held, {})
    assert sorted(rows.lose_calls(far.pk, "3 heartbeats are missing")) == [7, 8]
    assert rows.write_ends(Ends(outcomes=[(7, held[far.pk], Outcome("completed"))])) == [7]
    assert rows.read_news({7: 0, 8: 0}).ended[7] == Outcome("lost", error="3 heartbeats are missing")


def test_a_cancel_reaches_a_call_that_runs_and_ends_one_that_waits(make_call, held):
    place(make_call(7))
    rows.take_due(held, {})
    place(make_call(8))
    rows.write_wishes(Wishes(cancels=[(7, FENCE), (8, FENCE), (9, FENCE)]))
    due = rows.take_due(held, {7: 0})
    assert (due.begin, due.cancel) == ([], [7])
    assert rows.read_news({8: 0}).ended[8].outcome == "cancelled"


def test_a_cancel_by_an_owner_whose_session_has_changed_hands_does_nothing(make_call, held, session):
    place(make_call(7))
    rows.take_due(held, {})
    (adopted,) = rows.adopt_calls([7, 8], session.pk, FENCE + 1)
    assert (adopted.key, adopted.fence, adopted.arguments) == (7, FENCE + 1, {"result": 7})
    rows.write_wishes(Wishes(cancels=[(7, FENCE)]))
    assert rows.take_due(held, {7: 0}).cancel == []
    rows.write_wishes(Wishes(cancels=[(7, FENCE + 1)]))
    assert rows.take_due(held, {7: 0}).cancel == [7]


def test_messages_go_both_ways_in_their_order_and_are_read_once(make_call, held, far):
    place(make_call(7), make_call(8))
    rows.take_due(held, {})
    rows.write_ends(Ends(said=[(7, "output", "one "), (8, "output", "other"), (7, "output", "two"), (7, "plan", {"n": 1})]))
    news = rows.read_news({7: 0, 8: 0})
    assert [said for said in news.said if said[0] == 7] == [(7, "output", "one "), (7, "output", "two"), (7, "plan", {"n": 1})]
    assert rows.read_news(news.last).said == []
    rows.write_wishes(Wishes(told=[(7, "decided", {"yes": True})]))
    due = rows.take_due(held, {7: 0, 8: 0})
    assert due.told == [(7, "decided", {"yes": True})]
    assert rows.take_due(held, {7: due.last[7], 8: 0}).told == []


def test_what_a_call_says_after_its_end_is_not_kept(make_call, held, far):
    place(make_call(7))
    rows.take_due(held, {})
    rows.write_ends(Ends(outcomes=[(7, held[far.pk], Outcome("completed"))]))
    rows.write_ends(Ends(said=[(7, "output", "late")]))
    assert DeviceCallMessage.objects.count() == 0


def test_another_try_of_a_call_begins_anew(make_call, held, far):
    place(make_call(7))
    rows.take_due(held, {})
    rows.write_ends(Ends(said=[(7, "output", "first")]))
    rows.write_ends(Ends(outcomes=[(7, held[far.pk], Outcome("failed", error="busy", error_kind="transient"))]))
    place(make_call(7))
    assert (DeviceCall.objects.get().state, rows.read_news({7: 0}).said) == ("waiting", [])
    assert [call.key for call in rows.take_due(held, {}).begin] == [7]
