"""A device that dials in: who is let in, what goes on, and what comes too late."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.links import dialled, rows
from agents.links.dialled import Dialling, DialRefused, let_in, take_late
from agents.links.holders import release_link, take_link
from agents.models import Device, DeviceCall, DeviceLink, Event
from agents.services.devices import device_create, device_retire, device_take_offline
from agents.streams.verify import verify_database
from agents.tools.calls import Outcome

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = Dialling("first", "client 1", "10.0.0.1:5", {"os": "Linux"})
OTHER = replace(FIRST, instance="other")


def taken(device: int, fence: int, *calls) -> None:
    """The calls are asked for, and the holder with that fence has taken them."""
    assert rows.write_wishes(rows.Wishes(calls=list(calls))) == []
    assert [call.key for call in rows.take_due({device: fence}, {}).begin] == [call.key for call in calls]


def outcome_of(key: int) -> dict | None:
    return DeviceCall.objects.values_list("outcome", flat=True).get(pk=key)


def test_a_device_that_dials_in_is_connected_with_what_it_says_of_itself(far):
    found = let_in(far.pk, FIRST)
    far.refresh_from_db()
    assert (far.state, far.os, far.facts) == ("connected", "Linux", {"os": "Linux", "instance": "first"})
    link = DeviceLink.objects.get(device=far)
    assert (link.fence, link.peer, link.version) == (found.fence, "10.0.0.1:5", "client 1")
    assert list(verify_database()) == []


def test_the_same_client_takes_its_connection_again_and_another_waits_until_it_is_silent(far):
    first = let_in(far.pk, FIRST)
    again = let_in(far.pk, FIRST)
    assert again.fence > first.fence
    with pytest.raises(DialRefused) as refused:
        let_in(far.pk, OTHER)
    assert refused.value.reason_code == "already_connected"
    assert DeviceLink.objects.get(device=far).fence == again.fence
    release_link(far.pk, again.fence)
    assert let_in(far.pk, OTHER).fence > again.fence
    DeviceLink.objects.filter(device=far).update(heard_at=far.created_at - timedelta(seconds=60))
    assert let_in(far.pk, FIRST).device["state"] == "connected"
    states = Event.objects.filter(stream_id=far.pk, type="state_changed").count()
    assert states == 2, "it has been connected all the time"


def test_calls_go_on_that_the_client_knows_and_come_again_that_it_has_never_got(far, make_call):
    first = let_in(far.pk, FIRST)
    taken(far.pk, first.fence, make_call(1), make_call(2))
    rows.write_ends(rows.Ends(said=[(1, rows.OUTPUT, "abc"), (1, rows.OUTPUT, "de")]))
    again = let_in(far.pk, replace(FIRST, known=frozenset({1, 77})))
    assert [(call.key, printed) for call, printed in again.going_on] == [(1, 5)]
    assert [call.key for call in again.never_got] == [2]
    assert rows.write_ends(rows.Ends(outcomes=[(1, first.fence, Outcome("completed"))])) == [1], "the fence has grown"
    assert rows.write_ends(rows.Ends(outcomes=[(1, again.fence, Outcome("completed"))])) == []


def test_calls_of_a_client_that_was_started_anew_are_lost(far, make_call):
    first = let_in(far.pk, FIRST)
    taken(far.pk, first.fence, make_call(1))
    release_link(far.pk, first.fence)
    found = let_in(far.pk, OTHER)
    assert (found.going_on, found.never_got) == ([], [])
    assert outcome_of(1) == {"outcome": "lost", "error": dialled.RESTARTED}


def test_a_result_is_foreign_stored_or_late(far, make_call):
    near = device_create("near", kind="remote", by="system")
    fence = let_in(far.pk, FIRST).fence
    taken(far.pk, fence, make_call(1), make_call(2), make_call(3))
    rows.write_ends(rows.Ends(outcomes=[(2, fence, Outcome("completed"))]))
    rows.lose_calls(far.pk, "gone")
    done = Outcome("completed", exit_code=0)
    assert take_late(near.pk, 1, done) == take_late(far.pk, 99, done) == "foreign"
    assert take_late(far.pk, 2, done) == "stored"
    assert take_late(far.pk, 3, Outcome("lost")) == "stored"
    assert take_late(far.pk, 1, done) == "late"
    told = Event.objects.get(stream_id=far.pk, type="late_result").data
    assert (told["call"], told["outcome"], told["counted"]) == (1, "completed", "lost")
    assert outcome_of(1)["outcome"] == "lost"


def test_devices_that_are_not_to_come_are_told_why(far):
    local = device_create("here", by="system")
    for device, code in ((local, "not_remote"), (far, "")):
        if not code:
            continue
        with pytest.raises(DialRefused) as refused:
            let_in(device.pk, FIRST)
        assert refused.value.reason_code == code
    let_in(far.pk, FIRST)
    device_take_offline(far.pk, by="user:1", reason="moved")
    with pytest.raises(DialRefused, match="moved") as refused:
        let_in(far.pk, FIRST)
    assert refused.value.reason_code == "taken_offline"
    device_retire(far.pk, by="user:1")
    with pytest.raises(DialRefused) as refused:
        let_in(far.pk, FIRST)
    assert refused.value.reason_code == "retired"


def test_the_same_refusal_stands_in_the_history_once(far):
    for _ in range(3):
        dialled.refuse_dial(far.pk, "version 99")
    assert Device.objects.get(pk=far.pk).reason == "version 99"
    assert Event.objects.filter(stream_id=far.pk, type="state_changed").count() == 2


def test_who_has_lost_a_device_cannot_say_that_it_is_gone(far):
    first = let_in(far.pk, FIRST)
    take_link(far.pk, steal=True)
    assert not dialled.lose_dialled(far.pk, first.fence, "gone")
    assert Device.objects.get(pk=far.pk).state == "connected"
    assert dialled.wants_no_more([far.pk]) == {}
