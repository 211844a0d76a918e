"""Filters in the admin's addresses: what is hidden on a page is not guessed letter by letter, and no number is a fault."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import models

from agents.admin.readonly import ReadOnlyAdmin
from agents.models import Device
from agents.services.devices import device_create
from tests.conftest import person
from tests.constellations.admin.admin_client import Staff

pytestmark = [pytest.mark.attack, pytest.mark.django_db]

HUGE = "9" * 40
READ_ONLY = {model: shown for model, shown in admin.site._registry.items() if isinstance(shown, ReadOnlyAdmin)}


@pytest.fixture
def staff(roles) -> Staff:
    return Staff(person("zq-viewer", "viewer"))


def listed(staff: Staff, model: type[models.Model], /, **query: str):
    meta = model._meta
    return staff.client.get(f"/admin/{meta.app_label}/{meta.model_name}/", query)


@pytest.mark.parametrize(
    "guess", ["limits__seconds", "limits__seconds__lt", "limits__contains", "limits__has_key", "name__contains"]
)
def test_what_a_device_holds_is_not_asked_for_by_the_address(staff, guess):
    """A viewer read a value of a device's limits so, one comparison after the other."""
    device_create("laptop", limits={"seconds": 7}, by="system")
    assert Device.objects.filter(limits__seconds=7).exists()
    assert listed(staff, Device, **{guess: "7"}).status_code == 400


@pytest.mark.parametrize("model", READ_ONLY, ids=lambda model: model._meta.label_lower)
def test_an_address_filters_by_what_the_list_offers_and_nothing_else(staff, model):
    filters = READ_ONLY[model].list_filter
    offered = {getattr(each, "parameter_name", each) for each in filters} | {f"{each}__exact" for each in filters}
    for field in model._meta.concrete_fields:
        for lookup in (field.name, field.attname, f"{field.name}__exact", f"{field.name}__startswith", f"{field.name}__lt"):
            status = listed(staff, model, **{lookup: HUGE}).status_code
            assert status in ((200, 302) if lookup in offered else (400,)), lookup
