"""OpenAI's chat completions, as a server speaks them: what a request asks, and an answer as a stream of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import dropwhile
from typing import Any

from agents.llm.scripted.encoding import encode_json
from agents.llm.scripted.matching import Asked, digest_of_base64
from agents.llm.scripted.script import PIECE, Failure, PreparedAnswer

FINISHES = {"stop": "stop", "length": "length", "filter": "content_filter"}


def read_request(body: Mapping[str, Any], key: str) -> Asked:
    """What the request asks; raises KeyError, TypeError or AttributeError where it is none."""
    messages = body["messages"]
    system = [_text_of(each["content"]) for each in messages if each["role"] in ("system", "developer")]
    newest = list(dropwhile(lambda each: each["role"] != "assistant", reversed([*messages])))
    after = messages[len(newest) :] if newest else messages
    last = [_text_of(each.get("content")) for each in after if each["role"] in ("user", "tool")]
    said = [_text_of(each.get("content")) for each in messages if each["role"] not in ("system", "developer")]
    turn = sum(each["role"] == "assistant" for each in messages)
    tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
    pictures = tuple(digest for each in messages for digest in _pictures_of(each.get("content")))
    return Asked(body["model"], "\n".join(system), "\n".join(last), tools, key, body, "\n".join(said), turn, pictures)


def _pictures_of(content: Any) -> list[str]:
    """Digests of the pictures of a message, which are data of its own: addresses elsewhere are not looked up."""
    shown = [part["image_url"]["url"] for part in content if "image_url" in part] if isinstance(content, list) else []
    return [digest_of_base64(url.partition(";base64,")[2]) for url in shown]


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def write_failure(failure: Failure) -> dict[str, Any]:
    """The body of an error."""
    kind = failure.type or "invalid_request_error"
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": failure.code or None}}


def write_answer(prepared: PreparedAnswer, asked: Asked, number: int) -> Iterator[bytes]:
    """The events of an answer, one by one; `number` makes the ids of its calls."""
    yield _chunk(asked, {"role": "assistant", "content": ""})
    for piece in prepared.think:
        yield _chunk(asked, {"reasoning_content": piece})
    for piece in prepared.say:
        yield _chunk(asked, {"content": piece})
    if prepared.refuse:
        yield _chunk(asked, {"refusal": prepared.refuse})
    for index, call in enumerate(prepared.calls):
        function = {"name": call.tool, "arguments": ""}
        begun = {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": function}
        yield _chunk(asked, {"tool_calls": [begun]})
        for at in range(0, len(call.arguments), PIECE):
            more = {"index": index, "function": {"arguments": call.arguments[at : at + PIECE]}}
            yield _chunk(asked, {"tool_calls": [more]})
    if prepared.finish != "none":
        yield _chunk(asked, {}, FINISHES.get(prepared.finish) or ("tool_calls" if prepared.calls else "stop"))
        given, made = prepared.tokens
        yield _event({**_head(asked), "choices": [], "usage": _usage(given, made)})
        yield b"data: [DONE]\n\n"


def _usage(given: int, made: int) -> dict[str, int]:
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _head(asked: Asked) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": asked.model}


def _chunk(asked: Asked, delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _event({**_head(asked), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _event(data: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % encode_json(data)
