"""The whole way of an approval: over the real REST, and with a plan that waits, a person who decides, and what comes of it."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, node, submit, wait_for_the_end
from tests.browser.test_inbox import Session

pytestmark = pytest.mark.browser

GATED = """\
name: gated
tasks:
  - task_id: gated
    name: Say hello
    device: laptop
    confirm: true
    command: [echo, hello]
"""
ASKING = """\
name: asking
tasks:
  - task_id: asking
    device: laptop
    steps:
      - ask: Which branch?
        options: [main, next]
        timeout: 600
        save: branch
"""
LIVE_MS = 4_000


@pytest.fixture
def session(installation) -> Session:
    return Session(installation, "ann")


def card_of(page: Page, number: int):
    return page.locator(f'[data-approval="{number}"]')


def test_the_inbox_has_what_waits_with_its_place_and_decides_it(page, session):
    number = session("ask('tool', 'Push by force', COMMAND, observed=OBSERVED)")
    page.goto("/inbox/")
    card = card_of(page, number)
    expect(card.locator(".command")).to_contain_text("git push --force")
    expect(card.locator(".where")).to_have_text("Digits, in three phasesTrain the modelagenton laptop")
    card.get_by_label("Reason").fill("looks right")
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card.locator(".settled")).to_have_text("You approved this.")
    page.goto(f"/agents/{session.ids['agent']}/")
    row = page.locator("[data-part=approvals] tr").filter(has_text="Push by force")
    expect(row).to_contain_text("approved")
    expect(row).to_contain_text("looks right")
    expect(row).to_contain_text("ann")


def test_a_question_and_changed_arguments_are_taken(page, session):
    question = session("ask('question', 'Which branch?', options=['main', 'next'], digest='')")
    words = session("ask('question', 'What name?', digest='')")
    call = session("ask('tool', 'Push by force', COMMAND)")
    page.goto(f"/sessions/{session.ids['session']}/")
    card_of(page, question).get_by_role("button", name="next").click()
    expect(card_of(page, question).locator(".settled")).to_be_visible()
    card_of(page, words).get_by_label("Answer").fill("Vega")
    card_of(page, words).get_by_role("button", name="Answer", exact=True).click()
    expect(card_of(page, words).locator(".settled")).to_be_visible()
    card_of(page, call).get_by_role("button", name="Approve with changes").click()
    card_of(page, call).get_by_label("The command").fill("git\npush")
    card_of(page, call).get_by_role("button", name="Approve these changes").click()
    expect(card_of(page, call).locator(".settled")).to_be_visible()
    rows = {number: page.request.get(f"/api/approvals/{number}/").json() for number in (question, words, call)}
    assert [rows[number]["answer"] for number in (question, words)] == ["next", "Vega"]
    assert rows[call]["edited"] is True
    assert rows[call]["action"]["arguments"] == {"argv": ["git", "push"]}


def test_whoever_comes_second_is_told_who_was_first(page, session):
    number = session("ask('tool', 'Push by force', COMMAND)")
    page.goto("/inbox/")
    expect(card_of(page, number)).to_be_visible()
    page.route("**/api/inbox/", lambda route: route.abort())
    session(f"decide({number}, 'rejected', 'token:ci')")
    card_of(page, number).get_by_role("button", name="Approve", exact=True).click()
    expect(card_of(page, number).get_by_role("alert").last).to_contain_text("was rejected by token:ci")


def test_an_agent_is_told_to_go_on_over_rest(page, session):
    session("add_work()")
    session("add_actor()")
    page.goto(f"/agents/{session.ids['agent']}/")
    with page.expect_response("**/commands/") as answer:
        page.get_by_role("button", name="Go on anyway").click()
    assert answer.value.status == 202


def begin(page: Page, plan: str, title: str) -> None:
    submit(page, plan, title)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))


def asked(page: Page, title: str):
    """The card of the session called `title` in the inbox."""
    return page.locator(".approval").filter(has_text=title)


def test_a_task_that_needs_an_approval_runs_when_it_is_given_in_the_inbox(page):
    begin(page, GATED, "approved in the inbox")
    address = page.url
    page.goto("/inbox/")
    card = asked(page, "approved in the inbox")
    expect(card.locator(".command")).to_have_text("echo hello", timeout=PATIENCE_MS)
    expect(card.locator(".where")).to_contain_text("on laptop")
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card.locator(".settled")).to_have_text("You approved this.")
    page.goto(address)
    wait_for_the_end(page)
    expect(node(page, "gated")).to_have_attribute("data-state", "COMPLETED")


def test_a_task_that_is_rejected_on_the_page_of_its_session_fails(page):
    begin(page, GATED, "rejected")
    card = page.locator("#waiting-panel .approval")
    expect(card.locator(".command")).to_have_text("echo hello", timeout=PATIENCE_MS)
    card.get_by_label("Reason").fill("not today")
    card.get_by_role("button", name="Reject").click()
    expect(card.locator(".settled")).to_contain_text(re.compile("rejected"))
    expect(node(page, "gated")).to_have_attribute("data-state", "FAILED", timeout=PATIENCE_MS)
    expect(page.locator("#waiting-panel")).to_be_hidden(timeout=PATIENCE_MS)


def test_a_command_that_was_changed_is_what_runs(page):
    begin(page, GATED, "changed")
    card = page.locator("#waiting-panel .approval")
    card.get_by_role("button", name="Approve with changes").click(timeout=PATIENCE_MS)
    card.get_by_label("The command").fill("echo\nsomething else")
    card.get_by_role("button", name="Approve these changes").click()
    wait_for_the_end(page)
    node(page, "gated").click()
    expect(page.locator("#drawer .output pre")).to_contain_text("something else")


def test_a_question_is_answered_on_the_page(page):
    begin(page, ASKING, "asking")
    card = page.locator("#waiting-panel .approval")
    expect(card.get_by_role("heading")).to_contain_text("Which branch?", timeout=PATIENCE_MS)
    card.get_by_role("button", name="next").click()
    wait_for_the_end(page)
    node(page, "asking").click()
    page.locator("#drawer").get_by_role("link", name="what it does").click()
    expect(page.locator("[data-part=blackboard]")).to_contain_text("next")
    expect(page.locator("[data-part=approvals]")).to_contain_text("approved")


def test_two_who_look_see_one_decision(page, installation, chromium: Browser):
    begin(page, GATED, "seen by two")
    page.goto("/inbox/")
    expect(asked(page, "seen by two")).to_be_visible(timeout=PATIENCE_MS)
    other = chromium.new_context(base_url=installation.address)
    try:
        root = other.new_page()
        root.goto(installation.login_link("root"))
        root.goto("/inbox/")
        asked(root, "seen by two").get_by_role("button", name="Approve", exact=True).click(timeout=PATIENCE_MS)
        expect(asked(page, "seen by two").locator(".settled")).to_have_text("It was approved by root.", timeout=LIVE_MS)
    finally:
        other.close()
