"""Serves a script over HTTP on this machine only, streamed: OpenAI's chat completions and responses, Anthropic's messages, and
Google's contents.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agents.llm.scripted import anthropic_messages, chat_completions, google_contents, responses
from agents.llm.scripted.matching import Asked
from agents.llm.scripted.script import LONGEST_S, Failure, PreparedAnswer, Script
from agents.masks.values import mask_text

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
RESPONSES = Protocol(responses.read_request, responses.write_answer, responses.write_failure)
CONTENTS = Protocol(google_contents.read_request, google_contents.write_answer, google_contents.write_failure)
STREAMED = ":streamGenerateContent"
"""How the path of a request of Google's ends that wants its answer streamed; the model stands before it."""


class StreamStopped(Exception):
    """The script says that the connection breaks here; the web server closes it without the answer's end."""


class ScriptedModel:
    """A script, what it was asked, and how many of its answers are `open`: they stream, and somebody reads them.

    `log_file` gets a line of JSON for each request, masked, with the text of the answer or why there was none.
    """

    def __init__(self, script: Script, log_file: Path | None = None):
        self.script, self.asked, self.open = script, list[Asked](), 0
        self._log_file, self._told = log_file, defaultdict[str, asyncio.Event](asyncio.Event)
        self.app = Starlette(routes=[
            Route("/v1/chat/completions", self.answer_completions, methods=["POST"]),
            Route("/v1/messages", self.answer_messages, methods=["POST"]),
            Route("/v1/responses", self.answer_responses, methods=["POST"]),
            Route("/v1beta/models/{asked:path}", self.answer_contents, methods=["POST"]),
            Route("/go_on/{name}", self.go_on, methods=["POST"]),
        ])  # fmt: skip

    async def go_on(self, request: Request) -> Response:
        """Tell the answers that wait for this name, now and later, to go on."""
        self._told[request.path_params["name"]].set()
        return JSONResponse({"open": self.open})

    async def answer_completions(self, request: Request) -> Response:
        return await self._answer(request, CHAT_COMPLETIONS)

    async def answer_messages(self, request: Request) -> Response:
        return await self._answer(request, MESSAGES)

    async def answer_responses(self, request: Request) -> Response:
        return await self._answer(request, RESPONSES)

    async def answer_contents(self, request: Request) -> Response:
        """Google's: the model, and whether the answer is streamed, stand in the path."""
        asked = request.path_params["asked"]
        return await self._answer(request, CONTENTS, {"model": asked.partition(":")[0], "stream": asked.endswith(STREAMED)})

    async def _answer(self, request: Request, protocol: Protocol, of_path: Mapping[str, Any] | None = None) -> Response:
        try:
            body = {**json.loads(await request.body()), **(of_path or {})}
            asked = protocol.read_request(body, _key_of(request))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refuse(protocol, f"the request cannot be read: {type(error).__name__}: {error}")
        if body.get("stream") is not True:
            return _refuse(protocol, "a scripted model only streams; set stream to true")
        self.asked = [*self.asked[1 - REMEMBERED :], asked]
        prepared = self.script.answer(asked)
        if prepared is None:
            why = _say_unexpected(self.script, asked)
            self._write_log(asked, {"refused": why})
            return _refuse(protocol, why)
        self._write_log(asked, {"say": "".join(prepared.say), "calls": [vars(call) for call in prepared.calls]})
        if prepared.fail is not None:
            await self._wait(prepared)
            return _fail(protocol, prepared.fail)
        return StreamingResponse(self._stream(prepared, protocol, asked, len(self.asked)), media_type="text/event-stream")

    async def _stream(
        self, prepared: PreparedAnswer, protocol: Protocol, asked: Asked, number: int
    ) -> AsyncIterator[bytes]:  # fmt: skip
        events = [prepared.garbage] if prepared.garbage is not None else protocol.write_answer(prepared, asked, number)
        self.open += 1
        try:
            await self._wait(prepared)
            for sent, event in enumerate(events):
                if sent == prepared.stop_after:
                    raise StreamStopped
                yield event
                await asyncio.sleep(prepared.pause_s)
        finally:
            self.open -= 1

    async def _wait(self, prepared: PreparedAnswer) -> None:
        await asyncio.sleep(prepared.first_after_s)
        if prepared.wait_for:
            async with asyncio.timeout(LONGEST_S):
                await self._told[prepared.wait_for].wait()

    def _write_log(self, asked: Asked, answer: Mapping[str, Any]) -> None:
        """For debugging: what was asked and answered, without the key of the request."""
        if self._log_file is None:
            return
        told = {"request": len(self.asked), "turn": asked.turn, "tools": asked.tools, "body": asked.body, "answer": answer}
        line = mask_text(json.dumps(told, ensure_ascii=False, default=str)) + "\n"
        with open(self._log_file, "ab", opener=partial(os.open, mode=0o600)) as file:
            file.write(line.encode(errors="replace"))


def _key_of(request: Request) -> str:
    """The key of a request, wherever its provider wants it."""
    named = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key")
    return named or request.headers.get("authorization", "").removeprefix("Bearer ")


def _say_unexpected(script: Script, asked: Asked) -> str:
    used = ", ".join(f"answers[{number}]" for number in script.used_up(asked))
    tools = f"tools {', '.join(asked.tools)}" if asked.tools else "no tools"
    return (
        f"the script expects no such request: turn {asked.turn}, {tools}{f'; used up: {used}' if used else ''}; "
        f"it ends: {asked.last[-SHOWN:]!r}"
    )


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
