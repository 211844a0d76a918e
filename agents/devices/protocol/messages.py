"""Every message between a device that dials in and the server, what is in it, and its text (docs/device-protocol.md). Pure.

A message is one JSON object with its `type`; the other keys are the fields of its class here, and no others.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, ClassVar

from agents.devices.protocol.fields import (
    Kind,
    ProtocolError,
    anything,
    choice,
    json_object,
    many,
    maybe,
    number,
    read_fields,
    record,
    said,
    text,
    truth,
    whole,
)

VERSION = 1
"""Of the protocol. Another one is refused at the handshake."""
MESSAGE_BYTES = 8 << 20
"""Of a message; a larger one is a fault of whoever sends it."""
HELLO_BYTES = 1 << 18
"""Of the first message, from somebody who is not known yet."""
PIECE_BYTES = 48 << 10
"""Of a file or of output that one message carries."""
WINDOW = 1 << 18
"""Characters of output, or bytes of a file, that may be under way without an acknowledgement."""
FILE_BYTES = 256 << 20
"""Of a file that goes in or out in one call."""
CALLS = 256
"""Calls that a device knows of at one time: under way, or ended and not yet acknowledged."""
OUTCOMES = ("completed", "failed", "timeout", "cancelled", "lost")
REFUSALS = (
    "bad_token", "bad_version", "malformed", "already_connected", "wrong_device", "not_remote", "taken_offline", "failed",
    "retired", "too_many", "busy",
)  # fmt: skip
"""Why a device is not let in. After the first five but `already_connected`, and after `retired`, it need not come back."""
FOR_GOOD = frozenset({"bad_token", "bad_version", "malformed", "wrong_device", "not_remote", "retired"})
"""Refusals that trying again does not change."""

KEY = whole()
CALL_STATE = record(key=KEY, output=whole(), ended=truth())
GOING_ON = record(key=KEY, output=whole())
PERCENT = maybe(number(100))
READINGS = record(memory_percent=PERCENT, disk_percent=PERCENT, cpu_percent=PERCENT)
BASE64 = text(PIECE_BYTES * 4 // 3 + 4)


@dataclass(frozen=True, slots=True)
class Message:
    """`way` is `up` for what a device says, `down` for what the server says; `type` is its word on the wire."""

    way: ClassVar[str]
    type: ClassVar[str]


# --- up


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """The first message, within 10 s of the connection. The token is in the request's header, never in a message."""

    way, type = "up", "hello"
    protocol: int = said(whole(1_000_000), f"version of the protocol, {VERSION}")
    instance: str = said(text(64), "what the client drew at its start: who comes with the same is the same process")
    client: str = said(text(40), "name and version of the client")
    device: str = said(text(80), "name of the device it takes itself for; empty: whatever the token says", default="")
    facts: dict[str, Any] = said(json_object(16_000), "facts of its system", default_factory=dict)
    calls: list[dict[str, Any]] = said(
        many(CALLS, CALL_STATE), "calls it knows: characters printed, and whether it has ended", default_factory=list
    )


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
    """I am here. The server takes a device of which three are missing for lost."""

    way, type = "up", "heartbeat"
    readings: dict[str, Any] = said(READINGS, "memory, disk and processors in use, in percent")


@dataclass(frozen=True, slots=True)
class Output(Message):
    """A call has printed something. Not more than the window is under way without an `ack`."""

    way, type = "up", "output"
    key: int = said(KEY, "the call")
    offset: int = said(whole(), "characters that this call had printed before")
    text: str = said(text(PIECE_BYTES), "what it printed")


@dataclass(frozen=True, slots=True)
class Update(Message):
    """How far a command is, said now and then before its end: each time after twice as long as before."""

    way, type = "up", "update"
    key: int = said(KEY, "the call")
    characters: int = said(whole(), "that it has printed")
    lines: int = said(whole(), "that it has printed")
    seconds: float = said(number(1e9), "since it began")
    percent: float | None = said(PERCENT, "as it has printed it last, such as `40 %`; null where it has not", default=None)


@dataclass(frozen=True, slots=True)
class FilePiece(Message):
    """A piece of a file: up for `get_file`, down for `put_file`. Not more than the window is under way without an `ack`."""

    way, type = "both", "file_piece"
    key: int = said(KEY, "the call")
    offset: int = said(whole(FILE_BYTES), "bytes of the file before this piece")
    data: str = said(BASE64, "the piece, base64")


@dataclass(frozen=True, slots=True)
class Result(Message):
    """A call has ended. The client keeps this until it is acknowledged, over lost connections too."""

    way, type = "up", "result"
    key: int = said(KEY, "the call")
    outcome: str = said(choice(*OUTCOMES), "how it ended")
    printed: int = said(whole(), "characters it has printed in all", default=0)
    result: Any = said(anything(), "its result", default=None)
    error: str = said(text(64_000), "what went wrong", default="")
    error_kind: str = said(text(40), "what kind of error", default="")
    exit_code: int | None = said(
        Kind("whole number, or null", lambda value: "" if value is None or type(value) is int else "must be a whole number"),
        "of a command; negative for a signal", default=None,
    )  # fmt: skip
    digest: str | None = said(maybe(text(200)), "of what it answered, or of the file after it", default=None)
    before: str | None = said(maybe(text(200)), "of the file before a change", default=None)
    text: str = said(text(64_000), "the last it printed", default="")


@dataclass(frozen=True, slots=True)
class Bye(Message):
    """The last message of whoever closes."""

    way, type = "both", "bye"
    reason: str = said(text(1_000), "why")
    end_calls: bool = said(truth(), "down: nobody wants what runs there; the client ends it", default=False)
    retry_s: float | None = said(maybe(number(86_400)), "down: come back after so long; null: do not", default=None)


# --- down


@dataclass(frozen=True, slots=True)
class Welcome(Message):
    """The device is connected. Calls that it knows and that are not among `calls` are wanted by nobody any more."""

    way, type = "down", "welcome"
    device: str = said(text(80), "its name")
    heartbeat_s: float = said(number(86_400), "seconds between two heartbeats")
    calls: list[dict[str, Any]] = said(
        many(CALLS, GOING_ON), "calls that go on, each with the characters of its output that are stored", default_factory=list
    )
    token: str = said(text(200), "after a one-time token: the device's own, to be kept; it is not told again", default="")


@dataclass(frozen=True, slots=True)
class Refused(Message):
    """The device is not let in; the connection closes."""

    way, type = "down", "refused"
    code: str = said(choice(*REFUSALS), "why")
    reason: str = said(text(1_000), "why, in words")


@dataclass(frozen=True, slots=True)
class CallBegun(Message):
    """Make this call. One of a key that is under way is the same call, told again."""

    way, type = "down", "call"
    key: int = said(KEY, "names the call in all that is said about it")
    attempt: int = said(whole(), "the attempt that its processes work for")
    tool: str = said(
        text(200),
        "`command`, `read_file`, `write_file`, `edit_file`, `observe`; for files `put_file`, `get_file`, `find_files`",
    )
    arguments: dict[str, Any] = said(json_object(MESSAGE_BYTES), "its arguments, checked by the server")
    timeout: float | None = said(maybe(number(1e9)), "seconds after which it is stopped", default=None)
    limits: dict[str, Any] = said(json_object(64_000), "the device's limits", default_factory=dict)
    environment: dict[str, Any] = said(json_object(1_000_000), "what a command sees besides", default_factory=dict)
    scope: str = said(text(40), "calls of one scope share a folder for what they hand to each other", default="")
    inherits: str = said(text(40), "the scope whose folder that one begins as", default="")
    writes: str = said(text(4_096), "a file whose state before and after is wanted", default="")


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """End a call with all its processes; its result follows."""

    way, type = "down", "cancel"
    key: int = said(KEY, "the call")


@dataclass(frozen=True, slots=True)
class Ack(Message):
    """What has come is stored: a result may be forgotten, and so may output, or a file, up to there."""

    way, type = "both", "ack"
    key: int = said(KEY, "the call")
    upto: int | None = said(maybe(whole()), "characters of output, or bytes of a file, that have come; null: its result")


@dataclass(frozen=True, slots=True)
class Fault(Message):
    """A message was refused; the connection goes on, unless there are too many such."""

    way, type = "down", "fault"
    code: str = said(text(40), "why: `foreign_call`, `ended_call`")
    message: str = said(text(1_000), "why, in words")
    key: int | None = said(maybe(KEY), "the call that it was about", default=None)


TYPES: tuple[type[Message], ...] = (
    Hello, Heartbeat, Output, Update, FilePiece, Result, Ack, Bye, Welcome, Refused, CallBegun, Cancel, Fault,
)  # fmt: skip


def encode_message(message: Message) -> str:
    """A message as its text; raises ProtocolError for one that is too large."""
    told: dict[str, Any] = {"type": message.type}
    told |= {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    written = json.dumps(told, separators=(",", ":"), allow_nan=False)
    if len(written) > MESSAGE_BYTES:
        raise ProtocolError("too_large", f"a message has at most {MESSAGE_BYTES} bytes")
    return written


def decode_message(written: str, way: str) -> Message:
    """The message that a text is, which came this `way`; raises ProtocolError."""
    try:
        told = json.loads(written, object_pairs_hook=_without_doubles, parse_constant=_no_number)
        _check_storable(told)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("malformed", "the message is not JSON that can be stored") from error
    if not isinstance(told, dict):
        raise ProtocolError("malformed", "a message is a JSON object")
    name = told.pop("type", None)
    found = next((each for each in TYPES if each.type == name and each.way in (way, "both")), None)
    if found is None:
        raise ProtocolError("malformed", f"there is no message of type {str(name)[:40]!r} this way")
    return found(**read_fields(found, told))


def _check_storable(told: Any) -> None:
    """Raises ValueError for infinite numbers, half characters and NUL, which databases refuse."""
    text = json.dumps(told, allow_nan=False, ensure_ascii=False)
    text.encode()
    if "\\u0000" in text:
        raise ValueError("a NUL character")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values for one key nobody knows which was meant."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key stands twice")
    return read


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")
