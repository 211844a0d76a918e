"""The inspector as a person uses it: a task's steps and history, an agent's machine, an edit, the events by filter."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import node, submit, write_plan
from tests.browser.test_modules import anywhere, run  # noqa: F401

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
PLAN = """\
name: stepwise
tasks:
  - task_id: walk
    device: laptop
    steps:
      - {command: [echo, one small step]}
      - {command: [sh, -c, "while ! test -e GATE; do sleep 0.05; done"]}
  - {task_id: after, device: laptop, command: [echo, after], after: [walk]}
"""


@pytest.fixture
def walking(page: Page, tmp_path):
    """A task of two steps that is at its second one until the test ends."""
    page.goto("/")
    write_plan(page, PLAN.replace("GATE", str(tmp_path / "gate")))
    page.get_by_role("button", name="Run").click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(page.locator('[data-task="walk"]')).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    yield page
    (tmp_path / "gate").touch()


def test_the_steps_of_a_task_open_by_click_and_stay_open_while_events_come(walking, tmp_path):
    walking.locator('[data-task="walk"]').click()
    steps = walking.locator("#drawer .steps li")
    expect(steps).to_have_count(2, timeout=PATIENCE_MS)
    first = steps.first.locator("summary")
    first.click()
    expect(steps.first.locator("details")).to_contain_text("one small step")
    first.focus()
    (tmp_path / "gate").touch()
    expect(walking.locator("#drawer .state")).to_contain_text("Completed", timeout=PATIENCE_MS)
    expect(steps.first.locator("details")).to_have_attribute("open", "")
    expect(first).to_be_focused()
    walking.get_by_text("History", exact=True).click()
    expect(walking.locator("#drawer [data-part=history]")).to_contain_text("COMPLETED")


def test_a_task_that_waits_says_why_and_can_be_skipped(walking):
    walking.locator('[data-task="after"]').click()
    expect(walking.locator("#drawer .why")).to_contain_text("waits for walk")
    walking.locator("[data-command=skip]").click()
    walking.get_by_label("Reason").last.fill("not needed")
    walking.get_by_role("button", name="Skip it").click()
    expect(walking.locator("#drawer .state")).to_contain_text("Cancelled", timeout=PATIENCE_MS)
    expect(walking.locator("[data-command=skip]")).to_have_count(0)


def test_an_agents_machine_is_drawn_with_its_state_lit(walking):
    walking.locator('[data-task="walk"]').click()
    walking.get_by_role("link", name="its machine").click()
    lit = walking.locator("#agent-view .diagram [data-lit]")
    expect(lit).to_have_count(1)
    state = re.compile(f"^{lit.get_attribute('data-state')}(:|$)")  # the chip has words, and the machine's own name on hover
    expect(walking.locator("#agent-view .state .chip").first).to_have_attribute("title", state)
    walking.get_by_text("Transitions", exact=True).click()
    expect(walking.locator("#agent-view [data-part=transitions] tbody tr").first).to_be_visible()
    walking.keyboard.press("Escape")
    expect(walking.locator("#agent-view")).to_be_hidden()


def test_an_edit_shows_what_it_changed_by_whom_and_is_taken_back(walking):
    walking.locator('[data-task="after"]').click()
    walking.locator("[data-command=edit]").click()
    walking.locator("#task-form [name=timeout]").fill("40")
    walking.get_by_role("button", name="Put into the draft").click()
    walking.locator("#tray").get_by_label("Reason").fill("it takes longer")
    walking.get_by_role("button", name="Apply").click()
    walking.locator("#head .version button").click()
    shown = walking.locator("#edit-view")
    expect(shown).to_contain_text("Edited by you")
    expect(shown).to_contain_text("it takes longer")
    expect(shown.locator("[data-change=updated]")).to_contain_text("timeout")
    expect(shown.locator("ins")).to_have_text(re.compile("^40"))
    shown.get_by_role("button", name="Take it back").click()
    expect(shown).to_contain_text("It was taken back: version 3")


def test_events_are_filtered_by_kind_and_by_words(walking):
    feed = walking.locator("#feed li:visible")
    expect(feed.nth(2)).to_be_visible()
    walking.get_by_label("With words").fill("walk")
    expect(walking.locator("#feed li:visible").filter(has_not_text="walk")).to_have_count(0)
    expect(feed.first).to_contain_text("walk")
    walking.get_by_label("With words").fill("no such words")
    expect(feed).to_have_count(0)


def test_a_device_opens_with_what_of_the_session_runs_there(walking, tmp_path):
    walking.locator('[data-task="walk"]').click()
    walking.locator("#drawer [data-field=device] a").click()
    view = walking.locator("#device-view")
    expect(view.locator("h2")).to_have_text("laptop")
    expect(view.locator("section").filter(has_text="Runs here now")).to_contain_text("walk")
    (tmp_path / "gate").touch()
    expect(view.locator("section").filter(has_text="Has run here")).to_contain_text("after", timeout=PATIENCE_MS)
    view.get_by_role("button", name="All of it").click()
    expect(walking.locator("dialog#device")).to_contain_text("laptop", timeout=PATIENCE_MS)
    walking.keyboard.press("Escape")
    view.get_by_role("link", name="walk").click()
    expect(walking.locator("#drawer h2")).to_have_text("walk")


ASKING = """\
name: asking
tasks:
  - {task_id: careful, device: laptop, command: [echo, careful], confirm: true}
"""


def test_a_settled_approval_says_what_was_allowed_and_by_whom(page: Page):
    page.goto("/")
    write_plan(page, ASKING)
    page.get_by_role("button", name="Run").click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    page.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True).click()
    careful = page.locator('[data-task="careful"]')
    expect(careful).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    careful.click()
    page.locator("#drawer .approvals a").click()
    view = page.locator("#approval-view")
    expect(view.locator(".fate")).to_contain_text("It was approved by you")
    expect(view.locator(".action")).to_contain_text("echo careful")
    view.get_by_role("link", name="careful").click()
    expect(page.locator("#drawer h2")).to_have_text("careful")


PLANNED = """
const stands = { machine: 'device_agent', state: 'CONTINUE', reason: '', entered_at: null };
const agent = { id: 1, name: 'coder', ...stands, blackboard: {}, plan: input };
const tables = { agent: new Map([[1, agent]]) };
const fold = { table: (name) => tables[name] ?? new Map(), get: (name, id) => tables[name]?.get(id) };
const host = document.body.appendChild(document.createElement('section'));
const standings = new (await import("/static/frontend/session/standings.js")).Standings(fold, { me: "user:1", refusal: "" });
const store = { fold, standings, config: {}, isLive: true, now: () => Date.now(), select() {} };
new m.AgentView(host, { store, outbox: null }).open(1);
const found = host.querySelector('.its-plan');
const line = (one) => `${one.dataset.status}: ${one.textContent.trim()}`;
return found && [found.querySelector('h3').textContent, ...[...found.querySelectorAll('li')].map(line)];
"""


def test_an_agent_shows_the_plan_of_its_coding_device(run):  # noqa: F811
    steps = [("Read the code", "completed"), ("Change it", "in_progress"), ("Test it", "pending")]
    found = run("session/inspect/agent.js", PLANNED, [{"content": text, "status": status} for text, status in steps])
    assert found == [
        "Its plan, 1 of 3 parts done", "completed: \u2713 Read the code completed",
        "in_progress: \u25b8 Change it in progress", "pending: \u25cb Test it pending",
    ]  # fmt: skip
    assert run("session/inspect/agent.js", PLANNED, []) is None


WRONG = {"tool": "edit_file", "arguments": {"path": "diary.txt", "old": "the answer", "new": "42"}, "on_failure": "continue"}
STUCK = {"tasks": [{"task_id": "loops", "device": "laptop", "steps": [{"command": "touch diary.txt"}, *[WRONG] * 8]}]}


def test_a_stuck_task_says_so_in_words_and_its_feed_has_no_names_of_machines(page: Page):
    submit(page, json.dumps(STUCK))
    node(page, "loops").click(timeout=PATIENCE_MS)
    drawer = page.locator("#drawer")
    expect(drawer.locator(".state")).to_contain_text("stuck: ", timeout=PATIENCE_MS)
    told = drawer.locator(".steps li").filter(has_text="told").first
    expect(told).to_contain_text("diary.txt")
    expect(told.locator("summary")).not_to_contain_text("{")
    page.get_by_role("button", name="Close the details").click()
    ended = page.locator("#feed li").filter(has_text="Agent of loops on laptop failed").locator(".said")
    expect(ended).to_have_attribute("title", "CONTINUE → FAIL")


def test_events_that_come_while_the_earlier_ones_are_read_stay_in_the_feed(page: Page, tmp_path):
    """The answer about the earlier ones comes when the work has ended."""
    held: list = []
    page.route(re.compile(r"/events/"), lambda route: held.append(route))
    gate = tmp_path / "seen"
    wait = f"while ! test -e {gate}; do sleep 0.05; done"
    submit(page, json.dumps({"tasks": [{"task_id": "only", "device": "laptop", "command": ["sh", "-c", wait]}]}))
    expect(node(page, "only")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    gate.touch()
    expect(node(page, "only")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    rows = page.locator("#feed li")
    expect(rows.filter(has_text="only completed")).to_have_count(1)
    assert held
    for route in held:
        route.continue_()
    expect(rows.filter(has_text="The session was opened")).to_have_count(1)
    expect(rows.filter(has_text="only completed")).to_have_count(1)
    told = [int(row.get_attribute("data-seq")) for row in rows.all()]
    assert told == sorted(told, reverse=True)
