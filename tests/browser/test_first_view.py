"""How a session's page comes: modules in one wave and kept, the first rows over HTTP, the websocket behind them."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, WebSocket, expect

from tests.browser.test_dashboard import PATIENCE_MS, PLAN, node, submit, wait_for_the_end

pytestmark = pytest.mark.browser

STATIC = """() => performance.getEntriesByType("resource").filter((one) => one.name.includes("/static/"))
    .map(({ name, transferSize, initiatorType }) => ({ name, transferSize, initiatorType }))"""


DRAWN = """
document.addEventListener("DOMContentLoaded", () => {
  const graph = document.querySelector("#graph");
  const frame = () => new Promise(requestAnimationFrame);
  new MutationObserver(async (_, observer) => {
    if (graph.dataset.tasks === "0") return;
    observer.disconnect();
    await frame(); // the one in which it is drawn...
    await frame();
    window.drawn = [document.querySelector("#empty").hidden, document.querySelector("#progress").innerText];
  }).observe(graph, { attributeFilter: ["data-tasks"] });
});
"""


class Heard:
    """What the page asks for, and what its websockets bring."""

    def __init__(self, page: Page):
        self.snapshots: list[str] = []
        self.joined: list[int | None] = []
        self.types: list[str] = []
        self.seqs: list[int] = []
        page.on("request", lambda asked: self.snapshots.append(asked.url) if "/snapshot/" in asked.url else None)
        page.on("websocket", self._listen)

    def _listen(self, opened: WebSocket) -> None:
        since = parse_qs(urlsplit(opened.url).query).get("since")
        self.joined.append(int(since[0]) if since else None)
        opened.on("framereceived", self._note)

    def _note(self, frame: str | bytes) -> None:
        message = json.loads(frame)
        self.types.append(message["type"])
        self.seqs += [event["seq"] for event in message.get("events", ())]


@pytest.fixture
def ended(page) -> Page:
    """A session whose two tasks have ended."""
    submit(page, PLAN, "looked at")
    wait_for_the_end(page)
    return page


def shown_seq(page: Page) -> int:
    return int(page.locator("body").get_attribute("data-seq") or 0)


def test_the_first_rows_come_once_over_http_and_the_websocket_goes_on_behind_them(ended):
    page = ended
    heard = Heard(page)
    page.reload()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=PATIENCE_MS)
    assert len(heard.snapshots) == 1
    assert heard.joined == [shown_seq(page)]
    assert "snapshot" not in heard.types


def test_with_the_graph_goes_what_says_that_there_is_none(ended):
    page = ended
    page.add_init_script(DRAWN)
    for _ in range(3):
        page.reload()
        expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
        )
        assert page.evaluate("window.drawn") == [True, "2 of 2 tasks ended"]


def test_what_happens_between_the_rows_and_the_websocket_is_missed_by_none_and_comes_once(ended):
    page = ended
    before = shown_seq(page)

    def hold(route: Route) -> None:
        """The answer is from before another request, which is there when it arrives."""
        answer = route.fetch()
        said = page.request.post(
            page.url.replace("/sessions/", "/api/sessions/") + "interactions/",
            data={"client_id": "meanwhile", "plan": PLAN},
            headers={"X-CSRFToken": csrf},
        )
        assert said.ok, said.text()
        route.fulfill(response=answer)

    csrf = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    page.route("**/snapshot/", hold)
    heard = Heard(page)
    page.reload()
    expect(page.locator("#requests > li")).to_have_count(2, timeout=PATIENCE_MS)
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    assert heard.joined[0] is not None
    assert before <= heard.joined[0]
    assert "snapshot" not in heard.types
    assert heard.seqs == list(range(heard.joined[0] + 1, heard.joined[0] + 1 + len(heard.seqs)))
    expect(page.locator("body")).to_have_attribute("data-seq", str(heard.seqs[-1]))


def test_without_the_rows_over_http_the_websocket_brings_them(ended):
    page = ended
    page.route("**/snapshot/", lambda route: route.abort())
    heard = Heard(page)
    page.reload()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    assert heard.joined == [None]
    assert "snapshot" in heard.types


def test_all_modules_are_asked_for_before_the_first_runs_and_a_second_look_asks_the_server_for_none(ended):
    page = ended
    page.reload()
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=PATIENCE_MS)
    asked = page.evaluate(STATIC)
    modules = {one["name"] for one in asked if one["name"].endswith(".js")}
    preloaded = set(page.locator("link[rel=modulepreload]").evaluate_all("(links) => links.map((link) => link.href)"))
    assert len(modules) > 50
    assert modules == preloaded
    assert [one["name"] for one in asked if one["transferSize"]] == []
