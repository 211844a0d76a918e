"""What keeps an installation from its work without anybody's fault: the database is away, the disk has no room.

While one lasts `up` judges nobody, tries again, and says it once; when it is over it says so and records it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connection

from agents.clock import to_iso
from agents.devices.host import storage_flaw
from agents.faults import NO_ROOM
from agents.streams.outages import record_outage

DATABASE, STORAGE = "the database", "the state folder"
DATABASE_ERRORS = (DatabaseError, InterfaceError)


class Hindrances:
    """Those of one `up`; `say` gets a line for each beginning and each end."""

    def __init__(self, say: Callable[[str], None]):
        self._say = say
        self._since: dict[str, tuple[float, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._since)

    def met(self, error: Exception, now: float) -> None:
        """Take up an error of the database or of a file. Raises what is neither an outage nor a want of room."""
        if isinstance(error, OSError):
            if error.errno not in NO_ROOM:
                raise error
            self._begin(STORAGE, f"{error.filename or 'a file'}: {error.strerror}", now)
        else:
            connection.close()
            self._begin(DATABASE, str(error).strip() or type(error).__name__, now)

    def _begin(self, what: str, cause: str, now: float) -> None:
        if what not in self._since:
            self._since[what] = now, cause
            self._say(f"{what} cannot be used: {cause}. Everything stays up, and work goes on as soon as it can be.")

    def look(self, now: float) -> bool:
        """Look whether there is room, and whether what there was is over; True when the last of it has just ended."""
        if flaw := storage_flaw():
            self._begin(STORAGE, flaw, now)
        if flaw or not self._since:
            return False
        try:  # to write is the proof that it is over
            for what, (since, cause) in self._since.items():
                record_outage("up", f"{what}: {cause}", to_iso(time.time() - (now - since)), now - since)
        except DATABASE_ERRORS:
            connection.close()
            return False
        for what, (since, _) in self._since.items():
            self._say(f"{what} can be used again after {now - since:.1f} s.")
        self._since.clear()
        return True
