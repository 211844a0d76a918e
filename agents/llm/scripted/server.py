"""Serves a script over HTTP on this machine only: OpenAI's chat completions and Anthropic's messages, streamed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agents.llm.scripted import anthropic_messages, chat_completions
from agents.llm.scripted.script import Asked, Failure, PreparedAnswer, Script

HOST = "127.0.0.1"
REMEMBERED = 1_000
"""Requests that a server remembers, for tests to look at."""
SHOWN = 200
"""Characters of a request that is not expected, in the refusal."""

log = logging.getLogger(__name__)


class Protocol(NamedTuple):
    """How a provider's requests, answers and errors look."""

    read_request: Callable[[Mapping[str, Any], str], Asked]
    write_answer: Callable[[PreparedAnswer, Asked, int], Iterator[bytes]]
    write_failure: Callable[[Failure], dict[str, Any]]


CHAT_COMPLETIONS = Protocol(chat_completions.read_request, chat_completions.write_answer, chat_completions.write_failure)
MESSAGES = Protocol(anthropic_messages.read_request, anthropic_messages.write_answer, anthropic_messages.write_failure)


class StreamStopped(Exception):
    """The script says that the connection breaks here; the web server closes it without the answer's end."""


class ScriptedModel:
    """A script, what it was asked, and how many of its answers are `open`: they stream, and somebody reads them."""

    def __init__(self, script: Script):
        self.script, self.asked, self.open = script, list[Asked](), 0
        self.app = Starlette(routes=[
            Route("/v1/chat/completions", self.answer_completions, methods=["POST"]),
            Route("/v1/messages", self.answer_messages, methods=["POST"]),
        ])  # fmt: skip

    async def answer_completions(self, request: Request) -> Response:
        return await self._answer(request, CHAT_COMPLETIONS)

    async def answer_messages(self, request: Request) -> Response:
        return await self._answer(request, MESSAGES)

    async def _answer(self, request: Request, protocol: Protocol) -> Response:
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            body = json.loads(await request.body())
            asked = protocol.read_request(body, key)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refuse(protocol, f"the request cannot be read: {type(error).__name__}: {error}")
        if body.get("stream") is not True:
            return _refuse(protocol, "a scripted model only streams; set stream to true")
        self.asked = [*self.asked[1 - REMEMBERED :], asked]
        prepared = self.script.answer(asked)
        if prepared is None:
            return _refuse(protocol, f"the script expects no such request; it ends: {asked.last[-SHOWN:]!r}")
        if prepared.fail is not None:
            await asyncio.sleep(prepared.first_after_s)
            return _fail(protocol, prepared.fail)
        return StreamingResponse(self._stream(prepared, protocol, asked, len(self.asked)), media_type="text/event-stream")

    async def _stream(
        self, prepared: PreparedAnswer, protocol: Protocol, asked: Asked, number: int
    ) -> AsyncIterator[bytes]:  # fmt: skip
        events = [prepared.garbage] if prepared.garbage is not None else protocol.write_answer(prepared, asked, number)
        self.open += 1
        try:
            await asyncio.sleep(prepared.first_after_s)
            for sent, event in enumerate(events):
                if sent == prepared.stop_after:
                    raise StreamStopped
                yield event
                await asyncio.sleep(prepared.pause_s)
        finally:
            self.open -= 1


def _refuse(protocol: Protocol, why: str) -> Response:
    log.warning("refused: %s", why)
    return _fail(protocol, Failure(400, why, "not_in_script"))


def _fail(protocol: Protocol, failure: Failure) -> Response:
    headers = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
    return JSONResponse(protocol.write_failure(failure), failure.status, headers)


def make_server(model: ScriptedModel, port: int) -> uvicorn.Server:
    """A server that is not yet started; port 0 is any that is free."""
    # What a script breaks on purpose is no error of the server: its log would tell of each.
    return uvicorn.Server(uvicorn.Config(model.app, host=HOST, port=port, log_level="critical", lifespan="off"))
