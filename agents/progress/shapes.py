"""The shape of a text: what stays of an answer, an error or an order when what changes by itself does not count.

A shape is one short text, `version:digest:numbers:sketch`:
- `digest` is of the text's distinct lines in any order, without times, dates, durations, ids, addresses, temporary paths,
  and with every number left open;
- `numbers` is the same with counters and percentages still in it, for a caller to whom a counter that moves is news;
- `sketch` is a MinHash of the text's words: how many of its places agree estimates how many words two texts share.
"""

import hashlib
import re
import struct
from functools import lru_cache
from itertools import islice

from agents.progress.digests import DIGEST_LENGTH, text_digest, without_volatile

VERSION = "1"
"""Shapes of another version are never compared."""
TEXT_LIMIT = 4_000
"""Characters of a text that are looked at closely: half of them its beginning, half its end."""
MIDDLE_LIMIT = 30_000
"""Characters between them of which only the words count."""
WORDS_LIMIT = 512
"""Distinct words that go into a sketch, the first in order."""
WORDS_KEPT = 8_192
"""Words whose hashes are kept in memory: agents read the same ones again and again."""
PLACES = 32
"""Places of a sketch, of which each holds a number from 0 to 15."""
BY_CHANCE = 1 / 16
"""Share of places in which two texts without a word in common agree."""
SIMILAR = 0.6
"""Share of words in common from which two texts say the same in other words."""

_NUMBER = re.compile(r"(?<![A-Za-z_\d])[+-]?\d[\d.,]*( ?%)?(?![A-Za-z_\d])")
_RUNS = re.compile(r"([^\w\s])[^\w\s]{2,}")
_WORD = re.compile(r"[^\W\d]\w+")
_PLAIN_WORD = re.compile(r"\b[^\W\d_]{3,}\b")
_NUMBERS_LENGTH = 8


def shape_of(text: str) -> str:
    """The shape of a text, at most 64 characters; empty for a text that says nothing."""
    half, middle = TEXT_LIMIT // 2, ""
    if len(text) > TEXT_LIMIT:
        middle = " ".join(sorted(set(_PLAIN_WORD.findall(text[half:-half][:MIDDLE_LIMIT]))))
        text = f"{text[:half]}\n{text[-half:]}"
    lines = {" ".join(line.split()) for line in without_volatile(_RUNS.sub(r"\1", text)).casefold().splitlines()} - {""}
    if not lines:
        return ""
    lines.add(middle)
    open_lines = {_NUMBER.sub("#", line) for line in lines}
    numbers = text_digest("\n".join(sorted(lines)))[:_NUMBERS_LENGTH]
    return f"{VERSION}:{text_digest(chr(10).join(sorted(open_lines)))}:{numbers}:{_sketch(open_lines)}"


def _sketch(lines: set[str]) -> str:
    """The least hash of the words in each of the PLACES, four bits of it."""
    words = dict.fromkeys(word for line in sorted(lines) for word in _WORD.findall(line)) or {"": None}
    rows = (_hash_word(word) for word in islice(words, WORDS_LIMIT))
    return "".join(f"{min(place) & 15:x}" for place in zip(*rows, strict=True))


@lru_cache(WORDS_KEPT)
def _hash_word(word: str) -> tuple[int, ...]:
    """A number of 16 bits for each of the PLACES."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2 * PLACES).digest()
    return struct.unpack(f"{PLACES}H", digest)


def kept_part(shape: str) -> str:
    """What two texts have in common that differ only in what changes by itself, numbers included; empty for no shape."""
    return shape[: len(VERSION) + 1 + DIGEST_LENGTH]


def numbered_part(shape: str) -> str:
    """As `kept_part`, but a counter that moved makes a difference."""
    return shape[: len(VERSION) + 2 + DIGEST_LENGTH + _NUMBERS_LENGTH]


def similarity(shape: str, other: str) -> float:
    """The estimated share of words two texts have in common, 0 to 1; 0 where either has no shape or another version."""
    if not shape or len(shape) != len(other) or shape[0] != other[0]:
        return 0.0
    if kept_part(shape) == kept_part(other):
        return 1.0
    agree = sum(one == two for one, two in zip(shape[-PLACES:], other[-PLACES:], strict=True)) / PLACES
    return max(0.0, (agree - BY_CHANCE) / (1 - BY_CHANCE))


def similar(shape: str, other: str) -> bool:
    """Whether two texts say the same, in other words at most."""
    return similarity(shape, other) >= SIMILAR
