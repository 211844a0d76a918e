"""What the tests of REST and websocket share: clients, tokens, and rows that went the one write path."""

import json
from itertools import count as counter

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import Client

from agents.artifacts.keeping import keep_artifact
from agents.artifacts.recording import record_artifacts
from agents.gates.policies import action_digest
from agents.models import Token
from agents.services import sessions
from agents.streams.door import door

NUMBERS = counter(1)
NOW = "2026-11-21T03:04:05.123456Z"
PLAN = "name: one\ntasks:\n  - {task_id: only, tool: noop}\n"


class Rest:
    """A client that speaks JSON."""

    def __init__(self, user=None, token="", csrf=False):
        self.client = Client(enforce_csrf_checks=csrf, raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        if user is not None:
            self.client.force_login(user)

    def get(self, path, **query):
        return self.client.get(path, query, headers=self.headers)

    def post(self, path, body=None, content_type="application/json", **headers):
        data = body if isinstance(body, str | bytes) else json.dumps(body if body is not None else {})
        return self.client.post(path, data, content_type=content_type, headers={**self.headers, **headers})

    def patch(self, path, body):
        return self.client.patch(path, json.dumps(body), content_type="application/json", headers=self.headers)

    def delete(self, path):
        return self.client.delete(path, headers=self.headers)


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by=f"user:{operator.pk}")


@pytest.fixture
async def closed_connections():
    """Asynchronous tests read in a thread of their own; its connection must not outlive the test's database."""
    yield
    await sync_to_async(connections.close_all)()


def make_token(user, *scopes, **fields):
    """(the row, its text)"""
    return Token.objects.create(user, scopes=list(scopes), **fields)


def record(stream, event_type="noted", **data):
    """One event of the stream, with the rows it adds."""
    with door(stream, "system") as opened:
        opened.turn.record(event_type, **data)


def add_rows(stream, table, rows):
    """Rows of `table` with fresh ids; returns the ids."""
    with door(stream, "system") as opened:
        whole = [{"id": opened.take(), **row} for row in rows]
        opened.turn.record("added", add={table: whole})
    return [row["id"] for row in whole]


def add_interaction(session):
    row = {
        "session_id": session.pk,
        "client_id": f"asked-{next(NUMBERS)}",
        "kind": "interaction",
        "by": "system",
        "created_at": NOW,
    }
    return add_rows(session.pk, "inbox", [row])[0]


def add_agents(session, count=1, **fields):
    interaction = add_interaction(session)
    row = {
        "session_id": session.pk, "interaction_id": interaction, "machine": "device_agent", "name": "agent",
        "platform": "shell", "state": "CONTINUE", "created_at": NOW, "entered_at": NOW, **fields,
    }  # fmt: skip
    return add_rows(session.pk, "agent", [row] * count)


def add_artifacts(session, *contents, **fields):
    """Contents that the store has, and their rows."""
    with door(session.pk, "system") as opened:
        kept = [keep_artifact(content, name=f"kept-{number}.txt") for number, content in enumerate(contents)]
        rows = record_artifacts(opened.turn, session.pk, kept, attempt=fields.get("attempt"), call=None)
    return [row["id"] for row in rows]


def add_actor(session, state="idle", epoch=1):
    row = {"session_id": session.pk, "epoch": epoch, "state": state, "created_at": NOW, "entered_at": NOW, "active_at": NOW}
    return add_rows(session.pk, "actor", [row])[0]


def add_loop(agent, session, state="Idle"):
    row = {"agent_id": agent, "state": state, "position": {"step": 1}, "created_at": NOW, "entered_at": NOW}
    return add_rows(session.pk, "loop", [row])[0]


def add_evidence(loop, session, *rows):
    """Rows of evidence, numbered from 1; each a dict of what differs from a tool call that went well."""
    whole = {"loop_id": loop, "kind": "tool", "tool": "command", "success": True, "started_at": NOW, "ended_at": NOW}
    return add_rows(session.pk, "evidence", [{**whole, "number": number + 1, **row} for number, row in enumerate(rows)])


def add_model_calls(agent, session, *rows):
    """Calls of a language model that were answered, numbered from 1; each a dict of what differs."""
    whole = {
        "session_id": session.pk, "interaction_id": agent.interaction_id, "agent_id": agent.pk, "purpose": "creation",
        "profile": "main", "outcome": "answered", "started_at": NOW, "ended_at": NOW,
    }  # fmt: skip
    return add_rows(session.pk, "model_call", [{**whole, "number": number + 1, **row} for number, row in enumerate(rows)])


def add_approvals(session, count=1, **fields):
    """Approvals that wait for leave to list a folder, unless `fields` say otherwise."""
    action = fields.pop("action", {"tool": "command", "arguments": {"argv": ["ls"]}})
    row = {
        "session_id": session.pk, "agent_id": None, "kind": "tool", "subject_id": 1, "title": "run ls", "action": action,
        "digest": action_digest(action), "state": "waiting", "asked_at": NOW, **fields,
    }  # fmt: skip
    return add_rows(session.pk, "approval", [row] * count)
