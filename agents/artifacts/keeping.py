"""How a content is kept: taken in, claimed, and published; what refers to it then travels in an outcome until it has a row.

A kill at any moment leaves at most a content that nobody refers to, which is swept (agents.artifacts.retention): the row comes
with the turn that records the end of the call (agents.artifacts.recording).
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, BinaryIO, TypedDict, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from agents.artifacts.media_types import is_picture, media_type_of
from agents.artifacts.opening import open_store
from agents.artifacts.store import PIECE_BYTES, ArtifactRefused, ArtifactTooLarge, Staged
from agents.models import Artifact, StoredContent
from agents.streams.statements import write_transaction

Content = bytes | BinaryIO | Iterable[bytes]
"""A content is given whole, as a file that is open, or as pieces."""
T = TypeVar("T")


class Reference(TypedDict):
    """What an outcome says of an artifact: `agents.tools.calls.Outcome.artifacts`. It is JSON."""

    name: str
    kind: str
    media_type: str
    size: int
    sha256: str


def keep_artifact(
    content: Content, *, name: str, kind: str = "file", most: int | None = None, sha256: str = "", media_type: str = ""
) -> Reference:
    """Keep a content of at most `most` bytes (ORRERY_ARTIFACT_BYTES), durably; what refers to it. Blocks: call it in a thread.

    Where `sha256` is given, the content has to have it. A picture that was given as a file is of the kind `picture`. Only who
    made the content says its `media_type`. Raises ArtifactRefused, ArtifactTooLarge, StoreUnusable.
    """
    check_name(name)
    most = settings.ARTIFACT_BYTES if most is None else min(most, settings.ARTIFACT_BYTES)
    try:
        staged = open_store().stage(_pieces_of(content), most)
    except ArtifactTooLarge as error:
        raise ArtifactTooLarge(f"{name}: {error}") from error
    with closing(staged):
        if sha256 and staged.sha256 != sha256:
            raise ArtifactRefused(f"{name} has the digest {staged.sha256}, and {sha256} was announced")
        claim_content(staged)
        staged.publish()
    media_type = media_type or media_type_of(staged.first)
    kind = "picture" if kind == "file" and is_picture(media_type) else kind
    return Reference(name=name, kind=kind, media_type=media_type, size=staged.size, sha256=staged.sha256)


def claim_content(staged: Staged) -> None:
    """From now on nobody removes such a content for a good while. Waits for whoever is just removing one."""
    with write_transaction():
        StoredContent.objects.update_or_create(
            sha256=staged.sha256, defaults={"size": staged.size, "claimed_at": Now()}
        )  # fmt: skip


def check_name(name: str) -> None:
    """Raises ArtifactRefused for what is no relative path of a file."""
    parts = name.split("/")
    if not name or len(name) > Artifact.NAME_LENGTH or any(part in ("", ".", "..") for part in parts):
        raise ArtifactRefused(
            f"{name[:100]!r} is no name of an artifact: a relative path of at most 500 characters, without .."
        )
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ArtifactRefused(f"{name[:100]!r} is no name of an artifact: it holds a control character")


async def in_own_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call what blocks and uses the database, such as `keep_artifact`, from an event loop."""

    def call_and_close() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close()

    return await asyncio.to_thread(call_and_close)


def _pieces_of(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        view = memoryview(content)
        yield from (bytes(view[at : at + PIECE_BYTES]) for at in range(0, len(view), PIECE_BYTES))
    elif hasattr(content, "read"):
        while piece := content.read(PIECE_BYTES):
            yield piece
    else:
        yield from content
