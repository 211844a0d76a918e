"""The seeds' edit made by hand in the admin, by an operator who is staff, in a real browser."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

BEGIN = """
import json, threading, time
from django.contrib.auth.models import User
from agents.services import sessions
from constellations.models import Task
ann = User.objects.get(username="ann")
ann.is_staff = True
ann.save()
session = sessions.session_create(ann, "by hand", by="system")
names = ["task_001", "task_002", "task_003", "task_004", "last"]
tasks = [{"task_id": name, "tool": "noop", "after": names[max(place - 1, 0):place]} for place, name in enumerate(names)]
del tasks[2]["tool"]
tasks[2] |= {"command": ["sleep", "600"], "device": "laptop"}
plan = json.dumps({"name": "seed", "tasks": tasks})
sessions.request_submit(session.pk, "interaction", "", {"plan": plan}, by="system")
deadline, pause = time.monotonic() + 60, threading.Event()
runs = Task.objects.filter(constellation__session=session, task_id="task_003", state="RUNNING")
while not runs.exists() and time.monotonic() < deadline:
    pause.wait(0.05)
print(json.dumps([runs.get().constellation_id, session.pk]))
"""
END = """
from constellations.services.lifecycle import constellation_cancel
constellation_cancel({made}, by="system")
print("{{}}")
"""
LOOK = """
import json
from constellations.models import Constellation
made = Constellation.objects.get(pk={made})
edit = made.edits.get()
told = dict(tasks=sorted(made.tasks.values_list("task_id", flat=True)), version=made.version, reason=edit.reason,
    lines=sorted(made.dependencies.values_list("dependency_id", flat=True)), author=edit.author, diff=edit.diff)
print(json.dumps(told))
"""


def shell(installation, code: str):
    return json.loads(installation.manage("shell", "--verbosity", "0", "--command", code).splitlines()[-1])


@pytest.fixture
def planted(installation) -> Iterator[tuple[int, int]]:
    """(constellation, session): task_003 runs, task_004 and last wait for it."""
    made, session = shell(installation, BEGIN)
    yield made, session
    shell(installation, END.format(made=made))


def card(page: Page, name: str, kind: str = "task"):
    return page.locator(f"fieldset.o-{kind}").filter(has=page.locator("legend", has_text=re.compile(rf"^\s*{name}\b")))


def test_the_seeds_edit_is_made_by_hand_and_is_one_edit(page, installation, planted):
    made, _ = planted
    page.goto(f"/admin/constellations/constellation/{made}/change/")
    expect(page.locator(".o-graph .node")).to_have_count(5)
    page.get_by_role("button", name="Add a task").click()
    fresh = card(page, "New task")
    expect(fresh.get_by_label("Task id")).to_be_focused()
    fresh.get_by_label("Task id").fill("task_005")
    fresh.get_by_label("Command").fill("make report")
    page.get_by_role("button", name="Add a dependency").click()
    line = card(page, "New dependency", "dependency")
    line.get_by_label("From").fill("task_003")
    line.get_by_label("To").fill("task_005")
    card(page, "task_004").get_by_label("Remove").check()
    page.get_by_role("button", name="What would follow?").click()
    expect(page.locator(".o-preview")).to_contain_text("removed task task_004")
    page.get_by_label("Why", exact=True).fill("as the seed has it")
    page.get_by_role("button", name="Save as one edit").click()
    expect(page.locator(".messagelist")).to_contain_text("Saved as version 2: removed task task_004, added task task_005")
    expect(page.locator(".o-graph .node").filter(has_text="task_005")).to_have_count(1)
    told = shell(installation, LOOK.format(made=made))
    assert told["tasks"] == ["last", "task_001", "task_002", "task_003", "task_005"]
    assert told["lines"] == ["task_001>task_002", "task_002>task_003", "task_003>task_005"]
    assert (told["version"], told["reason"]) == (2, "as the seed has it")
    assert {each["change"] for each in told["diff"]} == {"added", "removed"}


def test_a_save_that_is_refused_keeps_what_was_typed_and_says_where(page, planted):
    made, _ = planted
    page.goto(f"/admin/constellations/constellation/{made}/change/")
    card(page, "task_004").get_by_label("Device").fill("moon")
    card(page, "last").get_by_label("Description").fill("typed\nin two lines")
    page.get_by_role("button", name="Save as one edit").click()
    expect(page.locator(".errornote")).to_contain_text("Nothing was saved. What you typed is still here.")
    expect(card(page, "task_004").locator(".errorlist")).to_contain_text("there is no device moon")
    expect(card(page, "last").get_by_label("Description")).to_have_value("typed\nin two lines")
    card(page, "task_004").get_by_label("Device").fill("laptop")
    page.get_by_role("button", name="Save as one edit").click()
    expect(page.locator(".messagelist")).to_contain_text("Saved as version 2")


def test_an_edit_in_the_admin_is_live_in_the_dashboard(page, installation, planted):
    made, session = planted
    other = page.context.new_page()
    other.goto(f"/sessions/{session}/")
    expect(other.locator('.node[data-state="COMPLETED"]')).to_have_count(2)
    page.goto(f"/admin/constellations/constellation/{made}/change/")
    page.get_by_role("button", name="Add a task").click()
    card(page, "New task").get_by_label("Task id").fill("brand_new")
    card(page, "New task").get_by_label("Tool").fill("noop")
    page.get_by_role("button", name="Save as one edit").click()
    expect(page.locator(".messagelist")).to_contain_text("Saved as version 2")
    expect(other.locator(".node").filter(has_text="brand_new")).to_have_count(1)


def test_lists_name_who_asked_and_the_own_page_of_a_task_has_what_watches_over_its_calls(page, installation, planted):
    made, session = planted
    page.goto(f"/admin/agents/event/?session={session}")
    expect(page.locator("td.field-by").first).to_have_text("constellation agent of by hand")
    page.goto(f"/admin/constellations/constellation/{made}/change/")
    card(page, "task_004").get_by_role("link", name="task_004").click()
    page.get_by_label("Policies").fill('[{"tool": "command"}]')
    page.get_by_role("button", name="Save as one edit").click()
    expect(card(page, "task_004").locator(".o-policies .errorlist")).to_contain_text("a policy needs a decision")
    page.get_by_label("Policies").fill('[{"tool": "command", "decision": "ask"}]')
    page.get_by_label("When it is stuck").fill('{"stuck_threshold": 5}')
    page.get_by_role("button", name="Save as one edit").click()
    expect(page.locator(".messagelist")).to_contain_text("Saved as version 2: updated task task_004")
    page.goto(f"/admin/constellations/edit/?constellation={made}")
    expect(page.locator("td.field-author")).to_have_text("ann")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_wide_and_narrow_in_light_and_dark(page, planted, scheme, width):
    made, _ = planted
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/admin/constellations/constellation/{made}/change/")
    expect(page.locator("fieldset.o-task").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.get_by_role("button", name="Save as one edit")).to_be_in_viewport()
    for button in ("Pause", "Cancel ..."):
        expect(page.get_by_role("button", name=button)).to_be_visible()
    assert page.evaluate(CONTRASTS) == []


CONTRASTS = """() => {
  // Texts of the picture that have less than 4.5:1 against what is behind them.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (color) => rgb(color).map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const ratio = (one, two) => (Math.max(light(one), light(two)) + 0.05) / (Math.min(light(one), light(two)) + 0.05);
  return [...document.querySelectorAll(".o-graph .node")].flatMap((box) => {
    const ground = getComputedStyle(box.querySelector(".box")).fill;
    return [...box.querySelectorAll("text")]
      .filter((text) => ratio(getComputedStyle(text).fill, ground) < 4.5)
      .map((text) => text.textContent);
  });
}"""
