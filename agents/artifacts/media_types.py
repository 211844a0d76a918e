"""What a content is, by its first bytes. Nothing that a browser would run is among the types, whatever a name says. Pure."""

from __future__ import annotations

PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
TEXT, JSON, ANYTHING = "text/plain", "application/json", "application/octet-stream"
TYPES = (*dict.fromkeys(PICTURES.values()), "image/webp", TEXT, JSON, ANYTHING)
"""All that a content may be."""
TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\x1b")
"""Control characters that texts have; the last begins colours of terminals."""


def media_type_of(first: bytes) -> str:
    """The type of a content that begins with `first`."""
    for beginning, name in PICTURES.items():
        if first.startswith(beginning):
            return name
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "image/webp"
    return TEXT if first and _is_text(first) else ANYTHING


def is_picture(media_type: str) -> bool:
    return media_type.startswith("image/")


def _is_text(first: bytes) -> bool:
    """Whether it is UTF-8 without control characters; its last character may be cut."""
    try:
        first.decode()
    except UnicodeDecodeError as error:
        if error.end < len(first) or error.reason != "unexpected end of data":
            return False
    return all(byte >= 0x20 or byte in TEXT_CONTROLS for byte in first)
