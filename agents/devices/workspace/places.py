"""Where paths lead in a workspace: without links and detours, as the file system sees them. No Django here."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agents.devices.workspace.paths import ResolvedPath, unresolved_path


def resolve_path(workspace: Path, path: str, is_word: bool = False) -> ResolvedPath:
    """Where `path`, relative to the workspace, leads now; absolute where that is outside of it. Raises nothing.

    `is_word`: it may be no path at all, so one with blanks has to be there; most words are looked at once.
    """
    if is_word and ("/" not in path or " " in path):
        found = _stat(os.path.join(workspace, path))
        if found is None:
            return ResolvedPath(path)
        if "/" not in path and not stat.S_ISLNK(found.st_mode):
            return ResolvedPath(path, _doubt_of(found))
    try:
        top = os.path.realpath(workspace)
        place = os.path.realpath(os.path.join(top, path))
    except (OSError, ValueError):  # too long, a NUL character, links that go round
        return unresolved_path(path)
    inside = place.startswith(top + os.sep)
    found = _stat(place)
    doubt = "" if found is None else _doubt_of(found)
    return ResolvedPath(os.path.relpath(place, top) if inside else place, doubt, inside and _takes_any_case(place, top))


def is_there(workspace: Path, path: str) -> bool:
    return _stat(os.path.join(workspace, path)) is not None


def _doubt_of(found: os.stat_result) -> str:
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return f"the file has {found.st_nlink} names (hard links), and only one of them is known"
    return ""


def _takes_any_case(place: str, top: str) -> bool:
    """Whether the file system there takes small and capital letters for the same: asked of the nearest that exists."""
    while place.startswith(top):
        folder, name = os.path.split(place)
        if name.swapcase() != name and (found := _stat(place)) is not None:
            other = _stat(os.path.join(folder, name.swapcase()))
            return other is not None and os.path.samestat(found, other)
        place = folder
    return False


def _stat(place: str) -> os.stat_result | None:
    try:
        return os.lstat(place)
    except (OSError, ValueError):
        return None
