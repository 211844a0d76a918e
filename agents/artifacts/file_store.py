"""Contents as files of a folder, readable by this user only: ab/abcd..., and staging/ for what is being taken in.

A file is written, made durable and renamed, so that nobody ever finds a part of a content. No link is followed, neither one
that stands for a folder nor one for a content. No Django here.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from agents.artifacts.store import (
    PIECE_BYTES,
    ArtifactTooLarge,
    ContentMissing,
    Staged,
    Stored,
    StoreUnusable,
    check_digest,
)

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
STAGE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
STAGING = "staging"
SHELF = re.compile(r"[0-9a-f]{2}")
FIRST_BYTES = 64
"""Of a content that tell what it is."""


class StagedFile:
    """A content in a file of the folder `staging`, until it is renamed."""

    def __init__(self, top: Path, name: str, file: int):
        self._top, self._name, self._file = top, name, file
        self.sha256, self.size, self.first = "", 0, b""

    def fill(self, pieces: Iterable[bytes], most: int) -> None:
        """Write all pieces. Raises ArtifactTooLarge with the piece that is too much."""
        digest = hashlib.sha256()
        for piece in pieces:
            self.size += len(piece)
            if self.size > most:
                raise ArtifactTooLarge(f"it has more than {most:,} bytes, which are allowed")
            digest.update(piece)
            self.first = (self.first + piece)[:FIRST_BYTES] if len(self.first) < FIRST_BYTES else self.first
            with _store_refusals(self._top):
                _write_all(self._file, piece)
        self.sha256 = digest.hexdigest()

    def read(self) -> Iterator[bytes]:
        """What was staged, again."""
        at = 0
        while piece := os.pread(self._file, PIECE_BYTES, at):
            at += len(piece)
            yield piece

    def publish(self) -> None:
        with _store_refusals(self._top):
            os.fsync(self._file)
            with _opened_folder(self._top, STAGING) as staging, _opened_folder(self._top, self.sha256[:2]) as shelf:
                os.rename(self._name, self.sha256, src_dir_fd=staging, dst_dir_fd=shelf)
                os.fsync(shelf)

    def close(self) -> None:
        os.close(self._file)
        with contextlib.suppress(OSError), _opened_folder(self._top, STAGING) as staging:
            os.unlink(self._name, dir_fd=staging)


class FileStore:
    """The store in the folder `top`, which is made when it is first written to."""

    def __init__(self, top: Path):
        self._top = top

    def stage(self, pieces: Iterable[bytes], most: int) -> Staged:
        return self.stage_file(pieces, most)

    def stage_file(self, pieces: Iterable[bytes], most: int) -> StagedFile:
        """As `stage`, for whoever publishes it elsewhere."""
        name = secrets.token_hex(16)
        with _store_refusals(self._top), _opened_folder(self._top, STAGING) as staging:
            staged = StagedFile(self._top, name, os.open(name, STAGE_FLAGS, 0o600, dir_fd=staging))
        try:
            staged.fill(pieces, most)
        except BaseException:
            staged.close()
            raise
        return staged

    def read(self, sha256: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        return _read_file(self._opened(sha256), start, stop)

    def _opened(self, sha256: str) -> int:
        """A handle of the content's file."""
        missing = ContentMissing(f"the store has no content {check_digest(sha256)}")
        try:
            with _opened_folder(self._top, sha256[:2], make=False) as shelf:
                file = os.open(sha256, READ_FLAGS, dir_fd=shelf)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise missing from error
            raise StoreUnusable(f"the store {self._top} cannot be read: {error.strerror}") from error
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise missing

    def size_of(self, sha256: str) -> int | None:
        try:
            file = self._opened(sha256)
        except ContentMissing:
            return None
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def remove(self, sha256: str) -> None:
        check_digest(sha256)
        with (
            contextlib.suppress(FileNotFoundError),
            _store_refusals(self._top),
            _opened_folder(self._top, sha256[:2], make=False) as shelf,
        ):
            os.unlink(sha256, dir_fd=shelf)

    def contents(self) -> Iterator[Stored]:
        for shelf in filter(SHELF.fullmatch, _names_in(self._top)):
            for name in _names_in(self._top / shelf):
                with contextlib.suppress(FileNotFoundError, ContentMissing):
                    found = os.stat(self._top / shelf / check_digest(name), follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        yield Stored(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def sweep(self, before: datetime) -> int:
        swept = 0
        for name in _names_in(self._top / STAGING):
            path = self._top / STAGING / name
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < before.timestamp():
                    path.unlink()
                    swept += 1
        return swept


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _read_file(file: int, start: int, stop: int | None) -> Iterator[bytes]:
    """The pieces of an open file, which is closed after the last."""
    try:
        while stop is None or start < stop:
            piece = os.pread(file, PIECE_BYTES if stop is None else min(PIECE_BYTES, stop - start), start)
            if not piece:
                return
            start += len(piece)
            yield piece
    finally:
        os.close(file)


def _names_in(folder: Path) -> list[str]:
    """Of a folder that may not be there, and is none where a link stands in its place."""
    try:
        handle = os.open(folder, FOLDER_FLAGS)
    except OSError:
        return []
    try:
        return sorted(os.listdir(handle))
    finally:
        os.close(handle)


@contextlib.contextmanager
def _opened_folder(top: Path, name: str, make: bool = True) -> Iterator[int]:
    """A handle of a folder of the store, which is made where it is missing and `make` is given."""
    if make:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
    above = os.open(top, FOLDER_FLAGS)
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=above)
                os.fsync(above)
        folder = os.open(name, FOLDER_FLAGS, dir_fd=above)
    finally:
        os.close(above)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _store_refusals(top: Path) -> Iterator[None]:
    """What the system refuses becomes StoreUnusable, but that something is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreUnusable(f"the store {top} cannot be written to: {error.strerror}") from error
