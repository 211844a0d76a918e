"""The live view's messages in pieces: servers refuse to send large ones (daphne and most others above 1 MiB).

A snapshot is cut between rows. Whatever is still too large, such as one event with a thousand rows, goes as `part`s: the
texts of consecutive {"type": "part", "text", "more": true}, the last without `more`, are together the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from agents.streams.tables import Fields

FRAME_BYTES = 262_144
"""Of one websocket message at most, everything included."""
PIECE_BYTES = 256_000
"""Rows or events of one message: the rest is room for what stands around them."""
PART_CHARACTERS = 60_000
"""Of text in one part: a character takes four bytes at most, written or escaped."""


def snapshot_messages(snapshot: Fields) -> list[bytes]:
    """{"seq", "rows"} as messages {"type": "snapshot", "seq", "rows"}, all but the last with `more`: true.

    Together they hold each row once and name every table.
    """
    seq, pieces = snapshot["seq"], list(_pieces(snapshot["rows"]))
    messages = [{"type": "snapshot", "seq": seq, "rows": rows} for rows in pieces]
    for message in messages[:-1]:
        message["more"] = True
    return [orjson.dumps(message) for message in messages]


def _pieces(tables: dict[str, dict[str, Fields]]) -> Iterator[dict[str, dict[str, Any]]]:
    piece: dict[str, dict[str, Any]] = {}
    size = 0
    for table, rows in tables.items():
        piece.setdefault(table, {})
        for key, row in rows.items():
            encoded = orjson.dumps(row)
            more = len(encoded) + len(key) + len('"":,')
            if size and size + more > PIECE_BYTES:
                yield piece
                piece, size = {table: {}}, 0
            piece[table][key] = orjson.Fragment(encoded)
            size += more
    yield piece


def split_frames(message: bytes) -> Iterator[str]:
    """What goes over the wire: the message itself, or its parts where it is larger than FRAME_BYTES."""
    text = message.decode()
    if len(message) <= FRAME_BYTES:
        yield text
        return
    for start in range(0, len(text), PART_CHARACTERS):
        end = start + PART_CHARACTERS
        part = {"type": "part", "text": text[start:end], **({"more": True} if end < len(text) else {})}
        yield orjson.dumps(part).decode()
