"""The home page, the inbox's other entries, search and runs, against the real server."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import write_plan
from tests.browser.test_inbox import Session

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
PLAN = "name: {name}\ntasks:\n  - {{task_id: count, device: laptop, command: [echo, {said}]}}\n"


def run(page: Page, title: str, name: str, said: str) -> None:
    page.goto("/")
    page.get_by_label("Title").first.fill(title)
    write_plan(page, PLAN.format(name=name, said=said))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/sessions/*/**")
    page.goto("/")
    expect(row(page, title)).to_contain_text("Completed", timeout=PATIENCE_MS)


def row(page: Page, title: str):
    return page.locator("#rows tr").filter(has_text=title)


def test_the_list_follows_a_session_by_itself_and_is_narrowed_in_the_address(page):
    run(page, "Seven puffins", "puffins", "seven")
    expect(row(page, "Seven puffins")).to_contain_text("1 of 1")
    page.get_by_label("State").select_option("failed")
    expect(page).to_have_url(re.compile(r"state=failed"))
    expect(row(page, "Seven puffins")).to_have_count(0)
    page.go_back()
    expect(row(page, "Seven puffins")).to_have_count(1)
    page.goto("/?q=puffins&state=completed")
    expect(page.locator("#rows tbody tr")).to_have_count(1)


RESTS = {"heartbeat_at": "2026-01-01T00:00:00Z", "stale": True}
"""Of a session in which nothing has moved for long."""


@pytest.mark.parametrize(("standing", "said"), [("waiting", 0), ("stale", 1)])
def test_the_last_sign_of_life_is_told_of_a_session_without_a_runner_only(page, standing, said):
    def rested(route):
        answer = route.fetch()
        told = answer.json()
        told["results"] = [{**each, **RESTS, "standing": {**each["standing"], "name": standing}} for each in told["results"]]
        route.fulfill(response=answer, json=told)

    run(page, f"Rests, {standing}", "rests", "nothing more")
    page.route("**/api/home/*", rested)
    page.goto("/")
    rows = page.locator("#rows tbody tr")
    expect(rows.first).to_be_visible()
    expect(page.locator("#rows .stale")).to_have_count(said * rows.count())


def test_a_view_is_saved_under_a_name_and_forgotten(page):
    page.goto("/?state=running&period=day")
    page.get_by_label("Name of this view").fill("At work today")
    page.get_by_role("button", name="Save").click()
    page.goto("/")
    page.get_by_role("button", name="At work today", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?state=running&period=day$"))
    page.get_by_role("button", name="Forget the view At work today").click()
    expect(page.get_by_role("button", name="At work today", exact=True)).to_have_count(0)


def test_a_recent_request_fills_the_box_again(page):
    run(page, "To be used again", "again", "once")
    page.get_by_role("button", name="To be used again").click()
    expect(page.locator("textarea[name=plan]")).to_have_value(re.compile("^name: again"))


def test_sessions_are_gone_through_by_keys_and_a_slash_leads_to_the_search(page):
    run(page, "By the keys", "keys", "keys")
    page.locator("#rows td.title a").first.focus()
    focused = page.evaluate("document.activeElement.href")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.href") != focused
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.href") == focused
    page.keyboard.press("/")
    expect(page).to_have_url(re.compile("/search/$"))
    expect(page.locator("#q")).to_be_focused()


def test_a_text_is_found_and_marked(page):
    run(page, "Birds of the south", "birds", "a-cormorant-flew-by")
    page.goto("/search/")
    page.locator("#q").fill("CORMORANT")
    page.keyboard.press("Enter")
    found = page.locator('[data-group="outputs"] li')
    expect(found.locator("mark")).to_have_text("cormorant")
    expect(found).to_contain_text("Birds of the south")
    page.goto("/search/?q=%3Cimg%20src%3Dx%3E")
    expect(page.locator("#said")).to_contain_text("<img src=x>")
    assert page.locator("main img").count() == 0


def test_runs_of_one_plan_stand_side_by_side_and_a_cell_shows_both_results(page):
    for title in ("Terns, first", "Terns, second"):
        run(page, title, "terns", "tern")
    page.goto("/runs/")
    page.locator(".plans li").filter(has_text="terns").get_by_role("link").click()
    expect(page.locator(".grid thead")).to_contain_text("Terns, second")
    expect(page.locator(".grid thead")).to_contain_text("Terns, first")
    page.locator(".grid tbody td button").first.click()
    expect(page.locator("#cell section")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator("#cell")).to_be_hidden()


def test_what_was_decided_shows_exactly_what_was_allowed(page, session):
    number = session("ask('tool', 'Push by force', COMMAND)")
    page.goto("/inbox/")
    card = page.locator(f'[data-approval="{number}"]')
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card).to_contain_text("You approved this.")
    page.get_by_role("link", name="Decided").click()
    decision = page.locator(f'[data-decided="{number}"]')
    expect(decision).to_contain_text("by ann")
    decision.get_by_text("Exactly what was allowed").click()
    expect(decision.locator(".command")).to_contain_text("git push --force origin")


@pytest.fixture
def session(installation) -> Session:
    return Session(installation, "ann")
