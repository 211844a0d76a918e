"""Commands during an outage: the page says what became of each, sends again what may be, and the server does each once."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.halves import until
from tests.browser.test_dashboard import node, submit
from tests.browser.test_modules import anywhere, run  # noqa: F401

pytestmark = pytest.mark.browser

PATIENCE_MS = 90_000
PLAN = """\
name: commanded
tasks:
  - task_id: only
    device: laptop
    command: [sh, -c, "while ! test -e {gate}; do sleep 0.05; done"]
  - task_id: other
    device: laptop
    command: [echo, done]
    after: [only]
"""
GATED = """\
name: gated
tasks:
  - task_id: gated
    device: laptop
    confirm: true
    command: [echo, hello]
"""


class Way:
    """The way of requests to the server: which get there, and of which the answer is lost on its way back."""

    def __init__(self, page: Page):
        self.page = page
        self.asked: list[str] = []
        """Client ids, as often as they came to the server."""
        self.lost: list[str] = []
        """Those that never came there."""

    def loses(self, what: str, *, only_the_answer: bool = False, times: int = 1) -> None:
        def pass_on(route: Route) -> None:
            self.asked.append(self.id_of(route))
            route.continue_()

        def lose(route: Route) -> None:
            if only_the_answer:
                route.fetch()
                self.asked.append(self.id_of(route))
            else:
                self.lost.append(self.id_of(route))
            route.abort("connectionreset")

        self.page.route(what, pass_on)
        self.page.route(what, lose, times=times)

    @staticmethod
    def id_of(route: Route) -> str:
        body = json.loads(route.request.post_data or "{}")
        return body.get("client_id") or body.get("edit_id") or ""


@pytest.fixture
def way(page, tmp_path) -> Iterator[Way]:
    """A session's page of which one task runs until the file `gate` is there."""
    submit(page, PLAN.format(gate=tmp_path / "gate"))
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "only")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    yield Way(page)
    (tmp_path / "gate").touch()


def inbox_of(page: Page) -> list[dict]:
    """What the session was asked, as its stream has it."""
    return page.evaluate(
        """async () => {
          const session = location.pathname.split("/")[2];
          const { events } = await (await fetch(`/api/sessions/${session}/events/?limit=1000`)).json();
          return events.flatMap((event) => event.data.add?.inbox ?? []);
        }"""
    )


def count_asked(page: Page, kind: str) -> int:
    return sum(row["kind"] == kind for row in inbox_of(page))


def cancel(page: Page) -> None:
    page.locator("#actor summary").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the session").click()


def test_what_never_came_is_sent_again_under_its_id_and_done_once(way):
    page, notice = way.page, way.page.locator("#notice")
    way.loses("**/commands/")
    page.locator("[data-command=pause]").click()
    expect(notice).to_have_text("Pause: taken, now that the connection is back.", timeout=PATIENCE_MS)
    assert way.asked == way.lost  # the same id
    assert count_asked(page, "pause") == 1
    expect(page.locator("#actor")).to_contain_text("pausing…", timeout=PATIENCE_MS)  # what runs goes on


def test_of_what_was_taken_only_the_answer_is_told_late(way):
    page, notice = way.page, way.page.locator("#notice")
    way.loses("**/commands/", only_the_answer=True)
    page.locator("[data-command=pause]").click()
    expect(notice).to_have_text("Pause was taken; only the answer was lost.", timeout=PATIENCE_MS)
    assert len(way.asked) == 1
    assert count_asked(page, "pause") == 1


def test_a_command_while_the_page_is_offline_says_so_and_goes_when_it_may(way):
    page, notice = way.page, way.page.locator("#notice")
    page.context.set_offline(True)
    page.locator("[data-command=pause]").click()
    expect(notice).to_have_text(
        "Pause: no answer, so nobody knows yet whether it was taken. It is sent again when the connection is back, within 30 s."
    )
    page.context.set_offline(False)
    expect(notice).to_have_text("Pause: taken, now that the connection is back.", timeout=PATIENCE_MS)
    assert count_asked(page, "pause") == 1


def test_a_cancel_is_never_sent_again(way):
    page, notice = way.page, way.page.locator("#notice")
    way.loses("**/commands/")
    cancel(page)
    expect(notice).to_have_text("Cancel was not taken, and is not sent again by itself.", timeout=PATIENCE_MS)
    assert way.asked == []
    assert count_asked(page, "cancel") == 0
    expect(node(page, "only")).to_have_attribute("data-state", "RUNNING")


def test_of_a_cancel_that_was_taken_the_page_says_so(way):
    page = way.page
    way.loses("**/commands/", only_the_answer=True)
    cancel(page)
    expect(page.locator("#notice")).to_have_text("Cancel was taken; only the answer was lost.", timeout=PATIENCE_MS)
    assert count_asked(page, "cancel") == 1


SLOW_STREAM = """
const told = [];
let known = 5;
const stream = { readHead: async () => 7, has: (seq) => known >= seq, isTaken: () => known >= 6 };
const outbox = new m.Outbox({ tell: (text) => told.push(text), truth: { isFresh: true }, stream });
await outbox.send("Cancel", async () => { throw new TypeError("reset"); });
for (known of input) {
  outbox.tick();
  await new Promise((resolve) => setTimeout(resolve)); // the server has said its head
}
return told.slice(1);
"""


def test_a_command_is_looked_for_when_the_page_has_what_the_server_had(run):  # noqa: F811
    """Its event may come later than what makes the connection good again."""
    assert run("session/outbox.js", SLOW_STREAM, [5, 5, 6]) == []
    assert run("session/outbox.js", SLOW_STREAM, [5, 7, 7]) == ["Cancel was taken; only the answer was lost."]


LOST_TWICE = """
const told = [];
const sent = [];
let [known, head] = [5, 5];
const stream = { readHead: async () => head, has: (seq) => known >= seq, isTaken: () => known >= 7 };
const outbox = new m.Outbox({ tell: (text) => told.push(text), truth: { isFresh: true }, stream });
const call = async (id) => { sent.push(id); throw new TypeError("reset"); };
const tick = async () => { outbox.tick(); await new Promise((resolve) => setTimeout(resolve)); };
await outbox.send("Pause", call, () => "as before");
await tick(); // is not there: sent again, and taken with event 7
head = 7;
await tick();
known = 7;
await tick();
return [sent.length, new Set(sent).size, told.at(-1)];
"""


def test_what_was_lost_twice_is_looked_for_anew(run):  # noqa: F811
    assert run("session/outbox.js", LOST_TWICE) == [2, 1, "Pause was taken; only the answer was lost."]


def test_a_decision_is_never_sent_again(page):
    submit(page, GATED)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    button = page.locator("#waiting-panel").get_by_role("button", name="Approve", exact=True)
    expect(button).to_be_visible(timeout=PATIENCE_MS)
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/decision") else None)
    page.context.set_offline(True)
    button.click()
    expect(page.locator("#waiting-panel")).to_contain_text(
        "Nobody knows whether it was decided; it is not sent again by itself."
    )
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(node(page, "gated")).not_to_have_attribute("data-state", "COMPLETED")
    assert len(sent) == 1
    button.click()
    expect(node(page, "gated")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)


@pytest.fixture
def offline(page, tmp_path) -> Iterator[Page]:
    """A page with a clock that the test moves, which has asked for a pause while it was offline."""
    page.clock.install()
    submit(page, PLAN.format(gate=tmp_path / "gate"))
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "only")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    page.context.set_offline(True)
    page.locator("[data-command=pause]").click()
    expect(page.locator("#notice")).to_contain_text("no answer")
    yield page
    (tmp_path / "gate").touch()


def test_what_is_older_than_thirty_seconds_is_not_sent_again(offline):
    offline.clock.fast_forward("00:31")
    offline.context.set_offline(False)
    text = "Pause was not taken, and is too old to be sent again."
    expect(offline.locator("#notice")).to_have_text(text, timeout=PATIENCE_MS)
    assert count_asked(offline, "pause") == 0


def test_what_was_meant_for_something_that_has_changed_is_not_sent_again(offline, tmp_path):
    offline.clock.set_fixed_time(offline.evaluate("Date.now() / 1000"))
    (tmp_path / "gate").touch()
    where = re.sub(r"^.*/sessions/(\d+)/.*$", r"/api/sessions/\1/interactions/", offline.url)
    until(lambda: offline.request.get(where).json()["results"][0]["state"] == "done", "the end of the session")
    offline.context.set_offline(False)
    text = "Pause was not sent again: what it was meant for has changed."
    expect(offline.locator("#notice")).to_have_text(text, timeout=PATIENCE_MS)
    assert count_asked(offline, "pause") == 0
