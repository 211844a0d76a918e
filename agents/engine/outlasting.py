"""What a runner does while the database is away, or has no room: it waits, and goes on from where it stood.

What runs goes on running for as long as nobody else may take the sessions over (docs/engine.md, "When the database is away").
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from django.db import connection

from agents.clock import to_iso
from agents.devices.host import storage_flaw
from agents.engine.journal import Journal
from agents.engine.leases import ALONE_S, Leases, RunnerLock
from agents.streams.outages import outage_refusal, record_outage

RETRY_S = (0.05, 0.1, 0.2, 0.5)
"""Between two tries; the last one again and again."""
SAME_S = 5.0
"""An outage that begins so soon after another is that one still."""

log = logging.getLogger(__name__)


class Interruptible(Protocol):
    """The sessions of a runner, as far as an outage concerns them."""

    async def drop_all(self) -> None: ...

    async def recover(self, cause: str, lasted_s: float) -> None: ...


class Outlasting:
    """Of one runner, which `who` names. `outlast` returns when work can go on."""

    def __init__(self, who: str, journal: Journal, leases: Leases, locked: RunnerLock, sessions: Interruptible):
        self._who, self._journal, self._leases, self._locked, self._sessions = who, journal, leases, locked, sessions
        self._began = self._ended = float("-inf")
        self._tries = 0

    async def outlast(self, error: Exception, is_over: Callable[[], bool]) -> None:
        """Wait for the end of the outage that `error` tells of. Raises it where it tells of none, or when `is_over`."""
        refusal = outage_refusal(error)
        if refusal is None:
            raise error
        now = time.monotonic()
        is_new = now - self._ended > SAME_S
        if is_new:
            self._began, self._tries = now, 0
            log.warning("%s: %s (%s)", self._who, refusal, str(error).strip())
        let_go = False
        while True:
            if is_over():
                raise error
            if connection.vendor == "sqlite":
                self._leases.hold()  # nobody takes over from a runner whose file lock is held
            if not let_go and (self._leases.fenced or (self._leases.has_company and time.monotonic() - now > ALONE_S)):
                let_go = True  # others may have taken over: nothing here may go on
                await self._sessions.drop_all()
            if await self._is_back(let_go, str(error).strip(), now):
                break
            await asyncio.sleep(RETRY_S[min(self._tries, len(RETRY_S) - 1)])
            self._tries += 1
        self._ended = time.monotonic()
        if is_new:
            await asyncio.to_thread(self._record, str(error).strip(), self._ended - self._began, let_go)

    def _record(self, cause: str, lasted_s: float, let_go: bool) -> None:
        """In a thread, over a connection for this alone. Where it goes wrong again, the log alone tells of it."""
        log.warning("%s: the database is back after %.1f s", self._who, lasted_s)
        try:
            record_outage(self._who, cause, to_iso(time.time() - lasted_s), lasted_s, interrupted=let_go)
        except Exception as error:
            if outage_refusal(error) is None:
                raise
        finally:
            connection.close()

    async def _is_back(self, let_go: bool, cause: str, since: float) -> bool:
        """Try to connect, to renew and to go on; False while the outage lasts."""
        try:
            await asyncio.to_thread(self._journal.open)
            self._journal.use()
            self._locked.hold()
            if let_go:
                await self._leases.release()
            await self._leases.renew()
            if storage_flaw():
                return False
            await self._sessions.recover(cause, time.monotonic() - since)
        except Exception as error:
            if outage_refusal(error) is None:
                raise
            return False
        return True
