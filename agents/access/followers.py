"""Who may follow a session's stream, looked at again while they do: websockets and server-sent events alike.

One look every RECHECK_S serves all live views of a process, however many events pass. What a login may see is asked once for
all views that it has of a session. A token that was revoked or has expired, a user who is no longer active, a role, scope or
login that is gone: the view is closed by the next look.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connections
from rest_framework.exceptions import AuthenticationFailed

from agents.access.logins import Login
from agents.access.permissions import why_refused
from agents.models import Session, Stream
from agents.per_loop import one_per_loop

RECHECK_S = 1.0
"""Between two looks at all live views..."""
SHARE = 0.1
"""...or longer, so that the looks themselves take no more than this share of the time."""

log = logging.getLogger(__name__)


class ViewClosed(Exception):
    """The connection must be closed with `code`."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def admit_follower(login: Login, session: int) -> tuple[Any, int]:
    """The user and the session's head, where the login is (still) good and may see it; raises ViewClosed."""
    try:
        user, token = login.check()
    except AuthenticationFailed as error:
        raise ViewClosed(4401, str(error.detail)) from error
    if why := why_refused(user, token, "own"):
        raise ViewClosed(4403, why)
    head = Stream.objects.filter(pk__in=Session.objects.visible_to(user).filter(pk=session).values("pk"))
    for found in head.values_list("head", flat=True):
        return user, found
    raise ViewClosed(4404, f"there is no session {session}, or it is not yours to see")


@dataclass(eq=False)
class LiveView:
    """One connection; `refused` gets why it may no longer see what it sees."""

    login: Login
    session: int
    user: int
    refused: asyncio.Future[ViewClosed]


class LiveViews:
    """Those of one event loop. Use `live_views()`."""

    def __init__(self) -> None:
        self._views: set[LiveView] = set()
        self._task: asyncio.Task | None = None

    async def admit(self, login: Login, session: int) -> tuple[int, int]:
        """The key of the user and the head of the session; raises ViewClosed."""
        user, head = await database_sync_to_async(admit_follower)(login, session)
        if sum(view.user == user.pk for view in self._views) >= settings.LIVE_VIEWS_PER_USER:
            raise ViewClosed(4429, f"you have {settings.LIVE_VIEWS_PER_USER} live views already; close one first")
        return user.pk, head

    @contextmanager
    def open(self, login: Login, session: int, user: int) -> Iterator[LiveView]:
        """While inside, the view is looked at."""
        view = LiveView(login, session, user, asyncio.get_running_loop().create_future())
        self._views.add(view)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            yield view
        finally:
            self._views.discard(view)
            view.refused.cancel()

    async def _run(self) -> None:
        """Until there is no view left. A thread and a connection of its own: nobody's long answer makes it wait."""
        loop, pause = asyncio.get_running_loop(), RECHECK_S
        thread = ThreadPoolExecutor(1, thread_name_prefix="live views")
        try:
            while self._views:
                await asyncio.sleep(pause)
                asked = {(view.login, view.session) for view in self._views}
                took_s, refusals = await loop.run_in_executor(thread, find_refusals, asked)
                pause = max(RECHECK_S, took_s / SHARE)
                for view in self._views:
                    why = refusals.get((view.login, view.session))
                    if why is not None and not view.refused.done():
                        view.refused.set_result(why)
        finally:
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)


def find_refusals(asked: set[tuple[Login, int]]) -> tuple[float, dict[tuple[Login, int], ViewClosed]]:
    """Seconds that it took, and of those who may no longer see the session why."""
    began = time.monotonic()
    found: dict[tuple[Login, int], ViewClosed] = {}
    for login, session in asked:
        try:
            admit_follower(login, session)
        except ViewClosed as closed:
            found[login, session] = closed
        except DatabaseError as error:
            log.warning("live views could not be looked at and will be again: %s", error)
            connections.close_all()
            break
        except Exception:
            log.exception("a live view of session %s could not be looked at", session)
            found[login, session] = ViewClosed(4500, "something broke on our side")
    return time.monotonic() - began, found


live_views = one_per_loop(LiveViews)
"""The live views of the running event loop."""
