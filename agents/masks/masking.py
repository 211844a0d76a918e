"""What hides secrets in a text: each of their characters becomes MARK, so lengths and offsets stay. Knows no Django.

A secret is a known value (as it is, and as JSON, HTML, URLs, shells, base64 and hexadecimal write it), or what has a known
form: a key's prefix, a private key, a password in an address, what follows `Authorization: Bearer`. Nothing is guessed by
how random it looks, so digests and ids stay (docs/secrets.md, "What is masked").

Everything is searched once, in time proportional to its length; only where that finds something is it looked at closely.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

import re2

MARK = "\N{BULLET}"
"""Rare enough that a run of it says what it stands for; a `*` would be an ordinary word of many commands."""
SHORTEST = 8
"""Characters of a known value: a shorter one would hide ordinary words. As many of a longer one that was cut are hidden."""
SHORTEST_WORD = 20
"""The same of a value of letters alone, which may be an ordinary word or a name of ours."""
SHORTEST_LINE = 16
"""A line of a value of several lines is a value of its own from here on."""
LONGEST = 65_536
"""Bytes of a known value."""
WRAPPED = (64, 76)
"""Columns at which programs break base64."""
MEMORY_BYTES = 128 << 20
"""For the search: a few hundred known values fit several times."""
FEW = 5
"""Characters that hold no secret of any form: most strings of JSON have no more."""
HIDDEN = re.compile(f"{MARK}{{{SHORTEST},}}")

Span = tuple[int, int]

BEFORE = r"(?:^|[^A-Za-z0-9]|\\[nrtfb]|\\u[0-9A-Fa-f]{4})"
"""A key begins a word; in JSON a word may follow an escape that ends with a letter."""
KEYS = (
    r"sk-[A-Za-z0-9_-]{16,}", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", r"gsk_[A-Za-z0-9]{20,}", r"xai-[A-Za-z0-9]{20,}",
    r"gh[oprsu]_[A-Za-z0-9]{16,}", r"github_pat_[A-Za-z0-9_]{20,}", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{16,}",
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", r"xapp-[A-Za-z0-9-]{10,}", r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}", r"ya29\.[A-Za-z0-9_-]{20,}", r"npm_[A-Za-z0-9]{20,}", r"pypi-[A-Za-z0-9_-]{16,}",
    r"hf_[A-Za-z0-9]{20,}", r"hv[bs]\.[A-Za-z0-9_-]{20,}", r"dckr_pat_[A-Za-z0-9_-]{20,}", r"do[opr]_v1_[a-f0-9]{32,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", r"eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{10,}){1,4}\.?",
    r"or[rde]_[0-9a-f]{32,}",
)  # fmt: skip
"""What begins as somebody's keys do, ours (Token, DeviceToken) last. In records a token is named by its first 15."""
QUOTE = r"(?:\\*[\"']|&quot;|&#x27;|&#39;)?"
AFTER_WORDS = (
    r"(?i:bearer)\s+([A-Za-z0-9._~+/=-]{16,})",
    rf"(?i:authorization){QUOTE}\s*[:=]\s*{QUOTE}(?i:bearer|basic|token)\s+([A-Za-z0-9._~+/=-]{{8,}})",
    rf"(?i:x-api-key|private-token){QUOTE}\s*[:=]\s*{QUOTE}([A-Za-z0-9._~+/=-]{{8,}})",
    r"[a-z0-9+.-]://[^\s:/@\"'<>\\]*:([^\s/@\"'<>\\]{3,})@",
    r"/login/link/([0-9]{1,18}\.[0-9a-z]+-[0-9a-f]{16,})",
    r"hooks\.slack\.com/services/([A-Za-z0-9/_-]{20,})",
)
"""What is a secret because of what stands before it."""
BEGIN = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
PRIVATE_KEY = (
    BEGIN + r"(?:(?:[A-Za-z0-9+/=:,.\s-]|\\+[nrt])*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:\s|\\+[nrt])*(?:[A-Za-z-]+: [^\n\\\"<]*(?:\n|\\+[nrt])+)*(?:[A-Za-z0-9+/=\s]|\\+[nrt])*)"
)
"""To its end, or as far as it goes where that was cut off."""
CUT = (
    r"(?:gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-[0-9]|(?:AKIA|ASIA)[A-Z0-9]{4}|AIza|sk-(?:proj|ant|or|svcacct)-|eyJhbGci|eyJ0eXAi)"
    r"[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]+)*"
)
"""What is left of a key where a text was cut: at its end, or before the sign of that."""
CUT_END = r'(?:\.\.\.|\xe2\x80\xa6)?(?:["<\n]|\\["n]|$)'
FORMS = (f"{BEFORE}({'|'.join(KEYS)})", *AFTER_WORDS, f"({PRIVATE_KEY})", f"{BEFORE}({CUT}){CUT_END}")
FIRST_SIGHT = (f"{BEFORE}(?:{'|'.join(KEYS)}|{CUT}{CUT_END})", *AFTER_WORDS, BEGIN)

WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-")


def _options(literal: bool = False) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are looked at one by one, whatever they are
    options.max_mem = MEMORY_BYTES
    options.literal = literal
    return options


def _compiled(pattern: str) -> Any:
    return re2.compile(pattern.encode("latin-1"), _options())


_FORMS = [_compiled(form) for form in FORMS]


def is_hidden(text: str) -> bool:
    """Whether something in `text` stands for a secret: it was read from an answer, and must not be written back."""
    return not text.isascii() and HIDDEN.search(text) is not None


def why_unmaskable(value: str) -> str:
    """Why `value` cannot be told apart from ordinary text, and so not be masked; empty when it can."""
    if len(value) < SHORTEST:
        return f"it has {len(value)} characters, and a secret needs {SHORTEST}: a shorter one could not be masked"
    if len(value) < SHORTEST_WORD and re.fullmatch("[A-Za-z_]+", value):
        return f"it is a word of letters, and such a secret needs {SHORTEST_WORD}: a shorter one could not be masked"
    if len(value.encode()) > LONGEST:
        return f"it has more than {LONGEST:,} bytes"
    return ""


def _written(value: str) -> Iterator[str]:
    """A text as others write it; each of these may be written by the next."""
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield html.escape(value)
    yield re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04X}", value)
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)
    yield shlex.quote(value)[1:-1] if shlex.quote(value) != value else value


def _base64(raw: bytes) -> Iterator[str]:
    """All that base64 makes of `raw`, wherever it stands in what is encoded: without characters that it shares with others."""
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + raw).decode()
        spoiled = len(encoded.rstrip("=")) - bool((lead + len(raw)) % 3)
        for text in (encoded, encoded.replace("+", "-").replace("/", "_")):
            yield text[(0, 2, 3)[lead] : spoiled]
            if not lead:
                yield text
                yield text.rstrip("=")
                yield from (text[at : at + columns] for columns in WRAPPED for at in range(0, len(text), columns))


def known_forms(value: str) -> set[bytes]:
    """What a known value looks like in texts. Of several lines, each that is long enough is a value, too."""
    values = {value, *(line.strip() for line in value.splitlines() if len(line.strip()) >= SHORTEST_LINE)}
    once = {text for each in values for text in (each, *_written(each))}
    twice = once | {text for each in once for text in _written(each)}
    raw = value.encode()
    encoded = {*_base64(raw), *_base64(raw + b"\n"), raw.hex(), raw.hex().upper()}
    return {text.encode() for text in twice | encoded if len(text) >= SHORTEST}


class Masker:
    """Hides `values` (those that can be: `why_unmaskable`) and everything of a known form; `shown` are texts that stay."""

    def __init__(self, values: Iterable[str] = ()):
        self.values = frozenset(value for value in values if not why_unmaskable(value))
        by_seed: dict[bytes, list[bytes]] = {}
        for form in sorted({form for value in self.values for form in known_forms(value)}):
            for seed in {form[:SHORTEST], form[-SHORTEST:]}:
                by_seed.setdefault(seed, []).append(form)
        literals = [re2.escape(seed.decode("latin-1")) for seed in by_seed]
        self._gate = _compiled("|".join([*FIRST_SIGHT, *literals]))
        self._seeds = re2.Set.SearchSet(_options(literal=True))
        for seed in by_seed:
            self._seeds.Add(seed)
        self._seeds.Compile()
        self._forms = list(by_seed.values())

    def is_clean(self, data: bytes) -> bool:
        """Whether there is certainly nothing to hide."""
        return self._gate.search(data) is None

    def data(self, data: bytes, shown: bytes = b"") -> bytes:
        """UTF-8 with its secrets hidden; a text that is equal to `shown` stays."""
        if self.is_clean(data):
            return data
        spans = _joined(span for span in self._spans(data) if not shown or data[slice(*span)] != shown)
        ends = [0, *(place for span in spans for place in span), len(data)]
        parts = [data[begin:end] for begin, end in pairwise(ends)]
        parts[1::2] = map(_hidden, parts[1::2])
        return b"".join(parts)

    def text(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        found = self.data(raw)
        return text if found is raw else found.decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """A JSON value with the secrets in its texts hidden; the same object where there are none."""
        if isinstance(value, str):
            return self.text(value) if len(value) > FEW else value
        if isinstance(value, dict):
            found: Any = {self.value(key): self.value(inner) for key, inner in value.items()}
            same = all(a is b and value[a] is found[b] for a, b in zip(value, found, strict=False)) and len(found) == len(value)
            return value if same else found
        if isinstance(value, list | tuple):
            found = [self.value(inner) for inner in value]
            return value if all(a is b for a, b in zip(value, found, strict=True)) else type(value)(found)
        return value

    def json(self, data: bytes, shown: str = "") -> bytes:
        """JSON text whose strings are masked one by one: it stays JSON, whatever a secret holds. Else masked as any text."""
        if self.is_clean(data):
            return data
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return self.data(data, shown.encode())
        if shown and isinstance(value, dict):
            found: Any = {key: inner if inner == shown else self.value(inner) for key, inner in value.items()}
        else:
            found = self.value(value)
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def jsons(self, texts: list[bytes]) -> list[bytes]:
        """Each as `json` has it. They are searched as one: what ends or begins a text may also do so at a line's end."""
        return texts if self.is_clean(b"\n".join(texts)) else [self.json(text) for text in texts]

    def _spans(self, data: bytes) -> Iterator[Span]:
        for form in _FORMS:
            for found in form.finditer(data):
                yield found.span(1)
        seen = {form for place in self._seeds.Match(data) or () for form in self._forms[place]} if self._forms else ()
        for form in seen:
            yield from _occurrences(form, data)


def _hidden(part: bytes) -> bytes:
    """As many characters; lines stay lines."""
    return "".join(letter if letter in "\r\n" else MARK for letter in part.decode("utf-8", "replace")).encode()


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans that do not touch, in their order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _occurrences(form: bytes, data: bytes) -> Iterator[Span]:
    """Where `form` is, or what is left of it where a text that was cut ends or begins."""
    for at in _places(form[:SHORTEST], data):
        length = _whole_letters(form, _common(form, data[at : at + len(form)]), -1)
        if length == len(form) or _is_apart(data, at + length):
            yield at, at + length
    for at in _places(form[-SHORTEST:], data):
        end = at + len(form[-SHORTEST:])
        length = _common(form[::-1], data[max(0, end - len(form)) : end][::-1])
        length = len(form) - _whole_letters(form, len(form) - length, 1)
        if length == len(form) or _is_apart(data, end - length - 1):
            yield end - length, end


def _places(seed: bytes, data: bytes) -> Iterator[int]:
    at = data.find(seed)
    while at >= 0:
        yield at
        at = data.find(seed, at + 1)


def _common(form: bytes, there: bytes) -> int:
    """How many bytes both begin with."""
    pairs = zip(form, there, strict=False)
    return next((place for place, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(form), len(there)))


def _whole_letters(form: bytes, place: int, step: int) -> int:
    """The nearest place, in steps of 1 or -1, that parts no letter."""
    while 0 < place < len(form) and form[place] & 0xC0 == 0x80:
        place += step
    return place


def _is_apart(data: bytes, place: int) -> bool:
    """Whether no word goes on there."""
    return not 0 <= place < len(data) or data[place] not in WORD
