"""Files of a workspace of any size and content: found by patterns, read as they are, and put there whole. Blocking; no Django.

As in files.py nothing leads out of the workspace. Here no link is followed at all, neither one to a folder nor one to a file.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from agents.devices.workspace.files import (
    FOLDER_FLAGS,
    FileRefused,
    FileUnfit,
    in_its_folder,
    keep_mode,
    opened_in,
    owner_of,
    path_refusals,
)

LOOKED_AT = 100_000
"""Names of a workspace that one search looks at."""
DEEP = 50
"""Folders in folders that a search goes down."""


class TooManyFiles(FileRefused):
    """More files fit a pattern than may be taken, or more have to be looked at."""

    code = "too_many_files"


def pattern_flaw(pattern: str) -> str:
    """What keeps a text from being a pattern of paths in a workspace; empty when nothing does."""
    parts = pattern.split("/")
    if not pattern or "\0" in pattern or any(part in ("", ".", "..") for part in parts):
        return f"{pattern[:100]!r} is no path in a workspace: relative, without .., with * ? [] and ** for any folders"
    return "" if len(parts) <= DEEP else f"{pattern[:100]!r} leads more than {DEEP} folders down"


def find_files(workspace: Path, patterns: Iterable[str], most: int) -> list[str]:
    """Paths of the files that fit any of the patterns, sorted; links are none. Raises FileUnfit and TooManyFiles."""
    found: set[str] = set()
    search = _Search()
    for pattern in patterns:
        if flaw := pattern_flaw(pattern):
            raise FileUnfit(flaw)
        try:
            top = os.open(workspace, FOLDER_FLAGS)
        except FileNotFoundError:  # nothing has run there yet
            return []
        try:
            for path in search.files_in(top, pattern.split("/"), "", 0):
                found.add(path)
                if len(found) > most:
                    raise TooManyFiles(f"more than {most} files fit {pattern}; {most} may be kept")
        finally:
            os.close(top)
    return sorted(found)


class _Search:
    """One search, which counts what it looks at."""

    def __init__(self) -> None:
        self._looked_at = 0

    def files_in(self, folder: int, parts: list[str], before: str, depth: int) -> Iterator[str]:
        """Files that fit the rest of a pattern, from a folder on whose path is `before`."""
        part, rest = parts[0], parts[1:]
        if part == "**":
            yield from self.files_in(folder, rest or ["*"], before, depth)
        for name in self._names(folder, part):
            with contextlib.suppress(OSError):  # somebody else's, or gone meanwhile
                kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISREG(kind) and not rest and part != "**":
                    yield before + name
                elif stat.S_ISDIR(kind) and (rest or part == "**") and depth < DEEP:
                    below = os.open(name, FOLDER_FLAGS, dir_fd=folder)
                    try:
                        yield from self.files_in(below, parts if part == "**" else rest, f"{before}{name}/", depth + 1)
                    finally:
                        os.close(below)

    def _names(self, folder: int, part: str) -> list[str]:
        """Names in a folder that fit one part of a pattern."""
        if not any(letter in part for letter in "*?["):
            return [part]
        names = os.listdir(folder)
        self._looked_at += len(names)
        if self._looked_at > LOOKED_AT:
            raise TooManyFiles(f"there are more than {LOOKED_AT:,} files to look at; name them without ** or *")
        return sorted(names if part == "**" else fnmatch.filter(names, part))


@contextlib.contextmanager
def opened_file(workspace: Path, path: str) -> Iterator[BinaryIO]:
    """A file of the workspace, to be read as it is. Raises FileRefused."""
    with in_its_folder(workspace, path) as (folder, name), opened_in(folder, name) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileRefused(f"{path} is not a file")
        with open(handle, "rb", closefd=False) as file:
            yield file


def place_file(workspace: Path, path: str, pieces: Iterable[bytes]) -> None:
    """Put a content there whole, or replace what there is; folders that are missing are made. Raises FileRefused.

    Whoever reads meanwhile finds the old content or the new one. What `pieces` raises leaves everything as it was.
    """
    with in_its_folder(workspace, path, make=True) as (folder, name), path_refusals(path):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise FileRefused(f"{path} is not a file, and nothing is put in its place")
        temporary = f".placed-{secrets.token_hex(8)}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with open(file, "wb") as opened:
                os.fchown(file, *owner_of(folder))
                keep_mode(folder, name, file)
                for piece in pieces:
                    opened.write(piece)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
