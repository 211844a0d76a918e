"""A token that was issued for a session changes and commands only what belongs there, over REST, with the real engine."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.models import Actor, InboxItem, Session
from agents.services.devices import device_create
from agents.services.sessions import request_submit, session_create
from agents.services.tokens import token_create
from constellations.models import Constellation
from constellations.services.lifecycle import constellation_cancel
from tests.agents.conftest import Rest
from tests.constellations.planting import noop, plant
from tests.constellations.runs.test_run import command, in_thread, query, something_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

PLAN = "tasks: [{task_id: only, tool: noop}]"
ADD = [{"op": "add_task", "parameters": {"task_id": "lint", "tool": "noop"}}]
ANSWER = {
    "thought": "No more of it.", "status": "CONTINUE",
    "action": [{"function": "remove_task", "arguments": {"task_id": "fetch"}, "status": "success"}],
}  # fmt: skip
"""Of an agent that edits."""


def token_of(session: Session, *scopes: str) -> tuple[str, str]:
    """(its author's name, its text)"""
    scopes = scopes or ("read", "operate", "edit", "approve")
    token, text = token_create(session.owner, "agent", scopes, timedelta(days=1), by="system", session=session.pk)
    return f"token:{token.token_key}", text


@pytest.fixture
def person(operator) -> str:
    return f"user:{operator.pk}"


@pytest.fixture
def session(operator, person) -> Session:
    device_create("laptop", by="system")
    return session_create(operator, "mine", by=person)


def test_what_counts_at_once_is_refused_in_a_session_that_is_not_below(operator, person, session):
    elsewhere = session_create(operator, by=person)
    theirs, own = plant(elsewhere, noop("fetch")), plant(session, noop("fetch"))
    below = plant(session_create(operator, by=token_of(session)[0]), noop("fetch"))
    Rest(operator).post(f"/api/constellations/{theirs.pk}/edits", {"operations": ADD, "edit_id": "theirs"})
    inside = Rest(token=token_of(session)[1])
    calls = [
        ("edits", {"operations": [{"op": "remove_task", "parameters": {"task_id": "fetch"}}]}),
        ("edits/theirs/undo", {}),
        ("commands", {"kind": "pause"}),
        ("commands", {"kind": "resume"}),
        ("commands", {"kind": "restart"}),
        ("commands", {"kind": "cancel", "reason": "no"}),
        ("retry", {}),
        ("retry", {"tasks": ["fetch"], "operations": ADD}),
        ("reopen", {"retry": ["fetch"]}),
        ("fork", {}),
        ("import", {"document": ANSWER}),
    ]
    calls = [(f"/api/constellations/{theirs.pk}/{path}", body) for path, body in calls]
    calls += [
        (f"/api/tasks/{theirs.tasks.get(task_id='fetch').pk}/{path}", {"reason": "no"}) for path in ("retry", "cancel", "skip")
    ]
    calls.append((f"/api/sessions/{elsewhere.pk}/import", {"dialect": "orrery", "document": {"tasks": [noop("only")]}}))
    for path, body in calls:
        answer = inside.post(path, body)
        assert (answer.status_code, answer.json().get("code")) == (403, "not_your_session"), path
        assert f"not in session {elsewhere.pk}" in answer.json()["detail"]
    assert Session.objects.count() == 3
    for found in (own, below):
        assert inside.post(f"/api/constellations/{found.pk}/edits", {"operations": ADD}).status_code == 201
        assert inside.post(f"/api/constellations/{found.pk}/commands", {"kind": "pause"}).status_code == 200
    assert inside.get(f"/api/constellations/{theirs.pk}/").status_code == 200  # it reads what its user sees


def test_what_a_session_has_queued_for_itself_ends_with_its_constellation(engine, operator, person, session):
    by, _ = token_of(session)
    engine.submit({"tasks": [command("works", "sleep", "60")]}, session)
    asked: dict[str, int] = {}

    def stop() -> None:
        for name, author in (("own", by), ("of the person", person)):
            asked[name] = request_submit(session.pk, "interaction", "", {"plan": PLAN}, by=author)[0].pk
        constellation_cancel(Constellation.objects.get().pk, by=person, reason="enough")

    def until() -> bool:
        if not asked and something_runs():
            in_thread(stop)
        return bool(asked) and query("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')") == 0

    engine.run(until)
    ends = {name: InboxItem.objects.values_list("state", "outcome").get(pk=key) for name, key in asked.items()}
    assert ends == {"own": ("refused", "cancelled"), "of the person": ("done", "completed")}
    assert InboxItem.objects.get(pk=asked["own"]).result == {"summary": "parent cancelled"}
    assert Constellation.objects.count() == 2
    assert Actor.objects.get(session=session).state == "idle"


def test_a_stop_leaves_what_an_ancestor_or_another_token_has_queued(operator, person, session):
    above = token_of(session)[0]
    child = session_create(operator, by=above)
    within, other = token_of(child)[0], token_create(operator, "", ("operate",), timedelta(days=1), by="system")[0]
    running = plant(child, noop("fetch"))
    asked = {
        name: request_submit(child.pk, "interaction", "", {"plan": PLAN}, by=by)[0].pk
        for name, by in (("above", above), ("within", within), ("other", f"token:{other.token_key}"))
    }
    constellation_cancel(running.pk, by=person, reason="enough")
    ends = {name: InboxItem.objects.get(pk=key).state for name, key in asked.items()}
    assert ends == {"above": "queued", "within": "refused", "other": "queued"}
