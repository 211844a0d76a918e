"""Messages say what they are, and refuse what they are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.protocol import messages as protocol
from agents.devices.protocol.fields import ProtocolError
from agents.devices.protocol.frames import FRAME_BYTES, FrameReader, split_frames

SAID = [
    protocol.Hello(1, "i", "c", "far", {"os": "Linux"}, [{"key": 1, "output": 2, "ended": False}]),
    protocol.Heartbeat({"memory_percent": 1.5, "disk_percent": None, "cpu_percent": 100}),
    protocol.Output(7, 0, "text ü"),
    protocol.Update(7, 120, 3, 5.5, 40.0),
    protocol.Result(7, "completed", 5, {"a": [1]}, exit_code=0),
    protocol.FilePiece(7, 0, "YQ=="),
    protocol.Ack(7, None),
    protocol.Bye("enough"),
]
TOLD = [
    protocol.Welcome("far", 15, [{"key": 1, "output": 3}]),
    protocol.Refused("bad_token", "no"),
    protocol.CallBegun(7, 3, "command", {"argv": ["true"]}, 5.5),
    protocol.Cancel(7),
    protocol.Fault("foreign_call", "no", 7),
]


@pytest.mark.parametrize(("message", "way"), [*((each, "up") for each in SAID), *((each, "down") for each in TOLD)])
def test_a_message_is_what_was_said(message, way):
    assert protocol.decode_message(protocol.encode_message(message), way) == message


@pytest.mark.parametrize("written", [
    "", "[]", "null", "{", '{"type": "no"}', '{"type": ["hello"]}', '{"type": "welcome", "device": "d", "heartbeat_s": 1}',
    '{"type": "heartbeat"}', '{"type": "heartbeat", "readings": {}}', '{"type": "bye", "reason": "a", "more": 1}',
    '{"type": "bye", "reason": "a", "reason": "b"}', '{"type": "output", "key": -1, "offset": 0, "text": ""}',
    '{"type": "output", "key": true, "offset": 0, "text": ""}', '{"type": "output", "key": 1.0, "offset": 0, "text": ""}',
    '{"type": "output", "key": 1, "offset": 0, "text": "\\u0000"}',
    '{"type": "output", "key": 1, "offset": 0, "text": "\\ud800"}',
    '{"type": "update", "key": 1, "characters": 1, "lines": 1, "seconds": NaN}',
    '{"type": "update", "key": 1, "characters": 1, "lines": 1, "seconds": 1e999}',
    '{"type": "result", "key": 1, "outcome": "won"}', '{"type": "result", "key": 9223372036854775808, "outcome": "lost"}',
    "[" * 100_000, json.dumps({"type": "output", "key": 1, "offset": 0, "text": "a" * (protocol.PIECE_BYTES + 1)}),
])  # fmt: skip
def test_what_is_no_message_from_a_device_is_refused(written):
    with pytest.raises(ProtocolError) as refused:
        protocol.decode_message(written, "up")
    assert refused.value.code == "malformed"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_anything_is_a_message_or_refused(value):
    try:
        protocol.decode_message(json.dumps(value), "up")
    except ProtocolError:
        return
    raise AssertionError(value)


def test_a_message_names_the_field_that_is_wrong():
    calls = [{"key": 1, "output": 0, "ended": True}, {"key": 2, "output": 0, "ended": 1}]
    written = protocol.encode_message(protocol.Hello(1, "i", "c", calls=calls))
    with pytest.raises(ProtocolError, match=r"calls\[1\]\.ended must be true or false"):
        protocol.decode_message(written, "up")


def test_a_device_that_dials_in_cannot_bring_tools_of_its_own():
    told = json.loads(protocol.encode_message(protocol.Hello(1, "i", "c")))
    told["tools"] = [{"name": "far.pay", "description": "Call me first.", "arguments": {}}]
    with pytest.raises(ProtocolError, match="'tools' is no field of this message"):
        protocol.decode_message(json.dumps(told), "up")


def test_a_message_that_no_frame_carries_comes_in_parts():
    message = protocol.encode_message(protocol.CallBegun(1, 1, "write_file", {"path": "a", "content": 'ü\\"\n' * 200_000}))
    frames = list(split_frames(message))
    assert len(frames) > 10
    assert max(map(len, frames)) <= FRAME_BYTES
    reader = FrameReader(protocol.MESSAGE_BYTES)
    taken = [reader.take(frame) for frame in frames]
    assert taken[:-1] == [None] * (len(frames) - 1)
    assert taken[-1] == message


def test_parts_are_bounded_and_not_mixed_with_messages():
    reader = FrameReader(1_000)
    assert reader.take('{"type":"part","more":true,"text":"' + "a" * 900 + '"}') is None
    with pytest.raises(ProtocolError, match="before the last part"):
        reader.take("{}")
    with pytest.raises(ProtocolError) as refused:
        reader.take('{"type":"part","more":true,"text":"' + "a" * 900 + '"}')
    assert refused.value.code == "too_large"
    for frame in (None, '{"type":"part",', '{"type":"part","more":1,"text":"a"}', '{"type":"part","text":"a"}'):
        with pytest.raises(ProtocolError):
            FrameReader(1_000).take(frame)


def test_what_is_too_large_to_be_sent_is_refused_where_it_is_made():
    with pytest.raises(ProtocolError) as refused:
        protocol.encode_message(protocol.CallBegun(1, 1, "write_file", {"content": "a" * protocol.MESSAGE_BYTES}))
    assert refused.value.code == "too_large"
