"""Pages that others wrote, under our policy: the fixture fails where one asks for what it forbids."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_description_of_the_api_is_shown_and_can_be_tried(page):
    page.goto("/api/docs/")
    operation = page.locator("#operations-machines-machines_list")
    expect(operation).to_be_visible()
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response .response-col_status").first).to_contain_text("200")


def test_the_admin_is_shown_and_searched(anonymous, installation):
    anonymous.goto(installation.login_link("root"))
    anonymous.goto("/admin/agents/device/")
    expect(anonymous.get_by_role("cell", name="laptop", exact=True)).to_be_visible()
    anonymous.locator("#searchbar").fill("lap")
    anonymous.keyboard.press("Enter")
    anonymous.get_by_role("row", name="laptop").get_by_role("link").click()
    expect(anonymous.locator(".field-name")).to_contain_text("laptop")


def test_the_admins_own_scripts_and_styles_work(anonymous, installation):
    anonymous.goto(installation.login_link("root"))
    anonymous.goto("/admin/auth/user/add/")
    anonymous.locator(".theme-toggle, .toggle-nav-sidebar").first.click()
    expect(anonymous.locator("#id_username")).to_be_visible()
    header = anonymous.locator("#header").evaluate("header => getComputedStyle(header).backgroundColor")
    assert header != "rgba(0, 0, 0, 0)"
