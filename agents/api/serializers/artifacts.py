"""Artifacts as REST shows and takes them."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.fields import RequestBody, Truth
from agents.models import Artifact


class ArtifactRow(serializers.ModelSerializer[Artifact]):
    """An artifact, without its content."""

    session = serializers.IntegerField(source="session_id")
    attempt = serializers.IntegerField(source="attempt_id", allow_null=True)
    call = serializers.IntegerField(source="call_id", allow_null=True)
    content = serializers.SerializerMethodField(help_text="Where its content is downloaded; null when that was removed.")

    class Meta:
        model = Artifact
        fields = (
            "id", "session", "attempt", "call", "name", "kind", "media_type", "size", "sha256", "is_kept", "created_at",
            "removed_at", "content",
        )  # fmt: skip

    def get_content(self, row: Artifact) -> str | None:
        return None if row.removed_at else f"/api/artifacts/{row.pk}/content/"


class ArtifactChange(RequestBody):
    """Whether it is kept whatever its age."""

    is_kept = Truth()
