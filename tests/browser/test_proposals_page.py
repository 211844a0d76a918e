"""An edit that a program proposes over MCP, as the person meets it who decides: in the inbox and beside the graph."""

import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
PLAN = {
    "name": "digits",
    "tasks": [
        {"task_id": "fetch", "tool": "noop", "confirm": True},
        {"task_id": "train", "tool": "noop", "after": ["fetch"]},
        {"task_id": "deploy", "tool": "noop", "after": ["train"]},
    ],
}
OPERATIONS = [
    {"op": "add_task", "parameters": {"task_id": "lint", "command": ["make", "lint", "--all <b>"], "device": "laptop"}},
    {"op": "add_dependency", "parameters": {"from": "lint", "to": "deploy", "description": "no untidy code goes out"}},
    {"op": "update_task", "parameters": {"task_id": "train", "timeout": 90, "priority": "HIGH"}},
]


class Program:
    """A program with a token that may look, and `scope`."""

    def __init__(self, installation, scope: str):
        self.token = installation.manage("token_create", "ann", "--name", "claude", "--scope", "read", "--scope", scope)
        self.address = installation.address

    def post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        result = self.post("/mcp", asked)["result"]
        assert not result["isError"], result
        return result["structuredContent"]


@pytest.fixture
def program(installation) -> Program:
    return Program(installation, "operate")


@pytest.fixture
def waiting(page: Page, program: Program) -> int:
    """A session whose constellation stands at its first task's gate, on the page."""
    session = program.post("/api/sessions/", {"title": "Digits", "plan": json.dumps(PLAN)})["id"]
    page.goto(f"/sessions/{session}/")
    expect(page.locator("#waiting-panel .approval")).to_have_count(1, timeout=PATIENCE_MS)
    return session


def propose(program: Program, session: int) -> tuple[int, int]:
    """(the constellation, the proposal)"""
    (row,) = program.call("list_constellations", session=session)["constellations"]
    said = program.call("apply_edit", constellation_id=row["id"], operations=OPERATIONS, reason="Nothing untidy goes out.")
    return row["id"], said["proposal"]["approval"]


def assert_readable(card) -> None:
    expect(card.locator("h3")).to_have_text(
        re.compile(
            r"claude \(token:\w+\) of ann wants to change digits: add task lint, add dependency lint>deploy, update task"
        )
    )
    expect(card.locator(".chip")).to_have_text("Proposed edit")
    expect(card.locator(".action")).to_contain_text("Nothing untidy goes out.")
    expect(card.locator(".operations > li > strong")).to_have_text(["add task", "add dependency", "update task"])
    expect(card.locator(".operations > li").first).to_contain_text("make lint '--all <b>'")
    changes = [re.compile("task lint added"), re.compile("task train changed"), re.compile("dependency lint>deploy added")]
    expect(card.locator(".diff > li")).to_have_text(changes)
    expect(card.locator(".diff ul > li")).to_have_text(["priority: MEDIUM → HIGH", "timeout: null → 90"])
    expect(card.locator(".action")).to_contain_text("Becomes ready")
    expect(card.get_by_role("button", name="Approve with changes")).to_have_count(0)


def test_a_proposal_is_shown_beside_the_graph_and_approving_it_makes_the_edit(page, program, waiting):
    constellation, approval = propose(program, waiting)
    card = page.locator(f'[data-approval="{approval}"]')
    expect(card).to_be_visible(timeout=PATIENCE_MS)
    assert_readable(card)
    expect(page.locator("#graph")).to_have_attribute("data-tasks", "3")
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card.locator(".settled")).to_have_text(re.compile("You approved this.|It was approved by you."))
    expect(page.locator("#graph")).to_have_attribute("data-tasks", "4")
    expect(page.locator("#feed")).to_contain_text("The edit was approved")
    (made,) = program.call("list_edits", constellation_id=constellation)["edits"]
    assert made["author"].startswith("token:")


def test_a_proposal_in_the_inbox_that_no_longer_fits_says_why_and_stays(page, installation, program, waiting):
    constellation, approval = propose(program, waiting)
    page.goto("/inbox/")
    card = page.locator(f'[data-approval="{approval}"]')
    expect(card).to_be_visible(timeout=PATIENCE_MS)
    assert_readable(card)
    Program(installation, "edit").call("update_task", constellation_id=constellation, task_id="train", timeout=5)
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card.get_by_role("alert")).to_contain_text("the edit was made on version 1, and version 2 is the newest")
    card.get_by_role("button", name="Reject").click()
    expect(card.locator(".settled")).to_have_text(re.compile("You rejected this.|It was rejected by you."))
