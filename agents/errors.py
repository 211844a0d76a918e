"""What Orrery refuses, and why. Caught in two places only: the API's handler and the runner."""

from collections.abc import Iterable, Mapping
from typing import Any


class AgentsError(Exception):
    """Something was refused. `problems` name the places, for example {"line": 3, "key": "tasks[0]", "message": "..."}.

    `members` are what the answer says besides (RFC 9457, extension members).
    """

    code = "refused"
    status = 400
    members: Mapping[str, Any] = {}

    def __init__(self, message: str, problems: Iterable[Mapping[str, Any]] = ()):
        super().__init__(message)
        self.problems = [dict(problem) for problem in problems]


class PayloadRejected(AgentsError):
    """The request is neither a plan nor a text that somebody here can carry out."""

    code = "payload_rejected"


class NoSuchSession(AgentsError):
    """There is no session {id}."""

    code = "no_such_session"
    status = 404


class InboxFull(AgentsError):
    """The session's inbox holds as many requests as it takes."""

    code = "inbox_full"
    status = 409


class ActorEnded(AgentsError):
    """The command is for an actor that has ended."""

    code = "actor_ended"
    status = 409


class StreamFull(AgentsError):
    """The stream holds all the rows or events it can."""

    code = "stream_full"
    status = 409

    def __init__(self, stream: int):
        super().__init__(f"session {stream} is full; start a new one")


class Conflict(AgentsError):
    """Somebody else changed the stream first."""

    code = "conflict"
    status = 409


class DatabaseBusy(AgentsError):
    """Others hold what is needed, and for too long; the transaction is undone."""

    code = "database_busy"
    status = 503

    def __init__(self) -> None:
        super().__init__("the database is busy; nothing was recorded; try again")


class DatabaseGone(AgentsError):
    """There is no connection to the database, or it was lost; perhaps after everything was recorded."""

    code = "database_gone"
    status = 503

    def __init__(self) -> None:
        super().__init__("the database does not answer; whether anything was recorded is not known; try again")


class StorageFull(AgentsError):
    """There is no room, or no leave to write, where the database keeps its files; the transaction is undone."""

    code = "storage_full"
    status = 503

    def __init__(self) -> None:
        super().__init__("the disk is full or cannot be written to; nothing was recorded; make room and try again")
