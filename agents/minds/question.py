"""A question for a language model, complete: the profiles that may answer it, the prompt, the conversation, the tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from agents.llm.conversation import Message, Picture, Text, ToolResult, write_conversation
from agents.llm.exchange import ModelRequest, OfferedTool, Patience, ReplySchema
from agents.llm.profiles import Profile

CHARACTERS_A_TOKEN = 3
"""Fewer than any provider's tokens have on average in English, so that what is reserved suffices."""
USUAL_OUTPUT_TOKENS = 4_096
"""Of a longest answer, where neither question nor profile bound it."""


@dataclass(frozen=True)
class SystemPrompt:
    """A system prompt as it is sent; `version` is that of the templates it was rendered from."""

    text: str
    version: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text, by which it is stored once."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Question:
    """What one call asks. `profiles`: the one to be asked first, then its fallbacks in their order.

    `messages` is the whole conversation, with what is new; `context` is whatever the body may want to know of who asks:
    {"user": id, "task": id, ...}.
    """

    profiles: tuple[Profile, ...]
    prompt: SystemPrompt
    messages: tuple[Message, ...]
    tools: tuple[OfferedTool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    parallel_calls: bool = True
    reply_schema: ReplySchema | None = None
    max_tokens: int | None = None
    patience: Patience = field(default_factory=Patience)
    context: Mapping[str, Any] = field(default_factory=dict)

    def request(self) -> ModelRequest:
        return ModelRequest(
            self.messages, self.prompt.text, self.tools, self.tool_choice, self.parallel_calls, self.reply_schema,
            self.max_tokens, self.patience,
        )  # fmt: skip

    @cached_property
    def input_tokens(self) -> int:
        """Of the question, estimated from above by its characters."""
        size = len(self.prompt.text) + sum(map(_size_of, self.messages))
        size += sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in self.tools)
        if self.reply_schema is not None:
            size += len(json.dumps(self.reply_schema.schema))
        return size // CHARACTERS_A_TOKEN + 1

    def output_tokens(self, profile: Profile) -> int:
        """Of the longest answer that `profile` may give."""
        bounds = [bound for bound in (self.max_tokens, profile.max_output_tokens) if bound is not None]
        return min(bounds, default=USUAL_OUTPUT_TOKENS)

    @property
    def reserved_tokens(self) -> int:
        """Question and longest answer."""
        return self.input_tokens + self.output_tokens(self.profiles[0])


def _size_of(message: Message) -> int:
    """In characters; a picture counts as so many as have its tokens."""
    pictures = sum(part.tokens for part in message.parts if isinstance(part, Picture))
    texts = (
        part.text if isinstance(part, Text | ToolResult) else json.dumps(write_conversation([message]))
        for part in message.parts if not isinstance(part, Picture)
    )  # fmt: skip
    return sum(map(len, texts)) + pictures * CHARACTERS_A_TOKEN
