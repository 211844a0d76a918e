"""What a model is asked, and the events in which it answers. Knows no provider's library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.llm.conversation import Message, Text, ToolCall

FIRST_TOKEN_S = 120.0
"""From the request to the first piece of the answer. A long prompt is read for a minute before a model says anything."""
SILENCE_S = 60.0
"""Between two bytes of an answer that has begun."""
CALL_S = 300.0
"""A whole call, whoever waits for it."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call. `parameters` is the JSON Schema of its arguments, an object's."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """The JSON Schema, an object's, that the whole answer is to follow; `name` has letters, digits, _ and - only."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a call may take: until its first piece, between two bytes, and in all."""

    first_token_s: float = FIRST_TOKEN_S
    silence_s: float = SILENCE_S
    call_s: float = CALL_S


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model. `tool_choice` says whether it may, must or must not call a tool.

    `max_tokens` bounds the answer, where it is less than the profile's own bound. `pictures` are the contents of those that
    the model is shown, by digest; in the place of any other one stands a sentence.
    """

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[OfferedTool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    parallel_calls: bool = True
    reply_schema: ReplySchema | None = None
    max_tokens: int | None = None
    patience: Patience = Patience()
    pictures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. Cached ones are part of `input_tokens`. Not `measured`: the provider told nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or what came of it before it broke off.

    `finish`: "stop", "tool_call" or "length" (cut at the bound of tokens); empty where it broke off. `first_token_s` and
    `call_s` are seconds since the request; `first_token_s` is None where nothing came.
    """

    message: Message
    finish: str
    usage: Usage
    model: str
    response_id: str
    first_token_s: float | None
    call_s: float
    schema_call: str = ""
    """The name of the tool by which a schema was followed, where the model has no other way."""

    @property
    def text(self) -> str:
        """All words of the answer, without its thinking."""
        return "".join(part.text for part in self.message.parts if isinstance(part, Text))

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that it asks for, without the one that follows the schema."""
        return [part for part in self._all_calls() if part.tool != self.schema_call]

    @property
    def schema_text(self) -> str:
        """The JSON text that answers a request with a schema. Whether it follows it is for the reader to see."""
        return next((part.arguments for part in self._all_calls() if part.tool == self.schema_call), self.text)

    def _all_calls(self) -> list[ToolCall]:
        return [part for part in self.message.parts if isinstance(part, ToolCall)]


NO_REPLY = Reply(Message("assistant", ()), "", Usage(), "", "", None, 0.0)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """More of what the model thinks."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A call has begun (`id` and `tool` are given), or more of its arguments has come. `number` is its part's, from 0."""

    number: int
    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of a call that went well: the whole answer, with its usage."""

    reply: Reply


Event = TextPiece | ThinkingPiece | CallPiece | Ended
