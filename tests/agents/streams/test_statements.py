"""The hand-written statements' edges: waiting for SQLite's one lock, many rows at once."""

import gc
import sqlite3
import threading

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from agents import ids
from agents.engine import summon
from agents.models import Event, InboxItem, Session, Stream
from agents.services import sessions
from agents.streams import statements
from agents.streams.door import door
from agents.streams.fold import EVENTS_READ, changes_after, events_since
from tests.agents.conftest import record

pytestmark = pytest.mark.django_db(transaction=True)


def hold_the_lock(held: threading.Event, release: threading.Event) -> None:
    """Another process's writer: it has the database to itself until told otherwise."""
    with statements.write_transaction():
        Session.objects.update(title="held")
        held.set()
        release.wait(5)
    connections.close_all()


@pytest.fixture
def other_writer(operator):
    """(the thread, what lets it go) once it holds the lock."""
    sessions.session_create(operator, "first", by="user:1")
    held, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold_the_lock, args=(held, release))
    thread.start()
    assert held.wait(5)
    yield release
    release.set()
    thread.join()


def test_a_writer_waits_for_another_and_then_writes(other_writer, operator):
    threading.Timer(0.05, other_writer.set).start()
    session = sessions.session_create(operator, "second", by="user:1")
    assert Session.objects.get(pk=session.pk).title == "second"


def test_a_writer_that_waits_too_long_gives_up_and_the_connection_is_as_before(other_writer, operator, monkeypatch):
    monkeypatch.setattr(statements, "BUSY_S", 0.02)
    if connection.vendor == "sqlite":  # its one lock; elsewhere another session's rows are nobody's business
        with pytest.raises(OperationalError, match="locked"):
            sessions.session_create(operator, "second", by="user:1")
    assert not connection.in_atomic_block
    monkeypatch.setattr(statements, "BUSY_S", 5.0)
    other_writer.set()
    assert sessions.session_create(operator, "third", by="user:1").title == "third"


def test_an_error_inside_undoes_what_was_written(operator):
    def write_and_break() -> None:
        with statements.write_transaction():
            sessions.session_create(operator, "lost", by="user:1")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        write_and_break()
    assert Session.objects.count() == 0


def test_many_rows_are_changed_at_once(operator):
    session = sessions.session_create(operator, by="user:1")
    for n in range(30):
        sessions.request_submit(session.pk, "ping", f"p{n}", {}, by="user:1")
    ids = list(InboxItem.objects.order_by("pk").values_list("pk", flat=True))
    with statements.write_transaction():
        rows = [("done", {"n": key}, key) for key in ids]
        statements.current_store().update(
            statements.raw_cursor(), "agents_inboxitem", (("state", "text"), ("result", "json")), rows
        )
    assert set(InboxItem.objects.values_list("state", flat=True)) == {"done"}
    assert [item.result["n"] for item in InboxItem.objects.order_by("pk")] == ids


# What a search for garbage closes


@pytest.fixture
def always_searching():
    """Python searches for garbage wherever it may."""
    before = gc.get_threshold()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("opened", ["door", "writing"])
def test_nobody_searches_for_garbage_while_he_holds_the_lock(operator, always_searching, opened):
    session = sessions.session_create(operator, "first", by="user:1")
    mine, seen = threading.get_ident(), []

    def note(phase: str, info: dict) -> None:
        if phase == "start" and threading.get_ident() == mine:
            seen.append(connection.in_atomic_block)

    gc.callbacks.append(note)
    try:
        with door(session.pk, "user:1") if opened == "door" else statements.write_transaction():
            Session.objects.update(title="second")
    finally:
        gc.callbacks.remove(note)
    assert seen
    assert not any(seen)


LONG = 5 * EVENTS_READ


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite reads in the order of keys, and says no numbers")
@pytest.mark.parametrize("read", [events_since, changes_after])
def test_a_few_events_of_a_long_stream_are_read_without_the_rest(operator, read):
    """Also before PostgreSQL has statistics of a stream that has just become long."""
    stream = sessions.session_create(operator, "long", by=f"user:{operator.pk}").pk
    head = Stream.objects.get(pk=stream).head
    long = range(head + 1, head + LONG + 1)
    at = timezone.now()
    Event.objects.bulk_create(
        [Event(pk=ids.row_id(stream, seq), stream_id=stream, seq=seq, at=at, type="noted", data={"seq": seq}) for seq in long]
    )
    Stream.objects.filter(pk=stream).update(head=head + LONG)
    with transaction.atomic(), connection.cursor() as cursor:
        assert len(read(stream, head, 10)) == 10
        cursor.execute("SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'agents_event'")
        assert cursor.fetchone()[0] <= EVENTS_READ


def test_events_behind_a_missing_one_are_found(operator):
    stream = sessions.session_create(operator, "with a hole", by=f"user:{operator.pk}").pk
    for _ in range(4):
        record(stream)
    head = Stream.objects.get(pk=stream).head
    Event.objects.filter(stream_id=stream, seq=head - 2).delete()
    assert [event["seq"] for event in events_since(stream, head - 3, 1)] == [head - 1]
    assert [event["seq"] for event in events_since(stream, head - 4)] == [head - 3, head - 1, head]


of_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite's connections are locked while they wait")


@of_sqlite
def test_a_writer_does_not_wait_for_who_waits_for_it(operator, always_searching):
    """What a thread has left behind is closed by whoever finds it, and its connection is in use as long as it waits."""
    session = sessions.session_create(operator, "first", by="user:1")
    waiting, met = threading.Event(), []

    def write() -> None:
        connection.ensure_connection()
        raw = connection.connection
        raw.execute("PRAGMA busy_timeout = 5000")
        circle: list = [raw.execute("SELECT 1 UNION SELECT 2")]
        circle.append(circle)
        del circle
        raw.set_trace_callback(lambda statement: waiting.set())
        try:
            Session.objects.filter(pk=session.pk).update(title="second")
        except OperationalError as error:
            met.append(str(error))
        finally:
            connections.close_all()

    thread = threading.Thread(target=write)
    with door(session.pk, "user:1"):
        thread.start()
        assert waiting.wait(30)
    thread.join()
    assert met == []
    assert Session.objects.get(pk=session.pk).title == "second"


@of_sqlite
def test_a_writer_that_waits_leaves_nothing_behind(other_writer, operator):
    def cursors() -> int:
        return sum(issubclass(type(thing), sqlite3.Cursor) for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = cursors()
        threading.Timer(0.1, other_writer.set).start()
        sessions.session_create(operator, "second", by="user:1")
        assert cursors() <= before + 5
    finally:
        gc.enable()


def test_who_asks_for_a_runner_waits_as_everybody(other_writer, monkeypatch):
    monkeypatch.setattr(statements, "BUSY_S", 0.02)
    if connection.vendor == "sqlite":  # its own patience would be 20 s, and its connection in use as long
        with pytest.raises(OperationalError, match="locked"):
            summon.ask_for_runner()
    other_writer.set()
    monkeypatch.setattr(statements, "BUSY_S", 5.0)
    summon.ask_for_runner()
    assert summon.runners_asked_for() >= 1
