"""What a command prints: text as it comes, and its result, a JSON value on the last line of its standard output."""

import codecs
import hashlib
import json
from collections.abc import Callable
from typing import Any

RESULT_BYTES = 256 * 1024
"""A longer last line is output, not a result."""
EXCERPT_BYTES = 4096
EXCERPT_LINES = 5
EXCERPT_CHARACTERS = 1000
"""Of the last lines that an error quotes."""
TEXT_CHARACTERS = 4000
"""Of the last text of both streams that an expectation may look into."""


class OutputTail:
    """The last `most` bytes of what was put in."""

    def __init__(self, most: int):
        self._most = most
        self._kept = bytearray()
        self.cut = False

    def put(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > 2 * self._most:
            del self._kept[: -self._most]
            self.cut = True

    def bytes(self) -> bytes:
        return bytes(self._kept)


class CommandOutput:
    """Both streams of one command. Calls `on_text` with each piece as it comes, at most `most` bytes altogether.

    Text is UTF-8; what is not becomes U+FFFD, and so does NUL, which PostgreSQL cannot store. A character is never parted.
    """

    def __init__(self, on_text: Callable[[str], None], most: int):
        self._on_text = on_text
        self._left = most
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._tails = {"stdout": OutputTail(RESULT_BYTES + 1), "stderr": OutputTail(EXCERPT_BYTES)}
        self._hashes = {"stdout": hashlib.sha256(), "stderr": hashlib.sha256()}
        self._text = ""

    def put(self, stream: str, piece: bytes) -> bool:
        """Take a piece of "stdout" or "stderr"; False when it is more than may be printed."""
        taken = piece[: self._left]
        self._left -= len(taken)
        self._tails[stream].put(taken)
        self._hashes[stream].update(taken)
        self._tell(self._decoders[stream].decode(taken))
        return len(taken) == len(piece)

    def end(self, stream: str) -> None:
        """The stream has ended: a character it left unfinished is told now."""
        self._tell(self._decoders[stream].decode(b"", final=True))

    def _tell(self, text: str) -> None:
        if text:
            text = text.replace("\0", "\ufffd")
            self._text = (self._text + text)[-TEXT_CHARACTERS:]
            self._on_text(text)

    def text(self) -> str:
        """The last of both streams, as it came."""
        return self._text

    def fingerprint(self) -> str:
        """Equal for equal output, whatever the pieces it came in and however the two streams were mixed."""
        return ":".join(content.hexdigest() for content in self._hashes.values())

    def result(self) -> Any:
        """The JSON value on the last line of standard output, None when there is none that can be stored."""
        tail = self._tails["stdout"]
        lines = tail.bytes().rstrip().rsplit(b"\n", 1)
        if len(lines[-1]) > RESULT_BYTES or (len(lines) == 1 and tail.cut):
            return None
        return read_json_line(lines[-1])

    def excerpt(self) -> str:
        """The last lines of standard error, else of standard output, for an error's text."""
        for name in ("stderr", "stdout"):
            text = self._tails[name].bytes()[-EXCERPT_BYTES:].decode("utf-8", "replace").replace("\0", "\ufffd")
            if lines := [line.rstrip() for line in text.splitlines() if line.strip()]:
                return "\n".join(lines[-EXCERPT_LINES:])[-EXCERPT_CHARACTERS:]
        return ""


def read_json_line(line: bytes) -> Any:
    """The JSON value of `line`, None when it is none or one that a database or a browser refuses.

    Those are NaN and infinite numbers, NUL and half characters (PostgreSQL's jsonb), and nesting beyond the parser's depth.
    """
    try:
        value = json.loads(line)
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError):
        return None
    return None if "\\u0000" in text else value
