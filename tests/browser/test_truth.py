"""What a session's page says while web server, runners, net or the reader's machine are gone, and that it misses nothing."""

import os
import re
import signal
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import PEOPLE
from tests.browser.halves import Halves, until
from tests.browser.test_dashboard import node, submit
from tests.browser.test_modules import anywhere, run  # noqa: F401

pytestmark = pytest.mark.browser

PATIENCE_MS = 90_000
PLAN = """\
name: kept open
tasks:
  - task_id: first
    device: laptop
    command: [sh, -c, "while ! test -e {gate}; do sleep 0.05; done"]
  - task_id: second
    device: laptop
    command: [sh, -c, "while ! test -e {last}; do sleep 0.05; done"]
    after: [first]
"""
FAILS = """\
name: it fails
tasks:
  - task_id: only
    device: laptop
    command: ["false"]
"""
ELAPSED = "#head .elapsed"
STORED = """async ([session, seq]) => {
  const answer = await (await fetch(`/api/sessions/${session}/snapshot/?seq=${seq}`)).json();
  const { tablesOf } = await import("/static/frontend/session/snapshot.js");
  const tables = Object.entries(await tablesOf(answer.tables));
  return Object.fromEntries(tables.map(([name, rows]) => [name, Object.fromEntries(rows)]));
}"""
SPY = """
// The page's own socket, watched: every frame that it gets is kept, so that a test sees what the page was told.
window.told = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => window.told.push(data));
  }
};
"""


@pytest.fixture(scope="module")
def halves(tmp_path_factory) -> Iterator[Halves]:
    made = Halves(tmp_path_factory.mktemp("halves"), ORRERY_IDLE_S="2")
    made.manage("migrate", "--verbosity", "0")
    made.manage("shell", "--verbosity", "0", "--command", PEOPLE)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def context(halves, chromium) -> Iterator[BrowserContext]:
    """Of the operator, on an installation whose halves can be killed."""
    made = chromium.new_context(base_url=halves.address, viewport={"width": 1280, "height": 800})
    made.new_page().goto(halves.login_link())
    made.pages[0].close()
    yield made
    made.close()


@pytest.fixture
def opened(context, tmp_path) -> Page:
    """A session's page of which the first task runs until `gate` is there, the second until `last` is."""
    page = context.new_page()
    page.add_init_script(SPY)
    submit(page, PLAN.format(gate=tmp_path / "gate", last=tmp_path / "last"))
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    expect(node(page, "first")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    page.evaluate("window.marker = 'the same page'")
    return page


def session_of(page: Page) -> str:
    return re.search(r"/sessions/(\d+)/", page.url)[1]


def expect_to_know_nothing(page: Page, words: str) -> None:
    """The page says since when, dims, stops its clocks, and does not say how the session stands."""
    sign = page.locator("#connection")
    expect(sign).to_contain_text(re.compile(rf"^{words}.* · As of \d\d:\d\d:\d\d, .+ ago$"), timeout=PATIENCE_MS)
    expect(page.locator("body")).to_have_attribute("data-fresh", "false")
    expect(page.locator("#actor .chip")).to_have_text("Not known")
    assert float(page.locator("#view-graph").evaluate("node => getComputedStyle(node).opacity")) < 1
    stood, said = page.locator(ELAPSED).inner_text(), sign.inner_text()
    expect(sign).not_to_have_text(said, timeout=PATIENCE_MS)  # a second has passed for the page...
    assert page.locator(ELAPSED).inner_text() == stood  # ...and not for what it shows


def expect_to_know_all(page: Page, halves: Halves) -> None:
    """The same page, not loaded again, has what the server has: every event once, and the same rows."""
    expect(page.locator("#requests > li").first).to_have_attribute("data-outcome", "completed", timeout=PATIENCE_MS)
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(page.locator("body")).to_have_attribute("data-fresh", "true")
    expect(page.locator("#actor .chip")).to_have_text("Completed", timeout=PATIENCE_MS)
    assert page.evaluate("window.marker") == "the same page"
    told = page.evaluate("window.told.map((one) => JSON.parse(one))")
    seqs = [event["seq"] for message in told if message["type"] == "events" for event in message["events"]]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    seq = int(page.locator("body").get_attribute("data-seq"))
    assert seqs[-1] == seq
    for task_id in ("first", "second"):
        expect(node(page, task_id)).to_have_attribute("data-state", "COMPLETED")
    stored = page.evaluate(STORED, [session_of(page), seq])
    assert sorted(row["state"] for row in stored["task"].values()) == ["COMPLETED", "COMPLETED"]
    feed = page.locator("#feed li").evaluate_all("rows => rows.map((row) => Number(row.dataset.seq))")
    assert feed == sorted(set(feed), reverse=True)


def ends_on_the_server(halves: Halves, session: str) -> bool:
    code = f"from agents.models import InboxItem; print(InboxItem.objects.filter(session={session}, state='done').count())"
    return halves.manage("shell", "--verbosity", "0", "--command", code).splitlines()[-1] == "1"


def head_on_the_server(halves: Halves, session: str) -> int:
    code = f"from agents.models import Stream; print(Stream.objects.get(pk={session}).head)"
    return int(halves.manage("shell", "--verbosity", "0", "--command", code).splitlines()[-1])


def test_the_web_server_is_killed_under_an_open_page(opened, halves, tmp_path):
    halves.kill("web")
    expect_to_know_nothing(opened, "Connection lost")
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()
    until(lambda: ends_on_the_server(halves, session_of(opened)), "the end of the session, which nobody sees")
    assert node(opened, "first").get_attribute("data-state") == "RUNNING"
    halves.start_web()
    expect_to_know_all(opened, halves)


def test_the_runners_are_killed_and_others_go_on(opened, halves, tmp_path):
    halves.kill("runners")
    chip = opened.locator("#actor .chip")
    expect(chip).to_have_text("No runner", timeout=PATIENCE_MS)
    expect(opened.locator("#actor")).to_contain_text(re.compile(r"No runner holds this session\.|has not been heard from\."))
    expect(opened.locator("#connection")).to_have_text("Live")  # of the server the page knows
    halves.start_runners()
    expect(chip).to_have_text("Running", timeout=PATIENCE_MS)
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()
    expect_to_know_all(opened, halves)


def test_the_net_goes_and_comes_back(opened, context, halves, tmp_path):
    context.set_offline(True)
    expect_to_know_nothing(opened, "Offline")
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()
    until(lambda: ends_on_the_server(halves, session_of(opened)), "the end of the session")
    context.set_offline(False)
    expect_to_know_all(opened, halves)


def test_the_machine_sleeps_for_two_minutes(context, halves, tmp_path):
    """Nothing of the page runs while it sleeps, and its connection is dead without having said so."""
    page = context.new_page()
    page.clock.install()
    sleeping: list[bool] = []
    servers = []

    def between(socket) -> None:
        """What a connection of before the sleep says is lost on the way, as where a net has forgotten it."""
        server, number = socket.connect_to_server(), len(servers)
        servers.append(server)
        server.on_message(lambda message: None if sleeping and number == 0 else socket.send(message))
        socket.on_message(server.send)

    page.route_web_socket(re.compile(r"/ws/sessions/"), between)
    page.add_init_script(SPY)  # after the route, which has a socket of its own
    submit(page, PLAN.format(gate=tmp_path / "gate", last=tmp_path / "last"))
    expect(page.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(node(page, "first")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    page.evaluate("window.marker = 'the same page'")
    sleeping.append(True)
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)  # no timer of the page runs from here
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()
    until(lambda: ends_on_the_server(halves, session_of(page)), "the end of the session")
    page.evaluate(
        """() => {
          window.signs = [];
          const sign = document.querySelector("#connection");
          const seen = { subtree: true, characterData: true, childList: true };
          new MutationObserver(() => window.signs.push(sign.innerText)).observe(sign, seen);
        }"""
    )
    page.clock.fast_forward("02:00")
    page.clock.resume()
    expect_to_know_all(page, halves)
    signs = page.evaluate("window.signs")
    # the page counts by the server's clock, which it had of a page that was some seconds under way on a busy machine
    assert re.search(r"As of \d\d:\d\d:\d\d, (1 min 5\d s|[23] min)", " ".join(signs)), signs
    assert [sign for sign in signs if sign == "Live"] == ["Live"]
    assert len(servers) > 1


LATE = """
const store = { now: () => Date.now(), standStill() {}, tell() {}, skew: 0, present: { seq: 5 }, isLive: true };
const sign = document.createElement("p");
sign.append(document.createElement("span"));
const renewed = [];
const truth = new m.Truth(store, sign, () => renewed.push(true));
truth.connected("live");
return input.map((late_s) => {
  truth.heartbeat({ at: new Date(Date.now() - 1000 * late_s).toISOString(), seq: 5, lease: null, standing: null });
  const before = renewed.length;
  truth.tick();
  return [truth.state, renewed.length > before];
});
"""


def test_a_heartbeat_that_has_waited_is_as_old_as_it_is_late(run):  # noqa: F811
    assert run("session/truth.js", LATE, [1, 2, 30, 8, 1]) == [
        ["live", False], ["live", False], ["silent", True], ["behind", False], ["live", False],
    ]  # fmt: skip
    assert run("session/truth.js", LATE, [1, 8]) == [["live", False]] * 2  # a page that knows all is not at once behind
    # of a clock that is wrong by an hour all come an hour late, and none later than the others
    assert run("session/truth.js", LATE, [3600, 3600, 3601]) == [["live", False]] * 3


FROZEN_S = 25
"""Beyond the silence after which a page knows nothing (12 s), by as much again: intervals are those of every server."""


def stop_and_go(chromium, signals: signal.Signals) -> None:
    """All that draws and runs scripts in this browser stands still, or goes on."""
    cdp = chromium.new_browser_cdp_session()
    for process in cdp.send("SystemInfo.getProcessInfo")["processInfo"]:
        if process["type"] == "renderer":
            os.kill(process["id"], signals)
    cdp.detach()


def test_the_browser_stands_still_for_a_while_and_the_server_goes_on(opened, chromium, halves, tmp_path):
    page = opened
    session = session_of(page)
    page.evaluate(
        """() => {
          window.signs = [];
          const sign = document.querySelector("#connection");
          const seen = { subtree: true, characterData: true, childList: true };
          const note = () => window.signs.push([sign.innerText, Number(document.body.dataset.seq)]);
          new MutationObserver(note).observe(sign, seen);
        }"""
    )
    stop_and_go(chromium, signal.SIGSTOP)
    try:
        began = time.monotonic()
        until(lambda: time.monotonic() - began > FROZEN_S, "the stretch in which nothing of the browser runs")
        for name in ("gate", "last"):
            (tmp_path / name).touch()
        until(lambda: ends_on_the_server(halves, session), "the end of the session")
        head = head_on_the_server(halves, session)
    finally:
        stop_and_go(chromium, signal.SIGCONT)
    expect_to_know_all(page, halves)
    signs = page.evaluate("window.signs")
    assert "As of" in signs[0][0], signs
    known = [seq for sign, seq in signs if sign == "Live"]
    assert known
    assert min(known) >= head, signs


def test_a_session_whose_request_failed_stays_failed_when_its_actor_ends(context, halves):
    page = context.new_page()
    submit(page, FAILS)
    chip = page.locator("#actor .chip")
    expect(chip).to_have_text("Failed", timeout=PATIENCE_MS)
    actor = f"/api/sessions/{session_of(page)}/"
    until(lambda: context.request.get(actor).json()["actors"][0]["state"] == "completed", "an end by inactivity")
    seq = context.request.get(actor).json()["head"]
    expect(page.locator("body")).to_have_attribute("data-seq", str(seq), timeout=PATIENCE_MS)
    expect(chip).to_have_text("Failed")
    page.reload()
    expect(chip).to_have_text("Failed", timeout=PATIENCE_MS)


def test_the_address_holds_moment_selection_tab_and_filter(opened, context, tmp_path):
    opened.get_by_role("tab", name="Table").click()
    row = opened.locator("#view-table [data-row]").first
    expect(row).to_be_visible(timeout=PATIENCE_MS)
    opened.locator("#view-table").get_by_role("searchbox").fill("second")
    opened.get_by_role("tab", name="Graph").click()
    node(opened, "second").click()
    opened.get_by_role("tab", name="Table").click()
    expect(opened.get_by_label("Moment")).to_be_visible(timeout=PATIENCE_MS)
    before = int(opened.locator("body").get_attribute("data-seq"))
    opened.get_by_label("The event before").click()
    expect(opened.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    address = opened.url
    for held in ("tab=table", f"at={before - 1}", "filter=second"):
        assert held in address
    assert re.search(r"#task-\d+$", address)

    other = context.new_page()
    other.goto(address)
    expect(other.locator("#connection")).to_contain_text("As of", timeout=PATIENCE_MS)
    expect(other.locator("body")).to_have_attribute("data-moment", str(before - 1))
    expect(other.get_by_role("tab", name="Table")).to_have_attribute("aria-selected", "true")
    expect(other.locator("#view-table").get_by_role("searchbox")).to_have_value("second")
    expect(other.locator("#drawer")).to_contain_text("second")
    assert other.url == address
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()


def test_whoever_edited_is_named_wherever_the_page_says_so(opened, chromium, halves, tmp_path):
    """The reader is told of the edit of somebody else, whom the page did not know when it was opened."""
    other = chromium.new_context(base_url=halves.address).new_page()
    other.goto(halves.login_link("root"))
    other.goto(opened.url)
    edit = """async (session) => {
      const [{ id }] = (await (await fetch(`/api/constellations/?session=${session}`)).json()).results;
      const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
      const headers = { "Content-Type": "application/json", "X-CSRFToken": token, "Idempotency-Key": "from-root" };
      const operations = [{ add_task: { task_id: "third", device: "laptop", command: ["true"], after: ["second"] } }];
      const body = JSON.stringify({ operations, based_on: 1, reason: "one more" });
      const send = () => fetch(`/api/constellations/${id}/edits/`, { method: "POST", headers, body });
      return [(await send()).status, (await send()).status];
    }"""
    assert other.evaluate(edit, session_of(opened)) == [201, 200]
    expect(node(opened, "third")).to_be_visible(timeout=PATIENCE_MS)
    expect(opened.locator("#head .version")).to_have_text("version 2, last edited by root", timeout=PATIENCE_MS)
    said = opened.locator("#feed li[data-type=edited] .said").first
    expect(said).to_have_text("root edited the graph (added third, 1 dependency): one more", timeout=PATIENCE_MS)
    expect(other.locator("#head .version")).to_have_text("version 2, last edited by you", timeout=PATIENCE_MS)
    opened.locator("#head .version button").click()
    expect(opened.locator("#edit-view")).to_contain_text("Edited by root")
    other.context.close()
    (tmp_path / "gate").touch()
    (tmp_path / "last").touch()
