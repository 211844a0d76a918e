"""JSON as a scripted model sends it: also what is no text, where its file wants to send that."""

from __future__ import annotations

import json
from typing import Any


def encode_json(data: dict[str, Any]) -> bytes:
    """Bytes that the file gave instead of words go out as they are; half a character, which no bytes are, is escaped."""
    try:
        return json.dumps(data, ensure_ascii=False).encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return json.dumps(data).encode()
