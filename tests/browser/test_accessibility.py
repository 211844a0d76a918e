"""Every page by axe-core: nothing serious, in light and dark. The rules and the library: tests/browser/accessibility.py."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from frontend.navigation import PAGES
from tests.browser.accessibility import serious_problems
from tests.browser.test_dashboard import PATIENCE_MS, node, submit
from tests.browser.test_inbox import Session

pytestmark = pytest.mark.browser

VENDOR = Path(__file__).parents[1] / "vendor"
PLAN = """\
name: of everything
tasks:
  - {task_id: good, name: A good one, device: laptop, command: [sh, -c, "echo fine; echo '{\\"accuracy\\": 0.9}'"]}
  - {task_id: bad, device: laptop, command: [sh, -c, "echo it broke >&2; exit 3"]}
  - {task_id: long, device: laptop, command: [sleep, "600"], after: [good]}
  - {task_id: next, device: laptop, command: [echo, never], after: [long]}
  - {task_id: gated, name: Say hello, device: laptop, confirm: true, command: [echo, hello]}
  - {task_id: asking, device: laptop, steps: [{ask: Which branch?, options: [main, next], timeout: 6000, save: branch}]}
  - {task_id: last, device: laptop, command: [echo, never], after: [next, gated]}
dependencies:
  - {from: good, to: last, type: CONDITIONAL, condition: accuracy > 0.95}
"""
ADDRESSES = [reverse(page.address) for page in PAGES if not page.is_for_staff]
"""Of the pages that have no argument."""


@pytest.fixture(scope="module")
def seeing(installation, chromium) -> Iterator[Page]:
    """A page of the superuser, who sees every page and every button."""
    context = chromium.new_context(base_url=installation.address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(installation.login_link("root"))
    yield page
    context.close()


@pytest.fixture(scope="module")
def session(seeing: Page) -> Iterator[str]:
    """The address of a session with tasks in most states; it ends with the tests."""
    submit(seeing, PLAN, "Everything at once")
    seeing.wait_for_url(re.compile(r"/sessions/\d+/$"))
    address = seeing.url
    expect(node(seeing, "bad")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)
    expect(node(seeing, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    expect(seeing.locator("#waiting-panel article")).to_have_count(2, timeout=PATIENCE_MS)
    yield address
    seeing.goto(address)
    seeing.get_by_label("More commands").click()
    seeing.get_by_role("button", name="Cancel…").click()
    seeing.get_by_role("button", name="Cancel the session").click()


def test_the_library_is_the_one_that_its_list_names():
    described = json.loads((VENDOR / "libraries.json").read_text())
    packed = VENDOR.glob("*.js.gz")
    found = {file.stem: hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest() for file in packed}
    assert found == {name: one["sha256"] for name, one in described.items()}


def test_the_pages_before_one_is_logged_in(anonymous):
    found = []
    for address in ("/login/", "/login/link/void/"):
        anonymous.goto(address)
        found += serious_problems(anonymous)
    assert found == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_that_all_pages_lead_to(seeing, session, address):
    seeing.goto(address)
    seeing.wait_for_load_state("networkidle")
    assert serious_problems(seeing) == []


def test_a_part_of_the_description_of_the_api_that_is_open(seeing):
    seeing.goto(reverse("api-docs"))
    for name in ("sessions_list", "sessions_create"):
        operation = seeing.locator(f"#operations-sessions-{name}")
        operation.get_by_role("button").first.click()
        operation.get_by_role("button", name="Try it out").click()
    expect(seeing.get_by_role("textbox", name="Body of the request")).to_be_visible()
    assert serious_problems(seeing) == []


@pytest.mark.parametrize("address", ["/search/?q=everything", "/runs/?name=of+everything", "/machines/task/", "/?state=failed"])
def test_a_page_of_something(seeing, session, address):
    seeing.goto(address)
    seeing.wait_for_load_state("networkidle")
    assert serious_problems(seeing) == []


def test_the_page_of_an_agent_that_is_stuck_and_asks(seeing, installation):
    working = Session(installation, "ann")
    working("ask('tool', 'Push by force', COMMAND, observed=OBSERVED)")
    seeing.goto(f"/agents/{working.ids['agent']}/")
    found = serious_problems(seeing)
    seeing.goto(f"/sessions/{working.ids['session']}/")
    expect(seeing.locator("#waiting-panel article")).to_be_visible()
    expect(seeing.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)  # until then it is dim on purpose
    assert found + serious_problems(seeing) == []


@pytest.mark.parametrize("tab", ["graph", "timeline", "table", "log"])
def test_a_view_of_a_session(seeing, session, tab):
    seeing.goto(f"{session}?tab={tab}")
    expect(seeing.get_by_role("tab", name=tab.capitalize())).to_have_attribute("aria-selected", "true")
    expect(seeing.locator("#connection")).to_have_text("Live")
    assert serious_problems(seeing) == []


def test_what_opens_in_a_session(seeing, session):
    seeing.goto(session)
    node(seeing, "good").click()
    expect(seeing.locator("#drawer h2")).to_have_text("A good one")
    found = serious_problems(seeing)
    seeing.get_by_role("link", name="its machine").click()
    expect(seeing.locator("#agent-view .diagram [data-lit]")).to_have_count(1)
    found += serious_problems(seeing)
    seeing.keyboard.press("Escape")
    seeing.get_by_text("New request", exact=True).click()
    found += serious_problems(seeing)
    node(seeing, "next").click()
    seeing.locator("[data-command=edit]").click()
    expect(seeing.locator("#task-form [name=timeout]")).to_be_visible()
    found += serious_problems(seeing)
    seeing.locator("#task-form [name=timeout]").fill("40")
    seeing.get_by_role("button", name="Put into the draft").click()
    expect(seeing.locator("#tray")).to_contain_text("Draft of 1 change")
    found += serious_problems(seeing)
    seeing.get_by_role("button", name="Apply").click()
    seeing.locator("#head .version button").click()
    expect(seeing.locator("#edit-view")).to_contain_text("Edited by you")
    assert found + serious_problems(seeing) == []


def test_dialogs_menus_and_the_past(seeing, session):
    seeing.goto(session)
    seeing.get_by_label("More commands").click()
    found = serious_problems(seeing)
    seeing.get_by_role("button", name="Cancel…").click()
    expect(seeing.locator("dialog[open]")).to_be_visible()
    found += serious_problems(seeing)
    seeing.keyboard.press("Escape")
    seeing.get_by_label("Moment").focus()
    seeing.keyboard.press("Home")
    expect(seeing.locator("#connection")).to_contain_text("As of")
    found += serious_problems(seeing)
    seeing.goto("/devices/")
    seeing.get_by_role("button", name="New device").click()
    expect(seeing.locator("dialog[open]")).to_be_visible()
    assert found + serious_problems(seeing) == []


def test_the_admin_with_every_list_and_a_row_of_each(seeing, session):
    seeing.goto("/admin/")
    found = serious_problems(seeing)
    lists = seeing.locator("#content-main th a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert len(lists) > 40
    for address in lists:
        seeing.goto(address)
        found += serious_problems(seeing, in_dark=address == lists[0])
        first = seeing.locator("#result_list tbody a").first
        row = (first.get_attribute("href") or "") if first.count() else ""
        if "/change/" in row:
            seeing.goto(row)
            found += serious_problems(seeing, in_dark="/constellations/" in row)
    assert found == []


def test_the_forms_of_users_and_groups(seeing, installation):
    ask = "from django.contrib.auth.models import User; print(User.objects.get(username='root').pk)"
    root = installation.manage("shell", "--verbosity", "0", "--command", ask).strip()
    seeing.goto(f"/admin/auth/user/{root}/change/")
    expect(seeing.locator("#id_user_permissions_input")).to_be_visible()
    expect(seeing.get_by_label("Date:")).to_have_count(2)
    found = serious_problems(seeing)
    seeing.goto("/admin/auth/group/add/")
    expect(seeing.locator("#id_permissions_input")).to_be_visible()
    assert found + serious_problems(seeing) == []


@pytest.mark.parametrize("address", ["/admin/agents/device/{}/history/", "/admin/agents/device/add/", "/admin/auth/user/add/"])
def test_other_pages_of_the_admin(seeing, installation, address):
    ask = "from agents.models import Device; print(Device.objects.get(name='laptop').pk)"
    laptop = installation.manage("shell", "--verbosity", "0", "--command", ask)
    answer = seeing.goto(address.format(laptop))
    assert answer is not None
    assert answer.status == 200
    assert serious_problems(seeing) == []
