"""The pages of artifacts. Their contents are downloaded over REST alone, as attachments."""

from __future__ import annotations

from django.contrib import admin

from agents.admin.filters import SessionFilter
from agents.admin.readonly import ReadOnlyAdmin
from agents.models import Artifact, StoredContent


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    session_path = "session"
    numbers = ("id", "attempt_id", "session_id")
    list_display = ("id", "name", "kind", "media_type", "size", "attempt_id", "session", "is_kept", "created_at", "removed_at")
    list_select_related = ("session",)
    list_filter = ("kind", SessionFilter)
    search_fields = ("name__istartswith",)


@admin.register(StoredContent)
class StoredContentAdmin(ReadOnlyAdmin):
    numbers = ("size",)
    list_display = ("sha256", "size", "claimed_at")
    search_fields = ("sha256__startswith",)
