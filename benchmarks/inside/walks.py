"""The four walks of docs/house.md, by a real run in a database of its own; prints them as JSON.

Only what is public is used - REST, the websocket, the engine of the tests - so that an earlier code can be walked through too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path.cwd()
APPS = tuple(f"{ROOT / app}{os.sep}" for app in ("agents", "constellations", "frontend", "project"))
PLAN = {
    "tasks": [
        {"task_id": "a", "device": "laptop", "tool": "noop"},
        {"task_id": "b", "device": "laptop", "tool": "noop", "after": ["a"]},
        {"task_id": "c", "device": "laptop", "tool": "noop", "confirm": True, "after": ["b"]},
    ]
}
NOOP = ("noop", "do_nothing")
"""What the function of the tool is, or was, called."""


class Walk:
    """Functions of ours that are called while it is `on`, but for those of the thread `besides`."""

    def __init__(self) -> None:
        self.on, self.besides = False, 0
        self.seen: set[tuple[str, str]] = set()
        self.deepest = 0
        self._depth: dict[int, int] = {}

    def count(self, frame: FrameType, event: str) -> None:
        thread = threading.get_ident()
        if not self.on or thread == self.besides:
            return
        code, depth = frame.f_code, self._depth.get(thread, 0)
        if code.co_name.startswith("<"):  # comprehensions and the like are no functions of their own
            return
        if event == "call":
            self.seen.add((code.co_filename, code.co_qualname))
            self._depth[thread] = depth + 1
            self.deepest = max(self.deepest, depth + 1)
        else:
            self._depth[thread] = max(depth - 1, 0)

    def __str__(self) -> str:
        return f"{self.deepest} / {len(self.seen)} / {len({file for file, _ in self.seen})}"


class Tracer:
    """Counts each walk where it is; bodies that begin and end turn walks on and off."""

    def __init__(self) -> None:
        self.post, self.end, self.edit, self.event = Walk(), Walk(), Walk(), Walk()
        self.bodies = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(APPS):
            return
        if frame.f_code.co_name in NOOP and f"{os.sep}tools" in frame.f_code.co_filename:
            self._pass_body(event)
        for walk in (self.post, self.end, self.edit, self.event):
            walk.count(frame, event)

    def _pass_body(self, event: str) -> None:
        if event == "call":
            self.bodies += 1
            self.post.on = self.end.on = False
        elif self.bodies == 1:
            self.end.on = True


@contextmanager
def walking(walk: Walk):
    walk.on = True
    try:
        yield
    finally:
        walk.on = False


def walk_all() -> dict[str, str]:
    import django
    from django.conf import settings
    from django.core.management import call_command

    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    django.setup()
    settings.ALLOWED_HOSTS = ["*"]
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User
    from django.test import Client

    from tests.conftest import TestRunner

    client = Client()
    client.force_login(User.objects.create_superuser("walker"))
    told = Teller(client)
    told.send("/api/devices/", {"name": "laptop"})
    token = told.send("/api/tokens/", {"name": "walker", "scopes": ["read"]})["token"]

    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    tracer.post.on = True
    session = told.send("/api/sessions/", {"plan": json.dumps(PLAN)})["id"]
    TestRunner().run()
    tracer.post.on = tracer.end.on = False
    graph = told.get(f"/api/constellations/?session={session}")["results"][0]["id"]
    with walking(tracer.edit):
        told.edit(graph, "d")
    asyncio.run(follow(tracer.event, token, session, lambda: told.edit(graph, "e")))
    sys.setprofile(None)
    threading.setprofile(None)
    walks = {
        "POST to first body": tracer.post, "end of an attempt to the next": tracer.end,
        "edit over REST to its rows": tracer.edit, "event's commit to the websocket": tracer.event,
    }  # fmt: skip
    return {f"{name}: deepest call / functions / files": str(walk) for name, walk in walks.items()}


class Teller:
    """A client that takes nothing but success."""

    def __init__(self, client: Any):
        self._client = client

    def send(self, address: str, body: dict[str, Any]) -> Any:
        return self._read(self._client.post(address, body, content_type="application/json"))

    def get(self, address: str) -> Any:
        return self._read(self._client.get(address))

    def edit(self, graph: int, task_id: str) -> None:
        operation = {"add_task": {"task_id": task_id, "device": "laptop", "tool": "noop", "after": ["c"]}}
        self.send(f"/api/constellations/{graph}/edits/", {"operations": [operation]})

    def _read(self, answer: Any) -> Any:
        if answer.status_code >= 400:
            raise RuntimeError(f"{answer.status_code}: {answer.content.decode()}")
        return answer.json()


async def follow(walk: Walk, token: str, session: int, edit: Any) -> None:
    """From the commit of an edit until a websocket has it; what makes the edit is not counted."""
    from channels.testing import WebsocketCommunicator

    from project.asgi import application

    address = f"/ws/sessions/{session}/"
    socket = WebsocketCommunicator(application, address, headers=[(b"authorization", f"Bearer {token}".encode())])
    connected, _ = await socket.connect(timeout=30)
    if not connected:
        raise RuntimeError("the websocket was refused")
    await socket.receive_output(timeout=30)

    def edit_uncounted() -> None:
        walk.besides = threading.get_ident()
        edit()

    with walking(walk):
        editing = asyncio.create_task(asyncio.to_thread(edit_uncounted))
        await socket.receive_output(timeout=30)
        await editing
    await socket.disconnect()


if __name__ == "__main__":
    print(json.dumps(walk_all()))
