"""What an installation writes is its user's own: what others could read from before that was so is closed at start."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

FILE, FOLDER = 0o600, 0o700
NOT_OURS = ("workspaces", "artifacts")
"""Folders of folders in which commands write as they like: each of those is closed, and what is in it with it."""
BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite writes beside a database."""
FILES = 100_000
"""Looked at in one start."""

log = logging.getLogger(__name__)


def close_to_others() -> list[Path]:
    """Take everybody else's rights from the state folder, from what we wrote in it, and from the database; what was changed."""
    return [path for path in _ours() if _close(path)]


def _ours() -> Iterator[Path]:
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        yield from (Path(f"{database['NAME']}{end}") for end in BESIDE)
    yield settings.STATE_DIR
    seen = 0
    for folder, folders, files in os.walk(settings.STATE_DIR):
        here = Path(folder)
        yield from (here / name for name in (*folders, *files))
        if here.name in NOT_OURS and here.parent == settings.STATE_DIR:
            folders.clear()
        seen += len(files)
        if seen > FILES:
            log.warning("%s has more than %s files; the rest was not looked at", settings.STATE_DIR, FILES)
            return


def _close(path: Path) -> bool:
    """Whether others had rights there, and have no longer. A link is left alone, and what it leads to."""
    try:
        mode = path.lstat().st_mode
        kept = FOLDER if stat.S_ISDIR(mode) else FILE
        if stat.S_ISLNK(mode) or not stat.S_IMODE(mode) & ~kept & 0o7077:
            return False
        path.chmod(stat.S_IMODE(mode) & kept)
    except FileNotFoundError:
        return False
    except OSError as error:  # another user's: only they can
        log.warning("others may read %s, and it cannot be closed: %s", path, error.strerror)
        return False
    return True
