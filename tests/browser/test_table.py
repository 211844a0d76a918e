"""The table of a session's tasks: filters that the address keeps, keys and mouse, and commands to many at once."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, submit

pytestmark = pytest.mark.browser

PLAN = """\
name: many
tasks:
  - {task_id: good, name: A good one, device: laptop, command: [echo, fine]}
  - {task_id: bad, device: laptop, command: [sh, -c, "echo it broke >&2; exit 3"]}
  - {task_id: worse, device: laptop, command: [sh, -c, "exit 4"]}
  - {task_id: long, device: laptop, command: [sleep, "600"]}
  - {task_id: next, device: laptop, command: [echo, never], after: [long]}
  - {task_id: last, device: laptop, command: [echo, never], after: [next]}
"""


@pytest.fixture
def table(page) -> Page:
    submit(page, PLAN)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    page.get_by_role("tab", name="Table").click()
    expect(row(page, "bad")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)
    expect(row(page, "worse")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)
    expect(row(page, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    return page


def row(page: Page, task_id: str):
    return page.locator(".table-rows .row").filter(has=page.locator(f'[data-column="task_id"][title="{task_id}"]'))


def names(page: Page) -> list[str]:
    return page.locator('.table-rows [data-column="task_id"]').all_inner_texts()


def test_rows_say_how_tasks_stand_and_open_them(table):
    expect(table.get_by_role("grid", name="Tasks")).to_have_attribute("aria-rowcount", "7")
    assert names(table) == ["good", "bad", "worse", "long", "next", "last"]
    expect(row(table, "bad").locator('[data-column="error"]')).to_contain_text("exit code 3")
    expect(row(table, "good").locator('[data-column="name"]')).to_have_text("A good one")
    row(table, "bad").click()
    expect(table.locator("#drawer h2")).to_have_text("bad")
    expect(row(table, "bad")).to_have_attribute("data-open", "")
    assert re.search(r"tab=table#task-\d+$", table.url)


def test_filters_and_order_stay_in_the_address(table):
    table.get_by_label("State", exact=True).select_option("FAILED")
    expect(table.locator(".table-tools .count")).to_have_text("2 of 6 tasks")
    by_task = table.locator('.table-head [data-column="task_id"] button')
    by_task.click()
    by_task.click()
    expect(by_task).to_have_text("Task ↓")
    assert names(table) == ["worse", "bad"]
    table.reload()
    expect(table.locator(".table-tools .count")).to_have_text("2 of 6 tasks")
    assert names(table) == ["worse", "bad"]
    expect(table.get_by_label("State", exact=True)).to_have_value("FAILED")
    table.get_by_label("State", exact=True).select_option("")
    table.get_by_label("Filter by name, id or error").fill("code 4")
    expect(table.locator(".table-tools .count")).to_have_text("1 of 6 tasks")
    assert names(table) == ["worse"]


def test_many_are_chosen_by_keys_and_retried_and_skipped_and_cancelled(table):
    grid = table.get_by_role("grid", name="Tasks")
    grid.focus()
    table.keyboard.press("ArrowDown")
    table.keyboard.press("ArrowDown")
    table.keyboard.press("Shift+ArrowDown")
    expect(table.locator(".chosen")).to_have_text("2 tasks chosen")
    table.locator("[data-bulk=retry]").click()
    expect(table.locator("dialog.asking h2")).to_have_text("Retry 2 tasks?")
    table.get_by_role("button", name="Retry 2 tasks").click()
    expect(table.locator(".refusals")).to_contain_text("Retry: 2 of 2 tasks taken.")
    expect(row(table, "bad").locator('[data-column="attempt"]')).to_have_text("1 of 1")
    row(table, "next").locator("input").click()
    row(table, "last").click(modifiers=["Shift"])
    row(table, "good").click(modifiers=["Control"])
    expect(table.locator(".chosen")).to_have_text("3 tasks chosen")
    table.locator("[data-bulk=skip]").click()
    expect(table.locator("dialog.asking p").first).to_contain_text(
        "1 other of those chosen have started, and stay as they are."
    )
    table.get_by_role("button", name="Skip 2 tasks").click()
    expect(row(table, "next")).to_have_attribute("data-state", "CANCELLED", timeout=PATIENCE_MS)
    expect(row(table, "last")).to_have_attribute("data-state", "CANCELLED", timeout=PATIENCE_MS)
    grid.focus()
    table.keyboard.press("Control+a")
    table.locator("[data-bulk=cancel]").click()
    table.get_by_label("Reason").fill("enough of it")
    table.get_by_role("button", name=re.compile(r"Cancel \d tasks?")).click()
    expect(row(table, "long")).to_have_attribute("data-state", "CANCELLED", timeout=PATIENCE_MS)
    expect(row(table, "long").locator('[data-column="error"]')).to_contain_text("enough of it")


SCROLLED = """async (top) => {
    const grid = document.querySelector(".table-scroll");
    const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const rows = () => [...grid.querySelectorAll(".table-rows .row")];
    const before = new Set(rows());
    grid.scrollTop = top;
    await painted();
    const seen = rows().map((row) => ({
      place: Math.round((row.getBoundingClientRect().top - grid.querySelector(".table-all").getBoundingClientRect().top) / 28),
      index: Number(row.getAttribute("aria-rowindex")) - 2,
      task: row.querySelector('[data-column="task_id"]').textContent,
      isKept: before.has(row),
    }));
    const [first, last] = [top / 28, (top + grid.clientHeight) / 28];
    const inSight = seen.filter(({ place }) => place >= first && place <= last - 1);
    return { seen: inSight, isKept: seen.every(({ isKept }) => isKept) };
}"""


def test_rows_that_scroll_into_sight_are_in_their_places_in_the_elements_of_those_that_went(page):
    tasks = "".join(f"  - {{task_id: t{number:03}, tool: noop}}\n" for number in range(300))
    submit(page, f"name: long\ntasks:\n{tasks}")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    page.get_by_role("tab", name="Table").click()
    expect(page.locator(".table-tools .count")).to_have_text("300 tasks", timeout=PATIENCE_MS)
    expect(page.locator("#requests > li").first).to_have_attribute("data-outcome", "completed", timeout=PATIENCE_MS)
    for top in (84, 2_800, 2_772, 0):
        found = page.evaluate(SCROLLED, top)
        assert found["isKept"]
        assert len(found["seen"]) > 5
        for seen in found["seen"]:
            assert seen["place"] == seen["index"]
            assert seen["task"] == f"t{seen['index']:03}"
        assert sorted(seen["index"] for seen in found["seen"])[0] <= top // 28 + 1


def test_a_refusal_is_told_with_its_task(table):
    table.route("**/api/tasks/*/skip/", lambda route: route.continue_(post_data='{"reason": ""}'))
    row(table, "next").locator("input").click()
    table.locator("[data-bulk=skip]").click()
    table.get_by_role("button", name="Skip 1 task").click()
    told = table.locator(".refusals")
    expect(told).to_contain_text("Skip: 0 of 1 task taken, 1 refused.")
    expect(told.locator("li")).to_contain_text("next: a skip needs a reason")


def test_a_viewer_sees_rows_and_no_commands(table, installation, chromium):
    session = re.search(r"/sessions/(\d+)/", table.url)[1]
    installation.manage(
        "shell", "--verbosity", "0", "--command",
        "from django.contrib.auth.models import User; from agents.models import Session;"
        f"Session.objects.filter(pk={session}).update(owner=User.objects.get(username='vic'))",
    )  # fmt: skip
    context = chromium.new_context(base_url=installation.address)
    page = context.new_page()
    page.goto(installation.login_link("vic"))
    page.goto(f"/sessions/{session}/?tab=table")
    expect(page.locator(".table-rows .row")).to_have_count(6)
    expect(page.locator(".table-scroll input")).to_have_count(0)
    page.get_by_role("grid", name="Tasks").press("Control+a")
    expect(page.locator("[data-bulk]")).to_have_count(0)
    context.close()
