"""Streams that are almost right: whatever a provider's JSON holds, the port ends with an answer or with a fault of its own."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agents.llm.exchange import Ended, OfferedTool
from agents.llm.faults import ModelFault
from agents.llm.scripted import anthropic_messages, chat_completions
from agents.llm.scripted.script import Asked, PreparedAnswer, PreparedCall, When
from tests.agents.llm.conftest import asking, events_of

SEED = 20_261_122
STREAMS = 150
"""Of each protocol."""
ODD: tuple[Any, ...] = (None, 7, -1.5, True, "", "odd", [], [None], {}, {"type": "odd"}, "\ud800", "x" * 1_000, 1e308)
ADD = OfferedTool("add_task", "Adds a task.", {"type": "object", "properties": {}})
WRITERS = {"openai_compatible": chat_completions.write_answer, "anthropic": anthropic_messages.write_answer}


def spoil(value: Any, chance: random.Random) -> Any:
    """`value` with one of its parts replaced, left out, or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(sorted(value))
        if chance.random() < 0.2:
            return {name: part for name, part in value.items() if name != key}
        return {**value, key: spoil(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], spoil(value[place], chance), *value[place + chance.choice((0, 1)) :]]
    return chance.choice(ODD)


def spoiled_stream(protocol: str, chance: random.Random) -> bytes:
    prepared = PreparedAnswer(When(), say=("a", "b"), think=("c",), calls=(PreparedCall("add_task", '{"id": "a"}'),))
    asked = Asked("m", "", "", (), "", {})
    events = list(WRITERS[protocol](prepared, asked, 1))
    for place in chance.sample(range(len(events)), 2):
        head, found, data = events[place].partition(b"data: ")
        if not data.startswith(b"["):
            events[place] = head + found + json.dumps(spoil(json.loads(data), chance)).encode() + b"\n\n"
    if chance.random() < 0.2:
        chance.shuffle(events)
    return b"".join(events)


@pytest.mark.filterwarnings("ignore")
async def test_a_spoiled_stream_is_an_answer_or_a_fault(provider, protocol):
    chance, ends = random.Random(SEED), []
    streams = [spoiled_stream(protocol, chance) for _ in range(STREAMS)]
    asked = provider(*({"garbage": stream, "times": 1} for stream in streams))
    for stream in streams:
        try:
            last = (await events_of(asked.profile, asking("Go.", tools=(ADD,))))[-1]
        except ModelFault as fault:
            ends.append(type(fault).__name__)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} of {stream!r}") from error
        else:
            assert isinstance(last, Ended)
            json.dumps(last.reply.text).encode()
            ends.append("answered")
    assert len(ends) == STREAMS
    assert {"answered", "AnswerUnreadable"} <= set(ends), "the seed spoils some and leaves some"
