"""REST of artifacts: one by itself, its content, and what becomes of it. Those of a session are in constellations.api."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.downloads import download
from agents.api.serializers.artifacts import ArtifactChange, ArtifactRow
from agents.api.views import Api, request_id
from agents.artifacts.media_types import TYPES
from agents.models import Artifact
from agents.services.artifacts import ArtifactRemoved, artifact_change, artifact_remove

RANGE = OpenApiParameter("Range", OpenApiTypes.STR, OpenApiParameter.HEADER, description="One range: bytes=0-99.")


class ArtifactViews(mixins.RetrieveModelMixin, Api):
    """What attempts have left in the store."""

    serializer_class = ArtifactRow
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Artifact]:
        return Artifact.objects.visible_to(self.request.user)

    @extend_schema(parameters=[RANGE], responses={(200, kind): OpenApiTypes.BINARY for kind in TYPES})
    @action(detail=True, methods=["get"], pagination_class=None)
    def content(self, request: Request, pk: str) -> HttpResponseBase:
        """Download its content: always an attachment, of a type that no browser runs."""
        artifact = self.get_object()
        if artifact.removed_at is not None:
            raise ArtifactRemoved(f"{artifact.name} was removed from the store on {artifact.removed_at:%Y-%m-%d}")
        return download(request, artifact)

    @extend_schema(request=ArtifactChange, responses=ArtifactRow)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Keep it whatever its age, or let it go by the rules again."""
        artifact, body = self.get_object(), self.body(ArtifactChange)
        changed = artifact_change(artifact.pk, **body, by=actor_name(request), request_id=request_id(request))
        return Response(ArtifactRow(changed).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Let its content go. Its row stays."""
        artifact_remove(self.get_object().pk, by=actor_name(request), request_id=request_id(request))
        return Response(status=204)
