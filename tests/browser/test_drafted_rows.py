"""A draft beside the graph: its tasks as rows of the table, and connections drawn from and to boxes of many tasks."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, submit
from tests.browser.test_editing_in_place import apply, begin, tray
from tests.browser.test_modules import anywhere, run  # noqa: F401
from tests.browser.test_table import row

pytestmark = pytest.mark.browser

PARALLEL = 14


def test_tasks_of_a_draft_are_rows_of_the_table_until_it_is_made(page, tmp_path):
    begin(page, tmp_path)
    page.get_by_role("tab", name="Table").click()
    page.locator("#add-task").click()
    for key, text in (("task_id", "last"), ("device", "laptop"), ("command", "echo last"), ("after", "a")):
        page.locator(f"#task-form [name={key}]").fill(text)
    page.get_by_role("button", name="Put into the draft").click()
    added = row(page, "last")
    expect(added).to_have_attribute("data-draft", "added")
    expect(added.locator('[data-column="state"]')).to_have_text("To add")
    expect(added.locator("input")).to_have_count(0)
    expect(page.locator(".table-tools .count")).to_have_text("5 tasks")
    page.get_by_role("grid", name="Tasks").press("Control+a")
    expect(page.locator(".chosen")).to_have_text("4 tasks chosen")

    # it opens the form that it came from, by mouse and by key
    added.click()
    expect(page.locator("#task-form [name=task_id]")).to_have_value("last")
    page.keyboard.press("Escape")
    page.get_by_role("grid", name="Tasks").press("Enter")
    page.locator("#task-form [name=name]").fill("The last one")
    page.get_by_role("button", name="Put into the draft").click()
    expect(added.locator('[data-column="name"]')).to_have_text("The last one")

    added.get_by_role("button", name="What to do with last").click()
    page.get_by_role("menuitem", name="Leave it out of the draft").click()
    expect(added).to_have_count(0)
    tray(page).get_by_role("button", name="Undo").click()
    expect(added).to_have_attribute("data-draft", "added")
    apply(page)
    expect(tray(page)).to_contain_text("Version 2 is made")
    expect(added).to_have_attribute("data-draft", "")
    expect(added.locator("input")).to_have_count(1)
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


@pytest.fixture
def boxes(page, tmp_path) -> Page:
    """A graph with PARALLEL completed tasks in one box, and one that waits for a file and can still be changed."""
    tasks = [f"  - {{task_id: part_{n:02}, tool: noop}}\n" for n in range(PARALLEL)]
    parts = ", ".join(f"part_{n:02}" for n in range(PARALLEL))
    hold = tmp_path / "hold"
    wait = f"while ! test -e {hold}; do sleep 0.05; done"
    tasks.append(f'  - {{task_id: join, device: laptop, after: [{parts}], command: [sh, -c, "{wait}"]}}\n')
    tasks.append("  - {task_id: review, tool: noop, after: [join]}\n")
    tasks += [f"  - {{task_id: more_{n:02}, tool: noop, after: [review]}}\n" for n in range(30)]
    submit(page, f"name: boxes\ntasks:\n{''.join(tasks)}")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(box(page)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator('[data-task="join"]')).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    page.locator("#fit").click()
    yield page
    hold.touch()


def box(page: Page):
    return page.locator('[data-task^="part_00 …"]')


def draw(page: Page, one, other) -> None:
    """A connection, by mouse, once the picture stands still: it glides to its place, and what ends moves others."""
    page.locator("#connect").click()
    one.hover()
    page.mouse.down()
    other.hover()
    page.mouse.up()


def test_a_connection_from_a_box_asks_and_then_comes_from_all_its_tasks_at_once(boxes):
    review = boxes.locator('[data-task="review"]')
    draw(boxes, box(boxes), review)
    asking = boxes.locator("dialog.asking")
    expect(asking.locator("h2")).to_have_text(f"Let review wait for all {PARALLEL} tasks?")
    asking.get_by_role("button", name="Not now").click()
    expect(tray(boxes)).to_be_hidden()

    draw(boxes, box(boxes), review)
    asking.get_by_role("button", name=f"Wait for all {PARALLEL}").click()
    expect(tray(boxes).locator(".operations li")).to_have_count(PARALLEL)
    expect(tray(boxes)).to_contain_text("review waits for part_13")
    tray(boxes).get_by_role("button", name="Undo").click()
    expect(tray(boxes).locator(".operations li")).to_have_count(0)
    tray(boxes).get_by_role("button", name="Redo").click()
    apply(boxes)
    expect(tray(boxes)).to_contain_text("Version 2 is made")


def test_a_connection_to_a_box_of_completed_tasks_says_why_it_is_none(boxes):
    draw(boxes, boxes.locator('[data-task="review"]'), box(boxes))
    expect(boxes.locator("#notice")).to_have_text(
        f"The {PARALLEL} tasks of that box have completed, so they wait for nothing any more."
    )
    expect(tray(boxes)).to_be_hidden()


def test_what_a_node_says_of_a_removed_task_stays_inside_it(run):  # noqa: F811
    script = "return input.map((name) => m.FIT.state(`Removed by ${name}, 17:26:24`));"
    short, long = run("graph/node_text.js", script, ["ann", "somebody-with-a-long-name"])
    assert short.startswith("Removed by ann, 17:")
    assert len(long) < len("Removed by somebody-with-a-long-name, 17:26:24")
    assert long.endswith("…")
