"""The ASGI application: static files, REST and pages, MCP, live views; on daphne or any other ASGI server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from importlib import import_module

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
try:
    pages = get_asgi_application()
except ImproperlyConfigured as error:  # its sentence is for whoever has set the setting; a traceback would hide it
    sys.exit(str(error))

# Only now: what follows needs Django to be set up.
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.db import connections
from django.urls import re_path
from starlette.applications import Starlette
from starlette.routing import Mount

from agents.access.logins import require_own_origin
from agents.api.device_link.entrance import answer_device
from agents.api.live_view import sse
from agents.api.live_view.websocket import SessionConsumer
from project.admission.requests import Admission
from project.admission.token_attempts import TokenAttempts
from project.static import Static

REQUEST_THREADS = 8
"""Threads that answer requests, each with a database connection that stays open."""


class RequestThreads:
    """Lets requests share a few threads. Django gives each a thread of its own, and a new connection with it."""

    def __init__(self, application, threads: int = REQUEST_THREADS):
        self.application = application
        self._busy = {ThreadSensitiveContext(): 0 for _ in range(threads)}

    async def __call__(self, scope, receive, send) -> None:
        context = min(self._busy, key=self._busy.__getitem__)
        self._busy[context] += 1
        token = SyncToAsync.thread_sensitive_context.set(context)
        try:
            await self.application(scope, receive, send)
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)
            self._busy[context] -= 1

    async def close(self) -> None:
        """End the threads, and their connections with them; a later request starts one again."""
        for context in self._busy:
            thread = SyncToAsync.context_to_thread_executor.pop(context, None)
            if thread is not None:
                thread.submit(connections.close_all)
                await asyncio.to_thread(thread.shutdown)


MCP = re.compile(r"/mcp/?")


async def answer_request(scope, receive, send) -> None:
    """What takes a request's thread: pages and REST, and MCP, whose library is imported when somebody first asks for it."""
    if MCP.fullmatch(scope["path"]):
        library = await asyncio.to_thread(import_module, "constellations.mcp.http")
        await library.answer_mcp(scope, receive, send)
    else:
        await pages(scope, receive, send)


static = Starlette(routes=[Mount(settings.STATIC_URL.rstrip("/"), app=Static())])
requests = RequestThreads(answer_request)
routes = [
    re_path(r"^ws/sessions/(?P<session>[0-9]{1,15})/?$", SessionConsumer.as_asgi()),
    re_path(r"", WebsocketDenier.as_asgi()),
]
live = require_own_origin(URLRouter(routes))
DEVICES = re.compile(r"/ws/devices/?")


async def answer_websocket(scope, receive, send) -> None:
    """Devices show a token of their own, whatever page or program they come from; all others have an origin."""
    await (answer_device if DEVICES.fullmatch(scope["path"]) else live)(scope, receive, send)


STREAM = re.compile(r"/api/sessions/([0-9]{1,15})/stream/?")


async def answer_http(scope, receive, send) -> None:
    """Static files first: they need no Django. A stream of events lasts, so it takes none of the requests' threads."""
    if scope["path"].startswith(settings.STATIC_URL):
        await static(scope, receive, send)
    elif found := STREAM.fullmatch(scope["path"]):
        await sse.application({**scope, "session_id": int(found[1])}, receive, send)
    else:
        await requests(scope, receive, send)


async def answer_lifespan(scope, receive, send) -> None:
    """Nothing to begin: the tail starts with the first live view (daphne has no lifespan)."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await requests.close()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


entrances = ProtocolTypeRouter({"http": answer_http, "websocket": answer_websocket, "lifespan": answer_lifespan})
application = Admission(TokenAttempts(entrances))
