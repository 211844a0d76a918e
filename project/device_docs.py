"""docs/device-protocol.md: every message of the device protocol as a person reads it. Pure: types in, text out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator

from agents.devices.protocol.fields import is_needed
from agents.devices.protocol.frames import FRAME_BYTES
from agents.devices.protocol.messages import (
    FILE_BYTES,
    FOR_GOOD,
    HELLO_BYTES,
    MESSAGE_BYTES,
    PIECE_BYTES,
    REFUSALS,
    TYPES,
    VERSION,
    WINDOW,
    Message,
)

WAYS = {"up": "from the device", "down": "from the server", "both": "both ways"}
HEAD = """\
# The device protocol

Written by `manage.py device_docs` from the types in `agents/devices/protocol/`; a test keeps it current.

## The connection

A device opens a websocket at `/ws/devices/`, with its token in the header `Authorization: Bearer`. A cookie, or a user's
token, opens nothing there. A one-time enrolment token is exchanged at the handshake: `welcome` tells the device's own, once.

A message is a JSON object with a `type`, in a text frame of at most {frame:,} bytes. A longer one comes in several frames
`{{"type": "part", "text", "more"}}`, whose texts make it up together. Keys that are not in the tables are refused.

| bound | bytes |
|---|---|
| a frame | {frame:,} |
| the first message | {hello:,} |
| any other message | {message:,} |
| output or a file in one message, before base64 | {piece:,} |
| output in characters, or a file, under way without an `ack` | {window:,} |
| a file of one call | {file:,} |

This is version {version}. A client of another version is refused, and its device's history says so.

## The handshake

The device says `hello`, the server `welcome` or `refused`. The codes of `refused` are {refusals}. After {for_good} a
client need not come back.

`instance` names the client's process. The same process may take its connection again at once, from any web server. Another one
with the same token is refused while the first is heard; the first notices nothing. When three heartbeats are missing, it may.

## Calls

The server sends `call`; the device prints (`output`), tells (`update`) and ends it (`result`). It keeps output and results
until the server has stored them (`ack`), so a lost connection loses nothing: the call goes on, and is told of later.

After `welcome` only the calls that it lists are wanted. The client ends all others. A result of such a call is refused by the
call's fence. It stands in the device's history as `late_result`, and the device may forget it.

A call that the client's process does not know was never begun there, and comes again. If the process is another one than
before, the call is lost, and the task's `on_lost` decides.

## Closes

| code | why |
|---|---|
| 4400 | not as the protocol says; after the handshake the device has failed, and a person resets it |
| 4401 | the token is none of a device |
| 4403 | not now, or not this device |
| 4409 | another client has the device |
| 4500 | a fault of the server |
"""


def protocol_document() -> str:
    """The whole page, ending with a newline."""
    head = HEAD.format(
        frame=FRAME_BYTES, hello=HELLO_BYTES, message=MESSAGE_BYTES, piece=PIECE_BYTES, window=WINDOW, file=FILE_BYTES,
        version=VERSION, refusals=_listed(REFUSALS), for_good=_listed(code for code in REFUSALS if code in FOR_GOOD),
    )  # fmt: skip
    return "\n".join([head, *(f"{section}\n" for section in map(message_section, TYPES))])


def message_section(message: type[Message]) -> str:
    """One message: what it is for, and its fields."""
    parts = [f"## `{message.type}`, {WAYS[message.way]}", " ".join((inspect.getdoc(message) or "").split())]
    if dataclasses.fields(message):
        parts.append("\n".join(_rows(message)))
    return "\n\n".join(parts)


def _rows(message: type[Message]) -> Iterator[str]:
    yield "| field | holds | means |"
    yield "|---|---|---|"
    for field in dataclasses.fields(message):
        optional = "" if is_needed(field) else "; may be left out"
        yield f"| `{field.name}` | {field.metadata['kind'].words}{optional} | {field.metadata['words']} |"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
