"""A database that is busy, or does not answer: which errors say so, and the refusal that they become where somebody asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import django.db
import psycopg

from agents.errors import DatabaseBusy, DatabaseGone

BUSY_ON_SQLITE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
BUSY_ON_POSTGRES = ("40001", "40P01", "55P03", "57014")
"""Could not be serialized, a deadlock, a lock or a statement that took too long: the transaction is undone."""
GONE_ON_POSTGRES = ("08", "25P03", "53300", "57P")
"""How codes begin that say: no connection, a transaction that was idle too long, too many connections, a server that stops."""
LOST = (psycopg.OperationalError, psycopg.InterfaceError, django.db.InterfaceError)
"""Without a code: there is no connection, or none any more."""


def refusal_of(error: BaseException) -> DatabaseBusy | DatabaseGone | None:
    """What is said of an error of the database, or of Django about one; None where it is a fault of ours, or another error."""
    found = error.__cause__ if isinstance(error, django.db.Error) and error.__cause__ else error
    if isinstance(found, sqlite3.OperationalError):
        # An error that sqlite3 raises by itself has no code.
        return DatabaseBusy() if getattr(found, "sqlite_errorcode", 0) & 0xFF in BUSY_ON_SQLITE else None
    code = found.sqlstate if isinstance(found, psycopg.Error) else None
    if code is None:
        return DatabaseGone() if isinstance(found, LOST) else None
    return DatabaseBusy() if code in BUSY_ON_POSTGRES else DatabaseGone() if code.startswith(GONE_ON_POSTGRES) else None


@contextmanager
def told() -> Iterator[None]:
    """Raises DatabaseBusy or DatabaseGone for an error inside that means it."""
    try:
        yield
    except Exception as error:
        refused = refusal_of(error)
        if refused is None:
            raise
        raise refused from error
