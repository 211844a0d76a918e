"""Hooks of an installation: OnStateChange, OnStuck, OnProgress (docs/settings.md).

A hook is one dotted path in the settings, called with (session id, what the event says) in the runner's hook thread, after the
commit that it is about. What it raises is recorded in the session and does no harm.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from queue import Full, Queue
from threading import Thread
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils.module_loading import import_string

from agents.errors import AgentsError
from agents.masks.values import mask_value
from agents.streams.door import door
from agents.streams.tables import Fields
from agents.streams.turn import Batch, PendingEvent

Hook = Callable[[int, Fields], Any]
NAMES = {"state_changed": "on_state_change", "stuck": "on_stuck", "progress": "on_progress", "suspected": "on_suspicion"}
"""Hooks by the type of the events that they are about."""
WAITING = 10_000
"""Calls that may wait; while a hook is slower than that, further ones are left out, and the first of those is recorded."""
FAILURES = 10
"""Failures of one hook that are recorded in one session."""
SESSIONS = 10_000
"""Sessions and hooks whose failures are counted; then the count begins anew."""
CLOSE_S = 5.0
"""A runner that ends waits so long for its hooks."""
MESSAGE = 500
"""Characters."""

log = logging.getLogger(__name__)


def load_hooks() -> dict[str, Hook]:
    """The hooks by name, imported; raises ImportError for a path that leads nowhere."""
    return {name: import_string(path) for name, path in settings.HOOKS.items() if path}


class Hooks:
    """Calls the hooks of one runner, one after the other, in a thread of their own."""

    def __init__(self) -> None:
        self._hooks = load_hooks()
        self._calls: Queue[tuple[int, str, Fields] | None] = Queue(WAITING)
        self._left_out: set[str] = set()
        self._failures: Counter[tuple[int, str]] = Counter()
        self._thread = Thread(target=self._work, name="hooks", daemon=True) if self._hooks else None
        if self._thread is not None:
            self._thread.start()

    # `_left_out`: hooks that were too slow for all they should have been told, which is recorded once.

    def after(self, batch: Batch) -> None:
        """What `batch` recorded is durable."""
        if self._thread is None:
            return
        for event in batch.written():
            for name, told in _told(event):
                if name not in self._hooks:
                    continue
                try:
                    self._calls.put_nowait((batch.stream, name, told))
                except Full:
                    self._left_out.add(name)

    def _work(self) -> None:
        recorded: set[str] = set()
        while (call := self._calls.get()) is not None:
            session, name, told = call
            try:
                self._hooks[name](session, mask_value(told))
            except Exception as error:  # whatever it is, it is the installation's own code
                self._record(session, name, f"{type(error).__name__}: {error}")
            for slow in self._left_out - recorded:
                recorded.add(slow)
                self._record(session, slow, f"it is too slow: {WAITING:,} calls waited, and others were left out")
        connections.close_all()

    def _record(self, session: int, name: str, message: str) -> None:
        if len(self._failures) > SESSIONS:
            self._failures.clear()
        self._failures[session, name] += 1
        if self._failures[session, name] > FAILURES:
            return
        try:
            with door(session, "system") as opened:
                opened.turn.record("hook_failed", hook=name, message=message[:MESSAGE])
        except (AgentsError, DatabaseError) as error:  # the session is full or gone, or nothing can be recorded now
            log.warning("hook %s failed in session %s, which cannot record it: %s (%s)", name, session, message, error)

    def close(self) -> None:
        """Let what waits be told, as far as that goes quickly."""
        if self._thread is not None:
            with contextlib.suppress(Full):
                self._calls.put(None, timeout=CLOSE_S)
            self._thread.join(CLOSE_S)


def _told(event: PendingEvent) -> Iterator[tuple[str, Fields]]:
    """The hook a event is for, and what the hook is told."""
    if name := NAMES.get(event.type):
        yield name, {key: value for key, value in event.data.items() if key not in ("add", "set", "del")} | {"at": event.at}
    for told in event.data.get("transitions", ()):
        yield "on_state_change", {**told, "at": event.at}
