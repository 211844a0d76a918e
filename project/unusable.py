"""Why nothing can be done here: the database or the state folder cannot be used. One sentence for whoever started a command."""

from __future__ import annotations

import sqlite3

import django
import django.db
import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agents.faults import NO_ROOM
from agents.streams.outages import outage_refusal

NO_DATABASE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
REFUSED = ("28", "3D")
"""How PostgreSQL's codes begin that say: not with this account, no such database."""


def why_unusable(error: BaseException) -> str:
    """A sentence where `error` says that the database or the state folder cannot be used, else nothing."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.errno in NO_ROOM and error.filename else ""
    if not isinstance(error, django.db.Error):
        return ""
    cause = error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) and cause.sqlstate else ""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if not (outage_refusal(error) or state.startswith(REFUSED) or code in NO_DATABASE):
        return ""
    said = " ".join(str(error).split())
    database = settings.DATABASES["default"]  # of which only what is no secret is said
    host = f" at {database['HOST']}:{database.get('PORT') or 5432}" if database.get("HOST") else ""
    return f"the database {database['NAME']}{host} (DATABASE_URL) cannot be used: {said}"


def refuse_unusable_database() -> None:
    """Raises ImproperlyConfigured where there is no connection to be had; what starts other processes asks first."""
    django.setup()
    try:
        django.db.connection.ensure_connection()
    except django.db.Error as error:
        raise ImproperlyConfigured(why_unusable(error) or str(error)) from error
    finally:
        django.db.connection.close()
