"""Which errors of the database say that it is busy, gone or full; everything else is a fault of ours."""

import psycopg
import pytest
from django.db import OperationalError

from agents.errors import DatabaseBusy, DatabaseGone, StorageFull
from agents.faults import error_kind_of
from agents.streams.outages import outage_refusal

CODES = [
    ("08006", DatabaseGone, "connection_lost"),
    ("57P01", DatabaseGone, "connection_lost"),
    ("57P03", DatabaseGone, "connection_lost"),
    ("25P03", DatabaseGone, "broken"),
    ("53300", DatabaseGone, "server_error"),
    ("40001", DatabaseBusy, "server_error"),
    ("40P01", DatabaseBusy, "server_error"),
    ("55P03", DatabaseBusy, "broken"),
    ("57014", DatabaseBusy, "broken"),
    ("53100", StorageFull, "server_error"),
    ("58030", StorageFull, "broken"),
    ("25006", StorageFull, "broken"),
    ("53200", None, "server_error"),
    ("40003", None, "server_error"),
    ("57000", None, "broken"),
    ("25001", None, "broken"),
    ("58000", None, "broken"),
    ("23505", None, "broken"),
]


def said_by_the_server(code, wrapped):
    error = psycopg.OperationalError("said in the server's language")
    error.sqlstate = code
    if not wrapped:
        return error
    outer = OperationalError("as Django says it")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("code", "refusal", "kind"), CODES)
def test_a_code_says_what_is_the_matter(code, refusal, kind, wrapped):
    found = outage_refusal(said_by_the_server(code, wrapped))
    assert (None if found is None else type(found)) == refusal
    assert error_kind_of(said_by_the_server(code, wrapped)) == kind


def test_without_a_code_there_is_no_connection():
    assert isinstance(outage_refusal(psycopg.OperationalError("the connection is closed")), DatabaseGone)
    assert isinstance(outage_refusal(psycopg.InterfaceError("the connection is lost")), DatabaseGone)
    assert outage_refusal(psycopg.DataError("a value")) is None
