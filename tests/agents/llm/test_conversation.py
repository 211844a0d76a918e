"""Conversations as they are stored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents.llm.conversation import (  # fmt: skip
    ArgumentsUnreadable,
    ConversationUnreadable,
    Message,
    Picture,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    read_conversation,
    write_conversation,
)
from agents.models import Event
from tests.agents.conftest import record

WORDS = some.text(max_size=20)
ORIGINS = some.dictionaries(some.sampled_from(["id", "signature", "provider_name"]), WORDS, max_size=2)
PARTS = some.one_of(
    some.builds(Text, WORDS, ORIGINS), some.builds(Thinking, WORDS, ORIGINS),
    some.builds(ToolCall, WORDS, WORDS, WORDS, ORIGINS),
    some.builds(ToolResult, WORDS, WORDS, WORDS, some.booleans()),
    some.builds(Picture, WORDS, WORDS, some.integers(), some.integers(), some.integers()),
)  # fmt: skip
MESSAGES = some.builds(Message, some.sampled_from(["user", "assistant"]), some.lists(PARTS, max_size=4).map(tuple), ORIGINS)


@given(some.lists(MESSAGES, max_size=5))
def test_what_is_stored_is_read_as_it_was(messages):
    assert read_conversation(json.loads(json.dumps(write_conversation(messages)))) == messages


def test_the_form_is_short_where_there_is_nothing_to_say():
    written = write_conversation([Message("user", (Text("Hi"),))])
    assert written == {"v": 1, "messages": [{"role": "user", "parts": [{"kind": "text", "text": "Hi"}]}]}


@pytest.mark.parametrize("stored", [
    None, {}, [], {"v": 2, "messages": []}, {"v": 1, "messages": [{"role": "robot", "parts": []}]}, {"v": 1, "messages": 7},
    {"v": 1, "messages": [{"role": "user", "parts": [{"kind": "video"}]}]},
    {"v": 1, "messages": [{"role": "user", "parts": [{"kind": "text", "words": "x"}]}]},
])  # fmt: skip
def test_what_was_never_written_is_refused(stored):
    with pytest.raises(ConversationUnreadable):
        read_conversation(stored)


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "7", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(arguments):
    with pytest.raises(ArgumentsUnreadable, match="add_task"):
        ToolCall("1", "add_task", arguments).read_arguments()


def test_a_call_without_arguments_has_none():
    assert ToolCall("1", "add_task", "").read_arguments() == {}


@pytest.mark.django_db(transaction=True)
def test_a_conversation_goes_through_a_stream_unchanged(session, verified):
    odd = Message(
        "assistant", (Thinking("é \U0001f600 \ufffd", {"signature": "c2ln"}), ToolCall("1", "t", '{"a": 1e400, "b": "\\\\"}'))
    )
    written = write_conversation([Message("user", (Text("x" * 200_000),)), odd])
    record(session.pk, "noted", conversation=written)
    stored = Event.objects.filter(stream_id=session.pk, type="noted").get().data["conversation"]
    assert stored == written
    assert read_conversation(stored)[1] == odd
