"""What every request meets before anything reads it: is the host ours, who sends it, how large is its body, how slow.

On any ASGI server. Daphne hands a body over only when it has come whole: `project.web_server` holds the same limits while
it comes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

import orjson
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from agents.api.problems import MEDIA_TYPE, BodyTooLarge, problem_body
from project.admission.pieces import BodyPiece

SMALL_BODY_BYTES = 100_000
"""Of a body at an address that is in no row below: forms of pages."""
BODY_S = 15.0
"""Seconds that a body may take to come..."""
SLOWEST_BYTES_S = 50_000
"""...and as many more as its bytes take at this rate."""
HOST_SHOWN = 100

Scope = dict[str, Any]
Header = tuple[bytes, bytes]


def body_limits() -> tuple[tuple[str, int], ...]:
    """Addresses and the bytes of a body there; the first that fits counts."""
    return (
        (r"/api/import/.*|/api/(sessions|constellations)/[0-9]+/import/?", settings.IMPORT_BODY_BYTES),
        (r"/api/sessions/[0-9]+/artifacts/?", settings.UPLOAD_BYTES),
        (r"/api/.*|/mcp/?", settings.BODY_BYTES),
        (r"/admin/.*", settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
    )


def body_limit(path: str) -> int:
    """Bytes that the body of a request to `path` may have."""
    return next((limit for pattern, limit in body_limits() if re.fullmatch(pattern, path)), SMALL_BODY_BYTES)


def body_seconds(size: int) -> float:
    """Since its headers, within which more than `size` bytes of a body have come, unless that is all of it."""
    return BODY_S + size / SLOWEST_BYTES_S


def too_large(limit: int) -> tuple[int, str, str]:
    return 413, BodyTooLarge.default_code, f"a body has at most {limit} bytes here"


def too_slow(what: str) -> tuple[int, str, str]:
    return 408, "too_slow", f"{what} came too slowly"


async def send_problem(send, status: int, code: str, detail: str, headers: Iterable[Header] = ()) -> None:
    """Problem details, as REST gives them."""
    body = orjson.dumps(problem_body(status, code, detail))
    own = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def values_of(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def is_for_us(scope: Scope) -> bool:
    """Whether the request names a host of ORRERY_ALLOWED_HOSTS. Without a Host it is for the address that it came to."""
    hosts = values_of(scope, b"host") or [str((scope.get("server") or [""])[0])]
    return all(validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS) for host in hosts)


def client_of(scope: Scope) -> tuple[str, int] | None:
    """Whose request it is: the sender, unless that is a proxy of ORRERY_TRUSTED_PROXIES, whose word then counts.

    What comes before the last proxy that we trust was written by anybody, so the list is read from its end.
    """
    if not scope.get("client"):
        return None
    address, port = scope["client"]
    named = [each.strip() for value in values_of(scope, b"x-forwarded-for") for each in value.split(",")]
    while named and is_trusted(address):
        address, port = named.pop(), 0
        if not is_address(address):
            return scope["client"]
    return address, port


def is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def is_trusted(address: str) -> bool:
    """Whether a proxy of ours is there."""
    return is_address(address) and any(ip_address(address) in network for network in settings.TRUSTED_PROXIES)


class Admission:
    """The ASGI application behind these checks."""

    def __init__(self, application: Callable):
        self.application = application

    async def __call__(self, scope: Scope, receive, send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.application(scope, receive, send)
            return
        if not is_for_us(scope):
            await self._misdirected(scope, receive, send)
            return
        scope = {**scope, "client": client_of(scope)}
        if scope["type"] == "http":
            await self._bounded(scope, receive, send)
        else:
            await self.application(scope, receive, send)

    async def _misdirected(self, scope: Scope, receive, send) -> None:
        if scope["type"] == "websocket":
            await receive()  # the protocol asks that a connection is heard before it is refused
            await send({"type": "websocket.close"})
            return
        host = ", ".join(values_of(scope, b"host"))[:HOST_SHOWN]
        await send_problem(send, 421, "misdirected_request", f"the host {host} is none of ORRERY_ALLOWED_HOSTS")

    async def _bounded(self, scope: Scope, receive, send) -> None:
        limit = body_limit(scope["path"])
        if any(length.isdigit() and int(length) > limit for length in values_of(scope, b"content-length")):
            await send_problem(send, *too_large(limit))
            return
        body = BoundedBody(receive, send, limit)
        try:
            await self.application(scope, body.receive, body.send)
        except Exception:
            if not body.refused:
                raise  # else it is what came of the refusal


class BoundedBody:
    """`receive` and `send` of one request. A body that is too large or too slow is refused; the application hears no more."""

    def __init__(self, receive, send, limit: int):
        self._receive, self._send = receive, send
        self._limit, self._size, self._whole = limit, 0, False
        self._began_at = asyncio.get_running_loop().time()
        self._begun = self.refused = False

    async def receive(self) -> dict[str, Any]:
        if self.refused:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._began_at + body_seconds(self._size)):
                message = await self._receive()
        except TimeoutError:
            return await self._refuse(too_slow("the body"))
        body = message.get("body", b"")
        self._size += len(body)
        self._whole = not message.get("more_body", False)
        if self._size > self._limit:
            return await self._refuse(too_large(self._limit))
        if isinstance(body, BodyPiece):
            content = body.read()
            return {"type": "http.disconnect"} if content is None else {**message, "body": content}
        return message

    async def send(self, message: dict[str, Any]) -> None:
        if not self.refused:
            self._begun = True
            await self._send(message)

    async def _refuse(self, why: tuple[int, str, str]) -> dict[str, Any]:
        self.refused = True
        if not self._begun:
            await send_problem(self._send, *why)
        return {"type": "http.disconnect"}
