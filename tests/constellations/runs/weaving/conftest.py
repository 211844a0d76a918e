"""A constellation agent with a scripted model: profiles as rows, requests in words, and what a model would answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agents.models import ModelCall
from agents.services import sessions
from agents.services.model_profiles import model_profile_create
from agents.services.sessions import session_create
from tests.agents.llm.conftest import Provider, loopback, openai_provider, protocol, provider  # noqa: F401  fixtures
from tests.constellations.runs.test_run import in_thread

BY = "user:1"
WORDS = "Train a model on the digits and deploy it if it is good enough."


def answer(status: str = "CONTINUE", thought: str = "", result: str = "", **more) -> str:
    """What a model says, as JSON."""
    return json.dumps({"observation": "as shown", "thought": thought, "status": status, "result": result, **more})


def planned(*tasks: dict, dependencies=(), name: str = "digits", **more) -> str:
    """A creation's answer."""
    return answer(constellation={"name": name, "tasks": list(tasks), "dependencies": list(dependencies)}, **more)


def edited(*actions: tuple[str, dict], **more) -> str:
    """An editing session's answer."""
    return answer(actions=[{"tool": tool, "parameters": parameters} for tool, parameters in actions], **more)


def task(task_id: str, result=None, **more) -> dict:
    return {
        "task_id": task_id, "description": task_id, "device": "laptop", "tool": "noop", "arguments": {"result": result}, **more
    }  # fmt: skip


def command(task_id: str, *argv: str, **more) -> dict:
    return {"task_id": task_id, "description": task_id, "device": "laptop", "command": list(argv), **more}


@pytest.fixture(autouse=True)
def free_sleep(settings):
    """What a model plans is asked about, but for this."""
    settings.UNASKED = {"commands": [["sleep", "*"]]}


@pytest.fixture
def thinking(openai_provider) -> Callable[..., Provider]:  # noqa: F811
    """A function that lets a model give these answers, each once and in this order, for creation and editing."""
    return _with_profile(openai_provider)


@pytest.fixture
def thinking_in_any_protocol(provider) -> Callable[..., Provider]:  # noqa: F811
    return _with_profile(provider)


def _with_profile(start: Callable[..., Provider]) -> Callable[..., Provider]:
    def begin(*answers: str | dict) -> Provider:
        told = [{"say": each} if isinstance(each, str) else each for each in answers]
        found = start(*({"when": {}, "times": 1, **each} for each in told))
        profile = found.profile
        model_profile_create(
            "weaver", by="system", provider=profile.provider, model=profile.model, base_url=profile.base_url,
            purposes=["creation", "editing"],
        )  # fmt: skip
        return found

    return begin


def ask(engine, words: str = WORDS, session=None, **payload):
    """A request in words: (session, its item)."""
    session = session or session_create(engine.owner, by=f"user:{engine.owner.pk}")
    item, _ = sessions.request_submit(
        session.pk, "interaction", "", {"request": words, **payload}, by=f"user:{engine.owner.pk}"
    )  # fmt: skip
    return session, item


def tell(session, kind: str, **payload) -> None:
    """A command, as another process sends it."""
    in_thread(sessions.request_submit, session.pk, kind, "", payload, by=BY)


def calls(**more) -> list[ModelCall]:
    return list(ModelCall.objects.filter(**more).order_by("number"))
