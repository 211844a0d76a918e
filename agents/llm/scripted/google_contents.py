"""Google's contents (Gemini), as a server speaks them: what a request asks, and an answer as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import dropwhile
from typing import Any

from agents.llm.scripted.encoding import encode_json
from agents.llm.scripted.matching import Asked, digest_of_base64
from agents.llm.scripted.script import Failure, PreparedAnswer

FINISHES = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}
STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}  # fmt: skip


def read_request(body: Mapping[str, Any], key: str) -> Asked:
    """What the request asks, with its model in `model`; raises KeyError, TypeError or AttributeError where it is none."""
    contents = body["contents"]
    newest = list(dropwhile(lambda each: each.get("role") != "model", reversed([*contents])))
    last = "\n".join(map(_text_of, contents[len(newest) :]))
    said = "\n".join(map(_text_of, contents))
    turn = sum(each.get("role") == "model" for each in contents)
    declared = (one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ())
    tools = tuple(one["name"] for one in declared)
    shown = [part["inlineData"] for each in contents for part in each["parts"] if "inlineData" in part]
    pictures = tuple(digest_of_base64(one["data"]) for one in shown)
    system = _text_of(body.get("systemInstruction") or {"parts": []})
    return Asked(body["model"], system, last, tools, key, body, said, turn, pictures)


def _text_of(content: Mapping[str, Any]) -> str:
    """Words, and what tools have brought."""
    told = [part["text"] for part in content["parts"] if "text" in part]
    brought = [part["functionResponse"].get("response") for part in content["parts"] if "functionResponse" in part]
    return "\n".join([*told, *(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in brought)])


def write_failure(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    status = failure.type or STATUSES.get(failure.status, "INTERNAL")
    return {"error": {"code": failure.status, "message": failure.message, "status": status}}


def write_answer(prepared: PreparedAnswer, asked: Asked, number: int) -> Iterator[bytes]:
    """The events of an answer, one by one; `number` makes the ids of its calls, which come whole as everywhere here."""
    for piece in prepared.think:
        yield _chunk(asked, {"text": piece, "thought": True})
    for piece in prepared.say:
        yield _chunk(asked, {"text": piece})
    for index, call in enumerate(prepared.calls):
        given = {"id": f"call_{number}_{index}", "name": call.tool, "args": _arguments(call.arguments)}
        yield _chunk(asked, {"functionCall": given})
    if prepared.refuse:
        told = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": prepared.refuse}
        yield _event({"candidates": [], "promptFeedback": told, "modelVersion": asked.model})
    elif prepared.finish != "none":
        given_tokens, made = prepared.tokens
        usage = {"promptTokenCount": given_tokens, "candidatesTokenCount": made, "totalTokenCount": given_tokens + made}
        yield _chunk(asked, {"text": ""}, finishReason=FINISHES.get(prepared.finish, "STOP"), usage=usage)


def _arguments(text: str) -> Any:
    """Those of a call are no text here: what is no JSON cannot be sent as such."""
    try:
        return json.loads(text)
    except ValueError:
        return {"unreadable": text}


def _chunk(asked: Asked, part: dict[str, Any], usage: dict[str, int] | None = None, **more: Any) -> bytes:
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, **more}
    told: dict[str, Any] = {"candidates": [candidate], "modelVersion": asked.model}
    return _event(told if usage is None else {**told, "usageMetadata": usage})


def _event(data: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % encode_json(data)
