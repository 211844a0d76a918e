"""The timeline of a session: bars in lanes with states inside, zoomed, gone through by keys, and chosen."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import submit, wait_for_the_end

pytestmark = pytest.mark.browser

PLAN = """\
name: a diamond
tasks:
  - {task_id: begin, device: laptop, command: [sleep, "0.2"]}
  - {task_id: short, device: laptop, command: ["true"], after: [begin]}
  - {task_id: long, device: laptop, command: [sleep, "1"], after: [begin]}
  - {task_id: end, device: laptop, command: ["true"], after: [short, long]}
"""


@pytest.fixture
def timeline(page) -> Page:
    submit(page, PLAN)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    wait_for_the_end(page)
    page.get_by_role("tab", name="Timeline").click()
    expect(canvas(page)).to_have_attribute("data-bars", "4")
    return page


def canvas(page: Page):
    return page.locator("canvas.timeline")


def width(page: Page) -> int:
    found = canvas(page)
    return int(found.get_attribute("data-until")) - int(found.get_attribute("data-from"))


def test_attempts_are_bars_in_lanes_and_their_states_are_read(timeline):
    expect(canvas(timeline)).to_have_attribute("data-lanes", "1")
    expect(canvas(timeline)).to_have_attribute("data-critical", "3")
    expect(canvas(timeline)).to_have_attribute("data-states", re.compile(r"[1-9]\d*"))
    timeline.get_by_label("Lanes").select_option("task")
    expect(canvas(timeline)).to_have_attribute("data-lanes", "4")
    timeline.get_by_label("Lanes").select_option("agent")
    expect(canvas(timeline)).to_have_attribute("data-lanes", "4")


def test_it_is_zoomed_and_moved_by_keys_and_buttons(timeline):
    whole = width(timeline)
    canvas(timeline).press("+")
    assert width(timeline) < whole
    before = canvas(timeline).get_attribute("data-from")
    canvas(timeline).press("ArrowRight")
    assert canvas(timeline).get_attribute("data-from") > before
    timeline.get_by_role("button", name="Show all of the time").click()
    assert abs(width(timeline) - whole) <= 1
    canvas(timeline).hover()
    timeline.keyboard.down("Control")
    timeline.mouse.wheel(0, -200)
    timeline.keyboard.up("Control")
    expect(canvas(timeline)).not_to_have_attribute("data-from", before)
    assert width(timeline) < whole


def test_keys_go_from_attempt_to_attempt_and_enter_opens_the_task(timeline):
    canvas(timeline).press("ArrowDown")
    expect(canvas(timeline)).to_have_attribute(
        "aria-label", re.compile("Timeline, begin, attempt 1, Completed .* critical path")
    )
    canvas(timeline).press("End")
    expect(canvas(timeline)).to_have_attribute("aria-label", re.compile("Timeline, end, attempt 1"))
    canvas(timeline).press("Enter")
    expect(timeline.locator("#drawer h2")).to_have_text("end")


def test_the_pointer_is_told_what_is_under_it_and_chooses_it(timeline):
    timeline.get_by_label("Lanes").select_option("task")
    box = canvas(timeline).bounding_box()
    row = box["y"] + 24 + 22 * 2.5  # the third lane: `long`, or `short` where that began later
    timeline.mouse.move(box["x"] + 150 + (box["width"] - 150) * 0.35, row)
    tip = timeline.locator(".timeline-tip")
    expect(tip).to_contain_text(re.compile("(long|short), attempt 1"))
    name = tip.locator("span").first.inner_text().split(",")[0]
    timeline.mouse.down()
    timeline.mouse.up()
    expect(timeline.locator("#drawer h2")).to_have_text(name)


def test_the_same_is_there_as_a_table(timeline):
    timeline.get_by_role("button", name="As a table").click()
    expect(timeline.get_by_role("grid", name="Tasks")).to_be_visible()
    expect(timeline.locator(".table-rows .row")).to_have_count(4)
