"""Text files of a workspace: read, written and edited by relative paths that never lead out of it.

A path may go through symbolic links as long as they end inside. Where it leads is looked up first; then each folder on that way
is opened in the one before, following no link: one that a command swaps meanwhile is no way out. Blocking; call it in a thread.
No Django here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Lock

from agents.devices.workspace.places import is_there, resolve_path
from agents.errors import AgentsError
from agents.faults import is_transient
from agents.progress.digests import DIGEST_LENGTH
from agents.progress.evidence import ABSENT, UNKNOWN

MB = 1 << 20
FILE_BYTES = MB
"""Of a file that is read, written or edited as text."""
READ_CHARACTERS = 64_000
"""Of one reading."""
DIGEST_BYTES = 64 * MB
"""Of a larger file the digest is that of its size and its first bytes."""
HELD_BYTES = MB
"""Of a file whose content an approval holds its call to by a digest."""
PIECE_BYTES = MB
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Not blocking, as a named pipe would wait for a writer."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRefused(AgentsError):
    """A file could not be read or changed as wanted. The message names its path."""

    code = "file_refused"
    error_kind = ""


class FileMissing(FileRefused):
    """There is no such file."""

    code = "file_missing"
    error_kind = "missing"


class PathRefused(FileRefused):
    """The path leads out of the workspace, or may not be touched there."""

    code = "path_refused"
    error_kind = "permission"


class FileUnfit(FileRefused):
    """What was given is no path or no text of a fitting size."""

    code = "file_unfit"
    error_kind = "bad_arguments"


class NobodyWaits(FileRefused):
    """Whoever wanted the change has given it up."""

    code = "nobody_waits"


class ChangeLeave:
    """Leave to change a file, which whoever wants the change may take back while it is not being made."""

    def __init__(self) -> None:
        self._lock, self._given = Lock(), True

    def take_back(self) -> bool:
        """From now on nothing is changed; False while something just is."""
        if not self._lock.acquire(blocking=False):
            return False
        self._given = False
        self._lock.release()
        return True

    @contextlib.contextmanager
    def change(self, name: str) -> Iterator[None]:
        with self._lock:
            if not self._given:
                raise NobodyWaits(f"{name} is not changed any more: nobody waits for it")
            yield


@dataclass(frozen=True, slots=True)
class FilePiece:
    """`text` is what the file holds from `offset` on; `offset` and `size` (of the whole file) are in characters."""

    text: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file's digests before (ABSENT: there was none) and after, its size in characters, and how often a text was replaced."""

    before: str
    after: str
    size: int
    replaced: int = 0


def content_digest(content: bytes) -> str:
    """The digest of a file's bytes; for UTF-8 that of its text (agents.progress.digests)."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]


def read_text(
    workspace: Path, path: str, offset: int = 0, limit: int = READ_CHARACTERS, *, judged: str | None = None
) -> FilePiece:
    """At most `limit` characters, and READ_CHARACTERS, from `offset` on. Raises FileRefused."""
    with in_its_folder(workspace, path, judged) as (folder, name):
        text = _text(path, _content(folder, name, path))
    return FilePiece(text[offset : offset + min(limit, READ_CHARACTERS)], offset, len(text))


def write_text(
    workspace: Path, path: str, content: str, leave: ChangeLeave | None = None, *, judged: str | None = None
) -> FileChange:
    """Make the file, or replace all it holds, at once; folders that are missing are made. Raises FileRefused."""
    encoded = _encoded(path, content)
    with in_its_folder(workspace, path, judged, make=True) as (folder, name):
        before = _state(folder, name, path)
        if before == UNKNOWN:
            raise FileRefused(f"{path} is not a file")
        _replace(folder, name, encoded, leave or ChangeLeave())
    return FileChange(before, content_digest(encoded), len(content))


def replace_text(
    workspace: Path,
    path: str,
    old: str,
    new: str,
    count: int = 1,
    leave: ChangeLeave | None = None,
    *,
    judged: str | None = None,
) -> FileChange:
    """Replace `old`, wherever it stands, by `new`. Raises FileRefused, also when it stands in more than `count` places."""
    with in_its_folder(workspace, path, judged) as (folder, name):
        content = _content(folder, name, path)
        text = _text(path, content)
        found = text.count(old)
        if not found:
            raise FileRefused(f"text to replace not found in {path}")
        if found > count:
            raise FileRefused(f"text to replace found {found} times in {path}, allowed: {count}")
        changed = text.replace(old, new)
        encoded = _encoded(path, changed)
        _replace(folder, name, encoded, leave or ChangeLeave())
    return FileChange(content_digest(content), content_digest(encoded), len(changed), found)


def content_state(workspace: Path, path: str) -> str:
    """The digest of a file's content, ABSENT when there is none, UNKNOWN for what is no file. Raises PathRefused, FileUnfit."""
    try:
        with in_its_folder(workspace, path) as (folder, name):
            return _state(folder, name, path)
    except FileMissing:
        return ABSENT


def identify_content(workspace: Path, name: str) -> str:
    """What tells the content of a file of the workspace from any other: its SHA-256; beyond HELD_BYTES its inode, size and time
    of change. Empty for a name that is no file, and for one outside; a link that leads out is told as such.
    """
    place = resolve_path(workspace, name, True).path
    if place.startswith("/"):
        return "" if name.startswith("/") else f"leads to {place}"
    if not is_there(workspace, place):
        return ""
    try:
        with in_its_folder(workspace, place) as (folder, leaf), opened_in(folder, leaf) as file:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return ""
            if found.st_size > HELD_BYTES:
                return f"inode {found.st_ino}, {found.st_size} bytes, changed {found.st_ctime_ns}"
            content = hashlib.sha256()
            for piece in _pieces(file, HELD_BYTES):
                content.update(piece)
    except FileMissing:
        return ""
    except FileRefused as refused:
        return f"cannot be read: {refused.code}"
    return f"sha256 {content.hexdigest()}"


# --- where a path leads, also for what is no text (contents.py)


@contextlib.contextmanager
def in_its_folder(workspace: Path, path: str, judged: str | None = None, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A handle of the folder that the file is in, and its name there; both after all links. OSError becomes FileRefused.

    `judged` is where the path led when it was judged: if it leads elsewhere by now, it is refused.
    """
    with path_refusals(path):
        top, place = _resolved(workspace, path)
        if judged is not None and place != top / judged:
            raise PathRefused(f"{path} led to {judged} when it was judged, and leads elsewhere now")
        if make:
            top.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _opened_folder(top, place.parent, make, path)
        try:
            yield folder, place.name
        finally:
            os.close(folder)


def _opened_folder(top: Path, place: Path, make: bool, path: str) -> int:
    """A handle of the folder `place`, from the workspace `top` down step by step: a link that is put there meanwhile leads
    nowhere, neither when a folder is opened nor when it is made.
    """
    folder = os.open(top, FOLDER_FLAGS)
    for part in place.relative_to(top).parts:
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                    os.chown(part, *owner_of(folder), dir_fd=folder, follow_symlinks=False)
            below = os.open(part, FOLDER_FLAGS, dir_fd=folder)
        except NotADirectoryError:
            if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                raise _outside(path) from None
            raise
        finally:
            os.close(folder)
        folder = below
    return folder


def _resolved(workspace: Path, path: str) -> tuple[Path, Path]:
    """The workspace and the file in it, both without links."""
    if not path or "\0" in path or path.endswith("/"):
        raise FileUnfit(f"{path!r} is not the path of a file")
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise _outside(path)
    top = workspace.resolve()
    try:
        place = (top / parts).resolve()
    except RuntimeError as error:
        raise PathRefused(f"{path} is a link that leads to itself") from error
    if not place.is_relative_to(top):
        raise _outside(path)
    if place == top:
        raise FileUnfit(f"{path!r} is not the path of a file")
    return top, place


def _outside(path: str) -> PathRefused:
    return PathRefused(f"{path} is outside the workspace; paths are relative to it, without ..")


@contextlib.contextmanager
def path_refusals(path: str) -> Iterator[None]:
    """What the system refuses becomes a FileRefused naming the path as given, but for what may go well a little later."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(f"there is no file {path}") from error
    except NotADirectoryError as error:
        raise FileMissing(f"there is no file {path}: {error.strerror}") from error
    except PermissionError as error:
        raise PathRefused(f"{path} may not be touched: {error.strerror}") from error
    except OSError as error:
        if is_transient(error):
            raise
        raise FileRefused(f"{path}: {error.strerror}") from error


# --- what a file holds


def _content(folder: int, name: str, path: str) -> bytes:
    """All of a file of bearable size."""
    with opened_in(folder, name) as file:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(f"{path} is not a file")
        content = b"".join(_pieces(file, FILE_BYTES + 1))
    if len(content) > FILE_BYTES:
        raise FileRefused(f"{path} is too large: {max(found.st_size, len(content)):,} bytes, {FILE_BYTES:,} are allowed")
    return content


def _state(folder: int, name: str, path: str) -> str:
    try:
        with opened_in(folder, name) as file:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return UNKNOWN
            content = hashlib.sha256()
            for piece in _pieces(file, DIGEST_BYTES):
                content.update(piece)
    except FileNotFoundError:
        return ABSENT
    except OSError:  # somebody else's, or nothing that could be opened
        return UNKNOWN
    if found.st_size > DIGEST_BYTES:
        content.update(str(found.st_size).encode())
    return content.hexdigest()[:DIGEST_LENGTH]


@contextlib.contextmanager
def opened_in(folder: int, name: str) -> Iterator[int]:
    """A handle of what has that name in a folder; no link is followed."""
    file = os.open(name, READ_FLAGS, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _pieces(file: int, most: int) -> Iterator[bytes]:
    """What the file holds, at most `most` bytes."""
    while most > 0 and (piece := os.read(file, min(PIECE_BYTES, most))):
        most -= len(piece)
        yield piece


def _text(path: str, content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"{path} is not UTF-8 text") from error
    if "\0" in text:
        raise FileRefused(f"{path} is not text: it holds a NUL character")
    return text


def _encoded(path: str, content: str) -> bytes:
    try:
        encoded = content.encode()
    except UnicodeEncodeError as error:
        raise FileUnfit(f"the content for {path} is not text that UTF-8 can hold") from error
    if len(encoded) > FILE_BYTES:
        raise FileUnfit(f"the content for {path} is too large: {len(encoded):,} bytes, {FILE_BYTES:,} are allowed")
    return encoded


def _replace(folder: int, name: str, content: bytes, leave: ChangeLeave) -> None:
    """Whoever reads meanwhile finds the old content or the new one. The file keeps its permissions."""
    temporary = f".written-{secrets.token_hex(8)}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        with open(file, "wb") as opened:
            os.fchown(file, *owner_of(folder))
            keep_mode(folder, name, file)
            opened.write(content)
        with leave.change(name):
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def owner_of(folder: int) -> tuple[int, int]:
    """Whose the folder is, user and group: so is what is made in it, also where commands are other users (mechanism `uid`).

    Who is not root gives nothing away: -1 leaves it as it is.
    """
    found = os.fstat(folder)
    return (found.st_uid, found.st_gid) if os.geteuid() == 0 else (-1, -1)


def keep_mode(folder: int, name: str, file: int) -> None:
    """Give a new file the permissions of the one whose place it is to take."""
    with contextlib.suppress(FileNotFoundError):
        os.fchmod(file, stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode))
