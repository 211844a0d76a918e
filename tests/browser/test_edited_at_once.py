"""Two people in two browsers and a planner with a model edit one graph that runs: nothing is lost, and who clashes is told.

Issue 15, "Must show": all three see the same graph at the end. What the model thinks waits until the test lets it speak.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel
from tests.agents.llm.conftest import served
from tests.browser.conftest import PEOPLE, Installation
from tests.browser.test_dashboard import write_plan
from tests.browser.test_editing_in_place import apply, change, drawn_on, log_in, node, patient, tray  # noqa: F401  fixture
from tests.constellations.runs.weaving.conftest import command, edited, planned, task

pytestmark = pytest.mark.browser

PLAN = planned(
    task("gate"), command("hold", "true"),
    *(task(each, after=["hold"]) for each in ("a", "b", "old")),
    name="shared", thought="What waits for hold can be edited until somebody lets it run.",
)  # fmt: skip
LATE = edited(("update_task", {"task_id": "old", "timeout": 60}), thought="The old way needs more time.")
EXTRA = edited(
    ("add_task", task("extra", after=["b"])), ("update_task", {"task_id": "b", "timeout": 70}),
    thought="Then the extra one.",
)  # fmt: skip
NOTHING = edited(thought="All is as it should be.")
SCRIPT = [
    {"when": {}, "times": 1, "say": PLAN},
    {"when": {}, "times": 1, "say": LATE, "wait_for": "word"},
    {"when": {}, "times": 1, "say": EXTRA},
    {"when": {}, "say": NOTHING},
]


class Planner:
    """The model behind the planner: what it was asked, and the word on which it answers."""

    def __init__(self, model: ScriptedModel, address: str):
        self.model, self.address = model, address

    def go_on(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/go_on/word", method="POST")).close()


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    model = ScriptedModel(read_script(yaml.safe_dump({"answers": SCRIPT})))
    with served(model) as address:
        yield Planner(model, address)


@pytest.fixture(scope="module")
def shared(planner, tmp_path_factory) -> Iterator[Installation]:
    """An installation of its own: with a model, the others' pages would be different."""
    made = Installation(tmp_path_factory.mktemp("shared"), LLM_BASE_URL=f"{planner.address}/v1", LLM_MODEL="test-model")
    made.manage("migrate", "--verbosity", "0")
    made.manage("shell", "--verbosity", "0", "--command", PEOPLE)
    made.start()
    yield made
    made.stop()


def rows_of(page: Page) -> dict[str, Any]:
    """What the database has, by the names that people know."""
    found = page.evaluate(
        """async () => {
          const session = location.pathname.split('/')[2];
          const [{ id }] = (await (await fetch(`/api/constellations/?session=${session}`)).json()).results;
          return (await fetch(`/api/constellations/${id}/`)).json();
        }"""
    )
    names = {one["id"]: one["task_id"] for one in found["tasks"]}
    edges = sorted(f"{names[one['upstream_id']]} {names[one['downstream_id']]}" for one in found["dependencies"])
    return {"version": found["version"], "tasks": sorted(names.values()), "edges": edges}


def picture_of(page: Page) -> dict[str, Any]:
    """What a person sees on the graph, in the words of `rows_of`."""
    version = re.search(r"version (\d+)", page.locator("#head .version").inner_text())
    edges = page.locator("path[data-edge]").evaluate_all("paths => paths.map((one) => one.dataset.edge).sort()")
    assert version is not None
    return {"version": int(version[1]), "tasks": drawn_on(page), "edges": edges}


def test_two_people_and_the_planner_end_with_one_graph_and_every_clash_is_told(shared, chromium, planner):
    ann = log_in(shared, chromium, "ann", "/")
    write_plan(ann, "Do a and b once it may begin, and the old thing as well.")
    ann.get_by_role("button", name="Run").click()
    ann.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(ann, "old")).to_be_visible()
    root = log_in(shared, chromium, "root", ann.url)
    expect(node(root, "old")).to_be_visible()

    # two drafts at once, of the same field; and the planner thinks about an edit of what root removes
    change(ann, "a", "timeout", "40")
    expect(tray(ann)).to_contain_text("Draft of 1 change, on version 1")
    change(root, "a", "timeout", "50")
    node(root, "old").click()
    root.locator("[data-command=remove]").click()
    expect(tray(root)).to_contain_text("Draft of 2 changes, on version 1")
    apply(root)
    expect(tray(root)).to_contain_text("Version 2 is made")

    # told: ann beside the draft, by name, and nothing of hers is sent
    expect(tray(ann).locator(".meanwhile")).to_contain_text("root")
    expect(tray(ann).locator(".meanwhile")).to_contain_text("updated task a (timeout)")
    expect(ann.get_by_role("button", name="Apply")).to_be_disabled()

    # told: the planner, in its conversation, with the graph as it is now
    planner.go_on()
    for each in (ann, root):
        expect(node(each, "extra")).to_be_visible()
    refused = planner.model.asked[2].last
    assert "there is no task old" in refused
    assert "nothing of it has been done" in refused

    # ann's draft is still there, on top of both
    expect(tray(ann).locator(".meanwhile")).to_contain_text("planner")
    ann.get_by_role("button", name="I have seen it").click()
    expect(tray(ann).locator(".meanwhile")).to_have_count(0)
    apply(ann)
    expect(tray(ann)).to_contain_text("Version 4 is made")

    for each in (ann, root):
        expect(each.locator("#head .version")).to_contain_text("version 4")
    stands = rows_of(ann)
    assert stands == {
        "version": 4, "tasks": ["a", "b", "extra", "gate", "hold"], "edges": ["b extra", "hold a", "hold b"],
    }  # fmt: skip
    assert picture_of(ann) == picture_of(root) == stands
    for each, timeout in (("a", 40), ("b", 70)):
        for page in (ann, root):
            node(page, each).click()
            expect(page.locator("#drawer [data-field=timeout]")).to_have_text(re.compile(rf"^{timeout}(\.0)? s$"))

    # what all three made runs to its end, the planner sees it, and the streams say what the rows say
    ann.get_by_role("button", name="Close the details").click()
    ann.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True).click()
    for each in (ann, root):
        expect(node(each, "extra")).to_have_attribute("data-state", "COMPLETED")
    shared.manage("verify")
    for each in (ann, root):
        each.context.close()
