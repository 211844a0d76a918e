"""What is kept of how devices were."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from agents.links.holders import renew_links, take_link
from agents.links.kept_readings import KEPT, forget_old_readings, keep_readings, kept_readings, span_now
from agents.links.moves import move_device_through
from agents.models import Device, DeviceLink, DeviceReading
from agents.services.devices import device_create

pytestmark = pytest.mark.django_db(transaction=True)


def connected(name: str) -> int:
    """A device that is connected, and was heard of now."""
    device = device_create(name, kind="remote", max_concurrent=4, by="system").pk
    fence = take_link(device)
    move_device_through(device, ("dial", "accepted"))
    renew_links({device: fence}, {device: {"cpu_percent": 7.0, "memory_percent": None}})
    return device


def test_one_reading_is_kept_in_each_span_of_time_whoever_keeps_it():
    device = connected("far")
    Device.objects.filter(pk=device).update(used=3)
    for span in (7, 7, 8):
        keep_readings(span)
    said = {"cpu_percent": 7.0, "memory_percent": None}
    rows = DeviceReading.objects.order_by("span").values_list("device", "span", "readings", "used", "max_concurrent")
    assert list(rows) == [(device, 7, said, 3, 4), (device, 8, said, 3, 4)]


def test_what_was_not_heard_of_lately_has_no_reading():
    silent, gone, heard = connected("silent"), connected("gone"), connected("heard")
    DeviceLink.objects.filter(device=silent).update(heard_at=Now() - timedelta(minutes=2))
    move_device_through(gone, ("lost",))
    keep_readings(7)
    assert list(DeviceReading.objects.values_list("device", flat=True)) == [heard]


def test_many_devices_are_one_statement():
    for number in range(5):
        connected(f"far-{number}")
    with CaptureQueriesContext(connection) as asked:
        keep_readings(7)
    assert DeviceReading.objects.count() == 5
    assert sum("agents_devicereading" in query["sql"] for query in asked.captured_queries) <= 1


def test_readings_go_after_a_day():
    device = connected("far")
    for span in (1, 2):
        keep_readings(span)
    DeviceReading.objects.filter(span=1).update(at=Now() - KEPT - timedelta(seconds=1))
    assert forget_old_readings() == 1
    assert list(DeviceReading.objects.values_list("device", "span")) == [(device, 2)]


def test_what_is_told_of_a_device_is_at_most_a_day():
    device = connected("far")
    now = span_now()
    for ago in (290, 280, 1, 0):
        keep_readings(now - ago)
    assert kept_readings(device).count() == 3
