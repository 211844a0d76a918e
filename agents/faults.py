"""What kind of fault an exception is, and which faults are worth another try. Pure: by type or number, never by text."""

from __future__ import annotations

import errno
from typing import NamedTuple

from agents.progress.calls import is_infrastructure, kind_of_status

LOST_ERRNOS = frozenset({
    errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.ENOTCONN, errno.EPIPE, errno.ESHUTDOWN, errno.ETIMEDOUT,
    errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET, errno.EHOSTUNREACH, errno.EHOSTDOWN,
})  # fmt: skip
"""The other side, or the way to it, is gone for now."""
NAME_LATER = -3
"""EAI_AGAIN, which socket.gaierror has in the place of an errno: the name service does not answer for now."""
BUSY_ERRNOS = frozenset({errno.EAGAIN, errno.EBUSY, errno.ENOBUFS, errno.EMFILE, errno.ENFILE})
"""Something is used up for now: processes, buffers, file handles."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG})
"""What a file system answers when it does not take what is to be written."""


class SqlFault(NamedTuple):
    """What an SQLSTATE says: that our database is "gone", "busy" or "full", and the kind of an error that carries it."""

    outage: str
    kind: str


NO_SQL_FAULT = SqlFault("", "")
SQLSTATES = {
    "08": SqlFault("gone", "connection_lost"),  # there is no connection
    "57P": SqlFault("gone", "connection_lost"),  # the server stops, or begins
    "25P03": SqlFault("gone", ""),  # a transaction was idle for too long
    "53300": SqlFault("gone", "server_error"),  # too many connections
    "40": SqlFault("", "server_error"),  # rolled back for the sake of another transaction:
    "40001": SqlFault("busy", "server_error"),  # it could not be serialized
    "40P01": SqlFault("busy", "server_error"),  # a deadlock
    "55P03": SqlFault("busy", ""),  # a lock was not to be had in time
    "57014": SqlFault("busy", ""),  # a statement took too long
    "53": SqlFault("", "server_error"),  # resources do not suffice
    "53100": SqlFault("full", "server_error"),  # the disk is full
    "58030": SqlFault("full", ""),  # a file cannot be written
    "25006": SqlFault("full", ""),  # nothing may be written for now
}
"""What codes say that begin so; the longest beginning counts. All other codes tell of a fault of ours."""
MOST_DOUBLINGS = 60
"""Beyond this a pause is the longest anyway."""


def is_transient(error: BaseException) -> bool:
    """Whether the same call may go well a little later.

    A TimeoutError without an errno (a call's own time-out) is not transient; one with ETIMEDOUT (of a connection) is.
    """
    return is_infrastructure(error_kind_of(error))


def error_kind_of(error: BaseException) -> str:
    """The kind of error (`Outcome.error_kind`) that an exception is; "broken" when it is none that is known.

    An exception may say it itself: the text `error_kind`, where empty is an ordinary failure. Else an integer `status` or
    `status_code` counts as HTTP's, `sqlstate` (also of its cause, as Django wraps errors) as SQL's; then its type and errno.
    """
    declared = getattr(error, "error_kind", None)
    if isinstance(declared, str):
        return declared
    for name in ("status", "status_code"):
        status = getattr(error, name, None)
        if type(status) is int and (kind := kind_of_status(status)):
            return kind
    state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    if isinstance(state, str) and (kind := read_sqlstate(state).kind):
        return kind
    return _kind_of_type(error)


def read_sqlstate(state: str) -> SqlFault:
    """What the code says, by the longest beginning of it that is known."""
    known = (SQLSTATES.get(state[:length]) for length in (5, 3, 2))
    return next((fault for fault in known if fault is not None), NO_SQL_FAULT)


def pause_seconds(made: int, key: int, first_s: float, longest_s: float) -> float:
    """Seconds to wait after `made` tries: doubling up to `longest_s`, with a jitter of up to a quarter from key and made."""
    jitter = (key * 2654435761 + made * 40503) % 1000 / 4000
    return min(first_s * 2 ** min(made - 1, MOST_DOUBLINGS), longest_s) * (1 + jitter)


def _kind_of_type(error: BaseException) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, ConnectionError) or number in LOST_ERRNOS or number == NAME_LATER:
        return "connection_lost"
    if number in BUSY_ERRNOS:
        return "server_error"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, FileNotFoundError):
        return "missing"
    return "permission" if isinstance(error, PermissionError) else "broken"
