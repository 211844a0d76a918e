"""A tool server asks a person in the middle of a task: its question is a card, and the answer given there reaches it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, node, wait_for_the_end
from tests.browser.test_inbox_live import asked, begin

pytestmark = pytest.mark.browser

PROGRAM = Path(__file__).parents[1] / "agents" / "toolservers" / "server_program.py"
MAKE = """
from agents.services.devices import device_create
for name, protocol in (("booth", "newest"), ("desk", "handshake")):
    connection = {{"transport": "stdio", "argv": {argv}, "protocol": protocol}}
    device_create(name, kind="mcp", connection=connection, by="system")
"""


@pytest.fixture(scope="module")
def servers(installation) -> None:
    """Two tool servers that runners of the installation start: one speaks the newest protocol, one those with a handshake."""
    argv = [sys.executable, str(PROGRAM), "stdio"]
    installation.manage("shell", "--verbosity", "0", "--command", MAKE.format(argv=json.dumps(argv)))


def ask(page: Page, tool: str, title: str):
    """Run a task with a call that asks; the card in the inbox, and the session's address."""
    page.goto("/devices/")
    device = page.locator(f'#devices [data-device="{tool.partition(".")[0]}"]')
    expect(device).to_have_attribute("data-state", "connected", timeout=PATIENCE_MS)
    begin(page, f"tasks: [{{task_id: seats, tool: {tool}}}]", title)
    address = page.url
    page.goto("/inbox/")
    card = asked(page, title)
    expect(card.get_by_role("heading", level=3)).to_contain_text("Who comes?", timeout=PATIENCE_MS)
    return card, address


def end_of(page: Page, address: str) -> str:
    """What the task has printed."""
    page.goto(address)
    wait_for_the_end(page)
    node(page, "seats").click()
    return page.locator("#drawer .output pre").inner_text(timeout=PATIENCE_MS)


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("tool", ["booth.reserve", "desk.book"])
def test_what_is_answered_in_the_inbox_is_what_the_server_goes_on_with(page, tool):
    card, address = ask(page, tool, f"answered to {tool}")
    expect(card).not_to_contain_text("ghp_")
    answer = card.get_by_label("Answer")
    assert json.loads(answer.input_value()) == {"name": "", "seats": 0}
    answer.fill('{"name": "Ann", "seats": "two"}')
    card.get_by_role("button", name="Answer", exact=True).click()
    expect(card.get_by_role("alert").last).to_contain_text("must be a whole number")
    answer.fill('{"name": "Ann", "seats": 2}')
    card.get_by_role("button", name="Answer", exact=True).click()
    expect(card.locator(".settled")).to_be_visible()
    assert "2 seats for Ann" in end_of(page, address)


@pytest.mark.usefixtures("servers")
def test_who_gives_no_answer_lets_the_server_go_on_without_one(page):
    card, address = ask(page, "booth.reserve", "not answered")
    card.get_by_role("button", name="No answer").click()
    expect(card.locator(".settled")).to_be_visible()
    assert "nobody: decline" in end_of(page, address)
