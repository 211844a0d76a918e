"""The process of a page: which renderer shows it, as this host knows processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Page

PATIENCE_S = 5.0
CATEGORY = "disabled-by-default-devtools.timeline"
"""Of a trace, whose first event says which process has which frame. Chromium has no other word for it."""


async def find_renderer(page: Page, turn: asyncio.Lock) -> int | None:
    """The pid of the page's main frame, as chromium itself counts pids; None where it does not say.

    `turn` is held meanwhile: a browser makes one trace at a time.
    """
    from playwright.async_api import Error

    events: list[dict[str, Any]] = []
    async with turn:
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                talk = await page.context.new_cdp_session(page)
                complete = asyncio.Event()
                talk.on("Tracing.dataCollected", lambda told: events.extend(told["value"]))
                talk.on("Tracing.tracingComplete", lambda told: complete.set())
                config = {"includedCategories": [CATEGORY]}
                await talk.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
                await talk.send("Tracing.end")
                await complete.wait()
                await talk.detach()
    begun = next((event for event in events if event.get("name") == "TracingStartedInBrowser"), {})
    frames = begun.get("args", {}).get("data", {}).get("frames", [])
    return next((frame["processId"] for frame in frames if frame.get("isOutermostMainFrame")), None)


def outer_pid(inner: int, pids: Iterable[int], *, walled: bool) -> int | None:
    """The pid on this host of the process that chromium counts as `inner`, among these `pids`.

    Behind walls chromium has pids of its own, the next inside those of this host.
    """
    for pid in pids:
        known = _pids_by_namespace(pid)
        if len(known) > walled and known[walled] == inner:
            return pid
    return None


def _pids_by_namespace(pid: int) -> list[int]:
    """Of one process, from this host's inwards; empty where it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            line = next((line for line in status if line.startswith("NSpid:")), "")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in line.split()[1:]]
