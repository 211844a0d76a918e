"""A database that is busy, does not answer or has no room: which errors say so, and what who asked is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import django.db
import psycopg
from django.db import connection

from agents.errors import DatabaseBusy, DatabaseGone, StorageFull
from agents.faults import read_sqlstate
from agents.streams.door import door, system_stream

BUSY_ON_SQLITE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
FULL_ON_SQLITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""The disk is full; a file cannot be written, grown, made, or opened for writing."""
LOST = (psycopg.OperationalError, psycopg.InterfaceError, django.db.InterfaceError)
"""Without a code: there is no connection, or none any more."""
SAID_OF: dict[str, type[DatabaseBusy | DatabaseGone | StorageFull]] = {
    "busy": DatabaseBusy, "gone": DatabaseGone, "full": StorageFull,
}  # fmt: skip
"""What is said of an outage (`agents.faults.SQLSTATES`)."""

T = TypeVar("T")


def outage_refusal(error: BaseException) -> DatabaseBusy | DatabaseGone | StorageFull | None:
    """What is said of an error of the database, or of Django about one; None where it is a fault of ours, or another error."""
    if isinstance(error, DatabaseBusy | DatabaseGone | StorageFull):
        return error
    found = error.__cause__ if isinstance(error, django.db.Error) and error.__cause__ else error
    if isinstance(found, sqlite3.OperationalError):
        # An error that sqlite3 raises by itself has no code.
        code = getattr(found, "sqlite_errorcode", 0) & 0xFF
        return DatabaseBusy() if code in BUSY_ON_SQLITE else StorageFull() if code in FULL_ON_SQLITE else None
    state = found.sqlstate if isinstance(found, psycopg.Error) else None
    if state is None:
        return DatabaseGone() if isinstance(found, LOST) else None
    answer = SAID_OF.get(read_sqlstate(state).outage)
    return answer() if answer is not None else None


@contextmanager
def translate_outages() -> Iterator[None]:
    """Raises DatabaseBusy or DatabaseGone for an error inside that means it."""
    try:
        yield
    except Exception as error:
        refused = outage_refusal(error)
        if refused is None:
            raise
        raise refused from error


def with_fresh_connection(function: Callable[..., T], *arguments: Any) -> T:
    """Call `function` in this thread; after an error of the database the next call gets a new connection."""
    try:
        with connection.wrap_database_errors:  # some use the driver's own cursor
            return function(*arguments)
    except django.db.Error:
        connection.close()
        raise


def record_outage(who: str, cause: str, since: str, lasted_s: float, **more: Any) -> None:
    """Say in the system's stream who was without the database, why, from when and for how long."""
    with door(system_stream(), "system") as opened:
        opened.turn.record("outage", who=who, cause=cause, since=since, lasted_s=round(lasted_s, 3), **more)
