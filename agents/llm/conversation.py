"""What was said to a model and by it, and the JSON form in which that is stored. Knows no provider's library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from agents.errors import AgentsError

VERSION = 1
"""Of the JSON form. Every version ever written is read."""
PIXELS_A_TOKEN = 750
MOST_TOKENS = 5_000
"""Of one picture."""
NOT_SHOWN = "[The picture is left out: you are not shown it.]"
"""In the place of a picture, for a model that takes none, or of one that is too large, too old or no longer kept."""
Role = Literal["user", "assistant"]


class ConversationUnreadable(AgentsError):
    """A stored conversation is none of the forms that were ever written."""

    code = "conversation_unreadable"


class ArgumentsUnreadable(AgentsError):
    """The model wrote arguments of a call that are no JSON object."""

    code = "arguments_unreadable"


@dataclass(frozen=True, slots=True)
class Text:
    """Words. `origin` is what the provider wants back with a part of its own: ids, signatures; nobody else reads it."""

    text: str
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model thought before it answered. A provider may give only a signature, and no words."""

    text: str
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for. `arguments` are JSON as the model wrote it, which may be none."""

    id: str
    tool: str
    arguments: str
    origin: Mapping[str, Any] = field(default_factory=dict)

    def read_arguments(self) -> dict[str, Any]:
        """The arguments as an object; raises ArgumentsUnreadable."""
        try:
            found = json.loads(self.arguments or "{}")
        except ValueError as error:
            raise ArgumentsUnreadable(f"the arguments of {self.tool} are no JSON: {error}") from error
        except RecursionError as error:
            raise ArgumentsUnreadable(f"the arguments of {self.tool} are nested too deeply") from error
        if not isinstance(found, dict):
            raise ArgumentsUnreadable(f"the arguments of {self.tool} are no JSON object")
        return found


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call brought. `failed` tells the model that the tool did not do what was asked."""

    call_id: str
    tool: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that the model is to see: a stored artifact by its digest, and never its bytes. Width and height in pixels."""

    sha256: str
    media_type: str
    size: int
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """What it takes of a window, from above: providers count about 750 pixels as a token, and make large ones smaller."""
        return min(-(-self.width * self.height // PIXELS_A_TOKEN), MOST_TOKENS)


Part = Text | Thinking | ToolCall | ToolResult | Picture
_KINDS: dict[str, type[Any]] = {
    "text": Text, "thinking": Thinking, "tool_call": ToolCall, "tool_result": ToolResult, "picture": Picture,
}  # fmt: skip
_NAMES = {part: name for name, part in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. A user's has texts, results of tools and pictures; an assistant's has texts, thinking and calls."""

    role: Role
    parts: tuple[Part, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)


def write_conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The JSON form: {"v", "messages": [{"role", "parts": [{"kind", ...}], "origin"}]}, without what is empty."""
    return {"v": VERSION, "messages": [_write_message(message) for message in messages]}


def _write_message(message: Message) -> dict[str, Any]:
    parts = [{"kind": _NAMES[type(part)], **_without_empty_origin(asdict(part))} for part in message.parts]
    return _without_empty_origin({"role": message.role, "parts": parts, "origin": dict(message.origin)})


def _without_empty_origin(fields: dict[str, Any]) -> dict[str, Any]:
    if not fields.get("origin", True):
        del fields["origin"]
    return fields


def read_conversation(stored: Any) -> list[Message]:
    """The messages of a JSON form; raises ConversationUnreadable."""
    try:
        if stored["v"] != VERSION:
            raise ConversationUnreadable(f"a stored conversation has the version {stored['v']!r}, which is not known")
        return [_read_message(each) for each in stored["messages"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ConversationUnreadable(f"a stored conversation cannot be read: {type(error).__name__}: {error}") from error


def _read_message(stored: dict[str, Any]) -> Message:
    if stored["role"] not in get_args(Role):
        raise ConversationUnreadable(f"a stored message has the role {stored['role']!r}")
    parts = []
    for each in stored["parts"]:
        fields = dict(each)
        parts.append(_KINDS[fields.pop("kind")](**fields))
    return Message(stored["role"], tuple(parts), stored.get("origin", {}))
