"""Contents as objects of a bucket, at any service that speaks S3: contents/ab/abcd...

What is taken in is staged in the folder of this host first, as its digest is known only at its end. The library is imported
with this module, so only where a bucket is set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store as Bucket

from agents.artifacts.file_store import FileStore, StagedFile
from agents.artifacts.store import (
    BUCKET_SECRETS,
    DIGEST,
    PIECE_BYTES,
    ContentMissing,
    Staged,
    Stored,
    StoreUnusable,
    check_digest,
)
from agents.masks.values import SecretMissing, secret_value

PREFIX = "contents"
PART_BYTES = 8 << 20
"""Of a large content that is sent at once; S3 takes none below 5 MB but the last."""
AT_ONCE = 4
"""Parts that are on their way at once."""
PATIENCE: Any = {"timeout": "30s", "connect_timeout": "5s"}
RETRIES: Any = {"max_retries": 3}


class Place(Protocol):
    """Where a bucket is, as the settings say it."""

    @property
    def endpoint(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def region(self) -> str: ...


class StagedObject:
    """A content in a file of this host, until it is sent to the bucket."""

    def __init__(self, store: S3Store, file: StagedFile):
        self._store, self._file = store, file
        self.sha256, self.size, self.first = file.sha256, file.size, file.first

    def publish(self) -> None:
        if self._store.size_of(self.sha256) != self.size:
            with _store_refusals():
                obstore.put(
                    self._store.bucket, _key(self.sha256), self._file.read(), chunk_size=PART_BYTES, max_concurrency=AT_ONCE
                )  # fmt: skip

    def close(self) -> None:
        self._file.close()


class S3Store:
    """`staging` is where contents are until their digests are known."""

    def __init__(self, bucket: Bucket, staging: FileStore):
        self.bucket, self._staging = bucket, staging

    def stage(self, pieces: Iterable[bytes], most: int) -> Staged:
        return StagedObject(self, self._staging.stage_file(pieces, most))

    def read(self, sha256: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        key = _key(check_digest(sha256))
        wanted: Any = {"range": {"offset": start}} if stop is None else {"range": (start, stop)}
        try:
            with _store_refusals():
                found = obstore.get(self.bucket, key, options=wanted if start or stop is not None else None)
        except FileNotFoundError as error:
            raise ContentMissing(f"the store has no content {sha256}") from error
        return _pieces_of(found)

    def size_of(self, sha256: str) -> int | None:
        try:
            with _store_refusals():
                return obstore.head(self.bucket, _key(check_digest(sha256)))["size"]
        except FileNotFoundError:
            return None

    def remove(self, sha256: str) -> None:
        with contextlib.suppress(FileNotFoundError), _store_refusals():
            obstore.delete(self.bucket, _key(check_digest(sha256)))

    def contents(self) -> Iterator[Stored]:
        with _store_refusals():
            for found in obstore.list(self.bucket, PREFIX, chunk_size=1000):
                for each in found:
                    name = str(each["path"]).rpartition("/")[2]
                    if DIGEST.fullmatch(name):
                        yield Stored(name, each["size"], each["last_modified"])

    def sweep(self, before: datetime) -> int:
        return self._staging.sweep(before)


def open_bucket_store(place: Place, staging: FileStore) -> S3Store:
    """With the keys that are secrets of the installation. Raises StoreUnusable where there are none."""
    try:
        key_id, key = map(secret_value, BUCKET_SECRETS)
    except SecretMissing as error:
        raise StoreUnusable(f"the store {place.endpoint}/{place.name} cannot be opened: {error}") from error
    return S3Store(open_bucket(place.endpoint, place.name, place.region, key_id, key), staging)


@lru_cache(maxsize=4)
def open_bucket(endpoint: str, name: str, region: str, key_id: str, key: str) -> Bucket:
    """The bucket's client, which keeps its connections."""
    return Bucket(
        name, endpoint=endpoint, region=region, access_key_id=key_id, secret_access_key=key, virtual_hosted_style_request=False,
        client_options={**PATIENCE, "allow_http": endpoint.startswith("http://")}, retry_config=RETRIES,
    )  # fmt: skip


def _key(sha256: str) -> str:
    return f"{PREFIX}/{sha256[:2]}/{sha256}"


def _pieces_of(found: Any) -> Iterator[bytes]:
    with _store_refusals():
        for piece in found.stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)


@contextlib.contextmanager
def _store_refusals() -> Iterator[None]:
    """What the service refuses becomes StoreUnusable, but that something is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        raise StoreUnusable(f"the bucket does not answer as it should: {' '.join(str(error).split())[:300]}") from error
