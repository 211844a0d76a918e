"""What a shell device looks like to who works on it: the files of its workspace and how its host is doing. Blocking."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from agents.clock import now_iso, to_iso
from agents.devices import readings
from agents.devices.processes import list_pids
from agents.devices.starting import TEMPORARY
from agents.devices.workspace import files
from agents.progress.digests import canonical_json, text_digest

FILES = 200
"""Told of, newest first."""
ENTRIES = 2_000
"""Files and folders looked at."""
DEPTH = 6
"""Folders below each other that are looked into, the workspace included."""
DIGEST_BYTES = 64 * 1024
"""A file below this is told with the digest of its content."""
LAST_S = 253_402_300_799
"""The end of year 9999: no time of a file is told as later."""


class FoundFile(NamedTuple):
    """A file of the workspace; `modified` is in seconds since 1970."""

    path: str
    size: int
    modified: float


def observe_workspace(workspace: Path) -> dict[str, Any]:
    """{"files": [{path, size, modified, digest?}], "files_total", "system", "at"}; sizes in bytes, times as in records.

    `files_total` counts what is among the first ENTRIES entries. Temporary files and links are left out.
    """
    found = list(_walk(workspace))
    found.sort(key=lambda file: (-file.modified, file.path))
    shown = []
    for file in found[:FILES]:
        name = os.fsencode(file.path).decode("utf-8", "replace")  # a name need not be text
        told = {"path": name, "size": file.size, "modified": to_iso(file.modified)}
        content = files.content_state(workspace, file.path) if file.size < DIGEST_BYTES else files.UNKNOWN
        if content not in (files.ABSENT, files.UNKNOWN):
            told["digest"] = content
        shown.append(told)
    return {"files": shown, "files_total": len(found), "system": system_state(workspace), "at": now_iso()}


def files_digest(seen: dict[str, Any]) -> str:
    """Equal while the files told of keep their paths, sizes and contents; times do not count."""
    told = sorted([file["path"], file["size"], file.get("digest", "")] for file in seen["files"])
    return text_digest(canonical_json([told, seen["files_total"]]))


def system_state(workspace: Path) -> dict[str, Any]:
    """How the host is doing; None for what cannot be read."""
    reading = readings.take_reading(workspace)
    return {
        "load_1m": round(os.getloadavg()[0], 2), "memory_percent": reading.memory_percent, "disk_percent": reading.disk_percent,
        "cpu_count": os.cpu_count(), "uptime_s": readings.uptime_s(), "processes": len(list_pids()),
    }  # fmt: skip


def _walk(workspace: Path) -> Iterator[FoundFile]:
    """The files of the workspace, those of a folder before those below it."""
    left, top = ENTRIES, workspace.resolve()
    folders = deque([(top, 1)])
    while folders and left > 0:
        folder, depth = folders.popleft()
        entries = _entries(top, folder, left)
        left -= len(entries)
        for name, found in entries:
            if found is None or (depth == 1 and name == TEMPORARY):
                continue
            path = folder / name
            if stat.S_ISREG(found.st_mode):
                yield FoundFile(os.path.relpath(path, top), found.st_size, min(max(found.st_mtime, 0), LAST_S))
            elif stat.S_ISDIR(found.st_mode) and depth < DEPTH:
                folders.append((path, depth + 1))


def _entries(top: Path, folder: Path, most: int) -> list[tuple[str, os.stat_result | None]]:
    """By name; none of a folder that is gone meanwhile, or has become a link that leads out."""
    try:
        handle = os.open(folder, files.FOLDER_FLAGS)
    except OSError:
        return []
    try:
        if not Path(os.readlink(f"/proc/self/fd/{handle}")).is_relative_to(top):
            return []
        with os.scandir(handle) as entries:
            found = sorted(islice(entries, most), key=lambda entry: entry.name)
            return [(entry.name, _stat(entry)) for entry in found]
    except OSError:
        return []
    finally:
        os.close(handle)


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return None
