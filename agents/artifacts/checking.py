"""Is the store what the rows say? Reads every content that an artifact refers to."""

from __future__ import annotations

from collections.abc import Iterator

from agents.artifacts.opening import open_store
from agents.artifacts.reading import whole_content
from agents.artifacts.store import ContentDamaged, ContentMissing
from agents.models import Artifact, StoredContent

Finding = str


def verify_store() -> Iterator[Finding]:
    """What is missing or is not what it was, and what nobody knows, a line each. Raises StoreUnusable."""
    live = Artifact.objects.filter(removed_at=None)
    for sha256 in live.order_by("sha256").values_list("sha256", flat=True).distinct().iterator():
        try:
            for _ in whole_content(sha256):
                pass
        except (ContentMissing, ContentDamaged) as error:
            named = live.filter(sha256=sha256).order_by("id").values_list("id", flat=True)[:5]
            yield f"artifact {', '.join(map(str, named))}: {error}"
    for each in open_store().contents():
        if not StoredContent.objects.filter(pk=each.sha256).exists():
            yield f"the content {each.sha256} of the store is in no table"
