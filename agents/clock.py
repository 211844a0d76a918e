"""Time as records carry it: ISO 8601 in UTC with six digits and Z, always 27 characters, so text sorts as time."""

import time
from datetime import UTC, datetime

FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def to_iso(seconds: float) -> str:
    """`seconds` since 1970 as a record's time."""
    return datetime.fromtimestamp(seconds, UTC).strftime(FORMAT)


def from_iso(text: str) -> float:
    """Seconds since 1970 of a record's time."""
    return datetime.fromisoformat(text).timestamp()


def now_iso() -> str:
    return to_iso(time.time())


def to_datetime(text: str) -> datetime:
    return datetime.fromisoformat(text)


def iso_of(moment: datetime) -> str:
    """A time with its zone as a record's time."""
    return moment.astimezone(UTC).strftime(FORMAT)
