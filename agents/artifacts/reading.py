"""Contents as they are read out of the store: whole with their digest checked, or in pieces for an event loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

from agents.artifacts.opening import open_store
from agents.artifacts.store import ContentDamaged


def whole_content(sha256: str) -> Iterator[bytes]:
    """All pieces of a content. Raises ContentMissing at once, and in the place of an end ContentDamaged where it is another."""
    return _checked(open_store().read(sha256), sha256)


def _checked(pieces: Iterator[bytes], sha256: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.hexdigest() != sha256:
        raise ContentDamaged(f"the store's content {sha256} is not what it was")


async def pieces_beside(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, each read in a thread while the loop goes on."""
    with closing(pieces):  # type: ignore[type-var]  # all of ours are generators
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
