"""Row numbers that need no round trip: every row of a stream carries the stream's id in its own.

A stream counts its rows (`Stream.rows`) and events (`Stream.head`) under its lock, so `stream << BITS | n` is unique,
ascending within the stream, and everything of one stream is found by one range of primary keys. Row and event ids stay
below 2**53, safe for JavaScript.
"""

from agents.errors import StreamFull

BITS = 24
CAPACITY = 1 << BITS
"""Rows, and events, one stream can hold: about three million tasks a session."""
PART_BITS = 10
"""One event may carry this many transitions (2**10): a change set is cut into pieces of 1,000."""


def row_id(stream: int, number: int) -> int:
    """The key of row or event `number` of `stream`; raises StreamFull."""
    if number >= CAPACITY:
        raise StreamFull(stream)
    return stream << BITS | number


def row_range(stream: int) -> tuple[int, int]:
    """The lowest key of a stream's rows and the lowest of the next stream's."""
    return stream << BITS, (stream + 1) << BITS


def stream_of(row: int) -> int:
    """The stream that a row or event belongs to."""
    return row >> BITS


def transition_id(event: int, part: int) -> int:
    """The key of the transition at place `part` of an event."""
    return event << PART_BITS | part
