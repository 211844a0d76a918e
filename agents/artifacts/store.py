"""What a store of contents can do, and why a store refuses something.

A content is known by its SHA-256, in hexadecimal. It is staged first, which gives its digest, and is there for others only once
it is published. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, Protocol

from agents.errors import AgentsError

PIECE_BYTES = 1 << 18
"""What is read or written at once."""
BUCKET_SECRETS = ("S3_KEY_ID", "S3_KEY")
"""Names of the secrets that open a bucket: whose key it is, and the key."""
DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactRefused(AgentsError):
    """The content or its name cannot be kept. The message names it."""

    code = "artifact_refused"
    error_kind = ""


class ArtifactTooLarge(ArtifactRefused):
    """The content has more bytes than it may have."""

    code = "artifact_too_large"
    status = 413


class ContentMissing(AgentsError):
    """The store has no such content."""

    code = "content_missing"
    status = 410
    error_kind = "missing"


class ContentDamaged(AgentsError):
    """The store's content is another one than its digest says."""

    code = "content_damaged"
    status = 500
    error_kind = "broken"


class StoreUnusable(AgentsError):
    """The store does not take or give anything now: it cannot be reached, has no room, or refuses us."""

    code = "store_unusable"
    status = 503
    error_kind = "server_error"


class Stored(NamedTuple):
    """A content of the store: its digest, its bytes, and when it was last published."""

    sha256: str
    size: int
    at: datetime


class Staged(Protocol):
    """A content that was taken in whole, and that nobody else sees yet. To be closed, whether it was published or not."""

    sha256: str
    size: int
    first: bytes
    """Its first bytes, to tell what it is."""

    def publish(self) -> None:
        """Make it, durably, a content of the store; one that is there already stays. Raises StoreUnusable."""

    def close(self) -> None:
        """Forget what was staged."""


class Store(Protocol):
    """Contents by their digests."""

    def stage(self, pieces: Iterable[bytes], most: int) -> Staged:
        """Take in a content of at most `most` bytes. Raises ArtifactTooLarge and StoreUnusable."""
        ...

    def read(self, sha256: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` to `stop` in pieces. Raises ContentMissing at once, StoreUnusable also on the way."""
        ...

    def size_of(self, sha256: str) -> int | None:
        """How many bytes it has; None where the store has no such content. Raises StoreUnusable."""
        ...

    def remove(self, sha256: str) -> None:
        """Remove a content, which may be gone already. Raises StoreUnusable."""

    def contents(self) -> Iterator[Stored]:
        """All of them, in no order. Raises StoreUnusable."""
        ...

    def sweep(self, before: datetime) -> int:
        """Remove what was staged before then and never published; how many that was."""
        ...


def check_digest(sha256: str) -> str:
    """A digest as stores take it. Raises ContentMissing for anything else, which might be a path."""
    if not DIGEST.fullmatch(sha256):
        raise ContentMissing(f"{sha256[:80]!r} is no digest of a content")
    return sha256
