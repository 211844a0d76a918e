"""Heartbeats of live views: how the session stands and who holds it, every BEAT_S, and its standing as soon as that changes.

{"type": "heartbeat", "at", "seq", "lease": {"runner", "age_s"} or null, "standing"} and {"type": "standing", "standing"}, as
`agents.reads.standing` has them. The facts of all followed sessions are read together, in a thread and over a connection of
its own; each login that follows a session is answered from them, however many views it has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import Error as DatabaseError
from django.db import connections
from rest_framework.exceptions import AuthenticationFailed

from agents.access.logins import Login
from agents.clock import to_iso
from agents.masks.values import mask_json
from agents.per_loop import one_per_loop
from agents.reads.standing import SessionFacts, Standing
from agents.reads.standings import Viewer, read_facts, standing_for, viewer_of
from agents.streams.outages import with_fresh_connection

BEAT_S = 5.0
"""Between two heartbeats of a session."""
PACE_S = 0.25
"""Between two looks at a session that moves..."""
SHARE = 0.05
"""...or longer, so that the looks take no more than this share of the time."""

log = logging.getLogger(__name__)
Key = tuple[int, Login]


@dataclass(eq=False)
class Watched:
    """One session as one login sees it. `number` counts what was told, `message` is the last of it."""

    session: int
    login: Login
    views: int = 0
    viewer: Viewer | None = None
    standing: Standing | None = None
    message: bytes = b""
    number: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, message: bytes) -> None:
        self.message, self.number = message, self.number + 1
        self.told.set()
        self.told = asyncio.Event()


class StandingWatch:
    """All that live views of one event loop want to know. Use `standing_watch()`; it works while somebody follows."""

    def __init__(self) -> None:
        self._watched: dict[Key, Watched] = {}
        self._fresh: set[Key] = set()
        self._moved: set[int] = set()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def note_move(self, session: int) -> None:
        """The session has recorded something, so that it may stand otherwise."""
        self._moved.add(session)
        self._woken.set()

    async def messages(self, session: int, login: Login) -> AsyncGenerator[bytes, None]:
        """What a view of that login is told of the session: a heartbeat at once, then as they come."""
        key = (session, login)
        watched = self._watched.setdefault(key, Watched(session, login))
        watched.views += 1
        self._fresh.add(key)
        self._woken.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        number = watched.number
        try:
            while True:
                while watched.number == number:
                    await watched.told.wait()
                number = watched.number
                yield watched.message
        finally:
            watched.views -= 1
            if not watched.views and self._watched.get(key) is watched:
                del self._watched[key]
                self._woken.set()

    async def _run(self) -> None:
        thread, beat_at, pause = ThreadPoolExecutor(1, thread_name_prefix="standings"), 0.0, PACE_S
        try:
            while self._watched:
                if time.monotonic() >= beat_at:
                    self._fresh, beat_at = set(self._watched), time.monotonic() + BEAT_S
                began = time.monotonic()
                await self._look(thread)
                pause = max(PACE_S, (time.monotonic() - began) / SHARE)
                await self._rest(pause, beat_at)
        finally:
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)

    async def _rest(self, pause: float, beat_at: float) -> None:
        """Until something moves, at most until the next heartbeat is due; never shorter than `pause`, but for a new view."""
        try:
            async with asyncio.timeout(pause):
                while not self._fresh and self._watched:
                    self._woken.clear()
                    await self._woken.wait()
        except TimeoutError:
            pass
        if not (self._fresh or self._moved):
            try:
                async with asyncio.timeout(max(0.0, beat_at - time.monotonic())):
                    self._woken.clear()
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _look(self, thread: ThreadPoolExecutor) -> None:
        """Read what is due and tell it. A database that does not answer is told by silence: the views know what that means."""
        fresh, moved, self._fresh, self._moved = self._fresh, self._moved, set(), set()
        due = [watched for key, watched in self._watched.items() if key in fresh or watched.session in moved]
        if not due:
            return
        asked = [(watched, (watched.session, watched.login) in fresh) for watched in due]
        try:
            found = await asyncio.get_running_loop().run_in_executor(thread, with_fresh_connection, read_asked, asked)
        except DatabaseError as error:
            log.warning("standings could not be read and will be again: %s", error)
            return
        for watched, with_beat in asked:
            if watched not in found:
                continue  # gone, or its login is no longer good: the view is closed by who looks at that
            facts, watched.viewer, standing = found[watched]
            if with_beat:
                watched.tell(encode_heartbeat(facts, standing))
            elif standing != watched.standing:
                watched.tell(mask_json(orjson.dumps({"type": "standing", "standing": standing})))
            watched.standing = standing


def encode_heartbeat(facts: SessionFacts, standing: Standing) -> bytes:
    told: dict[str, Any] = {"type": "heartbeat", "at": to_iso(time.time()), "seq": facts.head, "lease": facts.lease}
    return mask_json(orjson.dumps({**told, "standing": standing}))


def read_asked(asked: Iterable[tuple[Watched, bool]]) -> dict[Watched, tuple[SessionFacts, Viewer, Standing]]:
    """Facts, viewer and standing of each that is there; with a heartbeat it is looked again what the login may do."""
    wanted = list(asked)
    facts = read_facts({watched.session for watched, _ in wanted})
    viewers: dict[Login, Viewer | None] = {}
    standings: dict[tuple[int, Viewer], Standing] = {}
    found: dict[Watched, tuple[SessionFacts, Viewer, Standing]] = {}
    for watched, look_again in wanted:
        viewer = watched.viewer
        if viewer is None or look_again:
            if watched.login not in viewers:
                viewers[watched.login] = _viewer(watched.login)
            viewer = viewers[watched.login]
        if viewer is None or watched.session not in facts:
            continue
        of_session, place = facts[watched.session], (watched.session, viewer)
        if place not in standings:
            standings[place] = standing_for(of_session, viewer)
        found[watched] = of_session, viewer, standings[place]
    return found


def _viewer(login: Login) -> Viewer | None:
    try:
        return viewer_of(*login.check())
    except AuthenticationFailed:
        return None


standing_watch = one_per_loop(StandingWatch)
"""The watch of the running event loop."""
