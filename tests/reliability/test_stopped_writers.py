"""A process that stops in the middle of a transaction, with a session's rows locked: the others go on, then that one too.

Only PostgreSQL has locks of rows. SQLite has one lock, and whoever stops while holding it stops everybody.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from agents.models import InboxItem
from agents.services import sessions
from constellations.models import Attempt, Task
from tests.reliability.cluster import database_url, until

pytestmark = [
    pytest.mark.kill,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks of rows"),
]

HOLDING = """
import django, sys
django.setup()
from django.db import connection
from agents.streams.door import WAKE, door
from agents.streams.statements import raw_cursor, current_store
stream, limit = int(sys.argv[1]), sys.argv[2]
with connection.cursor() as at_first:
    at_first.execute(f"SET idle_in_transaction_session_timeout = '{limit}'")
with door(stream, "system"):
    current_store().execute(raw_cursor(), WAKE, ("2026-01-01T00:00:00Z", stream))
    print("holding", flush=True)
    sys.stdin.read()
"""
"""Locks the rows that whoever records something in a session locks, and holds them."""


@pytest.fixture
def holding(state_dir) -> Iterator[Callable[..., None]]:
    """Makes processes that are stopped while they hold a session."""
    made: list[subprocess.Popen] = []

    def make(session: int, limit: str) -> None:
        env = {
            **os.environ, "ORRERY_STATE_DIR": str(state_dir), "DATABASE_URL": database_url(),
            "ORRERY_SECRET_KEY": settings.SECRET_KEY, "DJANGO_SETTINGS_MODULE": "project.settings",
        }  # fmt: skip
        argv = [sys.executable, "-c", HOLDING, str(session), limit]
        process = subprocess.Popen(
            argv, cwd=settings.BASE_DIR, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        process.send_signal(signal.SIGSTOP)

    yield make
    for process in made:
        process.kill()
        process.communicate()


@pytest.fixture
def ask(operator) -> Callable[..., InboxItem]:
    def ask(*tasks: dict) -> InboxItem:
        session = sessions.session_create(operator, by="system")
        plan = json.dumps({"tasks": [{"device": "laptop", **task} for task in tasks]})
        return sessions.request_submit(session.pk, "interaction", "", {"plan": plan}, by=f"user:{operator.pk}")[0]

    return ask


def outcome(item: InboxItem) -> str:
    return InboxItem.objects.values_list("outcome", flat=True).get(pk=item.pk)


def waiting(gate: Path) -> dict:
    return {"task_id": "wait", "command": ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done', str(gate)]}


def test_a_stopped_writer_holds_up_its_own_session_and_no_other(clusters, holding, ask, device, state_dir):
    cluster = clusters(runners=1)
    cluster.start()
    first = ask(waiting(state_dir / "gate"), {"task_id": "then", "tool": "noop", "after": ["wait"]})
    until(lambda: Attempt.objects.filter(outcome="").exists(), "the command runs")
    holding(first.session_id, limit="0")
    (state_dir / "gate").touch()
    others = [ask({"task_id": "a", "tool": "noop"}) for _ in range(3)]
    until(lambda: [outcome(item) for item in others] == ["completed"] * 3, "the other sessions end")
    assert Task.objects.get(task_id="wait").state == "RUNNING"
    assert outcome(first) == ""


def test_a_session_that_a_stopped_writer_holds_goes_on_when_the_database_ends_it(clusters, holding, ask, device, state_dir):
    cluster = clusters(runners=1)
    cluster.start()
    item = ask(waiting(state_dir / "gate"), {"task_id": "then", "tool": "noop", "after": ["wait"]})
    until(lambda: Attempt.objects.filter(outcome="").exists(), "the command runs")
    runner = cluster.runners()[0].pk
    holding(item.session_id, limit="1s")
    (state_dir / "gate").touch()
    until(lambda: outcome(item) == "completed", "the session ends")
    assert [row.pk for row in cluster.runners()] == [runner]
    assert [attempt.outcome for attempt in Attempt.objects.all()] == ["completed"] * 2


def test_a_session_is_taken_up_though_a_stopped_writer_holds_another(clusters, holding, ask, device):
    held = ask({"task_id": "a", "tool": "noop"})
    holding(held.session_id, limit="0")
    cluster = clusters(runners=1)
    cluster.start()
    free = ask({"task_id": "b", "tool": "noop"})
    until(lambda: outcome(free) == "completed", "the free session ends")
    assert outcome(held) == ""


def test_the_database_is_told_to_end_whoever_stops_in_a_transaction():
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == (f"{settings.IDLE_IN_TRANSACTION_S}s",)
