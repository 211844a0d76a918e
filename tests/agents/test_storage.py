"""The hand-written statements' edges: waiting for SQLite's one lock, many rows at once."""

import threading

import pytest
from django.db import OperationalError, connection, connections

from agents import services, storage
from agents.models import InboxItem, Session

pytestmark = pytest.mark.django_db(transaction=True)


def hold_the_lock(held: threading.Event, release: threading.Event) -> None:
    """Another process's writer: it has the database to itself until told otherwise."""
    with storage.writing():
        Session.objects.update(title="held")
        held.set()
        release.wait(5)
    connections.close_all()


@pytest.fixture
def other_writer(operator):
    """(the thread, what lets it go) once it holds the lock."""
    services.session_create(operator, "first", by="user:1")
    held, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold_the_lock, args=(held, release))
    thread.start()
    assert held.wait(5)
    yield release
    release.set()
    thread.join()


def test_a_writer_waits_for_another_and_then_writes(other_writer, operator):
    threading.Timer(0.05, other_writer.set).start()
    session = services.session_create(operator, "second", by="user:1")
    assert Session.objects.get(pk=session.pk).title == "second"


def test_a_writer_that_waits_too_long_gives_up_and_the_connection_is_as_before(other_writer, operator, monkeypatch):
    monkeypatch.setattr(storage, "BUSY_S", 0.02)
    if connection.vendor == "sqlite":  # its one lock; elsewhere another session's rows are nobody's business
        with pytest.raises(OperationalError, match="locked"):
            services.session_create(operator, "second", by="user:1")
    assert not connection.in_atomic_block
    monkeypatch.setattr(storage, "BUSY_S", 5.0)
    other_writer.set()
    assert services.session_create(operator, "third", by="user:1").title == "third"


def test_an_error_inside_undoes_what_was_written(operator):
    def write_and_break() -> None:
        with storage.writing():
            services.session_create(operator, "lost", by="user:1")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        write_and_break()
    assert Session.objects.count() == 0


def test_many_rows_are_changed_at_once(operator):
    session = services.session_create(operator, by="user:1")
    for n in range(30):
        services.command_submit(session.pk, "ping", f"p{n}", {}, by="user:1")
    ids = list(InboxItem.objects.order_by("pk").values_list("pk", flat=True))
    with storage.writing():
        rows = [("done", {"n": key}, key) for key in ids]
        storage.store().update(storage.cursor(), "agents_inboxitem", (("state", "text"), ("result", "json")), rows)
    assert set(InboxItem.objects.values_list("state", flat=True)) == {"done"}
    assert [item.result["n"] for item in InboxItem.objects.order_by("pk")] == ids
