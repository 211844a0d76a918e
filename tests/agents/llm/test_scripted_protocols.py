"""The two protocols that coding agents bring besides: OpenAI's responses and Google's contents, over HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel
from tests.agents.llm.conftest import served

PICTURE = base64.b64encode(b"a picture").decode()
ASKED = {
    "responses": {
        "model": "m", "stream": True, "instructions": "Be short.",
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Look."},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
            ]},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "alpha"},
        ],
        "tools": [
            {"type": "function", "name": "read"}, {"type": "web_search"},
            {"type": "namespace", "name": "more", "tools": [{"type": "function", "name": "edit"}]},
        ],
    },
    "contents": {
        "systemInstruction": {"parts": [{"text": "Be short."}, {"text": "Be kind."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}]},
            {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "alpha"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "web_search"}, {"name": "edit"}]}],
    },
}  # fmt: skip
PATHS = {"responses": "/v1/responses", "contents": "/v1beta/models/m:streamGenerateContent?alt=sse"}
KEYS = {"responses": {"Authorization": "Bearer k"}, "contents": {"x-goog-api-key": "k"}}
Ask = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture(params=["responses", "contents"])
def protocol(request) -> str:
    return request.param


@pytest.fixture
def ask(protocol) -> Iterator[Ask]:
    """Ask a model that gives these answers: the status, and the data of the events; what it was asked is in `ask.model`."""
    open_servers = []

    def ask_once(*answers: dict[str, Any], **more: Any) -> tuple[int, list[dict[str, Any]]]:
        ask_once.model = ScriptedModel(read_script(yaml.safe_dump({"answers": list(answers)})))  # type: ignore[attr-defined]
        server = served(ask_once.model)  # type: ignore[attr-defined]
        address = server.__enter__()
        open_servers.append(server)
        body = json.dumps({**ASKED[protocol], **more}).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(address + PATHS[protocol], body, KEYS[protocol])) as answer:
                lines = answer.read().decode().splitlines()
                return answer.status, [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
        except urllib.error.HTTPError as error:
            return error.code, [json.load(error)]

    yield ask_once
    for server in open_servers:
        server.__exit__(None, None, None)


def test_a_request_is_read_whole(ask, protocol):
    ask({"say": "well"})
    (asked,) = ask.model.asked
    assert (asked.model, asked.system, asked.turn, asked.key) == ("m", "Be short.\nBe kind.", 1, "k")
    assert asked.tools == ("read", "web_search", "edit")
    assert asked.last == ("alpha" if protocol == "responses" else '{"output": "alpha"}')
    assert asked.said.startswith("Look.")
    assert asked.pictures == (hashlib.sha256(b"a picture").hexdigest(),)


ANSWER = {"think": "Hm.", "say": ["We", "ll."], "call": [{"tool": "read", "arguments": {"path": "a"}}], "tokens": {"input": 7}}


def test_words_thoughts_and_calls_are_told_in_their_order(ask, protocol):
    status, events = ask(ANSWER)
    assert status == 200
    if protocol == "contents":
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        assert parts[:3] == [{"text": "Hm.", "thought": True}, {"text": "We"}, {"text": "ll."}]
        assert parts[3]["functionCall"] == {"id": "call_1_0", "name": "read", "args": {"path": "a"}}
        assert events[-1]["candidates"][0]["finishReason"] == "STOP"
        assert events[-1]["usageMetadata"]["promptTokenCount"] == 7
        return
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == "Well."
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
    assert (done[2]["name"], json.loads(done[2]["arguments"])) == ("read", {"path": "a"})
    assert events[-1]["response"]["output"] == done
    assert events[-1]["response"]["usage"]["input_tokens"] == 7


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"say": "x", "finish": "length"}, {"responses": "max_output_tokens", "contents": "MAX_TOKENS"}),
        ({"refuse": "not that"}, {"responses": "not that", "contents": "not that"}),
    ],
)
def test_why_an_answer_ends_is_told_in_the_providers_words(ask, protocol, answer, told):
    _, events = ask(answer)
    assert told[protocol] in json.dumps(events[-1])


def test_an_end_that_is_not_said_is_not_said(ask, protocol):
    said, unsaid = (ask({"say": "x", **finish})[1] for finish in ({}, {"finish": "none"}))
    last = {"responses": "response.completed", "contents": "finishReason"}[protocol]
    assert last in json.dumps(said)
    assert last not in json.dumps(unsaid)


def test_an_error_has_the_providers_form(ask, protocol):
    status, (told,) = ask({"fail": {"status": 429, "message": "too often"}})
    assert (status, told["error"]["message"]) == (429, "too often")
    assert told["error"].get("status") == (None if protocol == "responses" else "RESOURCE_EXHAUSTED")


def test_what_is_no_request_is_refused(ask):
    status, (told,) = ask({"say": "x"}, input=3, contents=3)
    assert status == 400
    assert "cannot be read" in told["error"]["message"]
