"""Paths of a workspace as they are judged: without detours, and with what is not known of them. Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class ResolvedPath(NamedTuple):
    """Where a path leads in a device's workspace: `path` without links and detours, relative to it.

    `doubt` says why the file may be known by other names, empty where it is not; `any_case` that the file system takes small
    and capital letters for the same.
    """

    path: str
    doubt: str = ""
    any_case: bool = False


def unresolved_path(path: str, is_word: bool = False) -> ResolvedPath:
    """A path that nobody can look at, without its detours; words with blanks are taken for none."""
    if is_word and " " in path:
        return ResolvedPath(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ResolvedPath(("/" if path.startswith("/") else "") + "/".join(parts))


class PathResolver(Protocol):
    """Tells where a path leads. Of a word that may be none `any_case` is not wanted."""

    def __call__(self, path: str, is_word: bool = False) -> ResolvedPath: ...
