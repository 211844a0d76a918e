"""What models say on the way: every character once, masked over the seams of its parts, and only a little remembered."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.masks import values
from agents.models import ModelDelta
from agents.streams.deltas import REMEMBERED, Delta, DeltaMemory, read_deltas


def told(memory: DeltaMemory, number: int = 0) -> list[dict]:
    return [json.loads(each) for each in memory.after(number)]


def parts_of(texts: list[str], call: int = 7, kind: str = "text") -> list[Delta]:
    deltas, offset = [], 0
    for text in texts:
        deltas.append(Delta(call, offset, kind, text))
        offset += len(text)
    return deltas


@given(st.lists(st.text(min_size=1, max_size=20), max_size=20), st.data())
def test_whatever_is_read_twice_is_told_once(texts, data):
    deltas, memory = parts_of(texts), DeltaMemory()
    for end in sorted(data.draw(st.lists(st.integers(0, len(deltas)), max_size=5))):
        memory.add(deltas[:end])
    memory.add(deltas)
    assert "".join(each["text"] for each in told(memory)) == "".join(texts)
    assert [each["offset"] for each in told(memory)] == [delta.offset for delta in deltas]


def test_a_secret_in_two_parts_is_hidden_from_its_second_part_on(monkeypatch):
    monkeypatch.setenv("ORRERY_SECRET_X", "open-sesame-4711")
    monkeypatch.setattr(values, "_KNOWN", values._Known())
    memory = DeltaMemory()
    memory.add(parts_of(["say open-ses", "ame-4711 now"]))
    assert told(memory)[1]["text"] == "\N{BULLET}" * 8 + " now"


def test_a_follower_gets_what_came_after_its_number_and_no_more_than_is_remembered():
    memory = DeltaMemory()
    memory.add(parts_of(["x"] * (REMEMBERED + 10)))
    assert memory.last == REMEMBERED + 10
    assert len(memory.after(0)) == REMEMBERED
    assert len(memory.after(memory.last - 3)) == 3


@pytest.mark.django_db
def test_thinking_and_text_are_read_from_where_each_is_known():
    for kind, offset, text in (("thinking", 0, "hm"), ("text", 0, "Yes"), ("text", 3, ", sir"), ("thinking", 2, "m")):
        ModelDelta.objects.create(call_id=7, offset=offset, kind=kind, text=text)
    ModelDelta.objects.create(call_id=8, offset=0, kind="text", text="another call")
    assert read_deltas(7, {"text": 3, "thinking": 0}) == [
        Delta(7, 0, "thinking", "hm"), Delta(7, 3, "text", ", sir"), Delta(7, 2, "thinking", "m"),
    ]  # fmt: skip
