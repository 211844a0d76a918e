"""A page that nobody looks at calls who may decide: by its title, its icon and, where that was asked for, a notification."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_dashboard import submit
from tests.browser.test_inbox_live import GATED

pytestmark = pytest.mark.browser

PATIENCE_MS = 90_000
AWAY = """
window.notified = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(title, { body }) { window.notified.push(`${title}: ${body}`); }
};
Object.defineProperty(document, "hidden", { get: () => window.isAway === true });
"""
"""What headless chromium lacks: a place for notifications, and a page that is behind another one."""


def test_title_icon_and_a_notification_that_was_asked_for_say_needs_you(page):
    page.add_init_script(AWAY)
    page.goto("/inbox/")
    button = page.locator("#notify")
    expect(button).to_have_text("Notify me of what waits")
    button.click()
    expect(button).to_have_text("Stop notifying me")
    expect(page.locator("#waiting")).to_be_attached()
    icon = page.locator("#icon")
    with page.expect_response(lambda answer: answer.url.endswith("/inbox/count/")):
        pass
    page.evaluate("window.isAway = true; document.dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("window.notified") == []

    other = page.context.new_page()
    submit(other, GATED)
    other.wait_for_url(re.compile(r"/sessions/\d+/$"))
    approve = other.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible(timeout=PATIENCE_MS)
    expect(other.locator("#actor .chip")).to_have_text("Waiting for you (1)", timeout=PATIENCE_MS)
    page.wait_for_function("() => window.notified.length > 0", timeout=PATIENCE_MS)
    assert re.match(r"Orrery needs you: \d+\+? waiting for you", page.evaluate("window.notified")[0])
    expect(page).to_have_title(re.compile(r"^\(\d+\+?\) needs you · "))
    expect(icon).to_have_attribute("href", re.compile("needs_you"))
    approve.click()
    expect(other.locator("#actor .chip")).to_have_text("Completed", timeout=PATIENCE_MS)


RELEASE = """\
name: release
tasks:
  - {task_id: build, device: laptop, command: [echo, built]}
  - {task_id: sign, name: Sign it, device: laptop, confirm: true, after: [build], command: [echo, signed]}
  - {task_id: publish, name: Publish it, device: laptop, confirm: true, after: [build], command: [echo, published]}
"""


def test_what_needs_you_is_counted_filtered_and_gone_through_in_graph_and_table(page):
    submit(page, RELEASE)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    counter = page.locator("#needs-you .counter")
    expect(counter).to_have_text("2 need you", timeout=PATIENCE_MS)
    expect(page.locator("#counters .counter")).to_have_text(["1 completed"])  # the others are counted above, and do not run
    shares = page.locator("#progress [data-part]").evaluate_all(
        "all => all.map(({ dataset, width }) => [dataset.part, Math.round(width.baseVal.value)])"
    )
    assert {part for part, wide in shares if wide} == {"COMPLETED", "NEEDS_YOU"}
    counter.focus()
    page.keyboard.press("Enter")
    expect(counter).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#drawer h2")).to_have_text("Sign it")
    expect(counter).to_be_focused()
    assert "filter=state%3ANEEDS_YOU" in page.url
    expect(page.locator('.node.back[data-task="build"]')).to_have_count(1)
    expect(page.locator(".node.back")).to_have_count(1)

    page.get_by_role("tab", name="Table").click()
    names = page.locator('.table-rows [data-column="name"]')
    expect(names).to_have_text(["Sign it", "Publish it"])
    expect(page.get_by_label("State", exact=True)).to_have_value("NEEDS_YOU")
    page.get_by_role("button", name="The next that waits for a person").press("Enter")
    expect(page.locator("#drawer h2")).to_have_text("Publish it")
    expect(page.locator("#needs-you [role=status]")).to_have_text("2 of 2 things waiting")
    page.keyboard.press("Enter")
    expect(page.locator("#drawer h2")).to_have_text("Sign it")

    page.reload()
    expect(names).to_have_text(["Sign it", "Publish it"])
    page.get_by_role("button", name="Close the details").click()
    page.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True).first.click()
    expect(counter).to_have_text("1 needs you", timeout=PATIENCE_MS)
    expect(names).to_have_count(1)
    page.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True).click()
    expect(counter).to_have_text("0 need you", timeout=PATIENCE_MS)
    counter.click()
    expect(page.locator("#needs-you")).to_be_hidden()
    expect(names).to_have_count(3)
    assert "filter" not in page.url
