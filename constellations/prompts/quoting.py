"""How values come into a prompt: masked, on one line, and what nobody vouches for between marks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from agents.masks.values import mask_text, mask_value
from agents.minds.untrusted import MARK, cut_text, quote_untrusted

_MARKS = re.compile(rf"<(?=/?\s*{MARK}\b)", re.IGNORECASE)


def json_line(value: Any) -> str:
    """A JSON value on one line. A mark that stands in one of its texts is written with an escape, so that it is none."""
    return _MARKS.sub(r"\\u003c", json.dumps(mask_value(value), ensure_ascii=False, default=str))


def text_of(value: Any) -> str:
    """A text as it is, anything else as JSON; masked."""
    return mask_text(value) if isinstance(value, str) else json.dumps(mask_value(value), ensure_ascii=False, default=str)


def quote(source: str, value: Any, budget: int) -> str:
    """A value between the marks of what is untrusted, cut to `budget` characters; it is masked before it is cut."""
    return quote_untrusted(source, text_of(value), budget)


def quote_lines(source: str, lines: Iterable[str]) -> str:
    """Lines that are masked and bounded already, between such marks: what people and devices have written into names and texts
    is material, too."""
    text = "\n".join(lines)
    return quote_untrusted(source, text, len(text))


def words(text: str, budget: int) -> str:
    """What the owner of the session has said, as it was said, masked and cut; marks that stand in it are none."""
    return cut_text(_MARKS.sub("<\N{ZERO WIDTH NON-JOINER}", mask_text(text)), budget)


def shorten(text: str, budget: int) -> str:
    """The beginning of a text, with its full length where that is more than `budget` characters; masked before it is cut."""
    text = mask_text(text)
    return text if len(text) <= budget else f"{text[:budget]}... ({len(text):,} characters)"
