"""Approvals and questions as a person meets them: rows by the door, a real server, a real browser.

What REST answers about approvals is given here, so that every answer can be had; test_inbox_live.py has the whole way.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
LIVE_MS = 4_000
"""Two looks of the inbox: what is new must be there by then, and a busy machine may take its time."""
ROWS = "from tests.frontend.working_rows import *\n"
DIGEST = "0123456789abcdef" * 4


class Session:
    """A session at work in the installation; changes are made by a process of their own, as by another person."""

    def __init__(self, installation, owner: str):
        self._installation = installation
        self.ids = json.loads(self._shell(f"print(working_for({owner!r}))"))

    def _shell(self, code: str) -> str:
        return self._installation.manage("shell", "--verbosity", "0", "--command", ROWS + code).splitlines()[-1]

    def __call__(self, call: str) -> Any:
        """What a call of Working gives, for example `ask('tool', 'Push', COMMAND)`."""
        return json.loads(self._shell(f"print(json.dumps(working_again({self.ids}).{call}))"))


@pytest.fixture
def session(installation) -> Session:
    return Session(installation, "ann")


@dataclass
class Rest:
    """What the REST of approvals answers, and what it was asked: rows that wait, where they are from, decisions by id."""

    places: dict[int, dict[str, str]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    sent: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    refusal: str = ""

    def ask(self, number: int, kind: str = "tool", **fields: Any) -> None:
        row = {
            "id": number, "session": 1, "agent": 77, "kind": kind, "subject_id": 5,
            "title": f"number {number}", "action": {}, "digest": DIGEST,
            "observed": None, "options": [], "state": "waiting", "asked_at": "2026-11-21T10:00:00.000000Z",
            "expires_at": None, "decided_at": None, "decided_by": "", "reason": "", "answer": None, "edited": False,
            "used_at": None,
        }  # fmt: skip
        self.rows.append({**row, **fields})
        self.places[number] = {"session": "Digits", "task": "train", "device": "laptop"}

    def list(self, route: Route) -> None:
        route.fulfill(json={"entries": [self._entry(row) for row in self.rows], "more": False})

    def _entry(self, row: dict[str, Any]) -> dict[str, Any]:
        place = self.places[row["id"]]
        return {
            "key": f"{row['kind']}-{row['id']}", "kind": row["kind"], "waits": True, "title": row["title"], "by": "writer",
            "since": row["asked_at"], "session": {"id": row["session"], "title": place["session"]},
            "task": {"id": row["subject_id"], "name": place["task"]}, "agent": row["agent"], "device": place["device"],
            "details": {}, "approval": row,
        }  # fmt: skip

    def answer(self, route: Route) -> None:
        request = route.request
        if request.method == "GET":
            route.continue_()
            return
        number = int(re.search(r"/approvals/(\d+)/decision$", request.url)[1])
        self.sent.append((number, request.post_data_json))
        if self.refusal:
            problem = {"status": 409, "code": "decided", "title": "Decided", "detail": self.refusal, "problems": []}
            route.fulfill(status=409, json=problem, content_type="application/problem+json")
            return
        row = next(row for row in self.rows if row["id"] == number)
        self.rows.remove(row)
        route.fulfill(json={**row, "state": "approved", "changed": True})


@pytest.fixture
def rest(page: Page) -> Rest:
    made = Rest()
    page.route("**/api/approvals/**", made.answer)
    page.route("**/api/inbox/", made.list)
    return made


def card(page: Page, number: int):
    return page.locator(f'[data-approval="{number}"]')


def test_what_waits_is_listed_the_newest_last(page, rest):
    rest.ask(3)
    rest.ask(1)
    page.goto("/inbox/")
    expect(page.locator(".approval h3")).to_have_text(["number 1", "number 3"])
    expect(page.locator("#none")).to_be_hidden()


def test_an_empty_inbox_says_so(page, rest):
    page.goto("/inbox/")
    expect(page.locator("#none")).to_contain_text("Nothing waits.")


def test_a_card_says_what_is_to_be_done_where_and_how_long_it_has_waited(page, rest):
    action = {"tool": "command", "arguments": {"argv": ["git", "push", "it's main"]}}
    file = {"path": "a.py", "size": 1234, "modified": "2026-11-21T09:58:00.000000Z"}
    observed = {"files": [file], "files_total": 7, "system": {"memory_percent": 41.0, "disk_percent": None}}
    rest.ask(1, action=action, observed=observed, expires_at="2099-01-01T00:00:00.000000Z")
    page.goto("/inbox/")
    shown = card(page, 1)
    expect(shown.locator(".command")).to_have_text("git push 'it'\\''s main'")
    expect(shown.locator(".chip")).to_have_text("Permission for one call")
    expect(shown.locator(".where")).to_have_text("Digitstrainagenton laptop")
    expect(shown.get_by_role("link", name="Digits")).to_have_attribute("href", "/sessions/1/")
    expect(shown.get_by_role("link", name="train")).to_have_attribute("href", "/sessions/1/#task-5")
    expect(shown.get_by_role("link", name="agent")).to_have_attribute("href", "/agents/77/")
    expect(shown.locator(".waited")).to_contain_text(re.compile(r"waits for \d+ h \d\d min"))
    expect(shown.locator(".left")).to_contain_text("expires in")
    expect(shown.get_by_text("a.py")).to_be_hidden()
    shown.get_by_text("What was seen").click()
    expect(shown.locator(".observed tbody tr").first).to_contain_text("a.py1.23 kB")
    expect(shown.locator(".observed")).to_contain_text("and 6 files more")
    expect(shown.locator(".observed .values")).to_have_text("memory percent41")


def test_the_countdown_runs(page, rest):
    page.clock.install(time="2026-11-21T10:00:00Z")
    rest.ask(1, expires_at="2099-01-01T00:00:00.000000Z")
    page.goto("/inbox/")
    before = card(page, 1).locator(".left").inner_text()
    page.clock.fast_forward(120_000)
    expect(card(page, 1).locator(".left")).not_to_have_text(before)


def test_a_file_is_shown_as_its_path_and_text(page, rest):
    rest.ask(1, action={"tool": "write_file", "arguments": {"text": "one\ntwo <b>\n", "path": "src/a.py"}})
    page.goto("/inbox/")
    expect(card(page, 1).locator(".values dd")).to_have_text("src/a.py")
    expect(card(page, 1).locator(".action pre")).to_have_text("one\ntwo <b>\n")


def test_phases_are_shown_as_a_list_of_steps(page, rest):
    steps = [
        {"do": "call", "tool": "command", "arguments": {"argv": ["make", "test"]}, "tries": 3, "recover": []},
        {"do": "delegate", "name": "writer", "steps": [{"do": "say", "text": "hello"}]},
    ]
    rest.ask(1, kind="task", action={"phases": [{"description": "Mend", "expected_duration": 90.0, "steps": steps}]})
    page.goto("/inbox/")
    expect(card(page, 1).locator(".phases > li > strong")).to_have_text("Mend")
    items = card(page, 1).locator(".phases > li > .steps > li")
    expect(items).to_have_count(2)
    expect(items.first).to_have_text("make test up to 3 times")
    expect(items.last.locator(".steps")).to_have_text("says “hello”")
    expect(card(page, 1).get_by_role("button", name="Approve with changes")).to_have_count(0)


def test_a_new_question_appears_without_a_reload(page, rest):
    page.goto("/inbox/")
    expect(page.locator("#none")).to_be_visible()
    rest.ask(1, kind="question")
    expect(card(page, 1)).to_be_visible(timeout=LIVE_MS)
    expect(page.locator("#none")).to_be_hidden()


def test_how_many_wait_is_told_on_every_page(page, session):
    counted = page.request.get("/inbox/count/").json()["waiting"]
    session("ask_everything()")
    for path in ("/", "/reference/", "/inbox/", f"/sessions/{session.ids['session']}/"):
        page.goto(path)
        expect(page.locator("#waiting")).to_contain_text(f"{counted + 6}")
        assert page.title().startswith(f"({counted + 6}) ")
    session("ask('tool', 'one more')")
    expect(page).to_have_title(re.compile(rf"^\({counted + 7}\) "), timeout=LIVE_MS)


def test_approving_sends_exactly_what_was_shown_and_the_card_goes(page, rest):
    rest.ask(1)
    rest.ask(2)
    page.goto("/inbox/")
    card(page, 1).get_by_label("Reason").fill("looks right")
    card(page, 1).get_by_role("button", name="Approve", exact=True).click()
    expect(card(page, 1).locator(".settled")).to_have_text("You approved this.")
    expect(card(page, 1).get_by_role("button")).to_have_count(0)
    assert rest.sent == [(1, {"decision": "approve", "digest": DIGEST, "reason": "looks right"})]
    expect(card(page, 1)).to_have_count(0, timeout=PATIENCE_MS)


def test_rejecting_needs_no_reason(page, rest):
    rest.ask(1)
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Reject").click()
    expect(card(page, 1).locator(".settled")).to_have_text("You rejected this.")
    assert rest.sent == [(1, {"decision": "reject", "digest": DIGEST})]


def test_a_decision_by_keyboard_leads_on_to_the_next_card(page, rest):
    rest.ask(1)
    rest.ask(2)
    page.goto("/inbox/")
    card(page, 1).get_by_label("Reason").focus()
    page.keyboard.press("Tab")
    expect(card(page, 1).get_by_role("button", name="Approve", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page, 2).get_by_role("heading")).to_be_focused()


def test_enter_in_the_reason_decides_nothing(page, rest):
    rest.ask(1, action={"tool": "command", "arguments": {"argv": ["true"]}})
    page.goto("/inbox/")
    card(page, 1).get_by_label("Reason").fill("never")
    page.keyboard.press("Enter")
    card(page, 1).get_by_role("button", name="Reject").click()
    expect(card(page, 1).locator(".settled")).to_be_visible()
    assert [body["decision"] for _, body in rest.sent] == ["reject"]


def test_after_the_last_card_the_focus_is_on_the_heading(page, rest):
    rest.ask(1)
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_focused()


def test_a_refusal_is_told_on_the_card(page, rest):
    rest.ask(1)
    rest.refusal = "root was first: it is rejected"
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Approve", exact=True).click()
    expect(card(page, 1).get_by_role("alert").last).to_have_text(rest.refusal)
    expect(card(page, 1).get_by_role("button", name="Approve", exact=True)).to_be_enabled()


def test_a_decision_that_gets_no_answer_says_that_nobody_knows(page, rest):
    rest.ask(1)
    page.goto("/inbox/")
    page.route("**/decision", lambda route: route.abort())
    card(page, 1).get_by_role("button", name="Approve", exact=True).click()
    expect(card(page, 1)).to_contain_text("The server cannot be reached")
    expect(card(page, 1)).to_contain_text("Nobody knows whether it was decided; it is not sent again by itself.")


def test_a_list_that_is_not_fresh_says_so_until_it_is(page, rest):
    rest.ask(1)
    page.goto("/inbox/")
    expect(card(page, 1)).to_be_visible()

    def abort(route: Route) -> None:
        route.abort()

    page.route("**/api/inbox/", abort)
    expect(page.locator("#trouble")).to_contain_text("not fresh", timeout=PATIENCE_MS)
    expect(card(page, 1)).to_be_visible()
    page.unroute("**/api/inbox/", abort)
    expect(page.locator("#trouble")).to_be_hidden(timeout=PATIENCE_MS)


def test_a_command_is_changed_word_by_word(page, rest):
    rest.ask(1, action={"tool": "command", "arguments": {"argv": ["git", "push", "--force"]}})
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Approve with changes").click()
    expect(card(page, 1).get_by_role("button", name="Approve", exact=True)).to_be_hidden()
    box = card(page, 1).get_by_label("The command")
    expect(box).to_be_focused()
    expect(box).to_have_value("git\npush\n--force")
    box.fill("")
    card(page, 1).get_by_role("button", name="Approve these changes").click()
    expect(card(page, 1).locator(".changes [role=alert]")).to_have_text("A command has at least one word.")
    box.fill("git\npush\nthe branch")
    card(page, 1).get_by_role("button", name="Approve these changes").click()
    expect(card(page, 1).locator(".settled")).to_be_visible()
    assert rest.sent == [(1, {"decision": "approve", "digest": DIGEST, "arguments": {"argv": ["git", "push", "the branch"]}})]


def test_arguments_are_changed_as_json_and_checked_first(page, rest):
    rest.ask(1, action={"tool": "write_file", "arguments": {"path": "a", "text": "b"}})
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Approve with changes").click()
    box = card(page, 1).get_by_label("The arguments")
    for text, complaint in (('{"path": ', "This is not JSON"), ("[1]", "Arguments are an object")):
        box.fill(text)
        card(page, 1).get_by_role("button", name="Approve these changes").click()
        expect(card(page, 1).locator(".changes [role=alert]")).to_contain_text(complaint)
    assert rest.sent == []
    box.fill('{"path": "a", "text": "c"}')
    card(page, 1).get_by_role("button", name="Approve these changes").click()
    expect(card(page, 1).locator(".settled")).to_be_visible()
    assert rest.sent[0][1]["arguments"] == {"path": "a", "text": "c"}


def test_changes_can_be_left(page, rest):
    rest.ask(1, action={"tool": "write_file", "arguments": {"path": "a"}})
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Approve with changes").click()
    card(page, 1).get_by_label("The arguments").fill("{}")
    card(page, 1).get_by_role("button", name="Leave it").click()
    expect(card(page, 1).get_by_label("The arguments")).to_be_hidden()
    card(page, 1).get_by_role("button", name="Approve", exact=True).click()
    expect(card(page, 1).locator(".settled")).to_be_visible()
    assert rest.sent == [(1, {"decision": "approve", "digest": DIGEST})]


def test_a_question_is_answered_by_one_of_its_options(page, rest):
    rest.ask(1, kind="question", options=["main", "next"])
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="next").click()
    expect(card(page, 1).locator(".settled")).to_have_text("You answered: next")
    assert rest.sent == [(1, {"decision": "approve", "digest": DIGEST, "answer": "next"})]


def test_a_question_without_options_is_answered_in_words(page, rest):
    rest.ask(1, kind="question")
    page.goto("/inbox/")
    card(page, 1).get_by_role("button", name="Answer", exact=True).click()
    expect(card(page, 1).get_by_role("alert")).to_have_text("Write an answer first.")
    card(page, 1).get_by_label("Answer").fill("call it Vega")
    card(page, 1).get_by_role("button", name="Answer", exact=True).click()
    expect(card(page, 1).locator(".settled")).to_have_text("You answered: call it Vega")
    assert rest.sent[0][1]["answer"] == "call it Vega"


def test_a_question_of_a_tool_server_is_answered_in_its_form(page, rest):
    fields = {"branch": {"type": "string", "default": "main"}, "force": {"type": "boolean"}}
    asked = {"tool": "files.push", "arguments": {"message": "Where to?", "schema": {"type": "object", "properties": fields}}}
    rest.ask(1, kind="elicitation", action=asked)
    page.goto("/inbox/")
    expect(card(page, 1).locator(".chip")).to_have_text("Question of a tool server")
    answer = card(page, 1).get_by_label("Answer")
    assert json.loads(answer.input_value()) == {"branch": "main", "force": False}
    answer.fill('{"branch": "next"')
    card(page, 1).get_by_role("button", name="Answer", exact=True).click()
    expect(card(page, 1).get_by_role("alert")).to_be_visible()
    assert rest.sent == []
    answer.fill('{"branch": "next", "force": true}')
    card(page, 1).get_by_role("button", name="Answer", exact=True).click()
    expect(card(page, 1).locator(".settled")).to_contain_text("You answered")
    assert rest.sent[0][1]["answer"] == {"branch": "next", "force": True}


def test_what_somebody_else_decided_says_who_and_goes(page, rest, session):
    number = session("ask('tool', 'Push by force')")
    rest.ask(number)
    page.goto("/inbox/")
    expect(card(page, number)).to_be_visible()
    session(f"decide({number}, 'rejected', 'user:' + str(User.objects.get(username='root').pk))")
    rest.rows.clear()
    expect(card(page, number).locator(".settled")).to_have_text("It was rejected by root.")
    expect(card(page, number)).to_have_count(0, timeout=PATIENCE_MS)
    expect(page.locator("#none")).to_be_visible()
    page.get_by_role("link", name="Decided").click()
    decision = page.locator(f'[data-decided="{number}"]')
    expect(decision).to_contain_text("by root")
    expect(decision).to_contain_text("Push by force")


def test_who_may_not_decide_sees_cards_without_buttons(anonymous, installation):
    rest = Rest()
    rest.ask(1, action={"tool": "command", "arguments": {"argv": ["true"]}})
    anonymous.route("**/api/approvals/**", rest.answer)
    anonymous.route("**/api/inbox/", rest.list)
    anonymous.goto(installation.login_link("vic"))
    anonymous.goto("/inbox/")
    expect(card(anonymous, 1).locator(".command")).to_have_text("true")
    expect(card(anonymous, 1).get_by_role("button")).to_have_count(0)
    expect(anonymous.locator(".refusal")).to_contain_text("this needs one of the roles admin, operator")


def test_texts_of_agents_never_become_markup_and_hide_nothing(page, rest):
    evil = "<img src=x onerror=window.broken=1>"
    action = {"tool": "command", "arguments": {"argv": ["echo", "safe\nrm -rf /", "a\u202eb"]}}
    rest.ask(1, title=evil, observed={"files": [{"path": evil, "size": 1}], "system": {evil: evil}}, action=action)
    rest.places[1] = dict.fromkeys(("session", "task", "device"), evil)
    rest.ask(2, kind="question", options=[evil])
    page.goto("/inbox/")
    expect(card(page, 1).get_by_role("heading")).to_have_text(evil)
    expect(card(page, 1).locator(".command")).to_have_text("echo $'safe\\nrm -rf /' $'a\\u{202e}b'")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.broken") is None


def test_a_session_shows_what_it_waits_for_as_soon_as_it_does(page, session):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/approvals/" in request.url else None)
    page.goto(f"/sessions/{session.ids['session']}/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "live")
    expect(page.locator("#waiting-panel")).to_be_hidden()
    number = session("ask('tool', 'Push by force', COMMAND, observed=OBSERVED)")
    shown = page.locator("#waiting-panel").locator(f'[data-approval="{number}"]')
    expect(shown.locator(".command")).to_contain_text("git push --force")
    expect(shown.locator(".where")).to_contain_text("Train the model")
    expect(shown.locator(".where")).to_contain_text("on laptop")
    expect(page.locator("#feed")).to_contain_text("An approval waits: Push by force")
    session(f"decide({number}, 'approved', 'token:ci')")
    expect(shown.locator(".settled")).to_have_text("It was approved by token ci.")
    expect(page.locator("#feed")).to_contain_text("Approved: Push by force")
    expect(page.locator("#waiting-panel")).to_be_hidden(timeout=PATIENCE_MS)
    assert asked == []


def test_a_decision_on_the_page_of_a_session_is_sent_with_the_digest(page, rest, session):
    number = session("ask('tool', 'Push by force', COMMAND)")
    rest.ask(number)
    page.goto(f"/sessions/{session.ids['session']}/")
    card(page, number).get_by_role("button", name="Reject").click()
    expect(card(page, number).locator(".settled")).to_have_text("You rejected this.")
    ((sent, body),) = rest.sent
    assert (sent, body["decision"], len(body["digest"])) == (number, "reject", 64)


def test_the_details_of_a_task_tell_how_far_it_has_come(page, session):
    page.goto(f"/sessions/{session.ids['session']}/#task-{session.ids['task']}")
    drawer = page.locator("#drawer")
    expect(drawer.locator(".working")).to_contain_text("0 of 2 phases done")
    session("add_work()")
    number = session("ask('tool', 'Push by force')")
    expect(drawer.locator(".working")).to_contain_text("1 of 2 phases done")
    expect(drawer.locator(".working")).to_contain_text("Now: Publish")
    expect(drawer.locator(".working")).to_contain_text("2 files changed")
    expect(drawer.locator(".working")).to_contain_text("1 test passed, 1 failed")
    expect(drawer.locator("[data-field=elapsed]")).to_contain_text("min")
    expect(drawer.locator("[data-field=command]")).to_have_text("7 steps in 2 phases")
    drawer.get_by_role("link", name="Push by force").first.click()
    expect(page.locator(f"#approval-{number}")).to_be_focused()
    page.go_back()
    drawer.get_by_role("link", name="what it does").click()
    page.wait_for_url(f"**/agents/{session.ids['agent']}/")


def test_the_page_of_an_agent_follows_it(page, session):
    page.goto(f"/agents/{session.ids['agent']}/")
    page.evaluate("window.marker = 'the same page'")
    evidence = page.locator("[data-part=evidence]")
    expect(evidence).to_contain_text("It has not acted yet.")
    session("add_work()")
    expect(evidence.locator("tr[data-evidence]")).to_have_count(5, timeout=PATIENCE_MS)
    expect(evidence.locator("tr.verdict")).to_contain_text("make test failed 3 times with the same error")
    expect(page.locator("[data-part=phases]")).to_contain_text("Mend the tests")
    expect(page.locator("[data-part=state] .chip").first).to_have_attribute("data-tone", "running")
    assert page.evaluate("window.marker") == "the same page"


def test_an_agent_can_be_told_to_go_on_anyway(page, session):
    session("add_work()")
    sent: list[dict[str, Any]] = []

    def accept(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=202, json={"session": 1, "command": 1, "changed": True, "seq": 1})

    page.route("**/commands/", accept)
    page.goto(f"/agents/{session.ids['agent']}/")
    page.get_by_role("button", name="Go on anyway").click()
    expect(page.get_by_role("button", name="It was told to go on")).to_be_disabled()
    (body,) = sent
    assert len(body.pop("client_id")) == 24
    assert body == {"kind": "go_on", "agent": session.ids["agent"], "identity": "same_error:0123456789abcdef"}


def test_an_agent_that_cannot_be_told_says_why(page, session):
    session("add_work()")
    problem = {"status": 409, "code": "ended", "title": "Ended", "detail": "the agent has ended", "problems": []}
    page.route("**/commands/", lambda route: route.fulfill(status=409, json=problem))
    page.goto(f"/agents/{session.ids['agent']}/")
    page.get_by_role("button", name="Go on anyway").click()
    expect(page.locator("#notice")).to_have_text("the agent has ended")
    expect(page.get_by_role("button", name="Go on anyway")).to_be_enabled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_narrow_page(page, session, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    session("add_work()")
    rows = session("ask_everything()")
    rest = Rest()
    for kind, number in rows.items():
        action = {"tool": "command", "arguments": {"argv": ["echo", "x" * 200]}}
        rest.ask(number, kind={"file": "tool", "words": "question"}.get(kind, kind), action=action, title="y" * 120)
    page.route("**/api/approvals/**", rest.answer)
    for path, there in (
        ("/inbox/", ".approval"),
        (f"/agents/{session.ids['agent']}/", "tr.verdict"),
        (f"/sessions/{session.ids['session']}/", ".approval"),
    ):
        page.goto(path)
        expect(page.locator(there).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
