"""MCP over streamable HTTP, as an ASGI application: stateless, one JSON answer a request, a token in each.

The SDK's session manager lives as long as one request: nothing of it is left between two, so nothing has to be ended with
the process, whatever server it runs on, and any of several processes may answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from channels.db import database_sync_to_async
from django.conf import settings
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from rest_framework.exceptions import AuthenticationFailed
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Send

from agents.access.logins import is_own_origin, token_in_scope
from agents.api.parsers import key_twice
from agents.api.problems import MEDIA_TYPE, RETRY_AFTER_S, problem_body
from agents.errors import AgentsError
from agents.masks.values import mask_json
from agents.streams import outages
from constellations.mcp.access import Caller, caller_of
from constellations.mcp.server import Context, make_server

CALLER = "orrery.caller"
"""Where a request's scope has who makes it."""

Header = tuple[bytes, bytes]


async def caller_of_request(ctx: Context) -> Caller:
    """Who made the HTTP request: it was admitted before the SDK saw it."""
    assert ctx.request is not None
    caller: Caller = ctx.request.scope[CALLER]
    return caller


server = make_server(caller_of_request)


async def answer_mcp(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answers at one address; cookies do not count."""
    refused = _refusal(scope)
    if refused is not None:
        await send_refusal(send, *refused)
        return
    try:
        with outages.translate_outages():
            caller = await database_sync_to_async(caller_of)(token_in_scope(scope))
    except AuthenticationFailed as error:
        await send_refusal(send, 401, "not_authenticated", str(error.detail), [(b"www-authenticate", b"Bearer")])
        return
    except AgentsError as error:
        await send_refusal(send, error.status, error.code, str(error), [(b"retry-after", b"%d" % RETRY_AFTER_S)])
        return
    body = await whole_body(receive)
    if body is None:
        return
    if twice := key_twice(body):
        await send_refusal(send, 400, "parse_error", f"the body is not JSON: {twice}")
        return
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=settings.BODY_BYTES
    )
    async with manager.run():
        await manager.handle_request({**scope, CALLER: caller}, replay_body(body, receive), send)


def _refusal(scope: dict[str, Any]) -> tuple[int, str, str] | tuple[int, str, str, list[Header]] | None:
    """Why a request goes no further: status, code, words, perhaps headers. Its host has been looked at before."""
    origin = Headers(scope=scope).get("origin")
    if origin is not None and not is_own_origin(scope):
        said = f"the origin {origin[:100]} is neither the server's own nor one of ORRERY_TRUSTED_ORIGINS"
        return 403, "permission_denied", said
    if scope["method"] != "POST":
        return 405, "method_not_allowed", "only POST: there are no streams and no sessions here", [(b"allow", b"POST")]
    return None


async def whole_body(receive: Receive) -> bytes | None:
    """The request's body, which the server bounds; None where its client has gone."""
    pieces, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """`receive` of a request whose body has been read."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


async def send_refusal(send: Send, status: int, code: str, detail: str, headers: Iterable[Header] = ()) -> None:
    """The same problem details as REST gives."""
    sent = [(b"content-type", MEDIA_TYPE.encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": mask_json(orjson.dumps(problem_body(status, code, detail)))})
