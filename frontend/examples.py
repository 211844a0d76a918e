"""The plan files that the request box offers."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

EXAMPLES_LIMIT = 30
EXAMPLE_BYTES = 64_000
"""Larger files are not offered."""
SUMMARY = 120
"""Characters of what the list says of an example."""


def list_examples(folder: Path | None = None) -> list[dict[str, str]]:
    """[{"name": file name without its ending, "summary": what it shows, "text": the plan}], by name."""
    found = sorted((folder or settings.BASE_DIR / "examples").glob("*.yaml"))[:EXAMPLES_LIMIT]
    texts = [(path.stem, _read(path, path.stat().st_mtime_ns)) for path in found if path.stat().st_size <= EXAMPLE_BYTES]
    return [{"name": name, "summary": plan_summary(text), "text": text} for name, text in texts]


def plan_summary(text: str) -> str:
    """The sentence in the first line of a plan, where that is a comment; else empty."""
    first, _, _ = text.partition("\n")
    return first.lstrip("# ").partition(". ")[0].removesuffix(".")[:SUMMARY] if first.startswith("#") else ""


@lru_cache(maxsize=EXAMPLES_LIMIT)
def _read(path: Path, changed_ns: int) -> str:
    return path.read_text()
