"""What tokens start and may not approve, over the real door of MCP, and forks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from agents.models import Session
from agents.services.devices import device_create
from agents.services.sessions import request_submit, session_create
from agents.services.tokens import token_create
from constellations.services.lifecycle import constellation_fork
from tests.agents.conftest import Rest, add_approvals
from tests.conftest import person
from tests.constellations.mcp.test_http import Web
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live]

SCOPES = ("read", "operate", "edit", "approve")
PLAN = "tasks: [{task_id: only, tool: noop}]"


def program(user, session: Session | None = None, *scopes: str) -> tuple[str, str]:
    """A token, perhaps of a session: (its author's name, its text)."""
    within = None if session is None else session.pk
    token, text = token_create(user, "agent", scopes or SCOPES, timedelta(days=1), by="system", session=within)
    return f"token:{token.token_key}", text


@pytest.fixture
def session(operator, verified) -> Session:
    return session_create(operator, "mine", by=f"user:{operator.pk}")


@pytest.fixture
def web(transactional_db, tmp_path) -> Iterator[Web]:
    running = Web(tmp_path)
    yield running
    running.kill()


def decided(approval: int):
    async def decide(client):
        shown = (await client.call_tool("list_approvals", {})).structured_content["approvals"]
        digest = next((each["digest"] for each in shown if each["id"] == approval), None)
        decision = {"approval_id": approval, "decision": "approve", **({"digest": digest} if digest else {})}
        found = await client.call_tool("decide_approval", decision)
        return found.content[0].text if found.is_error else found.structured_content["changed"]

    return decide


def test_over_mcp_a_token_decides_nothing_that_it_or_what_descends_from_it_has_asked_for(web, operator, session):
    by, token = program(operator)
    other = program(person("another", "admin"))[1]
    first = session_create(operator, by=by)
    child = session_create(operator, by=program(operator, first)[0])
    inside = program(operator, session)[1]
    for asked_in, refused in ((first, token), (child, token), (session, inside)):
        approval = add_approvals(asked_in)[0]
        told = web.ask(refused, decided(approval))
        assert f"approval {approval} was asked for in session {asked_in.pk}" in told
        assert "a person decides it, or a token that has no part in it" in told
        rest = Rest(token=refused).post(f"/api/approvals/{approval}/decision", {"decision": "approve"})
        assert (rest.status_code, rest.json()["code"]) == (403, "own_approval")
        assert web.ask(other, decided(approval)) is True


def test_over_mcp_an_edit_that_was_proposed_by_a_descendant_is_not_for_its_ancestor_to_approve(web, operator, session):
    device_create("laptop", by="system")
    digits = plant(session, noop("fetch"))
    by, token = program(operator)
    proposer = program(operator, session_create(operator, by=by), "read", "operate")[1]

    async def propose(client):
        arguments = {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop"}
        return (await client.call_tool("add_task", arguments)).structured_content["proposal"]["approval"]

    approval = web.ask(proposer, propose)
    assert "of the same user; a person decides it" in web.ask(token, decided(approval))
    assert web.ask(program(person("another", "admin"))[1], decided(approval)) is True


def test_a_token_of_a_session_is_refused_over_mcp_when_that_has_ended(web, operator, engine, session):
    request_submit(session.pk, "interaction", "", {"plan": PLAN}, by="system")
    token = program(operator, session)[1]
    assert web.ask(token, lambda client: client.list_tools()).tools
    request_submit(session.pk, "cancel", "", {"reason": "enough"}, by="system")
    engine.run()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, _, body = web.request("POST", body=asked, Authorization=f"Bearer {token}", Accept="application/json")
    assert status == 401
    assert f"issued for session {session.pk}, which has ended".encode() in body


def test_a_fork_by_a_token_of_a_session_is_a_child_of_that_session(operator, session):
    digits = plant(session, noop("fetch"))
    by, text = program(operator, session)
    forked, _, created = constellation_fork(digits.pk, operator, by=by)
    assert (created, forked.parent_id, forked.depth, forked.token_key) == (True, session.pk, 1, by.removeprefix("token:"))
    again = Rest(token=text).post(f"/api/constellations/{digits.pk}/fork", {"client_id": "one"})
    assert again.status_code == 201
    assert Session.objects.get(pk=again.json()["session"]).parent_id == session.pk


def test_over_mcp_a_token_of_a_session_starts_and_commands_nothing_in_another_one(web, operator, session):
    device_create("laptop", by="system")
    elsewhere = session_create(operator, by=f"user:{operator.pk}")
    digits, inside = plant(elsewhere, noop("fetch")), program(operator, session)[1]
    calls: dict[str, dict] = {
        "start_request": {"session": elsewhere.pk, "plan": PLAN},
        "pause": {"constellation_id": digits.pk},
        "retry": {"constellation_id": digits.pk},
        "add_task": {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop"},
    }

    async def refused(client):
        return [(await client.call_tool(name, arguments)).content[0].text for name, arguments in calls.items()]

    told = f"this token was issued for session {session.pk}, and works only there"
    assert [text.startswith(told) for text in web.ask(inside, refused)] == [True] * len(calls)
    assert not elsewhere.inbox.filter(by__startswith="token:").exists()
