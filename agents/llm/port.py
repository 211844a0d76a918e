"""The one way to ask a model: a request goes in, events come out. Light; the providers' libraries come with the first call."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import ModuleType

from agents.llm.exchange import Event, ModelRequest
from agents.llm.profiles import Profile
from agents.per_loop import one_per_loop
from agents.streams.garbage import nothing_collected

_import_lock = one_per_loop(asyncio.Lock)
_calling: ModuleType | None = None


async def stream_answer(profile: Profile, request: ModelRequest) -> AsyncGenerator[Event]:
    """Ask the model of `profile` and yield what it says as it comes; the last event is `Ended` with the whole answer.

    Raises the classes of `agents.llm.faults`, once, and tries nothing again. Who closes the generator or cancels the
    task that reads it closes the connection; what had come by then is what had been yielded.
    """
    calling = await load_libraries()
    async with aclosing(calling.stream_answer(profile, request)) as events:
        async for event in events:
            yield event


async def load_libraries() -> ModuleType:
    """What calls models, imported in a thread if nobody has: it takes seconds, and the loop goes on meanwhile."""
    global _calling
    async with _import_lock():
        if _calling is None:
            _calling = await asyncio.to_thread(_import_calling)
        return _calling


def _import_calling() -> ModuleType:
    # A search for garbage among half a million new objects would hold all threads for 0.3 s, several times over.
    with nothing_collected():
        from agents.llm.library import calling

        gc.freeze()
        gc.unfreeze()  # they count as old at once: the next searches leave them out
    return calling
