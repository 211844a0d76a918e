"""OpenAI's responses, as a server speaks them: what a request asks, and an answer as a stream of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, dropwhile
from typing import Any

from agents.llm.scripted.encoding import encode_json
from agents.llm.scripted.matching import Asked, digest_of_base64
from agents.llm.scripted.script import PIECE, Failure, PreparedAnswer

SYSTEMS = ("system", "developer")
INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}


def read_request(body: Mapping[str, Any], key: str) -> Asked:
    """What the request asks; raises KeyError, TypeError or AttributeError where it is none."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [body.get("instructions") or "", *(_text_of(each) for each in items if each.get("role") in SYSTEMS)]
    talk = [each for each in items if each.get("role") not in SYSTEMS]
    newest = list(dropwhile(lambda each: not _is_models(each), reversed(talk)))
    last = [_text_of(each) for each in talk[len(newest) :]]
    turn = sum(_is_models(each) and not _is_models(before) for before, each in zip([{}, *talk], talk, strict=False))
    tools = tuple(name for tool in body.get("tools") or () for name in _names_of(tool))
    pictures = tuple(digest for each in talk for digest in _pictures_of(each))
    said = "\n".join(map(_text_of, talk))
    return Asked(body["model"], "\n".join(filter(None, system)), "\n".join(last), tools, key, body, said, turn, pictures)


def _is_models(item: Mapping[str, Any]) -> bool:
    """Whether an item is a part of a turn of the model: its words, its thoughts, and its calls, which come in a row."""
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "custom_tool_call", "reasoning")


def _names_of(tool: Mapping[str, Any]) -> list[str]:
    """A tool's name, or those of a namespace of tools; one that the provider itself has goes by its type."""
    if isinstance(tool.get("tools"), list):
        return [each["name"] for each in tool["tools"]]
    return [tool.get("name") or tool["type"]]


def _text_of(item: Mapping[str, Any]) -> str:
    """The words of a message, or what a tool has brought."""
    content = item.get("content") or item.get("output") or ""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content)


def _pictures_of(item: Mapping[str, Any]) -> list[str]:
    """Digests of the pictures of a message, which are data of its own: addresses elsewhere are not looked up."""
    content = item.get("content")
    shown = [part["image_url"] for part in content if "image_url" in part] if isinstance(content, list) else []
    return [digest_of_base64(url.partition(";base64,")[2]) for url in shown]


def write_failure(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = failure.type or "invalid_request_error"
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": failure.code or None}}


def write_answer(prepared: PreparedAnswer, asked: Asked, number: int) -> Iterator[bytes]:
    """The events of an answer, one by one; `number` makes the ids of its items."""
    head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": asked.model}
    numbers = count()

    def event(kind: str, **data: Any) -> bytes:
        told = {"type": kind, "sequence_number": next(numbers), **data}
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), encode_json(told))

    yield event("response.created", response={**head, "status": "in_progress", "output": []})
    output: list[dict[str, Any]] = []
    for begun, deltas, done in _items(prepared, number):
        at = {"output_index": len(output)}
        yield event("response.output_item.added", **at, item=begun)
        for kind, piece in deltas:
            yield event(f"response.{kind}.delta", **at, item_id=begun["id"], content_index=0, summary_index=0, delta=piece)
        yield event("response.output_item.done", **at, item=done)
        output.append(done)
    if prepared.finish != "none":
        given, made = prepared.tokens
        usage = {
            "input_tokens": given, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": given + made,
        }  # fmt: skip
        ended: dict[str, Any] = {**head, "status": "completed", "output": output, "usage": usage}
        if why := INCOMPLETE.get(prepared.finish):
            ended |= {"status": "incomplete", "incomplete_details": {"reason": why}}
        yield event(f"response.{ended['status']}", response=ended)


Item = tuple[dict[str, Any], list[tuple[str, str]], dict[str, Any]]
"""How an item of an answer begins, its deltas by their kinds, and the item whole."""


def _items(prepared: PreparedAnswer, number: int) -> Iterator[Item]:
    if prepared.think:
        thought: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
        deltas = [("reasoning_summary_text", piece) for piece in prepared.think]
        yield thought, deltas, {**thought, "summary": [{"type": "summary_text", "text": "".join(prepared.think)}]}
    if prepared.say or prepared.refuse:
        message: dict[str, Any] = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        if prepared.refuse:
            part: dict[str, Any] = {"type": "refusal", "refusal": prepared.refuse}
            deltas = [("refusal", prepared.refuse)]
        else:
            part = {"type": "output_text", "text": "".join(prepared.say), "annotations": []}
            deltas = [("output_text", piece) for piece in prepared.say]
        yield message, deltas, {**message, "status": "completed", "content": [part]}
    for index, call in enumerate(prepared.calls):
        text = call.arguments
        named = {"type": "function_call", "id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}", "name": call.tool}
        deltas = [("function_call_arguments", text[at : at + PIECE]) for at in range(0, len(text), PIECE)]
        yield {**named, "arguments": ""}, deltas, {**named, "status": "completed", "arguments": text}
