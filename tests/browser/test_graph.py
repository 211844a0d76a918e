"""The graph of a session's page: what stands out, what stands back, and where its view goes."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser

PLAN = """\
name: a fork with a failure
tasks:
- {task_id: begin, device: laptop, command: [sleep, "0.1"]}
- {task_id: bad, device: laptop, command: [sh, -c, "echo it broke >&2; exit 3"], after: [begin]}
- {task_id: long, device: laptop, command: [sleep, "0.8"], after: [begin]}
- {task_id: short, device: laptop, command: [sleep, "0.1"], after: [begin]}
- {task_id: last, device: laptop, command: [sleep, "0.1"], after: [long, short]}
"""
ASKING = """\
name: asks on its way
tasks:
- {task_id: asking, device: laptop, steps: [{ask: Which branch?, options: [main, next], timeout: 600, save: branch}]}
- {task_id: after, device: laptop, tool: noop, after: [asking]}
"""
ROW = "\n".join(
    ["name: a row", "tasks:", "- {task_id: t0, device: laptop, tool: noop}"]
    + [f"- {{task_id: t{number}, device: laptop, tool: noop, after: [t{number - 1}]}}" for number in range(1, 30)]
    + ["- {task_id: bad, device: laptop, command: [sh, -c, 'exit 3'], after: [t29]}"]
    + [
        "- {task_id: never, device: laptop, tool: noop, after: [bad]}",
        "- {task_id: end, device: laptop, tool: noop, after: [never]}",
    ]
    + [f"- {{task_id: s{number}, device: laptop, tool: noop, after: [t0]}}" for number in range(20)]
)
CHAIN = "\n".join(
    ["name: many", "tasks:", "- {task_id: t0, device: laptop, tool: noop}"]
    + [f"- {{task_id: t{number}, device: laptop, tool: noop, after: [t{number // 2}]}}" for number in range(1, 700)]
    + ['- {task_id: slow, device: laptop, command: [sleep, "600"], after: [t699]}']
)


def tasks_with(page: Page, kind: str) -> list[str]:
    found = page.locator(f".node.{kind}")
    return sorted(found.evaluate_all("nodes => nodes.map(node => node.dataset.task)"))


def test_what_a_task_has_to_do_with_stands_out_under_the_mouse_and_by_keyboard(page):
    submit(page, PLAN)
    wait_for_the_end(page, "partially_failed")
    node(page, "long").hover()
    expect(page.locator(".node.back")).to_have_count(2)
    assert tasks_with(page, "back") == ["bad", "short"]
    expect(page.locator(".edges path.lit")).to_have_count(2)
    page.mouse.move(0, 0)
    expect(page.locator(".node.back")).to_have_count(0)
    node(page, "begin").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".node.back").first).to_be_attached()


def test_a_failed_task_says_why_and_the_longest_chain_is_marked(page):
    submit(page, PLAN)
    wait_for_the_end(page, "partially_failed")
    expect(node(page, "bad")).to_have_attribute("aria-label", re.compile("^bad, failed, on laptop: .+"))
    marking = page.get_by_role("button", name="Critical path")
    marking.click()
    expect(page.locator(".node.critical")).to_have_count(3)
    assert tasks_with(page, "critical") == ["begin", "last", "long"]
    expect(marking).to_have_attribute("aria-pressed", "true")
    marking.click()
    expect(page.locator(".node.critical")).to_have_count(0)


def test_a_filter_stands_in_the_address_and_lets_the_others_stand_back(page):
    submit(page, PLAN)
    wait_for_the_end(page, "partially_failed")
    page.locator("#counters").get_by_role("button").filter(has_text="failed").first.click()
    expect(page.locator(".node.back")).to_have_count(4)
    assert "filter=state%3AFAILED" in page.url
    page.reload()
    expect(page.locator(".node.back")).to_have_count(4)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".node.back")).to_have_count(0)
    assert "filter" not in page.url
    page.get_by_label("Find a task").fill("SHORT")
    expect(page.locator(".node.back")).to_have_count(4)
    expect(node(page, "short")).not_to_have_class("node back")


def cancel(page: Page) -> None:
    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the session").click()
    wait_for_the_end(page, "cancelled")


def test_a_large_graph_opens_where_it_runs_at_a_scale_that_can_be_read(page):
    submit(page, CHAIN)
    canvas = page.locator("canvas.graph")
    expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    following = page.get_by_role("button", name="Follow")
    expect(following).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Show the whole graph").click()
    expect(following).to_have_attribute("aria-pressed", "false")
    following.click()
    expect(following).to_have_attribute("aria-pressed", "true")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    expect(canvas).to_have_attribute("aria-label", re.compile("^Task graph, t"))
    small_map = page.locator(".minimap")
    page.get_by_role("button", name="Show the whole graph").click()
    expect(small_map).to_be_hidden()
    following.click()
    expect(small_map).to_have_attribute("data-nodes", re.compile(r"^[1-9]\d\d$"))
    small_map.click(position={"x": 3, "y": 3})
    expect(following).to_have_attribute("aria-pressed", "false")
    cancel(page)


GATED = "\n".join(
    ["name: gated", "tasks:", '- {task_id: gate, device: laptop, command: [sleep, "600"]}']
    + [f"- {{task_id: t{number}, device: laptop, tool: noop, after: [gate]}}" for number in range(700)]
)
COUNT_PARTS = """() => {
  const clip = CanvasRenderingContext2D.prototype.clip;
  window.parts = 0;
  CanvasRenderingContext2D.prototype.clip = function (...given) {
    window.parts += this.canvas.matches("canvas.graph");
    return clip.apply(this, given);
  };
}"""
MORE_PARTS = """(more) => new Promise((resolve) => {
  const begun = window.parts;
  const look = () => (window.parts > begun + more ? resolve() : requestAnimationFrame(look));
  look();
})"""
KEEP = """() => {
  const canvas = document.querySelector("canvas.graph");
  return (window.kept = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)).data.length;
}"""
DIFFERS = """() => {
  const canvas = document.querySelector("canvas.graph");
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const places = [];
  for (let i = 0; i < data.length; i += 4) {
    const isOther = [0, 1, 2].some((c) => data[i + c] !== window.kept.data[i + c]);
    if (isOther) places.push([(i / 4) % width, Math.floor(i / 4 / width)]);
  }
  const along = (axis) => places.map((place) => place[axis]);
  const span = (axis) => (places.length ? Math.max(...along(axis)) - Math.min(...along(axis)) : 0);
  return { width: span(0), height: span(1) };
}"""


def test_of_a_large_graph_a_node_that_looks_otherwise_is_drawn_and_the_rest_stays_as_it_is(page):
    submit(page, GATED)
    canvas = page.locator("canvas.graph")
    expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("#counters")).to_contain_text("1 running", timeout=PATIENCE_MS)
    page.evaluate(COUNT_PARTS)
    page.evaluate(MORE_PARTS, 5)  # the clock of the task that runs
    assert page.evaluate(KEEP) > 0
    page.evaluate(MORE_PARTS, 5)
    clock = page.evaluate(DIFFERS)
    assert 0 < clock["width"] < 208
    assert 0 < clock["height"] < 66
    page.evaluate(KEEP)
    canvas.focus()  # is drawn as a whole
    canvas.blur()
    page.evaluate(MORE_PARTS, 2)
    whole = page.evaluate(DIFFERS)
    assert whole["width"] < 208
    assert whole["height"] < 66
    cancel(page)


def test_a_task_that_waits_for_the_reader_says_so_in_every_view_and_no_longer_once_it_is_answered(page):
    submit(page, ASKING)
    asking = node(page, "asking")
    expect(asking).to_have_attribute("data-tone", "held", timeout=PATIENCE_MS)
    expect(asking).to_have_attribute("data-state", "RUNNING")
    expect(asking).to_have_attribute("aria-label", re.compile("^asking, needs you"))
    expect(asking.locator(".spin")).to_be_hidden()
    expect(page.locator("#agents .chip").filter(has_text="Needs you").first).to_be_visible()
    page.get_by_role("tab", name="Table").click()
    row = page.locator("#view-table [data-row]").filter(has_text="asking")
    expect(row.locator("[data-column=state]").first).to_contain_text("Needs you")
    page.get_by_role("tab", name="Timeline").click()
    timeline = page.locator("canvas.timeline")
    expect(timeline).to_have_attribute("data-bars", "1")
    timeline.focus()
    page.keyboard.press("ArrowDown")
    expect(timeline).to_have_attribute("aria-label", re.compile("Needs you"))
    page.get_by_role("tab", name="Graph").click()
    page.locator("#waiting-panel .approval").get_by_role("button", name="next").click()
    wait_for_the_end(page)
    expect(asking).to_have_attribute("data-tone", "done")


def test_tasks_of_a_paused_session_say_that_it_is_paused(page):
    submit(page, ASKING)
    expect(node(page, "asking")).to_have_attribute("data-tone", "held", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(node(page, "after")).to_have_attribute("aria-label", re.compile("^after, paused"), timeout=PATIENCE_MS)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(node(page, "after")).to_have_attribute("aria-label", re.compile("^after, waiting"), timeout=PATIENCE_MS)
    page.locator("#waiting-panel .approval").get_by_role("button", name="next").click(timeout=PATIENCE_MS)
    wait_for_the_end(page)


def test_a_row_of_tasks_is_one_box_that_says_what_is_in_it_and_opens_on_a_click(page):
    submit(page, ROW)
    wait_for_the_end(page, "partially_failed")
    page.reload()
    graph = page.locator("#graph")
    expect(graph).to_have_attribute("data-tasks", "53")
    expect(graph).to_have_attribute("data-nodes", "4")
    row = page.locator(".node.folded").filter(has_text="31 tasks in a row")
    expect(row).to_have_attribute("data-tone", "failed")
    expect(row).to_have_attribute("aria-label", re.compile("1 failed.*29 completed"))
    expect(page.locator(".node.folded").filter(has_text="20 tasks")).to_have_attribute("data-tone", "done")
    row.click()
    expect(graph).to_have_attribute("data-nodes", "34")
    expect(node(page, "bad")).to_have_attribute("data-tone", "failed")
    folding = page.get_by_role("button", name="Fold", exact=True)
    folding.click()
    expect(graph).to_have_attribute("data-nodes", "53")
    folding.click()
    expect(graph).to_have_attribute("data-nodes", "4")
    page.get_by_label("Find a task").fill("bad")
    page.keyboard.press("Enter")
    expect(node(page, "bad")).to_have_attribute("data-selected", "")
