"""What has ended goes on, by an operator's hand in a real browser: one task is retried, the graph reopened, and forked."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_admin_edit import shell

pytestmark = pytest.mark.browser

BEGIN = """
import json
from django.contrib.auth.models import User
from agents.services import sessions
ann = User.objects.get(username="ann")
ann.is_staff = True
ann.save()
session = sessions.session_create(ann, "goes on", by="system")
tasks = [
    {{"task_id": "a", "device": "laptop", "command": ["test", "-e", "{mark}"]}},
    {{"task_id": "b", "tool": "noop", "after": ["a"]}},
    {{"task_id": "c", "tool": "noop"}},
]
item, _ = sessions.request_submit(
    session.pk, "interaction", "", {{"plan": json.dumps({{"name": "run", "tasks": tasks}})}}, by=f"user:{{ann.pk}}"
)
print(json.dumps(item.pk))
"""
ENDED = """
import json, threading, time
from agents.models import InboxItem, Session
from constellations.models import Constellation
deadline, pause = time.monotonic() + 60, threading.Event()
session = Session.objects.order_by("id").last()
while InboxItem.objects.filter(session=session, state__in=("queued", "running")).exists() and time.monotonic() < deadline:
    pause.wait(0.05)
made = Constellation.objects.get(session=session)
told = dict(pk=made.pk, state=made.state, tasks=dict(made.tasks.values_list("task_id", "state")), title=made.session.title,
    failed=made.tasks.values_list("pk", flat=True).get(task_id="a"), forked_from=made.forked_from_id)
print(json.dumps(told))
"""
"""Of the newest session; other tests of the installation may have left some that run."""


@pytest.fixture
def ended(installation, tmp_path) -> dict:
    """A constellation of which a has FAILED, as long as nobody touches `mark`, b was skipped, and c is COMPLETED."""
    mark = tmp_path / "mark"
    shell(installation, BEGIN.format(mark=mark))
    return {**shell(installation, ENDED), "mark": mark}


def told(page: Page, text: str) -> None:
    expect(page.locator(".messagelist")).to_contain_text(text)


def add_task(page: Page, task_id: str):
    """Opens the changes, adds a form of a task, and names it."""
    changes = page.get_by_text("Changes to its tasks, as one edit")
    if not page.get_by_role("button", name="Add a task").is_visible():
        changes.click()
    page.get_by_role("button", name="Add a task").click()
    new = page.locator('[data-rows="tasks"] .o-task').last
    new.locator('[name$="-task_id"]').fill(task_id)
    return new


def test_a_task_is_retried_and_its_graph_reopened_and_forked(page, installation, ended):
    address = f"/admin/constellations/constellation/{ended['pk']}/change/"
    page.goto(address)
    page.locator('.o-graph .node[data-state="FAILED"]').click()
    ended["mark"].touch()
    page.get_by_role("button", name="Retry, with what is downstream").click()
    told(page, "tried again: a; it is reopened for that.")
    assert shell(installation, ENDED)["tasks"] == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}

    page.goto(address)
    page.get_by_role("link", name="Reopen ...").click()
    add_task(page, "d")
    page.get_by_label("Why").fill("one more")
    page.get_by_role("button", name="Reopen").click()
    wrong = page.locator(".o-task.o-wrong")
    expect(wrong.locator(".errorlist")).to_contain_text("a task needs a command, a tool or steps")
    expect(page.get_by_label("Why")).to_have_value("one more")
    wrong.get_by_label("Command").fill("true")
    wrong.get_by_label("Device", exact=True).fill("laptop")
    page.get_by_role("button", name="Reopen").click()
    told(page, "is being reopened.")
    assert shell(installation, ENDED)["tasks"]["d"] == "COMPLETED"
    page.get_by_role("link", name="what comes of it").click()
    expect(page.locator(".o-graph .node")).to_have_count(4)

    page.get_by_role("link", name="Fork ...").click()
    page.get_by_label("As it was after event").fill("1")
    page.get_by_label("Title").fill("another way")
    page.get_by_role("button", name="Fork").click()
    expect(page.get_by_role("alert")).to_contain_text("was not there at event 1; it began at event")
    page.get_by_label("As it was after event").fill("")
    new = add_task(page, "e")
    new.get_by_label("Command").fill("true")
    new.get_by_label("Device", exact=True).fill("laptop")
    page.get_by_role("button", name="Add a dependency").click()
    tied = page.locator('[data-rows="dependencies"] > *').last
    tied.locator('[name$="-upstream"]').fill("a")
    tied.locator('[name$="-downstream"]').fill("e")
    page.get_by_role("button", name="Fork").click()
    told(page, "is being forked.")
    fork = shell(installation, ENDED)
    assert (fork["title"], fork["forked_from"], fork["tasks"]["e"]) == ("another way", ended["pk"], "COMPLETED")
    page.get_by_role("link", name="what comes of it").click()
    page.wait_for_url(f"**/constellation/{fork['pk']}/change/")
    expect(page.locator(".o-head")).to_contain_text(f"forked from run ({ended['pk']}) at")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_fit_wide_and_narrow_in_light_and_dark(page, ended, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    place = "/admin/constellations"
    for path, button in (
        (f"constellation/{ended['pk']}/change/", "Retry what failed"),
        (f"constellation/{ended['pk']}/fork/", "Fork"),
        (f"constellation/{ended['pk']}/reopen/", "Reopen"),
        (f"task/{ended['failed']}/change/", "Retry, with what is downstream"),
    ):
        page.goto(f"{place}/{path}")
        expect(page.get_by_role("button", name=button, exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
