"""A database that is busy or gone: who asked is told so and when to ask again, and who only reads is not kept waiting."""

import sqlite3
import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, close_old_connections, connection, connections
from django.utils import timezone

from agents.errors import DatabaseBusy, DatabaseGone, StorageFull
from agents.models import Session, Token
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams import statements
from agents.streams.outages import outage_refusal
from constellations.mcp import http
from constellations.mcp.access import caller_of
from constellations.mcp.server import answer_call
from constellations.mcp.tools import TOOLS
from constellations.models import Constellation, Edit
from tests.agents.conftest import Rest, make_token
from tests.constellations.admin.admin_client import Staff, address
from tests.constellations.planting import noop, plant

pytestmark = pytest.mark.django_db(transaction=True)
BUSY = "the database is busy; nothing was recorded; try again"
OPERATIONS = [{"op": "add_task", "parameters": noop("extra")}]


@pytest.fixture
def found(operator) -> Constellation:
    device_create("laptop", by="system")
    return plant(sessions.session_create(operator, "mine", by="system"), noop("a"))


@contextmanager
def busy(found: Constellation, monkeypatch):
    """Another process has the session's lock, on SQLite the only one there is; nobody waits long for it."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with statements.write_transaction():
            statements.current_store().lock(statements.raw_cursor(), [found.session_id], wait=True)
            Session.objects.filter(pk=found.session_id).update(title="held")
            held.set()
            release.wait(10)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(5)
    monkeypatch.setattr(statements, "BUSY_S", 0.02)
    wait_for_rows("20ms")
    try:
        yield
    finally:
        release.set()
        thread.join()
        monkeypatch.undo()
        wait_for_rows("0")


def wait_for_rows(longest: str) -> None:
    """On PostgreSQL, by whoever connects from now on; 0 is for ever."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE \"{connection.settings_dict['NAME']}\" SET lock_timeout = '{longest}'")
        connections.close_all()


def test_a_request_that_meets_a_busy_database_is_told_when_to_come_again(operator, found, monkeypatch):
    rest = Rest(operator)
    with busy(found, monkeypatch):
        refused = rest.post(f"/api/constellations/{found.pk}/edits/", {"operations": OPERATIONS})
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (503, "database_busy", BUSY)
    assert (refused.headers["Content-Type"], refused.headers["Retry-After"]) == ("application/problem+json", "1")
    assert Edit.objects.count() == 0
    assert rest.post(f"/api/constellations/{found.pk}/edits/", {"operations": OPERATIONS}).status_code == 201


def test_a_tool_that_meets_a_busy_database_says_so(operator, found, monkeypatch):
    caller = caller_of(make_token(operator, "read", "edit")[1])
    with busy(found, monkeypatch):
        arguments = {"constellation_id": found.pk, "task_id": "extra", "tool": "noop"}
        refused = async_to_sync(answer_call)(TOOLS["add_task"], caller, arguments)
    assert (refused.is_error, refused.content[0].text) == (True, BUSY)


def test_a_page_that_meets_a_busy_database_says_so_in_a_sentence(operator, found, monkeypatch):
    staff = Staff(operator)
    form = staff.form(found)
    with busy(found, monkeypatch):
        refused = staff.client.post(address(found), {**form, "reason": "why", "tasks-0-description": "new", "_save": "1"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "The database is busy; nothing was recorded; try again." in refused.content.decode()


def test_reading_waits_for_nobody_though_the_use_of_its_token_is_to_be_noted(operator, found, monkeypatch):
    token, text = make_token(operator, "read")
    long_ago = timezone.now() - timedelta(days=1)
    Token.objects.filter(pk=token.pk).update(last_used=long_ago)
    with busy(found, monkeypatch):
        monkeypatch.setattr(statements, "BUSY_S", 20)
        begun = time.monotonic()
        read = Rest(token=text).get(f"/api/constellations/{found.pk}/")
        took = time.monotonic() - begun
    assert (read.status_code, took < 5) == (200, True)
    if connection.vendor == "sqlite":
        assert Token.objects.get(pk=token.pk).last_used == long_ago
    assert Rest(token=text).get(f"/api/constellations/{found.pk}/").status_code == 200
    assert Token.objects.get(pk=token.pk).last_used > long_ago


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no connections to lose")
def test_a_lost_connection_is_told_and_the_next_request_has_another(operator, found):
    rest = Rest(operator)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (own,))
    refused = rest.get(f"/api/constellations/{found.pk}/")
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (503, "database_gone", "1")
    close_old_connections()  # as a server does after each request
    assert rest.get(f"/api/constellations/{found.pk}/").status_code == 200


def test_a_program_whose_token_cannot_be_looked_up_is_told_when_to_come_again(monkeypatch):
    sent = []

    def gone(text):
        raise psycopg.OperationalError("the connection is closed")

    async def send(message):
        sent.append(message)

    monkeypatch.setattr(http, "caller_of", gone)
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
    async_to_sync(http.answer_mcp)(scope, None, send)
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"retry-after"]) == (503, b"1")
    assert b"the database does not answer" in sent[1]["body"]


def caused(error: Exception) -> OperationalError:
    """As Django raises what the driver did."""
    raised = OperationalError(str(error))
    raised.__cause__ = error
    return raised


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("said by SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (of_sqlite(sqlite3.SQLITE_BUSY), DatabaseBusy),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), DatabaseBusy),
        (of_sqlite(sqlite3.SQLITE_FULL), StorageFull),
        (sqlite3.OperationalError("of sqlite3 itself"), None),
        (psycopg.errors.LockNotAvailable(), DatabaseBusy),
        (psycopg.errors.DeadlockDetected(), DatabaseBusy),
        (psycopg.errors.AdminShutdown(), DatabaseGone),
        (psycopg.errors.IdleInTransactionSessionTimeout(), DatabaseGone),
        (psycopg.OperationalError("the connection is closed"), DatabaseGone),
        (psycopg.errors.DiskFull(), StorageFull),
        (psycopg.errors.UndefinedTable(), None),
        (ValueError("no error of a database"), None),
    ],
)
def test_an_outage_is_told_from_other_errors(error, refusal):
    for raised in (error, caused(error)) if not isinstance(error, ValueError) else (error,):
        found = outage_refusal(raised)
        assert (found and type(found)) == refusal
