"""What kind of fault an exception is, and which faults are worth another try. Pure: by type or number, never by text."""

from __future__ import annotations

import errno

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
LOST_SQLSTATES = ("08", "57P")
"""Connection exceptions; the database shuts down, or begins."""
BUSY_SQLSTATES = ("53", "40")
"""Resources that do not suffice; a transaction rolled back for the sake of another."""
MOST_DOUBLINGS = 60
"""Beyond this a pause is the longest anyway."""


def is_transient(error: BaseException) -> bool:
    """Whether the same call may go well a little later.

    A TimeoutError without an errno (a call's own time-out) is not transient; one with ETIMEDOUT (of a connection) is.
    """
    return is_infrastructure(kind_of(error))


def kind_of(error: BaseException) -> str:
    """The kind of error (`Outcome.error_kind`) that an exception is; "broken" when it is none that is known.

    An exception may say it itself: the text `error_kind`, where empty is an ordinary failure. Else an integer `status` or
    `status_code` counts as HTTP's, `sqlstate` (also of its cause, as Django wraps errors) as SQL's; then its type and errno.
    """
    declared = getattr(error, "error_kind", None)
    if isinstance(declared, str):
        return declared
    return _kind_of_status(error) or _kind_of_sqlstate(error) or _kind_of_type(error)


def pause(made: int, key: int, first_s: float, longest_s: float) -> float:
    """Seconds to wait after `made` tries: doubling up to `longest_s`, with a jitter of up to a quarter from key and made."""
    jitter = (key * 2654435761 + made * 40503) % 1000 / 4000
    return min(first_s * 2 ** min(made - 1, MOST_DOUBLINGS), longest_s) * (1 + jitter)


def _kind_of_status(error: BaseException) -> str:
    for name in ("status", "status_code"):
        status = getattr(error, name, None)
        if type(status) is int and (kind := kind_of_status(status)):
            return kind
    return ""


def _kind_of_sqlstate(error: BaseException) -> str:
    state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    if not isinstance(state, str):
        return ""
    if state.startswith(LOST_SQLSTATES):
        return "connection_lost"
    return "server_error" if state.startswith(BUSY_SQLSTATES) else ""


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
