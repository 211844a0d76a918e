"""A session larger than one message of the websocket may be: its graph is built, shown again and cancelled."""

import json
import re
from collections import Counter

import pytest
from playwright.sync_api import Page, WebSocket, expect

pytestmark = pytest.mark.browser

PATIENCE_MS = 90_000
TASKS = 5_000
GATE = 'task_id: gate, device: laptop, command: [sleep, "600"]'


def large_plan() -> str:
    """All tasks but the first wait for it."""
    said = "description: waits for the gate like all the others, tool: noop, after: [gate]"
    rest = (f"  - {{task_id: t{number:04}, name: Task {number} of many, {said}}}" for number in range(1, TASKS))
    return "\n".join(["name: large", "tasks:", f"  - {{{GATE}}}", *rest])


class Frames:
    """Counts what comes over the page's websockets, by type."""

    def __init__(self, page: Page):
        self.types: Counter[str] = Counter()
        self.largest = 0
        page.on("websocket", self._listen)

    def _listen(self, opened: WebSocket) -> None:
        self.types.clear()
        opened.on("framereceived", self._count)

    def _count(self, frame: str | bytes) -> None:
        self.largest = max(self.largest, len(frame))
        self.types[json.loads(frame)["type"]] += 1


def test_a_graph_of_thousands_is_built_shown_again_and_cancelled(page):
    frames = Frames(page)
    page.get_by_label("Title").fill("large")
    page.get_by_label("File").set_input_files({"name": "large.yaml", "mimeType": "text/yaml", "buffer": large_plan().encode()})
    expect(page.locator("textarea[name=plan]")).to_have_value(large_plan())
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"), timeout=PATIENCE_MS)
    graph = page.locator("#graph")
    expect(graph).to_have_attribute("data-tasks", str(TASKS), timeout=PATIENCE_MS)
    expect(page.locator("#counters")).to_contain_text("1 running", timeout=PATIENCE_MS)

    page.reload()
    expect(graph).to_have_attribute("data-tasks", str(TASKS), timeout=PATIENCE_MS)
    assert frames.types["snapshot"] == 0
    expect(page.locator("#progress .count")).to_have_text("0 of 5,000 tasks ended")

    page.route("**/snapshot/", lambda route: route.abort())  # then the websocket brings all
    page.reload()
    expect(graph).to_have_attribute("data-tasks", str(TASKS), timeout=PATIENCE_MS)
    assert frames.types["snapshot"] > 10
    expect(page.locator("#progress .count")).to_have_text("0 of 5,000 tasks ended")

    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the session").click()
    expect(page.locator("#progress .count")).to_have_text("5,000 of 5,000 tasks ended", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    assert frames.types["part"] > 0
    assert frames.largest < 300_000
