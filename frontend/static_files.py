"""Static files under an address that names what they hold, so that a browser keeps them and asks again only for new ones.

All files of one release stand under one digest: `/static/3f2a.../frontend/session/page.js`. Modules and styles name each
other by relative paths, so they stay under it, and nothing is rewritten or collected first. While one develops (DEBUG)
the address is the plain one, and a browser asks each time whether a file has changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousFileOperation

DIGITS = 12
RELEASE = re.compile(rf"([0-9a-f]{{{DIGITS}}})/(.*)", re.DOTALL)


@dataclass(frozen=True)
class Release:
    """What is served: `stamps` has the path, time and size of each file by name, as it was when its contents were read."""

    digest: str
    stamps: dict[str, tuple[str, int, int]]

    def has(self, name: str, file: Path) -> bool:
        """Whether the file is still the one that was read."""
        return self.stamps.get(name) == stamp(file)


def stamp(file: Path) -> tuple[str, int, int]:
    status = file.stat()
    return str(file), status.st_mtime_ns, status.st_size


@cache
def release() -> Release:
    """Of this process; some 600 files are read, which takes a tenth of a second."""
    read, stamps = hashlib.sha256(), {}
    for name in sorted(set(_names())):
        if (file := find_file(name)) is not None:
            stamps[name] = stamp(file)
            read.update(f"{name}\0{stamps[name][2]}\0".encode() + file.read_bytes())
    return Release(read.hexdigest()[:DIGITS], stamps)


def _names() -> Iterator[str]:
    for finder in finders.get_finders():
        yield from (name for name, _ in finder.list([]))
    collected = Path(settings.STATIC_ROOT)
    yield from (str(file.relative_to(collected)) for file in collected.rglob("*") if file.is_file())


def find_file(name: str) -> Path | None:
    """The place where an app keeps it, and else STATIC_ROOT: what was collected there may be of an older release."""
    return _in_an_app(name) or _collected(name)


def _collected(name: str) -> Path | None:
    """Inside STATIC_ROOT; a link out of it leads nowhere."""
    root = Path(settings.STATIC_ROOT).resolve()
    file = (root / name).resolve()
    return file if file.is_relative_to(root) and file.is_file() else None


def _in_an_app(name: str) -> Path | None:
    try:
        found = finders.find(name)
    except SuspiciousFileOperation:
        return None
    return Path(found) if found and Path(found).is_file() else None


class ReleasedFiles(StaticFilesStorage):
    """Addresses of static files, with the digest of the release."""

    def url(self, name: str | None) -> str:
        if settings.DEBUG or not name:
            return super().url(name)
        return super().url(f"{release().digest}/{name}")
