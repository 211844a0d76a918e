"""Time under the views: a moment of a session as it was, played, compared, forked from, and left again."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, PLAN, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser


@pytest.fixture
def ended(page) -> Page:
    """A session whose two tasks have ended."""
    submit(page, PLAN, "looked back at")
    wait_for_the_end(page)
    expect(page.get_by_label("Moment")).to_be_visible(timeout=PATIENCE_MS)
    return page


def slide(page: Page, share: float) -> None:
    """Drag the moment to a share of the stream's time."""
    page.get_by_label("Moment").evaluate(
        "(input, share) => { input.value = Math.floor(input.max * share); input.dispatchEvent(new Event('input')); }", share
    )


def test_a_moment_of_the_past_is_shown_as_it_was_and_left_again(ended):
    page = ended
    slide(page, 0)
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    page.get_by_label("The next event").click()
    expect(page.locator("body")).to_have_attribute("data-moment", re.compile(r"^\d+$"))
    for _ in range(60):  # to the event with which the graph is there, and nothing has begun
        if node(page, "second").count():
            break
        before = page.locator("body").get_attribute("data-moment")
        page.get_by_label("The next event").click()
        expect(page.locator("body")).not_to_have_attribute("data-moment", before)
    expect(node(page, "second")).to_have_attribute("data-state", "WAITING_DEPENDENCY")
    expect(page.locator("#actor button")).to_have_count(0)
    assert "at=" in page.url
    page.reload()
    expect(node(page, "second")).to_have_attribute("data-state", "WAITING_DEPENDENCY", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Back to live").click()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED")
    expect(page.locator("#connection")).to_have_text("Live")
    assert "at=" not in page.url


def test_what_happened_is_told_up_to_the_moment_on_view(ended):
    page = ended
    newest = "([seq, isPast]) => (Number(document.querySelector('#feed > *')?.dataset.seq) <= seq) === isPast"
    slide(page, 0.5)
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    moment = int(page.locator("body").get_attribute("data-moment"))
    page.wait_for_function(newest, arg=[moment, True], timeout=PATIENCE_MS)
    page.get_by_role("button", name="Back to live").click()
    page.wait_for_function(newest, arg=[moment, False], timeout=PATIENCE_MS)


def test_the_past_is_played_to_the_present(ended):
    page = ended
    page.get_by_label("Speed").select_option("1")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED")


def test_two_moments_are_compared(ended):
    page = ended
    page.get_by_role("button", name="Mark").click()
    slide(page, 0)
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    page.get_by_role("button", name=re.compile("^Compare with")).click()
    compared = page.get_by_label("Comparison")
    expect(compared).to_contain_text("Between event")
    page.get_by_role("button", name="Back to live").click()
    expect(compared).to_have_count(0)


def test_a_fork_goes_on_from_the_moment_on_view(ended):
    page = ended
    before = page.url
    slide(page, 0.5)
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Fork from here…").click()
    page.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/sessions/" in url and url.split("?")[0] != before.split("?")[0], timeout=PATIENCE_MS)
    expect(node(page, "second")).to_have_count(1, timeout=PATIENCE_MS)
