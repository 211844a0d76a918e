"""Our messages, requests and events in the library's words, and its answers in ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from agents.llm.conversation import NOT_SHOWN, Message, Part, Picture, Text, Thinking, ToolCall, ToolResult
from agents.llm.exchange import CallPiece, ModelRequest, Reply, TextPiece, ThinkingPiece, Usage

PART_ORIGIN = ("id", "signature", "provider_name", "provider_details")
MESSAGE_ORIGIN = ("provider_name", "provider_url", "canonical_system", "provider_response_id")
"""What a provider wants back with its own parts and messages, by the library's names."""


def write_messages(request: ModelRequest) -> list[theirs.ModelMessage]:
    """The conversation as the library takes it; the system prompt goes with the newest turn of the user."""
    written = [_write_message(message, request.pictures) for message in request.messages]
    if request.system:
        turns = [message for message in written if isinstance(message, theirs.ModelRequest)]
        turns[-1].instructions = request.system
    return written


def _write_message(message: Message, pictures: Mapping[str, bytes]) -> theirs.ModelMessage:
    if message.role == "user":
        return theirs.ModelRequest(parts=[_write_request_part(part, pictures) for part in message.parts])
    return theirs.ModelResponse(
        parts=[_write_response_part(part) for part in message.parts],
        **{name: value for name, value in message.origin.items() if name in MESSAGE_ORIGIN},
    )


def _write_request_part(part: Part, pictures: Mapping[str, bytes]) -> theirs.ModelRequestPart:
    if isinstance(part, ToolResult):
        return theirs.ToolReturnPart(part.tool, part.text, part.call_id, outcome="failed" if part.failed else "success")
    if isinstance(part, Picture):
        content = pictures.get(part.sha256)
        shown = NOT_SHOWN if content is None else [theirs.BinaryContent(content, media_type=part.media_type)]
        return theirs.UserPromptPart(shown)
    assert isinstance(part, Text), "a user's turn has texts, results and pictures only"
    return theirs.UserPromptPart(part.text)


def _write_response_part(part: Part) -> theirs.ModelResponsePart:
    assert not isinstance(part, ToolResult | Picture), "an assistant's turn has no results and no pictures"
    origin = {name: value for name, value in part.origin.items() if name in PART_ORIGIN}
    if isinstance(part, Thinking):
        return theirs.ThinkingPart(part.text, **origin)
    origin.pop("signature", None)
    if isinstance(part, ToolCall):
        return theirs.ToolCallPart(part.tool, part.arguments, part.id, **origin)
    return theirs.TextPart(part.text, **origin)


def write_parameters(request: ModelRequest, profile: Mapping[str, Any]) -> ModelRequestParameters:
    """Tools and schema of the request. `profile` is what the library knows of the model: the schema goes as it takes one."""
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in request.tools
    ]
    wanted = request.reply_schema
    if wanted is None:
        return ModelRequestParameters(function_tools=tools)
    if schema_goes_as_call(request, profile):
        call = ToolDefinition(
            name=wanted.name, description=wanted.description, parameters_json_schema=dict(wanted.schema), kind="output"
        )
        return ModelRequestParameters(
            function_tools=tools, output_mode="tool", output_tools=[call], allow_text_output=False
        )  # fmt: skip
    output = OutputObjectDefinition(json_schema=dict(wanted.schema), name=wanted.name, description=wanted.description)
    mode: Any = "native" if profile.get("supports_json_schema_output") else "prompted"
    return ModelRequestParameters(function_tools=tools, output_mode=mode, output_object=output)


def schema_goes_as_call(request: ModelRequest, profile: Mapping[str, Any]) -> bool:
    """Whether the model follows the schema by calling a tool: it takes tools, and has no way of its own for schemas."""
    native = profile.get("supports_json_schema_output", False)
    return request.reply_schema is not None and not native and profile.get("supports_tools", True)


def read_event(event: theirs.ModelResponseStreamEvent) -> TextPiece | ThinkingPiece | CallPiece | None:
    """The piece of an answer that an event of the library brings; None where it brings nothing that is shown."""
    if isinstance(event, theirs.PartStartEvent):
        part = event.part
        if isinstance(part, theirs.ToolCallPart):
            return CallPiece(event.index, part.tool_call_id, _clean(part.tool_name), _arguments_of(part.args))
        if isinstance(part, theirs.TextPart | theirs.ThinkingPart) and part.content:
            kind = TextPiece if isinstance(part, theirs.TextPart) else ThinkingPiece
            return kind(_clean(part.content))
    elif isinstance(event, theirs.PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, theirs.ToolCallPartDelta):
            return CallPiece(event.index, "", "", _arguments_of(delta.args_delta))
        if isinstance(delta, theirs.TextPartDelta | theirs.ThinkingPartDelta) and delta.content_delta:
            kind = TextPiece if isinstance(delta, theirs.TextPartDelta) else ThinkingPiece
            return kind(_clean(delta.content_delta))
    return None


def read_reply(response: theirs.ModelResponse, schema_call: str, first_token_s: float | None, call_s: float) -> Reply:
    """The library's answer in our words. `finish` is empty where the provider did not say why it ended."""
    parts = [found for part in response.parts if (found := _read_part(part)) is not None]
    told = response.finish_reason if (response.provider_details or {}).get("finish_reason") else None
    usage = response.usage
    return Reply(
        message=Message("assistant", tuple(parts), _origin_of(response, MESSAGE_ORIGIN)),
        finish=told or "",
        usage=Usage(
            usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
            measured=bool(usage.input_tokens or usage.output_tokens),
        ),
        model=response.model_name or "",
        response_id=response.provider_response_id or "",
        first_token_s=first_token_s,
        call_s=call_s,
        schema_call=schema_call,
    )  # fmt: skip


def _read_part(part: theirs.ModelResponsePart) -> Part | None:
    """Ours of a part; None for what a provider's own tools leave, which nobody asks for."""
    origin = _origin_of(part, PART_ORIGIN)
    if isinstance(part, theirs.ToolCallPart):
        return ToolCall(part.tool_call_id, _clean(part.tool_name), _arguments_of(part.args), origin)
    if isinstance(part, theirs.ThinkingPart):
        return Thinking(_clean(part.content), origin)
    return Text(_clean(part.content), origin) if isinstance(part, theirs.TextPart) and part.content else None


def _origin_of(source: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(source, name, None)) is not None}


def _arguments_of(arguments: Any) -> str:
    """Arguments as JSON text: most providers write text, some an object."""
    return _clean(arguments) if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def _clean(text: str) -> str:
    """Without NUL and halves of characters, which no database stores; JSON of a model may spell them."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
