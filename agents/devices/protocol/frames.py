"""Messages as frames of a websocket: one each, or several `part`s of a message that is larger than a frame. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agents.devices.protocol.fields import ProtocolError

FRAME_BYTES = 96 << 10
"""Of one frame; servers in between, and ours, refuse a larger one."""
PART_CHARACTERS = 15 << 10
"""Of a message in one part: as text in JSON each may need six bytes."""
PART = '{"type":"part",'
"""How each part begins; no message does."""


def split_frames(message: str) -> Iterator[str]:
    """The frames that carry a message. It is ASCII, as JSON is written here."""
    if len(message) <= FRAME_BYTES:
        yield message
        return
    for at in range(0, len(message), PART_CHARACTERS):
        more = "true" if at + PART_CHARACTERS < len(message) else "false"
        yield f'{PART}"more":{more},"text":{json.dumps(message[at : at + PART_CHARACTERS])}}}'


class FrameReader:
    """Puts the frames of one side together again; a message has at most `most` bytes."""

    def __init__(self, most: int):
        self.most = most
        self._parts: list[str] = []
        self._size = 0

    def take(self, frame: str | None) -> str | None:
        """The message that this frame completes, None while parts are missing. Raises ProtocolError."""
        if frame is None:
            raise ProtocolError("malformed", "a frame is text, not bytes")
        if len(frame) > FRAME_BYTES:
            raise ProtocolError("too_large", f"a frame has at most {FRAME_BYTES} bytes")
        if not frame.startswith(PART):
            if self._parts:
                raise ProtocolError("malformed", "a message begins before the last part of another")
            return self._whole(frame)
        try:
            part = json.loads(frame)
            text, more = part["text"], part["more"]
        except (ValueError, KeyError, RecursionError) as error:
            raise ProtocolError("malformed", "the part of a message is not JSON with `text` and `more`") from error
        if not isinstance(text, str) or not isinstance(more, bool):
            raise ProtocolError("malformed", "the part of a message has a text, and says whether there is more")
        self._size += len(text)
        self._parts.append(text)
        if self._size > self.most:
            raise ProtocolError("too_large", f"a message has at most {self.most} bytes")
        if more:
            return None
        parts, self._parts, self._size = self._parts, [], 0
        return self._whole("".join(parts))

    def _whole(self, message: str) -> str:
        if len(message) > self.most:
            raise ProtocolError("too_large", f"a message has at most {self.most} bytes")
        return message
