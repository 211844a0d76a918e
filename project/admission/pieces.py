"""A body that is in a file, handed on without being read: each piece is read when the application wants it."""

from __future__ import annotations

from typing import Any


class BodyPiece:
    """Some bytes of a body: as long as they are, and not in memory."""

    __slots__ = ("_file", "_offset", "_size")

    def __init__(self, file: Any, offset: int, size: int):
        self._file, self._offset, self._size = file, offset, size

    def __len__(self) -> int:
        return self._size

    def read(self) -> bytes | None:
        """What it is; None where the request has ended, and its file is gone."""
        if self._file.closed:
            return None
        self._file.seek(self._offset)
        content: bytes = self._file.read(self._size)
        return content


class PiecedBody:
    """The file of a body in the place of which daphne would put all of it into the application's queue."""

    def __init__(self, file: Any, size: int):
        self._file, self._size, self._at = file, size, 0

    def seek(self, offset: int, whence: int = 0) -> None:
        """To its beginning, from where it is read."""
        self._at = offset

    def read(self, size: int) -> BodyPiece:
        piece = BodyPiece(self._file, self._at, min(size, self._size - self._at))
        self._at += len(piece)
        return piece

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        self._file.close()
