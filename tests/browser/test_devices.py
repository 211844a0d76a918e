"""The page of devices, and the strip of a session's page: how they are, and what is asked of them by whoever may."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, PLAN, node, submit

pytestmark = pytest.mark.browser


@pytest.fixture
def keeper(anonymous, installation) -> Iterator[Page]:
    """A page of the superuser, who may make devices."""
    anonymous.goto(installation.login_link("root"))
    anonymous.goto("/devices/")
    return anonymous


def row(page: Page, name: str):
    return page.locator(f'#devices [data-device="{name}"]')


def opened(page: Page, name: str):
    row(page, name).get_by_role("button", name=name).click()
    dialog = page.locator("#device")
    expect(dialog).to_be_visible()
    return dialog


def make(page: Page, name: str, kind: str):
    page.get_by_role("button", name="New device").click()
    dialog = page.locator("#device")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.locator("[name=kind]").select_option(kind)
    return dialog


def test_a_local_device_is_connected_drained_taken_offline_and_retired(keeper):
    dialog = make(keeper, "bench-1", "local")
    dialog.get_by_label("Slots").fill("2")
    dialog.get_by_role("button", name="Make the device").click()
    expect(dialog.get_by_role("heading", level=2)).to_have_text("bench-1")
    dialog.get_by_role("button", name="Close").click()
    expect(row(keeper, "bench-1")).to_have_attribute("data-state", "connected", timeout=PATIENCE_MS)
    expect(row(keeper, "bench-1")).to_contain_text("0/2")

    dialog = opened(keeper, "bench-1")
    expect(dialog.locator(".chip")).to_have_text("Idle")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog.locator(".preview")).to_have_text("Nothing runs or waits there.")
    dialog.get_by_role("button", name="Drain: sure?").click()
    expect(dialog.locator(".chip")).to_have_text("Draining")
    dialog.get_by_role("button", name="Undrain").click()
    expect(dialog.locator(".chip")).to_have_text("Idle")
    dialog.get_by_role("button", name="Take offline").click()
    expect(dialog.locator(".chip")).to_have_text("Idle")
    dialog.get_by_role("button", name="Take offline: sure?").click()
    expect(dialog.locator(".chip")).to_have_text("Disconnected")
    dialog.get_by_text("History").click()
    expect(dialog.locator(".history li").first).to_contain_text("connected → disconnected (taken offline), by root")
    dialog.get_by_role("button", name="Retire").click()
    dialog.get_by_role("button", name="Retire: sure?").click()
    expect(dialog.locator(".chip")).to_have_text("Retired")
    dialog.get_by_role("button", name="Close").click()
    expect(row(keeper, "bench-1")).to_have_count(0)


def test_a_remote_device_is_made_changed_and_given_a_command_that_enrols_it(keeper, installation):
    dialog = make(keeper, "far-1", "remote")
    dialog.get_by_label("Used by").fill("user:nobody-here")
    dialog.get_by_role("button", name="Make the device").click()
    expect(dialog.locator(".problems")).to_contain_text("there is no user called nobody-here")
    dialog.get_by_label("Used by").fill("group:operator")
    dialog.get_by_role("button", name="Make the device").click()
    expect(dialog.get_by_role("heading", level=2)).to_have_text("far-1")
    expect(dialog).to_contain_text("to tasks that wish for it")
    dialog.get_by_role("button", name="Enrol").click()
    said = dialog.locator(".once").inner_text()
    command = rf"python manage.py device --server {installation.address} --token ore_[0-9a-f]{{64}}"
    assert re.fullmatch(command, said)
    dialog.get_by_text("Change", exact=True).click()
    dialog.get_by_label("Operating system").fill("linux")
    dialog.get_by_label("Metadata (JSON)").fill("no json")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".problems")).to_contain_text("Metadata (JSON) is no JSON")
    dialog.get_by_label("Metadata (JSON)").fill('{"rack": 7}')
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("dl")).to_contain_text("linux")
    expect(dialog.locator(".once")).to_have_count(0)
    dialog.get_by_role("button", name="Revoke its tokens").click()
    expect(dialog.locator(".told")).to_have_text("It has no token any more.")


def test_a_card_says_what_runs_draws_the_load_and_leads_to_what_is_asked(keeper, installation, tmp_path):
    make = 'from agents.services.devices import device_create; device_create("bench", max_concurrent=1, by="system")'
    installation.manage("shell", "--verbosity", "0", "--command", make)
    gate = tmp_path / "gate"
    wait = f"while ! test -e {gate}; do sleep 0.05; done"
    later = "".join(f"  - {{task_id: {name}, tool: noop, device: bench}}\n" for name in ("second", "third"))
    first = f"  - task_id: holds\n    device: bench\n    priority: HIGH\n    command: [sh, -c, '{wait}']\n"
    submit(keeper, f"name: load\ntasks:\n{first}{later}")
    keeper.wait_for_url(re.compile(r"/sessions/\d+/$"))
    session = re.search(r"/sessions/\d+/$", keeper.url)[0]
    expect(row(keeper, "bench")).to_contain_text("1/1, 2 wait", timeout=PATIENCE_MS)
    keeper.goto("/devices/")
    card = row(keeper, "bench")
    expect(card.locator(".current")).to_contain_text("holds", timeout=PATIENCE_MS)
    expect(card.get_by_role("link", name="holds")).to_have_attribute("href", session)
    expect(card).to_contain_text("1/1 slots taken")
    expect(card.locator(".waits")).to_have_text("2 tasks wait for a slot", timeout=PATIENCE_MS)
    expect(card.locator(".chip")).to_have_text("Busy")
    expect(card.locator(".load canvas")).to_be_visible(timeout=PATIENCE_MS)
    expect(card.locator(".legend span:visible")).to_have_text(["slots"])
    card.get_by_role("button", name="Drain").click()
    dialog = keeper.locator("#device")
    expect(dialog.locator(".preview")).to_contain_text("1 task runs there and ends there: holds")
    expect(dialog.get_by_role("button", name="Drain: sure?")).to_be_visible()
    keeper.keyboard.press("Escape")
    expect(card).to_have_attribute("data-state", "connected")
    gate.touch()
    expect(card.locator(".current")).to_have_count(0, timeout=PATIENCE_MS)
    expect(card.locator(".waits")).to_have_count(0, timeout=PATIENCE_MS)


def test_the_load_of_a_card_begins_with_what_was_before_the_page(keeper, installation):
    make = """
from datetime import timedelta
from django.utils import timezone
from agents.links.kept_readings import span_now
from agents.models import DeviceReading
from agents.services.devices import device_create
device = device_create("worked", kind="remote", by="system")
for ago in (200, 199, 3):
    at, said = timezone.now() - timedelta(seconds=300 * ago), {"cpu_percent": 60.0}
    DeviceReading.objects.create(device=device, span=span_now() - ago, at=at, readings=said, used=1, max_concurrent=4)
"""
    installation.manage("shell", "--verbosity", "0", "--command", make)
    keeper.reload()
    load = row(keeper, "worked").locator(".load")
    expect(load.locator("canvas")).to_be_visible(timeout=PATIENCE_MS)
    expect(load.locator(".legend span:visible")).to_have_text(["slots", "cpu"])


def test_a_card_of_a_remote_device_leads_to_its_enrolment(keeper):
    dialog = make(keeper, "far-2", "remote")
    dialog.get_by_role("button", name="Make the device").click()
    expect(dialog.get_by_role("heading", level=2)).to_have_text("far-2")
    dialog.get_by_role("button", name="Close").click()
    expect(row(keeper, "far-2").locator(".load")).to_be_hidden()
    row(keeper, "far-2").get_by_role("button", name="Enrol").click()
    expect(dialog.locator(".once")).to_contain_text("python manage.py device")


def test_who_makes_no_devices_sees_them_and_is_asked_nothing(page):
    submit(page, PLAN.replace('sleep, "0.5"', 'sleep, "20"'))
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "first")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    dialog = opened(page, "laptop")
    expect(dialog.locator(".current")).to_contain_text("first")
    expect(dialog.get_by_role("button", name="Drain")).to_have_count(0)
    expect(dialog.get_by_text("Change", exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.goto("/devices/")
    expect(row(page, "laptop")).to_be_visible()
    expect(page.get_by_role("button", name="New device")).to_have_count(0)
    expect(row(page, "laptop").get_by_role("button", name="Drain")).to_have_count(0)
