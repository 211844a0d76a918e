"""The graph edited where it is: by hand, by keyboard, by several at once, in a real browser against the real server."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import write_plan
from tests.browser.test_modules import anywhere, run  # noqa: F401

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
LAYOUT = """\
name: shared
tasks:
  - {{task_id: gate, device: laptop, command: [sh, -c, "while ! test -e {gate}; do sleep 0.05; done"]}}
  - {{task_id: hold, device: laptop, command: [sh, -c, "while ! test -e {hold}; do sleep 0.05; done"]}}
  - {{task_id: a, device: laptop, command: [echo, a], after: [hold]}}
  - {{task_id: b, device: laptop, command: [echo, b], after: [hold]}}
replan:
  - name: widen
    when: {{event: task_completed, task: gate}}
    edit: [{{add_task: {{task_id: extra, device: laptop, command: [echo, extra], after: [hold]}}}}]
"""


@pytest.fixture(autouse=True)
def patient():
    """What a page shows may come late on a busy machine: that it comes at all is what is tested."""
    expect.set_options(timeout=PATIENCE_MS)
    yield
    expect.set_options(timeout=None)


def begin(page: Page, tmp_path) -> None:
    """A session of which `a` and `b` wait until the file `hold` is there; the planner adds `extra` when `gate` is."""
    page.goto("/")
    page.get_by_label("Title").fill("shared")
    write_plan(page, LAYOUT.format(gate=tmp_path / "gate", hold=tmp_path / "hold"))
    page.get_by_role("button", name="Run").click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "b")).to_be_visible(timeout=PATIENCE_MS)


def node(page: Page, task_id: str):
    return page.locator(f'[data-task="{task_id}"]')


def tray(page: Page):
    return page.locator("#tray")


def change(page: Page, task_id: str, key: str, text: str) -> None:
    """Puts a change of one field into the draft."""
    node(page, task_id).click()
    page.locator("[data-command=edit]").click()
    page.locator(f"#task-form [name={key}]").fill(text)
    page.get_by_role("button", name="Put into the draft").click()


def apply(page: Page) -> None:
    page.get_by_role("button", name="Apply").click()


def log_in(installation, chromium, user: str, path: str) -> Page:
    page = chromium.new_context(base_url=installation.address, viewport={"width": 1280, "height": 800}).new_page()
    page.goto(installation.login_link(user))
    page.goto(path)
    return page


def graph_of(page: Page) -> dict[str, Any]:
    """What the server has: tasks and dependencies by their ids."""
    found = page.evaluate(
        """async () => {
          const session = location.pathname.split('/')[2];
          const [{ id }] = (await (await fetch(`/api/constellations/?session=${session}`)).json()).results;
          return (await fetch(`/api/constellations/${id}/`)).json();
        }"""
    )
    return {"version": found["version"], "tasks": sorted(task["task_id"] for task in found["tasks"])}


def drawn_on(page: Page) -> list[str]:
    return sorted(page.locator("[data-task]").evaluate_all("nodes => nodes.map((one) => one.dataset.task)"))


@pytest.fixture
def other(installation, chromium, page, tmp_path):
    """The page of another person, of the session that is begun on `page`."""
    begin(page, tmp_path)
    found = log_in(installation, chromium, "root", page.url)
    expect(node(found, "b")).to_be_visible(timeout=PATIENCE_MS)
    yield found
    (tmp_path / "hold").touch()
    (tmp_path / "gate").touch()
    found.context.close()


def test_a_form_that_cannot_be_had_says_so_and_comes_when_it_is_asked_for_again(page, tmp_path):
    begin(page, tmp_path)
    page.route("**/editing/forms/", lambda route: route.abort())
    node(page, "a").click()
    page.locator("[data-command=edit]").click()
    form = page.locator("#task-form")
    expect(form.get_by_role("alert")).to_contain_text("The form cannot be shown now")
    page.unroute("**/editing/forms/")
    form.get_by_role("button", name="Try again").click()
    expect(form.locator("[name=timeout]")).to_be_visible()
    expect(form.get_by_role("alert")).to_have_count(0)
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_a_button_that_is_pressed_stays_under_the_pointer_while_the_server_says_why_a_task_waits(page, tmp_path):
    begin(page, tmp_path)
    held = []
    page.route("**/api/tasks/*/why/", lambda route: held.append(route))
    with page.expect_request("**/api/tasks/*/why/"):
        node(page, "a").click()
    place = page.locator("[data-command=edit]").bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    with page.expect_response("**/api/tasks/*/why/"):
        for route in held:
            route.continue_()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.mouse.up()
    expect(page.locator("#task-form [name=timeout]")).to_be_visible()
    expect(page.locator("#drawer .why")).to_contain_text("hold")
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_two_people_and_the_planner_edit_at_once_and_see_the_same_graph(page, other, tmp_path):
    change(page, "a", "timeout", "40")
    expect(tray(page)).to_contain_text("Draft of 1 change, on version 1")
    change(other, "a", "timeout", "50")
    apply(other)
    expect(tray(other)).to_contain_text("Version 2 is made")

    # the first is told who clashes with the draft, before anything is sent
    expect(tray(page).locator(".meanwhile")).to_contain_text("root updated task a (timeout)")
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()
    (tmp_path / "gate").touch()
    expect(tray(page).locator(".meanwhile")).to_contain_text("planner added task extra", timeout=PATIENCE_MS)
    page.get_by_role("button", name="I have seen it").click()
    expect(tray(page).locator(".meanwhile")).to_have_count(0)
    apply(page)
    expect(tray(page)).to_contain_text("Version 4 is made")

    for each in (page, other):
        expect(node(each, "extra")).to_be_visible()
        expect(each.locator("#head .version")).to_contain_text("version 4")
    stands = graph_of(page)
    assert stands == {"version": 4, "tasks": ["a", "b", "extra", "gate", "hold"]}
    assert drawn_on(page) == drawn_on(other) == stands["tasks"]
    node(other, "a").click()
    expect(other.locator("#drawer [data-field=timeout]")).to_have_text(re.compile("^40(.0)? s$"))


def test_what_does_not_clash_is_made_on_top_of_what_others_changed(page, other):
    change(page, "a", "timeout", "40")
    change(other, "b", "timeout", "50")
    apply(other)
    expect(tray(page).locator(".meanwhile")).to_contain_text("The draft fits on top of it")
    apply(page)
    expect(tray(page)).to_contain_text("Version 3 is made, on top of what root changed meanwhile.")


def test_a_form_that_is_open_shows_what_somebody_else_changed(page, other):
    node(page, "a").click()
    page.locator("[data-command=edit]").click()
    page.locator("#task-form [name=name]").fill("Mine")
    change(other, "a", "timeout", "50")
    apply(other)
    expect(page.locator("#task-form .meanwhile")).to_contain_text("timeout")
    expect(page.locator("#task-form [name=timeout]")).to_have_value(re.compile("^50"))
    expect(page.locator("#task-form [name=name]")).to_have_value("Mine")


def test_drawing_dependencies_is_offered_beside_the_graph_only(page, tmp_path):
    begin(page, tmp_path)
    expect(page.locator("#connect")).to_be_visible()
    for tab in ("Timeline", "Table", "Log"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(page.locator("#connect")).to_be_hidden()
        expect(page.locator("#add-task")).to_be_visible()
    page.get_by_role("tab", name="Graph").click()
    expect(page.locator("#connect")).to_be_visible()
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_a_dependency_is_drawn_taken_back_and_made(page, tmp_path):
    begin(page, tmp_path)
    first, second = node(page, "a").bounding_box(), node(page, "b").bounding_box()
    page.locator("#connect").click()
    page.mouse.move(first["x"] + 30, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(second["x"] + 30, second["y"] + 20, steps=4)
    page.mouse.up()
    expect(tray(page).locator(".operations li")).to_have_count(1)
    expect(tray(page)).to_contain_text("b waits for a")
    expect(tray(page).locator('[data-effect="critical path"]')).to_contain_text("hold \u203a a \u203a b")
    tray(page).get_by_role("button", name="Undo").click()
    expect(tray(page).locator(".operations li")).to_have_count(0)
    tray(page).get_by_role("button", name="Redo").click()
    apply(page)
    expect(tray(page)).to_contain_text("Version 2 is made")
    (tmp_path / "hold").touch()
    expect(node(page, "b")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    (tmp_path / "gate").touch()


def test_a_dependency_gets_its_condition_and_a_refused_one_says_why_beside_its_field(page, tmp_path):
    begin(page, tmp_path)
    form = page.locator("#dependency-form")
    first, second = node(page, "a").bounding_box(), node(page, "b").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(first["x"] + 30, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(second["x"] + 30, second["y"] + 20, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(form.locator("h2")).to_have_text("b waits for a")
    form.locator("[name=condition]").fill("accuracy >")
    page.get_by_role("button", name="Put into the draft").click()
    expect(form.locator("[data-field=condition] .problem")).to_contain_text("the condition is not understood")
    expect(form.locator("[name=condition]")).to_be_focused()
    form.locator("[name=condition]").fill("accuracy > 0.9")
    page.get_by_role("button", name="Put into the draft").click()
    expect(tray(page)).to_contain_text("b waits for a (where accuracy > 0.9)")
    expect(tray(page).locator(".operations li")).to_have_count(1)
    apply(page)
    expect(tray(page)).to_contain_text("Version 2 is made")

    # one that is there: its type is changed from what the inspector says of it
    node(page, "b").click()
    page.get_by_role("button", name="Change how b waits for hold").click()
    form.locator("[name=type]").select_option("COMPLETION_ONLY")
    page.get_by_role("button", name="Put into the draft").click()
    expect(page.locator('[data-edge="hold b"]')).to_have_attribute("data-draft", "changed")
    apply(page)
    expect(tray(page)).to_contain_text("Version 3 is made")
    expect(page.locator('[data-edge="hold b"]')).to_have_attribute("data-type", "COMPLETION_ONLY")
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_a_refused_edit_says_why_beside_its_field(page, tmp_path):
    begin(page, tmp_path)
    node(page, "a").click()
    page.locator("[data-command=edit]").click()
    page.locator("#task-form [name=timeout]").fill("-3")
    page.get_by_role("button", name="Put into the draft").click()
    expect(page.locator("#task-form [data-field=timeout] .problem")).to_be_visible()
    expect(page.locator("#task-form [name=timeout]")).to_be_focused()
    expect(tray(page)).to_be_hidden()
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_a_task_is_added_tied_and_removed_by_keyboard_alone(page, tmp_path):
    begin(page, tmp_path)
    page.locator("#add-task").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#task-form [name=task_id]")).to_be_focused()
    page.keyboard.type("last")
    page.locator("#task-form [name=command]").focus()
    page.keyboard.type("echo done")
    page.locator("#task-form .primary").focus()
    page.keyboard.press("Enter")
    expect(tray(page)).to_contain_text("add last")
    apply_button = page.get_by_role("button", name="Apply")
    expect(apply_button).to_be_enabled()
    node(page, "b").focus()
    page.keyboard.press("Enter")
    page.locator("#drawer .connect input").focus()
    page.keyboard.type("a")
    page.keyboard.press("Enter")
    expect(tray(page)).to_contain_text("a waits for b")
    apply_button.focus()
    page.keyboard.press("Enter")
    expect(tray(page)).to_contain_text("Version 2 is made")
    expect(node(page, "last")).to_be_visible()
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_a_viewer_sees_the_graph_and_no_way_to_change_it(page, installation, chromium, tmp_path):
    begin(page, tmp_path)
    session = page.url.split("/")[-2]
    installation.manage(
        "shell", "--verbosity", "0", "--command",
        "from django.contrib.auth.models import User; from agents.models import Session;"
        f"Session.objects.filter(pk={session}).update(owner=User.objects.get(username='vic'))",
    )  # fmt: skip
    viewing = log_in(installation, chromium, "vic", page.url)
    expect(node(viewing, "a")).to_be_visible(timeout=PATIENCE_MS)
    node(viewing, "a").click()
    expect(viewing.locator("#drawer h2")).to_have_text("a")
    expect(viewing.locator("#drawer .commands, #add-task, #connect")).to_have_count(0)
    viewing.context.close()
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


DRAFT = """
const draft = new m.Draft();
for (const [op, parameters] of input) draft.add({ op, parameters }, 3);
return { texts: draft.operations.map(m.operationText), basedOn: draft.basedOn };
"""


@pytest.mark.parametrize(
    ("operations", "texts"),
    [
        ([("add_task", {"task_id": "x"}), ("update_task", {"task_id": "x", "timeout": 3})], ["add x"]),
        (
            [("update_task", {"task_id": "a", "name": "A"}), ("update_task", {"task_id": "a", "timeout": 3})],
            ["change a (name, timeout)"],
        ),
        ([("add_task", {"task_id": "x"}), ("add_dependency", {"from": "x", "to": "a"}), ("remove_task", {"task_id": "x"})], []),
        ([("update_task", {"task_id": "a", "name": "A"}), ("remove_task", {"task_id": "a"})], ["remove a"]),
        ([("add_dependency", {"from": "a", "to": "b"}), ("remove_dependency", {"from": "a", "to": "b"})], []),
        ([("add_dependency", {"from": "a", "to": "b"})] * 2, ["b waits for a"]),
        ([("remove_dependency", {"from": "a", "to": "b"})], ["b no longer waits for a"]),
        (
            [("add_dependency", {"from": "a", "to": "b"}), ("add_dependency", {"from": "a", "to": "b", "condition": "ok"})],
            ["b waits for a (where ok)"],
        ),
        (
            [("update_dependency", {"from": "a", "to": "b", "type": "COMPLETION_ONLY"})],
            ["change how b waits for a (completion only)"],
        ),
        (
            [("update_dependency", {"from": "a", "to": "b", "type": "x"}), ("remove_dependency", {"from": "a", "to": "b"})],
            ["b no longer waits for a"],
        ),
    ],
)  # fmt: skip
def test_a_draft_says_each_thing_once(run, operations, texts):  # noqa: F811
    assert run("session/edit/draft.js", DRAFT, json.loads(json.dumps(operations))) == {"texts": texts, "basedOn": 3}


def test_a_draft_goes_back_and_forth(run):  # noqa: F811
    script = """
    const draft = new m.Draft();
    const add = (id) => draft.add({ op: "remove_task", parameters: { task_id: id } }, 1);
    const seen = [];
    add("a"); add("b"); draft.undo(); seen.push(draft.operations.length, draft.canRedo);
    draft.redo(); seen.push(draft.operations.length); draft.undo(); add("c"); seen.push(draft.canRedo);
    draft.clear(); seen.push(draft.isEmpty, draft.canUndo, draft.basedOn);
    return seen;
    """
    assert run("session/edit/draft.js", script) == [1, True, 2, False, True, False, None]


def test_what_is_drafted_while_an_edit_is_under_way_stays(run):  # noqa: F811
    script = """
    const draft = new m.Draft();
    const change = (id, parameters) => draft.add({ op: "update_task", parameters: { task_id: id, ...parameters } }, 1);
    change("a", { timeout: 3 }); change("b", { timeout: 3 });
    const sent = draft.operations;
    change("b", { name: "B" }); change("c", { timeout: 3 });
    draft.made(sent, 2);
    const seen = [draft.operations.map(m.operationText), draft.basedOn, draft.canUndo];
    draft.made(draft.operations, 3);
    return [...seen, draft.isEmpty, draft.basedOn];
    """
    kept = ["change b (timeout, name)", "change c (timeout)"]
    assert run("session/edit/draft.js", script) == [kept, 2, False, True, None]


def test_a_draft_is_drawn_on_the_graph_before_it_is_made(page, tmp_path):
    begin(page, tmp_path)
    node(page, "b").click()
    page.locator("[data-command=remove]").click()
    expect(node(page, "b")).to_have_attribute("data-draft", "removed")
    expect(page.locator('[data-edge="hold b"]')).to_have_attribute("data-draft", "removed")
    change(page, "a", "timeout", "40")
    expect(node(page, "a")).to_have_attribute("data-draft", "changed")
    page.locator("#add-task").click()
    for key, text in (("task_id", "last"), ("device", "laptop"), ("command", "echo last"), ("after", "a")):
        page.locator(f"#task-form [name={key}]").fill(text)
    page.get_by_role("button", name="Put into the draft").click()
    expect(node(page, "last")).to_have_attribute("data-draft", "added")
    expect(node(page, "last").locator(".title")).to_have_text("+ last")
    expect(node(page, "last")).to_have_attribute("aria-label", re.compile("to be added"))
    expect(page.locator('[data-edge="a last"]')).to_have_attribute("data-draft", "added")
    expect(tray(page).locator('[data-effect="critical path"]')).to_contain_text("hold \u203a a \u203a last")

    # what is not there yet opens the form that it came from
    node(page, "last").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#task-form [name=task_id]")).to_have_value("last")
    page.keyboard.press("Escape")
    for _ in range(3):
        tray(page).get_by_role("button", name="Undo").click()
    expect(node(page, "last")).to_have_count(0)
    expect(page.locator('[data-draft]:not([data-draft=""]):is(.node, path)')).to_have_count(0)
    for _ in range(3):
        tray(page).get_by_role("button", name="Redo").click()
    apply(page)
    expect(tray(page)).to_contain_text("Version 2 is made")
    expect(node(page, "b")).to_have_count(0)
    expect(node(page, "last")).to_have_attribute("data-draft", "")
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


LAID = """
const rows = { task: new Map(), dependency: new Map() };
['a', 'b', 'c'].forEach((task_id, i) => rows.task.set(i, { id: i, task_id, constellation_id: 1, name: '', state: 'PENDING' }));
const tie = { id: 7, constellation_id: 1, dependency_id: 'd7', upstream_id: 0, downstream_id: 1, type: 'SUCCESS_ONLY' };
rows.dependency.set(7, tie);
const fold = { rows, seq: 1, table: (name) => rows[name], get: (name, id) => rows[name].get(id) };
const drafted = new m.DraftedFold(fold, { task: { name: '' }, dependency: { type: 'SUCCESS_ONLY' } });
drafted.lay(input.map(([op, parameters]) => ({ op, parameters })), 1);
const names = new Map([...drafted.table('task').values()].map((row) => [row.id, row.task_id]));
const marked = (name) => [...drafted.table(name).values()].filter((row) => row.draft);
const ends = (row) => `${names.get(row.upstream_id)} ${names.get(row.downstream_id)}`;
return {
  tasks: marked('task').map((row) => `${row.task_id} ${row.draft}`).sort(),
  edges: marked('dependency').map((row) => `${ends(row)} ${row.type} ${row.draft}`).sort(),
};
"""


@pytest.mark.parametrize(
    ("operations", "tasks", "edges"),
    [
        ([], [], []),
        ([("add_task", {"task_id": "x", "after": ["a"]})], ["x added"], ["a x SUCCESS_ONLY added"]),
        (
            [("add_dependency", {"from": "x", "to": "a"}), ("add_task", {"task_id": "x"})],
            ["x added"], ["x a SUCCESS_ONLY added"],
        ),
        ([("add_task", {"task_id": "x", "replaces": "a"})], ["x added"], ["x b SUCCESS_ONLY added"]),
        ([("remove_task", {"task_id": "a"})], ["a removed"], ["a b SUCCESS_ONLY removed"]),
        ([("update_task", {"task_id": "a", "name": "A"})], ["a changed"], []),
        ([("add_dependency", {"from": "b", "to": "c", "condition": "ok"})], [], ["b c CONDITIONAL added"]),
        ([("add_dependency", {"from": "a", "to": "b"})], [], []),
        ([("remove_dependency", {"dependency_id": "d7"})], [], ["a b SUCCESS_ONLY removed"]),
        ([("remove_dependency", {"from": "a", "to": "b"})], [], ["a b SUCCESS_ONLY removed"]),
        (
            [("update_dependency", {"from": "a", "to": "b", "type": "COMPLETION_ONLY"})],
            [], ["a b COMPLETION_ONLY changed"],
        ),
        ([("update_task", {"task_id": "nobody", "name": "A"})], [], []),
    ],
)  # fmt: skip
def test_a_draft_is_laid_over_the_rows_that_are_there(run, operations, tasks, edges):  # noqa: F811
    found = run("session/edit/drafted.js", LAID, json.loads(json.dumps(operations)))
    assert found == {"tasks": tasks, "edges": edges}


def test_a_task_that_was_removed_is_a_ghost_where_that_is_wanted(page, tmp_path):
    begin(page, tmp_path)
    node(page, "b").click()
    page.locator("[data-command=remove]").click()
    apply(page)
    expect(node(page, "b")).to_have_count(0)
    page.get_by_role("button", name="Removed", exact=True).click()
    expect(node(page, "b")).to_have_attribute("data-draft", "gone")
    expect(page.locator('[data-edge="hold b"]')).to_have_attribute("data-draft", "gone")
    expect(node(page, "b")).to_have_attribute("aria-label", re.compile(r"removed by you, \d\d:\d\d:\d\d"))

    page.get_by_role("button", name="Removed", exact=True).click()
    expect(node(page, "b")).to_have_count(0)

    # the edits know it, so a page that is opened later does, too
    page.reload()
    page.get_by_role("button", name="Removed", exact=True).click()
    expect(node(page, "b")).to_have_attribute("data-draft", "gone")
    node(page, "b").click()
    expect(page.locator("#edit-view h2")).to_have_text("Version 2")
    page.get_by_role("button", name="Take it back").click()
    expect(node(page, "b")).to_have_attribute("data-draft", "")
    expect(page.get_by_role("button", name="Removed", exact=True)).to_be_hidden()


REMOVE_MANY = """async ([names, ends]) => {
  const session = location.pathname.split('/')[2];
  const [{ id }] = (await (await fetch(`/api/constellations/?session=${session}`)).json()).results;
  const { makeEdit } = await import('/static/frontend/api.js');
  const more = { device: 'laptop', command: ['true'], after: ends };
  const edits = [
    names.map((task_id) => ({ op: 'add_task', parameters: { task_id, ...more } })),
    names.map((task_id) => ({ op: 'remove_task', parameters: { task_id } })),
  ];
  let based_on = 1;
  for (const operations of edits) {
    based_on = (await makeEdit(id, { operations, based_on, reason: '', edit_id: `many-${based_on}` })).version;
  }
}"""


def test_what_was_removed_before_the_latest_200_is_told_and_shown_when_it_is_asked_for(page, tmp_path):
    begin(page, tmp_path)
    page.evaluate(REMOVE_MANY, [[f"gone-{number:03}" for number in range(205)], ["hold"]])
    page.get_by_role("button", name="Removed", exact=True).click()
    shown = page.get_by_label("removed by you")
    earlier = page.get_by_role("button", name="and 5 more")
    expect(earlier).to_be_visible()
    expect(shown).to_have_count(200)
    earlier.focus()
    page.keyboard.press("Enter")
    expect(shown).to_have_count(205)
    expect(page.locator("#removed-earlier")).to_be_hidden()
    expect(page.locator("#removed")).to_be_focused()
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_the_table_edits_by_mouse_and_by_keyboard_alone(page, tmp_path):
    begin(page, tmp_path)
    page.get_by_role("tab", name="Table").click()
    grid, menu = page.locator(".table-scroll"), page.locator(".row-menu")
    row = page.locator('.table-rows .row:has([data-column="task_id"][title="a"])')
    row.locator('[data-column="menu"] button').click()
    page.get_by_role("menuitem", name="Change…").click()
    page.locator("#task-form [name=timeout]").fill("40")
    page.get_by_role("button", name="Put into the draft").click()
    expect(row).to_have_attribute("data-draft", "changed")

    grid.focus()
    page.keyboard.press("End")  # b, the last one
    page.keyboard.press("Shift+F10")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(grid).to_be_focused()
    page.keyboard.press("Shift+F10")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("menuitem", name="Let it wait for another…")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#dependency-form [name=from]")).to_be_focused()
    page.keyboard.type("b")
    page.keyboard.press("Enter")
    expect(page.locator("#dependency-form :is(.problem, .alarm)")).to_be_visible()
    page.locator("#dependency-form [name=from]").fill("a")
    page.locator("#dependency-form [name=from]").press("Enter")
    expect(tray(page)).to_contain_text("b waits for a")

    row.click(button="right")
    page.get_by_role("menuitem", name="Add a task after it…").click()
    for key, text in (("task_id", "last"), ("device", "laptop"), ("command", "echo last")):
        page.locator(f"#task-form [name={key}]").fill(text)
    page.get_by_role("button", name="Put into the draft").click()
    expect(tray(page)).to_contain_text("add last after a")
    apply(page)
    expect(tray(page)).to_contain_text("Version 2 is made")
    expect(page.locator('.table-rows [data-column="task_id"][title="last"]')).to_be_visible()

    started = page.locator('.table-rows .row:has([data-column="task_id"][title="hold"])')
    started.locator('[data-column="menu"] button').click()
    expect(menu.get_by_role("menuitem", name="Let another wait for it…")).to_be_visible()
    expect(menu.get_by_role("menuitem", name="Remove")).to_have_count(0)
    for name in ("hold", "gate"):
        (tmp_path / name).touch()


def test_what_others_change_is_told_by_name_and_marked_at_once(page, other):
    change(other, "a", "timeout", "50")
    expect(tray(other).locator(".operations li")).to_have_count(1)
    apply(other)
    told = page.locator("#others")
    expect(told.locator("li")).to_have_text(re.compile(r"root changed a\s.*\sversion 2", re.DOTALL))
    expect(node(page, "a")).to_have_attribute("data-draft", "theirs")
    expect(node(page, "a").locator(".state")).to_have_text("Changed by root")
    expect(page.locator("#head .version")).to_contain_text("last edited by root")
    expect(other.locator("#others")).to_be_hidden()
    node(page, "a").click()
    expect(page.locator('#drawer [data-field="last changed"]')).to_have_text(re.compile("^by root, "))

    # what was changed, by whom, and taken back: by whoever may
    told.get_by_role("button", name="version 2").click()
    expect(page.locator("#edit-view .diff")).to_contain_text("50")
    expect(page.locator("#edit-view b").first).to_have_text("root")
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("#head .version")).to_contain_text("version 3")
    expect(other.locator("#others li").first).to_contain_text("ann")
    told.get_by_role("button", name="Close the message").click()
    expect(told).to_be_hidden()
    expect(node(page, "a")).to_have_attribute("data-draft", "")
