"""The pages for whom a window is small or magnified, who has no mouse, and who wants nothing to move."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Locator, Page, expect

from frontend.navigation import PAGES
from tests.browser.test_dashboard import PATIENCE_MS, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser

PLAN = """\
name: within reach
tasks:
  - {task_id: good, name: A good one, device: laptop, command: [echo, fine]}
  - {task_id: bad, device: laptop, command: [sh, -c, "echo it broke >&2; exit 3"]}
  - {task_id: long, device: laptop, command: [sleep, "600"], after: [good]}
  - {task_id: next, device: laptop, command: [echo, never], after: [long]}
  - {task_id: gated, name: Say hello, device: laptop, confirm: true, command: [echo, hello]}
"""
SHORT = "\n".join(line for line in PLAN.splitlines() if "id: long" not in line and "id: next" not in line)
ADDRESSES = [reverse(page.address) for page in PAGES if not page.is_for_staff]
ZOOMED = {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2}
"""A window of 1440 x 900 at 200%."""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TEXTS = "h1, h2, h3, button, summary, label, a, [role=tab], .chip, .note, p"
CUT = """
(texts) => [...document.querySelectorAll(texts)].filter((node) => {
  const style = getComputedStyle(node);
  const hides = style.overflowX === "hidden" || style.overflowX === "clip";
  return node.checkVisibility() && hides && style.textOverflow !== "ellipsis" && !node.closest(".unseen")
    && node.scrollWidth > node.clientWidth + 1;
}).map((node) => node.outerHTML.slice(0, 120))
"""
ENDLESS = """
() => document.getAnimations()
  .filter((one) => one.playState === "running" && one.effect.getTiming().iterations === Infinity).length
"""


@pytest.fixture(scope="module")
def session(installation, chromium, cookies) -> Iterator[str]:
    """The path of a session with tasks in most states, one of which waits for the operator; it ends with the tests."""
    context = chromium.new_context(base_url=installation.address, viewport={"width": 1280, "height": 800})
    context.add_cookies(cookies)
    page = context.new_page()
    submit(page, PLAN, "Within reach of all")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "bad")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)
    expect(node(page, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    expect(page.locator("#waiting-panel article")).to_have_count(1, timeout=PATIENCE_MS)
    yield page.url.removeprefix(installation.address)
    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the session").click()
    context.close()


def opened(chromium: Browser, installation, cookies: list, **options) -> Page:
    context = chromium.new_context(base_url=installation.address, **options)
    context.add_cookies(cookies)
    return context.new_page()


def overflow(page: Page) -> int:
    """Pixels by which the page itself is wider than its window."""
    return page.evaluate("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("window", [ZOOMED, PHONE], ids=["at 200%", "on a phone"])
def test_no_page_is_cut_or_moved_sideways(installation, chromium, cookies, session, window):
    page = opened(chromium, installation, cookies, **window)
    tabs = [f"{session}?tab={tab}" for tab in ("graph", "timeline", "table", "log")]
    for address in (*ADDRESSES, *tabs, "/machines/task/", "/search/?q=reach", "/login/"):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert (address, overflow(page), page.evaluate(CUT, TEXTS)) == (address, 0, [])
    page.goto(session)
    page.locator('[data-column="task_id"][title="bad"], [data-task="bad"]').first.dispatch_event("click")
    expect(page.locator("#drawer h2")).to_be_in_viewport()
    assert (overflow(page), page.evaluate(CUT, TEXTS)) == (0, [])
    page.context.close()


def test_a_phone_shows_what_waits_then_the_table_and_the_graph_behind_a_tap(installation, chromium, cookies, session):
    page = opened(chromium, installation, cookies, **PHONE)
    page.goto(session)
    expect(page.get_by_role("tab", name="Table")).to_have_attribute("aria-selected", "true")
    waiting, table = page.locator("#waiting-panel"), page.get_by_role("grid", name="Tasks")
    expect(waiting.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    places = [part.bounding_box()["y"] for part in (page.locator("#head"), waiting, table, page.locator("#requests"))]
    assert places == sorted(places)
    row = page.locator(".table-rows .row").first
    expect(row).to_be_visible()
    cells = [cell.bounding_box() for cell in row.locator(":scope > span").all() if cell.is_visible()]
    assert len(cells) == 5  # its box, how it stands, its name, how long it took, its menu
    assert len({round(cell["y"] + cell["height"] / 2) for cell in cells}) == 1
    page.get_by_role("tab", name="Graph").tap()
    expect(node(page, "bad")).to_be_visible()
    assert page.locator("#graph .view").evaluate("view => getComputedStyle(view).touchAction") == "pan-y"
    assert "tab=graph" in page.url
    page.context.close()


def test_the_time_bar_of_a_phone_stands_in_one_line(installation, chromium, cookies, session):
    page = opened(chromium, installation, cookies, **PHONE)
    page.goto(session)
    expect(page.get_by_label("Moment")).to_be_visible(timeout=PATIENCE_MS)
    places = [in_one_line(page.locator(".time-row > *"))]
    page.get_by_label("Moment").evaluate("bar => { bar.value = 0; bar.dispatchEvent(new Event('input')); }")
    expect(page.get_by_role("button", name="Back to live")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Mark").click()
    expect(page.get_by_role("button", name=re.compile("^Compare with"))).to_be_visible()
    places.append(in_one_line(page.locator(".time-row > *")))
    assert places[0] == places[1]
    assert overflow(page) == 0
    page.context.close()


def in_one_line(parts: Locator) -> list[tuple[float, float]]:
    """Left edge and width of play, speed, the bar, a step back, a step on, the moment, mark."""
    boxes = parts.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())")  # at one moment
    assert len(boxes) == 7
    middles = [box["y"] + box["height"] / 2 for box in boxes]
    assert max(middles) - min(middles) < min(box["height"] for box in boxes) / 2
    return [(box["x"], box["width"]) for box in boxes]


def test_menus_of_pages_open_on_a_phone(installation, chromium, cookies):
    page = opened(chromium, installation, cookies, **PHONE)
    page.goto("/inbox/")
    for menu, link in (("Fleet", "Stuck agents"), ("Reference", "Machines")):
        page.locator(".pages summary").filter(has_text=menu).tap()
        expect(page.get_by_role("link", name=link)).to_be_in_viewport(ratio=1)
    assert overflow(page) == 0
    page.context.close()


def test_nothing_moves_for_whom_it_shall_not(installation, chromium, cookies, session):
    page = opened(chromium, installation, cookies, reduced_motion="no-preference")
    page.goto(session)
    expect(node(page, "long")).to_have_attribute("data-state", "RUNNING")
    page.wait_for_function(f"({ENDLESS})() > 0")  # what runs turns
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_function(f"({ENDLESS})() === 0")
    for tab in ("timeline", "table", "log"):
        page.get_by_role("tab", name=tab.capitalize()).click()
        assert page.evaluate(ENDLESS) == 0
    page.context.close()


# --- by keyboard alone


MARKED = """
() => {
  const node = document.activeElement;
  const isShown = (part) => part && getComputedStyle(part).display !== "none";
  const isRinged = (part) => part && ["outlineStyle", "boxShadow"].some((key) => getComputedStyle(part)[key] !== "none");
  const around = node.closest(".editor") ?? node.closest(".cm-editor"); // the ring of a text field can be its editor's
  return isRinged(node) || isRinged(around) || isShown(node.querySelector(":scope > .halo")) || /^H[1-6]$/.test(node.tagName);
}
"""
"""Whether what has the focus shows it. A heading that is led to by a program shows what it heads instead."""
FOCUSED = "document.activeElement.outerHTML.slice(0, 200)"


def expect_kept_focus(page: Page) -> None:
    """What had the focus may be gone; then what is beside it has it."""
    page.wait_for_function("document.activeElement && document.activeElement !== document.body")
    expect(page.locator(":focus")).to_be_in_viewport()


def tab_to(page: Page, wanted: Locator, key: str = "Tab", most: int = 60) -> None:
    """Press a key until what is wanted has the focus; each thing on the way must show that it has it."""
    for _ in range(most):
        page.keyboard.press(key)
        assert page.evaluate(MARKED), page.evaluate(FOCUSED)
        if wanted.evaluate("node => node === document.activeElement"):
            expect(wanted).to_be_in_viewport()
            return
    raise AssertionError(f"{key} does not lead to {wanted}; it is at {page.evaluate(FOCUSED)}")


def test_a_request_is_sent_and_its_tasks_are_gone_through_by_keyboard(page):
    page.goto("/")
    tab_to(page, page.get_by_label("Title"))
    page.keyboard.type("By the keys alone")
    tab_to(page, page.get_by_label("Plan (YAML or JSON)"))
    page.keyboard.insert_text(SHORT)
    run = page.get_by_role("button", name="Run", exact=True)
    page.keyboard.press("Escape")  # out of the editor: Tab may be its own
    tab_to(page, run)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "bad")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)

    # the tabs, then the search, the graph and the details of a task
    tab_to(page, page.get_by_role("tab", name="Graph"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Timeline")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    tab_to(page, page.get_by_label(re.compile("^Find a task")))
    page.keyboard.type("bad")
    page.keyboard.press("Enter")
    tab_to(page, page.locator('.node[tabindex="0"]'))
    page.keyboard.press("Enter")
    details = page.locator("#drawer")
    expect(details).to_be_visible()
    assert details.evaluate("node => node.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(page.locator(".node:focus")).to_have_count(1)

    # what waits is approved
    approve = page.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible(timeout=PATIENCE_MS)
    tab_to(page, approve)
    page.keyboard.press("Enter")
    expect(node(page, "gated")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    expect_kept_focus(page)

    # what has ended is paused and resumed, on one button, and what failed is tried again
    wait_for_the_end(page, "partially_failed")
    tab_to(page, page.get_by_role("button", name="Pause"), "Shift+Tab", 90)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused(timeout=PATIENCE_MS)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause")).to_be_focused(timeout=PATIENCE_MS)
    tab_to(page, page.get_by_role("button", name=re.compile("^Retry 1 failed")))
    with page.expect_response(lambda answer: answer.url.endswith("/retry/")) as answered:
        page.keyboard.press("Enter")
    assert answered.value.ok, answered.value.text()
    expect_kept_focus(page)


def test_the_table_edits_and_time_by_keyboard(page, session):
    page.goto(f"{session}?tab=table")
    grid = page.get_by_role("grid", name="Tasks")
    tab_to(page, page.get_by_role("tab", name="Table"))
    tab_to(page, grid)
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#drawer h2")).to_have_text("next")
    expect(page.locator("#drawer h2")).to_be_focused()
    edit = page.locator("#drawer [data-command=edit]")
    tab_to(page, edit)
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#task-form [name=timeout]"))
    page.keyboard.type("40")
    tab_to(page, page.get_by_role("button", name="Put into the draft"))
    page.keyboard.press("Enter")
    discard = page.get_by_role("button", name="Discard")
    expect(discard).to_be_visible()
    expect_kept_focus(page)
    tab_to(page, page.get_by_role("button", name="Apply"), "Shift+Tab", 90)
    page.keyboard.press("Enter")
    expect(page.locator("#tray")).to_contain_text("Version 2 is made")
    expect_kept_focus(page)

    moment = page.get_by_label("Moment")
    tab_to(page, moment)
    page.keyboard.press("Home")
    expect(page.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    expect(moment).to_be_focused()
    tab_to(page, page.get_by_role("button", name="Back to live"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect_kept_focus(page)
