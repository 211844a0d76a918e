"""One call of a model, streamed, by the direct interface of pydantic-ai."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings

from agents.llm import faults
from agents.llm.conversation import ToolCall
from agents.llm.exchange import NO_REPLY, CallPiece, Ended, Event, ModelRequest, Patience, Reply
from agents.llm.library import translation
from agents.llm.library.causes import fault_of
from agents.llm.library.clients import build_model
from agents.llm.profiles import Profile
from agents.outside.transport import CONNECT_S

ANSWER_CHARS = 2_000_000
"""Characters of words, thinking and arguments in one answer, at most."""
THINKING: dict[str, Any] = {"off": False, "on": True, "low": "low", "medium": "medium", "high": "high"}

CACHES_WHERE_MARKED = ("anthropic", "bedrock")
"""Providers that keep of a prompt what a request marks; the others keep what they like by themselves, or nothing."""

T = TypeVar("T")


class Watch:
    """The clock of one call: waits no longer than its patience, and says which part of it ran out."""

    def __init__(self, patience: Patience) -> None:
        self._patience, self._asked_at = patience, time.monotonic()
        self.first_token_s: float | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._asked_at

    def note_piece(self) -> None:
        if self.first_token_s is None:
            self.first_token_s = self.seconds

    async def wait(self, step: Awaitable[T]) -> T:
        """The step's result; raises FirstTokenLate, AnswerBroken or CallTooLong."""
        left = self._patience.call_s - self.seconds
        begun = self.first_token_s is not None
        quiet = self._patience.silence_s if begun else self._patience.first_token_s - self.seconds
        waited = asyncio.timeout(max(min(left, quiet), 0.0))
        try:
            async with waited:
                return await step
        except TimeoutError:
            if not waited.expired():
                raise
            if left <= quiet:
                raise faults.CallTooLong(f"the call took more than {self._patience.call_s:g} s") from None
            if begun:
                raise faults.AnswerBroken(f"nothing came for {self._patience.silence_s:g} s") from None
            raise faults.FirstTokenLate(f"nothing came within {self._patience.first_token_s:g} s") from None


async def stream_answer(profile: Profile, request: ModelRequest) -> AsyncGenerator[Event]:
    """As `agents.llm.port.stream_answer`."""
    model = build_model(profile)
    wanted = request.reply_schema
    schema_call = wanted.name if wanted is not None and translation.schema_goes_as_call(request, model.profile) else ""
    watch, stream = Watch(request.patience), None
    try:
        async with AsyncExitStack() as opened:
            asked = model_request_stream(
                model,
                translation.write_messages(request),
                model_settings=_write_settings(profile, request),
                model_request_parameters=translation.write_parameters(request, model.profile),
            )
            stream = await watch.wait(opened.enter_async_context(asked))
            async for piece in _read_pieces(stream, watch):
                yield piece
            reply = translation.read_reply(stream.get(), schema_call, watch.first_token_s, watch.seconds)
        _check_end(stream, reply)
    except faults.ModelFault as fault:
        fault.partial = _read_partial(stream, watch)
        raise
    except Exception as error:
        raise fault_of(error, _read_partial(stream, watch)) from error
    yield Ended(reply)


def _write_settings(profile: Profile, request: ModelRequest) -> ModelSettings:
    bounds = [bound for bound in (request.max_tokens, profile.max_output_tokens) if bound is not None]
    settings: ModelSettings = {}
    if profile.provider not in ("google", "bedrock"):  # their clients take neither
        settings["max_retries"] = 0
        # Our own watch is the deadline: a client's own would count what has not begun and what has alike.
        settings["timeout"] = httpx2.Timeout(request.patience.call_s, connect=CONNECT_S)
    if profile.provider in CACHES_WHERE_MARKED:
        settings["cache"] = True  # tools, system prompt and the conversation so far: the next question begins with them
    if bounds:
        settings["max_tokens"] = min(bounds)
    if profile.temperature is not None:
        settings["temperature"] = profile.temperature
    if profile.thinking:
        settings["thinking"] = THINKING[profile.thinking]
    if request.tools and not request.parallel_calls:
        settings["parallel_tool_calls"] = False
    if request.tools and request.tool_choice != "auto":
        settings["tool_choice"] = request.tool_choice
    return settings


async def _read_pieces(stream: StreamedResponse, watch: Watch) -> AsyncIterator[Event]:
    """What the stream brings, piece by piece; raises AnswerTooLarge where it does not end."""
    events, size = aiter(stream), 0
    while True:
        try:
            event = await watch.wait(anext(events))
        except StopAsyncIteration:
            return
        piece = translation.read_event(event)
        if piece is None:
            continue
        watch.note_piece()
        size += len(piece.arguments) if isinstance(piece, CallPiece) else len(piece.text)
        if size > ANSWER_CHARS:
            raise faults.AnswerTooLarge(f"the answer has more than {ANSWER_CHARS:,} characters")
        yield piece


def _read_partial(stream: StreamedResponse | None, watch: Watch) -> Reply:
    """What of the answer had come before its fault."""
    if stream is None:
        return NO_REPLY
    try:
        return translation.read_reply(stream.get(), "", watch.first_token_s, watch.seconds)
    except Exception:  # what made the fault may have left parts of which no text can be made
        return NO_REPLY


def _check_end(stream: StreamedResponse, reply: Reply) -> None:
    """Raise the fault of an answer that came to its end, and is none."""
    told = stream.provider_details or {}
    if "refusal" in told or told.get("finish_reason") == "refusal":
        raise faults.Refused(str(told.get("refusal") or "the model refused to answer"))
    if stream.finish_reason == "content_filter":
        raise faults.ContentFiltered("the provider's filter ended the answer")
    if not reply.finish:
        raise faults.AnswerBroken("the answer ended without saying why")
    if not reply.text.strip() and not any(isinstance(part, ToolCall) for part in reply.message.parts):
        if reply.finish == "length":
            raise faults.AnswerEmpty("the answer's bound of tokens was used up before its first word")
        raise faults.AnswerEmpty("the answer has neither words nor calls")
