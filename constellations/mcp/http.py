"""MCP over streamable HTTP, as an ASGI application: stateless, one JSON answer a request, a token in each.

The SDK's session manager lives as long as one request: nothing of it is left between two, so nothing has to be ended with
the process, whatever server it runs on, and any of several processes may answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import orjson
from channels.db import database_sync_to_async
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from rest_framework.exceptions import AuthenticationFailed
from starlette.datastructures import Headers

from agents import outages
from agents.errors import AgentsError
from agents.logins import token_in
from agents.parsers import BODY_BYTES
from agents.problems import MEDIA_TYPE, RETRY_AFTER_S, BodyTooLarge, problem
from constellations.mcp.access import Caller, caller_of
from constellations.mcp.server import Context, make_server

CALLER = "orrery.caller"
"""Where a request's scope has who makes it."""

Header = tuple[bytes, bytes]


async def of_request(ctx: Context) -> Caller:
    """Who made the HTTP request: it was admitted before the SDK saw it."""
    assert ctx.request is not None
    return ctx.request.scope[CALLER]


server = make_server(of_request)


async def application(scope, receive, send) -> None:
    """Answers at one address; cookies do not count."""
    refused = _refusal(scope["method"], Headers(scope=scope))
    if refused is not None:
        await refuse(send, *refused)
        return
    try:
        with outages.told():
            caller = await database_sync_to_async(caller_of)(token_in(scope))
    except AuthenticationFailed as error:
        await refuse(send, 401, "not_authenticated", str(error.detail), [(b"www-authenticate", b"Bearer")])
        return
    except AgentsError as error:
        await refuse(send, error.status, error.code, str(error), [(b"retry-after", b"%d" % RETRY_AFTER_S)])
        return
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=BODY_BYTES)
    async with manager.run():
        await manager.handle_request({**scope, CALLER: caller}, receive, _in_our_words(send))


def _in_our_words(send):
    """`send` of one request: the SDK says in plain text that a body is too large, the only thing that it refuses so."""
    refused = False

    async def sent(message) -> None:
        nonlocal refused
        if message.get("status") == 413:
            refused = True
            await refuse(send, 413, BodyTooLarge.default_code, f"a body has at most {BODY_BYTES} bytes")
        elif not refused:
            await send(message)

    return sent


def _refusal(method: str, headers: Headers) -> tuple[int, str, str] | tuple[int, str, str, list[Header]] | None:
    """Why a request goes no further: status, code, words, perhaps headers."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_ours(split_domain_port(host)[0]):
        return 421, "misdirected_request", f"the host {host[:100]} is none of ORRERY_ALLOWED_HOSTS"
    if origin is not None and not is_ours(host_of(origin)):
        return 403, "permission_denied", f"the origin {origin[:100]} is none of ORRERY_ALLOWED_HOSTS"
    if method != "POST":
        return 405, "method_not_allowed", "only POST: there are no streams and no sessions here", [(b"allow", b"POST")]
    return None


def host_of(origin: str) -> str:
    """As ALLOWED_HOSTS writes it; empty where the origin names none."""
    try:
        name = urlsplit(origin).hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


def is_ours(name: str) -> bool:
    """As Django decides about hosts."""
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS)


async def refuse(send, status: int, code: str, detail: str, headers: Iterable[Header] = ()) -> None:
    """The same problem details as REST gives."""
    sent = [(b"content-type", MEDIA_TYPE.encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": orjson.dumps(problem(status, code, detail))})
