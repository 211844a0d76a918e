"""The body of a call of a language model: what a runner does between the record that it begins and the one of its end.

It runs beside the runner's loop as any tool's body. It records nothing; its outcome carries all that the row will say.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from agents.llm.conversation import write_conversation
from agents.llm.exchange import Ended, Reply, TextPiece, ThinkingPiece
from agents.llm.faults import ModelFault
from agents.llm.port import stream_answer
from agents.llm.profiles import Profile
from agents.minds.question import Question, SystemPrompt
from agents.models import Prompt
from agents.tools.calls import Call, Outcome

PROMPTS_KNOWN = 1_000
"""Digests of prompts that a process remembers as stored."""

_stored: set[str] = set()


async def ask_model(call: Call) -> Outcome:
    """Ask what `call.arguments["question"]` says. The outcome's result is `answer_json`, of a fault `fault_json`."""
    question: Question = call.arguments["question"]
    await _store_prompt(question.prompt)
    profile = question.profiles[0]
    try:
        reply = await _stream(call, profile, question)
    except ModelFault as fault:
        return Outcome("failed", result=fault_json(fault, profile), error=str(fault), error_kind=fault.code)
    return Outcome("completed", result=answer_json(reply, profile))


async def _stream(call: Call, profile: Profile, question: Question) -> Reply:
    async for event in stream_answer(profile, question.request()):
        if isinstance(event, TextPiece):
            call.on_output(event.text)
        elif isinstance(event, ThinkingPiece):
            call.on_thinking(event.text)
        elif isinstance(event, Ended):
            return event.reply
    raise AssertionError("a stream ends with its answer or a fault")


def answer_json(reply: Reply, profile: Profile) -> dict[str, Any]:
    """What the row is completed from: `reply` is a conversation of one message, `schema_text` what answers a schema."""
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
        "tries": [],
    }


def fault_json(fault: ModelFault, profile: Profile) -> dict[str, Any]:
    """What is known of a call that went wrong: as `answer_json`, of what had come of the answer until then."""
    return answer_json(fault.partial, profile)


def cost_of(reply: Reply, profile: Profile) -> float | None:
    """In the profile's currency; None where a price or the usage is not known."""
    usage = reply.usage
    if not usage.measured or profile.price_input is None or profile.price_output is None:
        return None
    cached = usage.cache_read_tokens
    price_cached = profile.price_input if profile.price_cached_input is None else profile.price_cached_input
    paid = (
        (usage.input_tokens - cached) * profile.price_input + cached * price_cached + usage.output_tokens * profile.price_output
    )
    return paid / 1_000_000


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
