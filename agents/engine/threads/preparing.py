"""What an interaction asks for, read in a thread before its session decides about it: again after a fault that may pass."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from agents.engine.drives.work import registered_handler
from agents.engine.shares import time_call
from agents.engine.threads.plan_readers import PlanReaders
from agents.errors import AgentsError
from agents.faults import is_transient, pause_seconds
from agents.streams.outages import outage_refusal, with_fresh_connection
from agents.streams.row_types import InboxRow

RETRIES = 5
"""Transient faults of a session, and of the preparation of a request, that are tried again..."""
RETRY_S, RETRY_LONGEST_S = 0.1, 5.0
"""...after pauses that double from the first to the longest."""
OUTAGE_RETRY_S = 0.2
"""What a thread could not read for want of a database is tried again at this pace, for as long as it takes."""

log = logging.getLogger(__name__)


async def prepare_item(item: InboxRow, stream: int, readers: PlanReaders) -> tuple[Any, float]:
    """What the handler makes of the interaction `item` of a session, or the error with which its creation fails, and the
    seconds of a processor that it took.
    """
    made = 0
    while True:
        try:
            prepare = registered_handler().prepare
            return await readers.read(len(str(item["payload"])), time_call, with_fresh_connection, prepare, item)
        except Exception as error:
            if outage_refusal(error):
                await asyncio.sleep(OUTAGE_RETRY_S)
                continue
            made += 1
            if not is_transient(error) or made > RETRIES:  # the interaction's creation fails with it
                log.error("session %s: its request cannot be prepared", stream, exc_info=error)
                return AgentsError(f"{type(error).__name__}: {error}"), 0.0
        await asyncio.sleep(pause_seconds(made, stream, RETRY_S, RETRY_LONGEST_S))
