"""Time under the views: a moment of a session as it was, played, compared, forked from, and left again."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, PLAN, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser

SLOW = """\
name: a slow one
tasks:
  - {task_id: slow, device: laptop, command: [sleep, "6"]}
"""
LONG = """\
name: a long one
tasks:
  - {task_id: long, device: laptop, command: [sleep, "600"]}
"""
TEN_FRAMES = """
async () => { for (let frame = 0; frame < 10; frame += 1) await new Promise(requestAnimationFrame); }
"""


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
    not_kept = page.get_by_text("Not kept of this moment: readings, output, lease.")
    expect(not_kept).to_be_visible()
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
    expect(page.locator("#actor .chip")).to_have_text("Running")
    assert "at=" in page.url
    page.reload()
    expect(node(page, "second")).to_have_attribute("data-state", "WAITING_DEPENDENCY", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Back to live").click()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED")
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator("#actor .chip")).to_have_text("Completed")
    expect(not_kept).to_have_count(0)
    assert "at=" not in page.url


def test_a_moment_that_the_page_knows_is_not_asked_for_again(ended):
    page = ended
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "since=" in request.url else None)
    page.get_by_label("Moment").hover()
    shown = []
    for share in (0, 0.95, 0):
        slide(page, share)
        expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
        if shown:
            expect(page.locator("body")).not_to_have_attribute("data-moment", shown[-1], timeout=PATIENCE_MS)
        shown.append(page.locator("body").get_attribute("data-moment"))
        if share == 0:
            expect(page.locator('#graph [data-state="COMPLETED"]')).to_have_count(0)
    assert shown[0] == shown[2]
    assert len([url for url in asked if f"seq={shown[0]}&" in url]) == 1


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


def test_two_moments_are_compared_and_the_bar_stays_under_the_hand(ended):
    page, bar = ended, ended.get_by_label("Moment")
    places = [bar.bounding_box()]
    page.get_by_role("button", name="Mark").click()
    places.append(bar.bounding_box())
    slide(page, 0)
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    places.append(bar.bounding_box())
    page.get_by_role("button", name=re.compile("^Compare with")).click()
    compared = page.get_by_label("Comparison")
    expect(compared).to_contain_text("Between event")
    assert [*places, bar.bounding_box()] == [places[0]] * 4
    page.get_by_role("button", name="Back to live").click()
    expect(compared).to_have_count(0)


def test_a_fork_goes_on_from_the_moment_on_view(ended):
    page = ended
    before = page.url
    slide(page, 0.95)  # on a busy machine the graph may come late
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Fork from here…").click()
    page.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: "/sessions/" in url and url.split("?")[0] != before.split("?")[0], timeout=PATIENCE_MS)
    expect(node(page, "second")).to_have_count(1, timeout=PATIENCE_MS)


def test_the_speed_is_changed_while_the_past_is_played_and_a_stop_keeps_the_moment(page):
    submit(page, SLOW, "played at two speeds")
    wait_for_the_end(page)
    speed = page.get_by_label("Speed")
    speed.select_option("1")
    page.get_by_role("button", name="Play").click()
    expect(node(page, "slow")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    moment = page.locator("body").get_attribute("data-moment")
    expect(page).to_have_url(re.compile(rf"[?&]at={moment}\b"))
    page.evaluate(TEN_FRAMES)
    expect(page.locator("body")).to_have_attribute("data-moment", moment)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    speed.select_option("50")
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(speed).to_have_value("50")
    expect(node(page, "slow")).to_have_attribute("data-state", "COMPLETED")
    assert "at=" not in page.url


def test_a_session_is_restarted_from_the_menu_and_the_new_run_is_shown(page):
    submit(page, LONG, "started over")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    session = page.url.rstrip("/").rsplit("/", 1)[1]
    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Restart…").click()
    asked = page.locator("dialog[open]")
    expect(asked).to_contain_text("Start over?")
    asked.get_by_role("textbox").fill("from the beginning")
    asked.get_by_role("button", name="Restart", exact=True).click()
    expect(page.locator("#feed")).to_contain_text("The command “restart” was carried out", timeout=PATIENCE_MS)
    expect(node(page, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    old, new = sorted(page.request.get(f"/api/constellations/?session={session}").json()["results"], key=lambda one: one["id"])
    assert (old["state"], new["replaces"]) == ("CANCELLED", old["id"])
    assert "from the beginning" in page.request.get(f"/api/sessions/{session}/events/?limit=500").text()
    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the session").click()
