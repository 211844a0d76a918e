"""Which faults are worth another try, and how long to wait before it."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import AgentsError
from agents.faults import error_kind_of, is_transient, pause_seconds


class Answered(Exception):
    """What a client of HTTP raises."""

    def __init__(self, **fields):
        super().__init__("answered")
        self.__dict__.update(fields)


class Asks(AgentsError):
    error_kind = "bad_arguments"


def wrapped(**fields):
    """As Django raises what the database's driver raised."""
    error = RuntimeError("wrapped")
    error.__cause__ = Answered(**fields)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionError(), "connection_lost"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "connection_lost"),
        (BrokenPipeError(), "connection_lost"),
        (OSError(errno.ENETUNREACH, "no way"), "connection_lost"),
        (OSError(errno.EHOSTUNREACH, "no way"), "connection_lost"),
        (OSError(errno.ETIMEDOUT, "the connection timed out"), "connection_lost"),
        (OSError(-3, "Temporary failure in name resolution"), "connection_lost"),
        (OSError(errno.EAGAIN, "later"), "server_error"),
        (OSError(errno.EMFILE, "too many files"), "server_error"),
        (Answered(status=429), "rate_limit"),
        (Answered(status_code=429), "rate_limit"),
        (Answered(status=500), "server_error"),
        (Answered(status_code=599), "server_error"),
        (Answered(sqlstate="08006"), "connection_lost"),
        (Answered(sqlstate="57P01"), "connection_lost"),
        (Answered(sqlstate="40001"), "server_error"),
        (Answered(sqlstate="53300"), "server_error"),
        (wrapped(sqlstate="57P03"), "connection_lost"),
    ],
)
def test_a_fault_of_what_lies_between_is_transient(error, kind):
    assert is_transient(error)
    assert error_kind_of(error) == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), "timeout"),
        (FileNotFoundError(errno.ENOENT, "no file"), "missing"),
        (PermissionError(errno.EACCES, "no"), "permission"),
        (Asks("what?"), "bad_arguments"),
        (Answered(error_kind=""), ""),
        (OSError(errno.ENOSPC, "full"), "broken"),
        (OSError("connection reset by peer"), "broken"),
        (ValueError("503 Service Unavailable, rate limit, try again"), "broken"),
        (Answered(status=404), "broken"),
        (Answered(status=600), "broken"),
        (Answered(status=True), "broken"),
        (Answered(status="500"), "broken"),
        (Answered(sqlstate="23505"), "broken"),
        (Answered(sqlstate=None), "broken"),
        (wrapped(status=503), "broken"),
    ],
)
def test_everything_else_is_not_whatever_its_text_says(error, kind):
    assert not is_transient(error)
    assert error_kind_of(error) == kind


def test_pauses_double_up_to_the_longest():
    assert [pause_seconds(made, 0, 1.0, 4.0) // 1 for made in (1, 2, 3, 4, 5)] == [1, 2, 4, 4, 4]


@given(made=st.integers(1, 10**6), key=st.integers(0, 2**63))
def test_a_pause_is_longer_by_a_quarter_at_most_and_always_the_same(made, key):
    bare = min(0.1 * 2 ** min(made - 1, 10), 2.0)
    assert bare <= pause_seconds(made, key, 0.1, 2.0) < bare * 1.25
    assert pause_seconds(made, key, 0.1, 2.0) == pause_seconds(made, key, 0.1, 2.0)


def test_calls_that_failed_together_do_not_all_come_back_together():
    assert len({pause_seconds(1, key, 1.0, 10.0) for key in range(100)}) > 50
