"""Which store this installation has."""

from __future__ import annotations

from django.conf import settings

from agents.artifacts.file_store import FileStore
from agents.artifacts.store import Store


def open_store() -> Store:
    """The store that the settings name: the folder `store` of the state folder, or a bucket. Raises StoreUnusable."""
    folder = FileStore(settings.STATE_DIR / "store")
    if settings.ARTIFACTS_S3 is None:
        return folder
    from agents.artifacts.s3_store import open_bucket_store  # with a library that most installations never need

    return open_bucket_store(settings.ARTIFACTS_S3, folder)
