"""Digests of what calls were given and what they said, equal when the difference does not matter."""

import hashlib
import json
import re
from typing import Any

DIGEST_LENGTH = 16
"""Hexadecimal digits kept: 64 bits tell the few hundred things an agent's memory holds apart."""
TEXT_LIMIT = 20_000
"""Characters of an error that are looked at; what follows does not change what kind of error it is."""

_NAMED = "pid|process|thread|port|request|req|nonce|token|id|session|job|run|attempt"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAYS = "mon|tue|wed|thu|fri|sat|sun"
_UNITS = "ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?"
_ANY = ("",)
_VOLATILE = tuple(
    (re.compile(pattern, re.IGNORECASE), put, needles)
    for pattern, put, needles in (
        (r"\x1b\[[0-9;]*[A-Za-z]", "", ("\x1b[",)),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>", ("-",)),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>", ("-",)),
        (r"\b\d{4}[-/]\d\d[-/]\d\d\b", "<time>", ("-", "/")),
        (
            rf"\b({_MONTHS})[a-z]{{0,6}} \d{{1,2}}\b(,? \d{{4}}\b)?|\b\d{{1,2}} ({_MONTHS})[a-z]{{0,6}}(,? \d{{4}}\b)?",
            "<time>", _ANY,
        ),
        (rf"\b({_DAYS})[a-z]{{0,6}},? (?=<time>)", "", ("<time>",)),
        (r"\b\d{1,2}:\d\d(:\d\d)?([.,]\d+)?( ?[ap]m)?\b", "<time>", (":",)),
        (r"\b(\d+|an?|a few) (second|minute|hour|day|week)s? ago\b|\bjust now\b", "<time>", (" ago", "just now")),
        (rf"\b(\d+(\.\d+)?\s?({_UNITS}) ?)+\b", "<duration>", _ANY),
        (r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b", "<address>", (".",)),
        (r"(/private)?(/var)?/(tmp|folders|run)/[^\s'\":,;)\]]*/", "<temporary>/", ("tmp/", "folders/", "run/")),
        (r"(/private)?(/var)?/tmp/[^\s'\":,;)\]]+", "<temporary>", ("tmp/",)),
        (r"\b[a-z]:\\users\\[^\\\s]+\\", "<home>/", (":\\users\\",)),
        (r"(/home|/Users)/[^/\s'\":]+/", "<home>/", ("/home/", "/users/")),
        (r"\b0x[0-9a-f]+\b", "<id>", ("0x",)),
        (rf"\b({_NAMED})([-_ ]?id)?\s?[:=# ]\s?[\w-]*\d[\w-]*", r"\1 <id>", _ANY),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", "<id>", _ANY),
        (r"\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{20,}\b", "<id>", _ANY),
        (r"\b\d{9,}\b", "<id>", _ANY),
        (r":\d+:\d+\b", ":<place>", (":",)),
    )
)  # fmt: skip
"""What changes by itself, what stands for it, and texts of which a match has one: to look for them is cheap."""


def text_digest(text: str) -> str:
    """A short stable digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def canonical_json(value: Any) -> str:
    """JSON with sorted keys: equal for equal arguments in any order. Raises TypeError for what JSON cannot say."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def arguments_digest(arguments: Any) -> str:
    """The digest of a call's canonical arguments; spaces around texts do not count."""
    return text_digest(canonical_json(_trimmed(arguments)))


def _trimmed(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {str(key): _trimmed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_trimmed(part) for part in value]
    return value


def normalised_error(text: str, target: str = "") -> str:
    """The error without its times, durations, ids, nonces and volatile paths, and with its own target called `<target>`."""
    text = text[:TEXT_LIMIT]
    if len(target) > 2:
        text = text.replace(target, "<target>")
    return " ".join(without_volatile(text).split()).casefold()


def without_volatile(text: str) -> str:
    """The text with names for what changes from one time to the next: times, durations, ids, addresses, temporary paths."""
    folded = text.casefold()
    for pattern, put, needles in _VOLATILE:
        if any(needle in folded or needle in text for needle in needles):
            text = pattern.sub(put, text)
    return text


def error_digest(text: str, target: str = "") -> str:
    """The digest of a normalised error; empty for no error."""
    return text_digest(normalised_error(text, target)) if text.strip() else ""
