"""Slots: never more than a device has, in the order of the queue, none lost."""

import pytest
from django.db import transaction

from agents.models import Device, SlotRequest
from agents.services.sessions import session_create
from agents.streams import door, fold, statements
from agents.streams.slots import QueuePlace, share_slots
from agents.streams.turn import Batch, PendingEvent, SlotDemand

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sessions(operator):
    return [session_create(operator, f"s{n}", by="user:1") for n in range(3)]


def settle(session, device, starts=0, frees=0, want=None) -> Batch:
    """One commit of a session that starts and ends attempts on the device."""
    events = [PendingEvent("started", {}, "system", "2026-01-01T00:00:00.000000Z") for _ in range(starts)]
    head = fold.stream_head(session.pk)
    batch = Batch(session.pk, head, frees={device.pk: frees} if frees else {}, starts={device.pk: events} if starts else {})
    if want is not None:
        batch.wants = {device.pk: want}
    with transaction.atomic():
        written, _ = door.write_batches(statements.current_store(), statements.raw_cursor(), [batch])
    assert written == [batch]
    return batch


def used(device) -> tuple[int, int]:
    device.refresh_from_db()
    return device.used, device.queued


def test_starts_take_slots_and_ends_give_them_back(sessions, device):
    batch = settle(sessions[0], device, starts=3)
    assert (batch.admitted, batch.free, used(device)) == ({device.pk: 3}, {device.pk: 1}, (3, 0))
    settle(sessions[0], device, frees=3)
    assert used(device) == (0, 0)


def test_only_as_many_start_as_there_are_slots_and_the_rest_queues(sessions, device):
    batch = settle(sessions[0], device, starts=6)
    assert batch.admitted == {device.pk: 4}
    assert used(device) == (4, 1)
    assert SlotRequest.objects.get().wanted == 2
    assert fold.stream_head(sessions[0].pk) == 5


def test_a_freed_slot_is_granted_to_the_first_in_the_queue_and_stays_counted(sessions, device):
    settle(sessions[0], device, starts=4)
    settle(sessions[1], device, starts=1, want=SlotDemand(0, 1, 0))
    batch = settle(sessions[0], device, frees=1)
    assert batch.woken == {sessions[1].pk}
    assert used(device) == (4, 1)
    taken = settle(sessions[1], device, starts=1, want=SlotDemand(0, 1, 0))
    assert taken.admitted == {device.pk: 1}
    assert used(device) == (4, 0)


def test_priority_goes_before_age(sessions, device):
    settle(sessions[0], device, starts=4)
    settle(sessions[1], device, starts=1, want=SlotDemand(0, 1, 0))
    settle(sessions[2], device, starts=1, want=SlotDemand(0, 3, 0))
    assert settle(sessions[0], device, frees=1).woken == {sessions[2].pk}


def test_who_holds_fewer_slots_goes_first_among_equals(sessions, device):
    settle(sessions[0], device, starts=4)
    settle(sessions[1], device, starts=1, want=SlotDemand(0, 1, 3))
    settle(sessions[2], device, starts=1, want=SlotDemand(0, 1, 0))
    assert settle(sessions[0], device, frees=1).woken == {sessions[2].pk}


def test_a_session_that_wants_nothing_any_more_passes_its_grant_on(sessions, device):
    settle(sessions[0], device, starts=4)
    settle(sessions[1], device, starts=1, want=SlotDemand(0, 3, 0))
    settle(sessions[2], device, starts=1, want=SlotDemand(0, 1, 0))
    settle(sessions[0], device, frees=1)
    assert settle(sessions[1], device, want=SlotDemand()).woken == {sessions[2].pk}
    assert used(device) == (4, 1)


def test_a_device_that_drains_gets_nothing_new(sessions, device):
    Device.objects.filter(pk=device.pk).update(state="draining")
    batch = settle(sessions[0], device, starts=1)
    assert batch.admitted == {device.pk: 0}
    settle(sessions[0], device, want=SlotDemand())
    assert used(device) == (0, 0)


def test_nothing_is_granted_beyond_what_is_wanted():
    places = [QueuePlace(1, 1, 0, 1, 0), QueuePlace(2, 1, 0, 1, 0)]
    assert share_slots(places, 10) == 2
    assert [place.granted for place in places] == [1, 1]


def test_equal_sessions_share_alike():
    places = [QueuePlace(1, 1, 0, 10, 0), QueuePlace(2, 1, 0, 10, 0)]
    share_slots(places, 6)
    assert [place.granted for place in places] == [3, 3]
