"""What an agent and its model have said to each other, within the window that the model has. Pure.

It is read from the rows of the agent's calls, so it is the same after a crash. Where it grows too long, old results of tools
are shortened and old pictures left out first; then the model is asked for a summary, which stands in the place of all before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.llm.conversation import NOT_SHOWN, Message, Part, Picture, Text, ToolCall, ToolResult, read_conversation
from agents.minds.question import CHARACTERS_A_TOKEN
from agents.minds.untrusted import cut_text
from agents.streams.row_types import ModelCallRow

SUMMARY = "summary"
"""The purpose of a call that makes one."""
USUAL_WINDOW = 100_000
"""Tokens of a model whose profile does not say how many it takes."""
FULL = 0.7
"""Share of the window from which old results are shortened, and then a summary is made; the rest is for the answer."""
KEPT_WHOLE = 6
"""Latest messages whose results of tools are not shortened."""
SHORT_RESULT = 400
"""Characters of an old result."""
PICTURES = 4
"""That a model is shown with one question, the latest."""


def talk_of(rows: Iterable[ModelCallRow]) -> list[Message]:
    """The conversation since the latest summary: the task as it was told, the summary, and what came after.

    Of a call that brought no whole answer only the question counts: its answer is asked for again.
    """
    found: list[Message] = []
    first: list[Message] = []
    for row in rows:
        added = read_conversation(row["added"]) if row["added"] else []
        reply = read_conversation(row["reply"]) if row["reply"] and row["outcome"] in ("answered", "rejected") else []
        first = first or added
        if row["purpose"] != SUMMARY:
            found += [*added, *reply]
        elif row["outcome"] == "answered":
            found = [*first, *_as_told(reply)]
        else:  # what it was to be told first has not been answered yet
            found += _without_request(added)
    return _joined(found)


def _as_told(reply: Sequence[Message]) -> list[Message]:
    """A summary as the model reads it from then on."""
    words = "".join(part.text for message in reply for part in message.parts if isinstance(part, Text))
    return [Message("user", (Text(f"Your own summary of the work so far:\n\n{words}\n\nGo on from there."),))]


def _without_request(added: Sequence[Message]) -> list[Message]:
    """Results that came with the request for a summary that was not made; the request itself is its last part."""
    kept = [replace(message, parts=message.parts[:-1]) for message in added]
    return [message for message in kept if message.parts]


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Without two messages of a user in a row."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role == "user":
            found[-1] = replace(found[-1], parts=(*found[-1].parts, *message.parts))
        else:
            found.append(message)
    return found


def join_talk(talk: Sequence[Message], added: Sequence[Message]) -> list[Message]:
    return _joined([*talk, *added])


def shorten_results(talk: Sequence[Message], room: int) -> list[Message]:
    """The conversation with its old results cut, oldest first, as far as it is needed to keep it in `room` tokens."""
    found, size = list(talk), tokens_of(talk)
    for place, message in enumerate(found[:-KEPT_WHOLE]):
        if size <= room:
            break
        shorter = replace(message, parts=tuple(map(_shortened, message.parts)))
        size -= tokens_of([message]) - tokens_of([shorter])
        found[place] = shorter
    return found


def _shortened(part: Part) -> Part:
    if isinstance(part, Picture):
        return Text(NOT_SHOWN)
    return replace(part, text=cut_text(part.text, SHORT_RESULT)) if isinstance(part, ToolResult) else part


def without_pictures(messages: Iterable[Message], kept: int = 0) -> list[Message]:
    """The conversation with a sentence in the place of each picture, but for the latest that are `kept`."""
    found: list[Message] = []
    for message in reversed(list(messages)):
        parts: list[Part] = []
        for part in reversed(message.parts):
            is_left_out = isinstance(part, Picture) and kept <= 0
            kept -= isinstance(part, Picture)
            parts.append(Text(NOT_SHOWN) if is_left_out else part)
        found.append(replace(message, parts=tuple(reversed(parts))))
    return found[::-1]


def cut_talk(talk: Sequence[Message], room: int) -> list[Message]:
    """As much of the conversation as a request for its summary can show: its first message, and the latest that fit."""
    talk = shorten_results(talk, room)
    kept: list[Message] = []
    left = room - tokens_of(talk[:1])
    for message in reversed(talk[1:]):
        left -= tokens_of([message])
        if left < 0:
            break
        kept.insert(0, message)
    while kept and kept[0].role == "user":  # its results are of calls that are left out
        kept.pop(0)
    return _joined([*talk[:1], *kept])


def tokens_of(messages: Iterable[Message]) -> int:
    """Estimated from above by the characters."""
    size = 0
    for message in messages:
        for part in message.parts:
            if isinstance(part, Picture):
                size += part.tokens * CHARACTERS_A_TOKEN
            else:
                size += len(part.arguments) + len(part.tool) if isinstance(part, ToolCall) else len(part.text)
    return size // CHARACTERS_A_TOKEN + 1
