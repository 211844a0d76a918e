"""A constellation with gates of every kind, and those who would like them gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Session
from agents.services.devices import device_create
from agents.services.policies import policy_create
from agents.services.sessions import session_create
from agents.services.tokens import token_create
from constellations.models import Constellation
from tests.agents.conftest import Rest
from tests.constellations.planting import noop, plant
from tests.constellations.runs.test_run import command

EDITOR = ("read", "operate", "edit")
ALL = (*EDITOR, "approve")
DAY = timedelta(days=1)


def op(name: str, /, **parameters: Any) -> dict:
    return {"op": name, "parameters": parameters}


def update(task_id: str, **fields: Any) -> dict:
    return op("update_task", task_id=task_id, **fields)


def add(task_id: str, *argv: str, **more: Any) -> dict:
    return op("add_task", task_id=task_id, **({"command": list(argv)} if argv else {}), **more)


def step(*argv: str, **more: Any) -> dict:
    return {"command": list(argv), **more}


def token(user, *scopes: str, by: str = "system") -> tuple[str, str]:
    """(its author's name, its text)"""
    made, text = token_create(user, "agent", scopes, DAY, by=by)
    return f"token:{made.token_key}", text


PLAN: list[dict] = [
    command("danger", "echo", "DANGER", confirm=True),
    {"task_id": "steps", "steps": [step("echo", "STEP", confirm=True), step("echo", "mild")]},
    {"task_id": "nested", "steps": [{"delegate": {"name": "inner", "steps": [step("echo", "INNER", confirm=True)]}}]},
    command("watched", "rm", "x", policies=[{"pattern": "^rm", "decision": "ask"}]),
    command("forbidden", "rm", "y", policies=[{"pattern": "^rm", "decision": "deny"}]),
    command("asks", "ls", on_lost="ask"),
    noop("hold", confirm=True),
    command("behind", "echo", "BEHIND", after=["hold"]),
    command("further", "echo", "FURTHER", after=["behind"]),
    command("there", "echo", "PROD", device="prod"),
    command("free", "echo", "free", unasked={"ask": ["*"]}),
    {"task_id": "first", "steps": [{"tool": "noop", "confirm": True}, step("echo", "AFTER")]},
    command("last", "echo", "LAST", after=["first"]),
    {"task_id": "gatekeeper", "steps": [{"tool": "noop", "confirm": True}]},
    command("kept", "echo", "KEPT", after=["gatekeeper"]),
]


@pytest.fixture
def session(operator) -> Session:
    for name in ("laptop", "prod"):
        device_create(name, by="system")
    policy_create(by="system", tool="command", pattern="PROD", device="prod", decision="ask")
    return session_create(operator, "mine", by=f"user:{operator.pk}")


@pytest.fixture
def found(session) -> Constellation:
    return plant(session, *PLAN)


def post(text: str, found: Constellation, operations: list[dict], **more: Any):
    return Rest(token=text).post(f"/api/constellations/{found.pk}/edits/", {"operations": operations, **more})
