"""The token of a coding agent: it sees its own session, proposes edits of it, and may do nothing else."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client

from agents.access.permissions import NEEDS, PROPOSE, why_refused
from agents.errors import AgentsError
from agents.models import Approval
from agents.services.tokens import token_create
from constellations.mcp.access import Caller
from constellations.mcp.tools import FOR_AGENTS, TOOLS, tools_for

pytestmark = pytest.mark.django_db(transaction=True)
NEVER = {
    "start_request", "fork", "reopen", "retry", "restart", "cancel", "cancel_task", "pause", "resume", "undo_edit",
    "decide_approval", "list_devices", "list_approvals",
}  # fmt: skip


@pytest.fixture
def works(engine, device):
    """Two sessions of one user with a constellation each."""
    plan = {"tasks": [{"task_id": "a", "tool": "noop"}, {"task_id": "b", "tool": "noop"}]}
    return [engine.carry_out(plan) for _ in range(2)]


@pytest.fixture
def agent(works, operator) -> Caller:
    token, _ = token_create(operator, "x", [PROPOSE], timedelta(days=1), by="system", session=works[0].session_id)
    return Caller(operator, token)


def test_it_is_offered_what_looks_and_what_edits_and_nothing_that_starts_or_decides(agent):
    assert set(tools_for(agent)) == FOR_AGENTS
    assert not FOR_AGENTS & NEVER
    assert set(TOOLS) == FOR_AGENTS | NEVER


def test_it_sees_its_own_session_and_no_other_of_its_user(agent, works):
    found = TOOLS["list_constellations"].run(agent, {})
    assert [row.id for row in found.constellations] == [works[0].pk]
    with pytest.raises(AgentsError, match="not yours to see"):
        TOOLS["get_constellation"].run(agent, {"constellation_id": works[1].pk})
    with pytest.raises(AgentsError, match="not yours to see"):
        TOOLS["get_session"].run(agent, {"session": works[1].session_id})


def test_what_it_may_not_do_is_refused_also_where_it_names_the_tool(agent, works):
    for name, arguments in (
        ("start_request", {"text": "more"}), ("retry", {"constellation_id": works[0].pk, "task_ids": ["a"]}),
        ("cancel", {"constellation_id": works[0].pk, "reason": "x"}),
        ("decide_approval", {"approval_id": 1, "decision": "approve"}),
    ):  # fmt: skip
        with pytest.raises(AgentsError):
            TOOLS[name].run(agent, arguments)
    assert not Approval.objects.exists()


def test_nothing_but_proposing_is_open_to_its_scope(agent):
    assert [need for need in NEEDS if not why_refused(agent.user, agent.token, need)] == ["propose"]


def test_no_address_of_rest_is_open_to_it(works, operator):
    _, text = token_create(operator, "x", [PROPOSE], timedelta(days=1), by="system", session=works[0].session_id)
    client = Client(headers={"Authorization": f"Bearer {text}"})
    for path in ("sessions/", f"sessions/{works[0].session_id}/", f"constellations/{works[0].pk}/", "devices/", "approvals/"):
        assert client.get(f"/api/{path}").status_code in (401, 403), path
    body = json.dumps({"title": "mine"})
    assert client.post("/api/sessions/", body, content_type="application/json").status_code in (401, 403)
