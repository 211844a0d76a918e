"""Tokens of devices: enrolment once, rotation, revocation, and what each of them opens."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed

from agents.access.authentication import authenticate_token
from agents.links.holders import renew_links, take_link
from agents.links.moves import move_device_through
from agents.masks.masking import MARK
from agents.masks.values import mask_text
from agents.models import Device, DeviceToken, Event
from agents.services.device_tokens import (
    KEPT,
    EnrolmentRefused,
    NotEnrolled,
    device_token_rotate,
    device_tokens_revoke,
    enrol,
    enrolment_create,
    find_device,
)
from agents.services.devices import NoSuchDevice, device_create, device_retire
from tests.agents.conftest import make_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def remote():
    return device_create("far", kind="remote", by="user:1").pk


def enrolled(remote) -> str:
    return enrol(enrolment_create(remote, by="user:1")[1])


def test_an_enrolment_token_gives_one_device_token(remote, verified):
    row, text = enrolment_create(remote, by="user:1")
    assert text not in str(row.__dict__)
    token = enrol(text)
    assert find_device(token) == remote
    with pytest.raises(EnrolmentRefused, match="still good"):
        enrol(token)
    with pytest.raises(EnrolmentRefused, match="still good"):
        enrol(text)
    told = Event.objects.filter(stream_id=remote).order_by("seq").values_list("type", "by")
    assert list(told) == [
        ("device_created", "user:1"), ("device_enrolment_issued", "user:1"), ("device_enrolled", f"device:{remote}"),
    ]  # fmt: skip
    assert not any(text in str(event.data) or token in str(event.data) for event in Event.objects.all())


def test_an_enrolment_token_ends_with_its_time_and_with_the_next_one(remote):
    _, first = enrolment_create(remote, by="user:1")
    row, second = enrolment_create(remote, by="user:1")
    with pytest.raises(EnrolmentRefused):
        enrol(first)
    DeviceToken.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(EnrolmentRefused):
        enrol(second)
    assert find_device(second) is None


def test_a_rotation_takes_the_place_of_the_token_when_it_is_first_used(remote):
    old = enrolled(remote)
    assert find_device(old) == remote
    _, unused = device_token_rotate(remote, by="user:1")
    _, fresh = device_token_rotate(remote, by="user:1")
    assert find_device(unused) is None, "the rotation that counts is the last"
    assert find_device(old) == remote
    assert find_device(fresh) == remote
    assert find_device(old) is None


def test_revoked_tokens_open_nothing_and_end_the_connection(remote):
    token = enrolled(remote)
    fence = take_link(remote)
    move_device_through(remote, ("dial", "accepted"))
    assert device_tokens_revoke(remote, by="user:1") == 1
    assert find_device(token) is None
    assert Device.objects.get(pk=remote).state == "disconnected"
    assert renew_links({remote: fence}) == {remote}, "who holds it has lost it"


def test_tokens_of_users_and_of_devices_open_nothing_of_each_other(remote, operator):
    _, users = make_token(operator, "read", "devices")
    token = enrolled(remote)
    assert find_device(users) is None
    with pytest.raises(AuthenticationFailed):
        authenticate_token(token)
    for text in ("", "ord_", "ord_" + "0" * 64, "ord_" + "é" * 20, "ord_" + "0" * 5_000):
        assert find_device(text) is None


def test_only_remote_devices_that_are_not_retired_have_tokens(remote, device):
    with pytest.raises(NotEnrolled, match="laptop is local"):
        enrolment_create(device.pk, by="user:1")
    token = enrolled(remote)
    device_retire(remote, by="user:1")
    assert find_device(token) is None
    with pytest.raises(NotEnrolled, match="far is retired"):
        device_token_rotate(remote, by="user:1")
    with pytest.raises(NoSuchDevice):
        enrolment_create(10**9, by="user:1")


def test_old_tokens_do_not_heap_up(remote):
    for _ in range(KEPT + 5):
        enrolment_create(remote, by="user:1")
    assert DeviceToken.objects.count() == KEPT + 1


def test_use_is_noted_now_and_then(remote):
    token = enrolled(remote)
    find_device(token)
    first = DeviceToken.objects.get(purpose="device").last_used
    find_device(token)
    assert DeviceToken.objects.get(purpose="device").last_used == first
    DeviceToken.objects.update(last_used=first - timedelta(seconds=61))
    find_device(token)
    assert DeviceToken.objects.get(purpose="device").last_used > first - timedelta(seconds=61)


@pytest.mark.parametrize("purpose", ["enrolment", "device"])
def test_their_texts_are_masked_and_their_names_are_not(remote, purpose):
    row, text = (enrolment_create if purpose == "enrolment" else device_token_rotate)(remote, by="user:1")
    assert set(mask_text(text)) == {MARK}
    assert mask_text(row.token_key) == row.token_key


def test_of_many_who_use_one_enrolment_token_at_once_one_enrols(remote):
    _, text = enrolment_create(remote, by="user:1")
    begin, ends = threading.Barrier(6), []

    def exchange() -> None:
        begin.wait(20)
        try:
            ends.append(enrol(text))
        except EnrolmentRefused:
            ends.append("")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=exchange) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(ends) == 6
    assert len([each for each in ends if each]) == 1
    assert DeviceToken.objects.filter(purpose="device").count() == 1
