"""Anthropic's messages, as a server speaks them: what a request asks, and an answer as a stream of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import dropwhile
from typing import Any

from agents.llm.scripted.encoding import encode_json
from agents.llm.scripted.matching import Asked, digest_of_base64
from agents.llm.scripted.script import PIECE, Failure, PreparedAnswer

FINISHES = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal"}
ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip
SIGNATURE = "c2NyaXB0ZWQ="
"""Of thinking: the provider signs it, and wants it back as it was."""


def read_request(body: Mapping[str, Any], key: str) -> Asked:
    """What the request asks; raises KeyError, TypeError or AttributeError where it is none."""
    messages = body["messages"]
    newest = list(dropwhile(lambda each: each["role"] != "assistant", reversed([*messages])))
    after = messages[len(newest) :] if newest else messages
    last = "\n".join(_text_of(each["content"]) for each in after)
    said = "\n".join(_text_of(each["content"]) for each in messages)
    turn = sum(each["role"] == "assistant" for each in messages)
    tools = tuple(tool["name"] for tool in body.get("tools") or ())
    pictures = tuple(digest for each in messages for digest in _pictures_of(each["content"]))
    return Asked(body["model"], _text_of(body.get("system") or ""), last, tools, key, body, said, turn, pictures)


def _pictures_of(content: Any) -> list[str]:
    """Digests of the pictures of a message, also of those in results of tools."""
    found: list[str] = []
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image":
            found.append(digest_of_base64(part["source"]["data"]))
        else:
            found += _pictures_of(part.get("content"))
    return found


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] if "text" in part else _text_of(part.get("content", "")) for part in content)
    text: str = content
    return text


def write_failure(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = failure.type or ERROR_TYPES.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}}


def write_answer(prepared: PreparedAnswer, asked: Asked, number: int) -> Iterator[bytes]:
    """The events of an answer, one by one; `number` makes the ids of its calls."""
    given, made = prepared.tokens
    message: dict[str, Any] = {
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": given, "output_tokens": 1},
    }  # fmt: skip
    yield _event("message_start", message=message)
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if prepared.think:
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in prepared.think]
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]))
    if prepared.say:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in prepared.say]))
    for index, call in enumerate(prepared.calls):
        text = call.arguments
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        begun = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.tool, "input": {}}
        blocks.append((begun, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]))
    for index, (begun, deltas) in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    if prepared.finish != "none":
        reason = FINISHES.get(prepared.finish) or ("tool_use" if prepared.calls else "end_turn")
        told: dict[str, Any] = {"stop_reason": "refusal" if prepared.refuse else reason, "stop_sequence": None}
        if prepared.refuse:
            told["stop_details"] = {"type": "refusal", "explanation": prepared.refuse, "category": None}
        yield _event("message_delta", delta=told, usage={"output_tokens": made})
        yield _event("message_stop")


def _event(kind: str, **data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), encode_json({"type": kind, **data}))
