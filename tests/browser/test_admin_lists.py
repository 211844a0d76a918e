"""Lists of the admin in a real browser: what has the most columns fits a usual screen."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, PLAN, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser

LISTS = (
    "agents/transition", "agents/event", "agents/agent", "agents/device", "agents/inboxitem", "constellations/task",
    "constellations/dependency", "constellations/attempt", "constellations/constellation",
)  # fmt: skip


@pytest.fixture
def admin(anonymous, installation) -> Page:
    anonymous.set_viewport_size({"width": 1440, "height": 900})
    anonymous.goto(installation.login_link("root"))
    return anonymous


WIDE = """\
name: a_constellation_without_any_spaces
tasks:
  - {task_id: train_the_model_again, name: train_the_model_once_more, device: laptop, labels: [nightly_build], tool: noop}
  - {task_id: gate, device: laptop, command: [echo, go], confirm: true}
  - {task_id: evaluate_the_model_again, device: laptop, command: [echo, good], after: [gate]}
"""
"""Words that nothing but their end breaks, in the longest states."""


def test_all_columns_of_a_list_fit_1440_pixels_beside_menu_and_filters(admin):
    submit(admin, WIDE)
    expect(admin.locator("#waiting-panel article")).to_have_count(1, timeout=PATIENCE_MS)
    expect(node(admin, "train_the_model_again")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    for name in LISTS:
        admin.goto(f"/admin/{name}/")
        table = admin.locator("#result_list")
        expect(table).to_be_visible()
        assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth"), name


def test_a_task_of_the_list_is_opened_by_its_name(admin):
    submit(admin, PLAN)
    wait_for_the_end(admin)
    admin.goto("/admin/constellations/task/")
    admin.locator("#result_list").get_by_role("link", name="second").first.click()
    admin.wait_for_url("**/admin/constellations/task/*/change/")
