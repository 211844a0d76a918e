"""The plan files that the request box offers."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

EXAMPLES_LIMIT = 30
EXAMPLE_BYTES = 64_000
"""Larger files are not offered."""


def examples(folder: Path | None = None) -> list[dict[str, str]]:
    """[{"name": file name without its ending, "text": the plan}], by name."""
    found = sorted((folder or settings.BASE_DIR / "examples").glob("*.yaml"))[:EXAMPLES_LIMIT]
    return [{"name": path.stem, "text": _read(path, path.stat().st_mtime_ns)} for path in found if _fits(path)]


def _fits(path: Path) -> bool:
    return path.stat().st_size <= EXAMPLE_BYTES


@lru_cache(maxsize=EXAMPLES_LIMIT)
def _read(path: Path, changed_ns: int) -> str:
    return path.read_text()
