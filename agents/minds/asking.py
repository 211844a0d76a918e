"""The body of a call of a language model: what a runner does between the record that it begins and the one of its end.

It runs beside the runner's loop as any tool's body. It records nothing; its outcome carries all that the row will say. One
call is one or more tries: what follows from a fault is in `tries`, what a try may use is asked for at the desk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from asgiref.sync import sync_to_async

from agents.artifacts.opening import open_store
from agents.artifacts.store import ContentMissing, StoreUnusable
from agents.llm.conversation import Message, Picture, write_conversation
from agents.llm.exchange import CallPiece, Ended, Reply, TextPiece, ThinkingPiece, Usage
from agents.llm.faults import BudgetUsedUp, CallTooLong, ModelFault, ProviderFailed
from agents.llm.port import stream_answer
from agents.llm.profiles import Profile
from agents.minds.budgets.desk import desk_of_loop
from agents.minds.budgets.ledger import Demand, Used
from agents.minds.budgets.places import MICROS, Limits, Need
from agents.minds.question import Question, SystemPrompt
from agents.minds.tries import ENDED_WELL, NEVER_WORKED, Failing, falls_back, pause_before
from agents.models import Prompt
from agents.tools.calls import Call, Outcome

PROMPTS_KNOWN = 1_000
"""Digests of prompts that a process remembers as stored."""
SETTLED_S = 60.0
"""A reservation outlasts its try by so much, until it counts as unknown."""
ASKED_AGAIN = "\n[asked again]\n"
"""Printed between a text that broke off and the one that comes in its place: what stands before it is void."""
LEFT_ALONE = "left_alone"
"""The code of a profile that was passed by, in the place of a fault's."""
CACHE_WRITE = {"anthropic": 1.25, "bedrock": 1.25}
"""By provider: how many times the price of a token it takes for one that it writes into its cache."""

PICTURE_BYTES = 3_500_000
"""A picture that is larger is shown to no model: providers refuse one of 5 MB, as they get it by base64."""
PICTURE_PIXELS = 8_000
"""The same of its longer side."""

log = logging.getLogger(__name__)
_stored: set[str] = set()
_failing = Failing(time.monotonic)


async def ask_model(call: Call) -> Outcome:
    """Ask what `call.arguments["question"]` says, within its patience: `call_s` is for all tries together, and all waiting.

    The outcome's result is `answer_json`, of a fault `fault_json`.
    """
    question: Question = call.arguments["question"]
    await _store_prompt(question.prompt)
    asked = _Asked(call, question)
    for place, profile in enumerate(question.profiles):
        last = place == len(question.profiles) - 1
        if not last and _failing.is_left_alone(profile.name):
            asked.note_failed(profile, LEFT_ALONE)
            continue
        try:
            reply = await asked.ask(profile, last)
        except ModelFault as fault:
            if last or not falls_back(fault) or asked.left_s <= 0:
                return Outcome(
                    "failed", result=fault_json(fault, profile, asked.tries), error=str(fault), error_kind=fault.code
                )
        else:
            return Outcome("completed", result=answer_json(reply, profile, asked.tries))
    raise AssertionError("the last profile is asked, and answers or fails")


class _Asked:
    """One call under way: its tries so far, and how long it may still take."""

    def __init__(self, call: Call, question: Question):
        self._call, self._question = call, question
        self._until = time.monotonic() + question.patience.call_s
        self._has_printed = False
        self.tries: list[dict[str, Any]] = []

    @property
    def left_s(self) -> float:
        return self._until - time.monotonic()

    def note_failed(self, profile: Profile, code: str, waited_s: float = 0.0) -> None:
        self.tries.append({"profile": profile.name, "code": code, "waited_s": round(waited_s, 3)})

    async def ask(self, profile: Profile, last: bool) -> Reply:
        """The profile's answer, after as many tries as its faults are worth; raises the last fault."""
        made = 0
        while True:
            made += 1
            try:
                reply = await self._try(profile, last)
            except ModelFault as fault:
                pause_s = pause_before(fault, made, self._call.key)
                if pause_s is None or pause_s >= self.left_s:
                    self.note_failed(profile, fault.code)
                    _failing.note_given_up(profile.name, fault)
                    raise
                self.note_failed(profile, fault.code, pause_s)
                await asyncio.sleep(pause_s)
            else:
                _failing.note_answered(profile.name)
                return reply

    async def _try(self, profile: Profile, last: bool) -> Reply:
        """One request, within what it has reserved."""
        if self.left_s <= 0:
            raise CallTooLong(f"the call took more than {self._question.patience.call_s:g} s")
        desk = desk_of_loop()
        # Where others may be asked, a limit is not waited for until nothing is left for them.
        reservation = await desk.reserve(self._demand(profile), self.left_s if last else self.left_s / 2)
        try:
            reply = await self._stream(profile)
        except ModelFault as fault:
            await desk.settle(reservation, _used_by_failed(fault, profile))
            raise
        except BaseException:  # it was cancelled: whoever did that waits for nothing
            desk.settle_soon(reservation, None)
            raise
        await desk.settle(reservation, used_of(reply.usage, profile))
        return reply

    def _demand(self, profile: Profile) -> Demand:
        tokens = self._question.input_tokens, self._question.output_tokens(profile)
        limits = Limits(profile.requests_per_minute, profile.tokens_per_minute, profile.calls_in_flight)
        need = Need(sum(tokens), micros_of(Usage(*tokens, measured=True), profile))
        task = int(self._question.context.get("task") or 0)
        return Demand(self._call.key, self._call.session, task, profile.name, limits, need, self.left_s + SETTLED_S)

    async def _stream(self, profile: Profile) -> Reply:
        patience = replace(self._question.patience, call_s=max(self.left_s, 0.0))
        if self._has_printed:
            self._call.on_output(ASKED_AGAIN)
            self._has_printed = False
        pictures = await asyncio.to_thread(read_pictures, self._question.messages) if profile.sees else {}
        async for event in stream_answer(profile, replace(self._question.request(), patience=patience, pictures=pictures)):
            if isinstance(event, TextPiece):
                self._has_printed = True
                self._call.on_output(event.text)
            elif isinstance(event, CallPiece) and not self._question.tools:  # the answer itself, by the call of its schema
                self._has_printed = True
                self._call.on_output(event.arguments)
            elif isinstance(event, ThinkingPiece):
                self._call.on_thinking(event.text)
            elif isinstance(event, Ended):
                return event.reply
        raise AssertionError("a stream ends with its answer or a fault")


def answer_json(reply: Reply, profile: Profile, tries: list[dict[str, Any]]) -> dict[str, Any]:
    """What the row is completed from: `reply` is a conversation of one message, `schema_text` what answers a schema.

    `profile` is the one that answered, `tries` those that failed before: {profile, code, waited_s}.
    """
    usage = reply.usage
    return {
        "profile": profile.name,
        "model": reply.model or profile.model,
        "reply": write_conversation([reply.message]),
        "text": reply.text,
        "schema_text": reply.schema_text,
        "finish": reply.finish,
        "input_tokens": usage.input_tokens if usage.measured else None,
        "cached_tokens": usage.cache_read_tokens if usage.measured else None,
        "output_tokens": usage.output_tokens if usage.measured else None,
        "cost": cost_of(reply, profile),
        "first_token_s": reply.first_token_s,
        "call_s": reply.call_s,
        "tries": tries,
    }


def fault_json(fault: ModelFault, profile: Profile, tries: list[dict[str, Any]]) -> dict[str, Any]:
    """What is known of a call that went wrong: as `answer_json`, of what had come of the answer until then.

    Where a budget had no room, `budget` is what is to be asked for (agents.minds.budgets.more).
    """
    facts: Mapping[str, Any] = {"budget": dict(fault.facts)} if isinstance(fault, BudgetUsedUp) else {}
    return {**answer_json(fault.partial, profile, tries), **facts}


def cost_of(reply: Reply, profile: Profile) -> float | None:
    """In the profile's currency; None where a price or the usage is not known."""
    micros = _paid(reply.usage, profile)
    return None if micros is None else micros / MICROS


def micros_of(usage: Usage, profile: Profile) -> int | None:
    """The same in whole millionths, never too few."""
    micros = _paid(usage, profile)
    return None if micros is None else ceil(micros)


def used_of(usage: Usage, profile: Profile) -> Used | None:
    """What is settled; None where the provider did not tell."""
    if not usage.measured:
        return None
    return Used(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, micros_of(usage, profile))


def _paid(usage: Usage, profile: Profile) -> float | None:
    """Millionths of the currency: prices are for a million tokens."""
    if not usage.measured or profile.price_input is None or profile.price_output is None:
        return None
    cached, written = usage.cache_read_tokens, usage.cache_write_tokens
    price_cached = profile.price_input if profile.price_cached_input is None else profile.price_cached_input
    price_written = profile.price_input * CACHE_WRITE.get(profile.provider, 1.0)
    fresh = max(usage.input_tokens - cached - written, 0)
    return (
        fresh * profile.price_input
        + cached * price_cached
        + written * price_written
        + usage.output_tokens * profile.price_output
    )


def _used_by_failed(fault: ModelFault, profile: Profile) -> Used | None:
    failed_at_once = isinstance(fault, ProviderFailed) and not fault.partial.message.parts
    if failed_at_once or isinstance(fault, NEVER_WORKED):
        return Used()
    return used_of(fault.partial.usage, profile) if isinstance(fault, ENDED_WELL) else None


def read_pictures(messages: Sequence[Message]) -> dict[str, bytes]:
    """By digest the contents of a conversation's pictures, without those that are too large, or that nobody has any more.

    Called in a thread: a store may be far away.
    """
    found = {part.sha256: part for message in messages for part in message.parts if isinstance(part, Picture)}
    contents: dict[str, bytes] = {}
    for sha256, picture in found.items():
        if picture.size > PICTURE_BYTES or max(picture.width, picture.height) > PICTURE_PIXELS:
            continue
        try:
            contents[sha256] = b"".join(open_store().read(sha256))
        except (ContentMissing, StoreUnusable) as error:
            log.warning("a picture cannot be shown to a model: %s", error)
    return contents


async def _store_prompt(prompt: SystemPrompt) -> None:
    """Keep the text by its digest, once."""
    if prompt.digest in _stored:
        return
    await sync_to_async(Prompt.objects.get_or_create)(
        digest=prompt.digest, defaults={"version": prompt.version, "text": prompt.text}
    )
    if len(_stored) >= PROMPTS_KNOWN:
        _stored.clear()
    _stored.add(prompt.digest)
