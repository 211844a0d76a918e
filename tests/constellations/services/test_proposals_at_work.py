"""Proposals of a constellation at work: withdrawn when it ends, expired when their time is over."""

import threading

import pytest
from django.db import connections

from agents.models import Approval
from agents.services import sessions
from agents.streams import statements
from constellations.models import Constellation
from constellations.services import proposals
from constellations.services.proposals import edit_propose
from tests.constellations.planting import noop

pytestmark = pytest.mark.django_db(transaction=True)
GATED = {"tasks": [noop("a", confirm=True), noop("b", after=["a"])]}


def count(rows: str) -> int:
    """Inside the runner's loop, where Django's ORM refuses to be asked."""
    cursor = statements.raw_cursor()
    cursor.execute(f"SELECT count(*) FROM {rows}")
    return cursor.fetchone()[0]


def elsewhere(what) -> None:
    """As another process does it: in a thread, on a connection of its own."""

    def run():
        try:
            what()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def propose(task_id: str) -> None:
    operation = {"op": "add_task", "parameters": {"task_id": task_id, "tool": "noop"}}
    edit_propose(Constellation.objects.get().pk, [operation], author="token:k", who="claude")


class Course:
    """Proposes as soon as the gate is open, and cancels when a proposal is in `state`; then true when all is over."""

    def __init__(self, session: int, state: str, proposes: bool):
        self.session, self.state, self.proposes, self.cancelled = session, state, proposes, False

    def __call__(self) -> bool:
        if self.proposes and count("agents_approval WHERE state = 'waiting'"):
            self.proposes = False
            elsewhere(lambda: propose("fresh"))
        if not self.cancelled and count(f"agents_approval WHERE kind = 'edit' AND state = '{self.state}'"):
            self.cancelled = True
            elsewhere(lambda: sessions.request_submit(self.session, "cancel", "", {}, by="user:1"))
        return self.cancelled and not count("agents_inboxitem WHERE state IN ('queued', 'running')")


def kinds_of_ends() -> set[str]:
    return set(Approval.objects.filter(kind="edit").values_list("state", flat=True))


def test_what_was_proposed_while_it_ran_is_withdrawn_when_it_ends(engine, device, verified):
    session, _ = engine.submit(GATED)
    engine.run(until=Course(session.pk, "waiting", proposes=True))
    assert kinds_of_ends() == {"withdrawn"}


def test_what_was_proposed_while_nobody_drove_it_is_withdrawn_when_it_ends(engine, device, verified):
    session, _ = engine.submit(GATED)
    engine.run(until=lambda: count("agents_approval WHERE state = 'waiting'") > 0)
    propose("between")
    engine.run(until=Course(session.pk, "waiting", proposes=False))
    assert kinds_of_ends() == {"withdrawn"}


def test_a_proposal_expires_by_itself(engine, device, verified, monkeypatch):
    monkeypatch.setattr(proposals, "PROPOSAL_S", 0.5)
    session, _ = engine.submit(GATED)
    engine.run(until=Course(session.pk, "expired", proposes=True))
    assert kinds_of_ends() == {"expired"}
