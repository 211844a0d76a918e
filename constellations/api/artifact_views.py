"""REST of the artifacts of a session: all of them, those of a task, and uploads for its tasks to find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.generics import get_object_or_404
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.filters import IdFilter, one_of
from agents.api.pagination import LARGEST, optional_parameter
from agents.api.serializers.artifacts import ArtifactRow
from agents.api.views import Api, request_id
from agents.artifacts.store import PIECE_BYTES
from agents.models import Artifact, Session
from agents.services.artifacts import artifact_upload
from constellations.models import Attempt
from constellations.reads.output_search import TEXT_CHARACTERS, search_outputs

NAME = OpenApiParameter("name", OpenApiTypes.STR, required=True, description="What tasks find it by: the input `#NAME`.")
DIGEST = OpenApiParameter("sha256", OpenApiTypes.STR, description="Of the body, in hexadecimal; another one is refused.")


TEXT = OpenApiParameter("text", OpenApiTypes.STR, required=True, description="In capital or small letters.")
TASK = OpenApiParameter("task", {"type": "integer", "minimum": 0, "maximum": LARGEST}, description="In its attempts only.")
BEFORE = OpenApiParameter(
    "before", {"type": "integer", "minimum": 0, "maximum": LARGEST}, description="`next` of the answer before."
)


class OutputHit(serializers.Serializer):
    """A place in an output."""

    attempt = serializers.IntegerField()
    number = serializers.IntegerField(help_text="Of the attempt among those of its task.")
    task = serializers.IntegerField()
    task_id = serializers.CharField()
    offset = serializers.IntegerField(help_text="In characters.")
    excerpt = serializers.CharField()


class OutputHits(serializers.Serializer):
    """Hits, and where the next answer begins; null where there is none."""

    hits = OutputHit(many=True)
    next = serializers.IntegerField(allow_null=True)


class RawBody(BaseParser):
    """A body as it comes: its stream."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: dict[str, Any] | None = None) -> Any:
        return stream


class OfTask(IdFilter):
    """Artifacts of all attempts of a task."""

    def filter(self, queryset: QuerySet[Any], value: int | None) -> QuerySet[Any]:
        return queryset if value is None else queryset.filter(attempt_id__in=Attempt.objects.filter(task=value).values("pk"))


class ArtifactFilter(django_filters.FilterSet):
    task = OfTask()
    attempt = IdFilter(field_name="attempt_id")
    kind = one_of(Artifact.KINDS)

    class Meta:
        model = Artifact
        fields = ()


class SessionArtifactViews(Api):
    """What the store has of a session."""

    serializer_class = ArtifactRow
    filterset_class = ArtifactFilter
    parser_classes = [RawBody]
    newest_first = True

    def get_queryset(self) -> QuerySet[Artifact]:
        return Artifact.objects.visible_to(self.request.user).filter(session=self.kwargs.get("pk", 0))

    def only_id(self) -> int:
        """The session of the address, if it is the reader's to see."""
        return get_object_or_404(Session.objects.visible_to(self.request.user), pk=self.kwargs["pk"]).pk

    @extend_schema(responses=ArtifactRow(many=True))
    @action(detail=True, methods=["get"])
    def artifacts(self, request: Request, pk: str) -> Response:
        """The artifacts of a session, newest first."""
        self.only_id()
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(ArtifactRow(rows, many=True).data)

    @extend_schema(
        parameters=[NAME, DIGEST], request={"application/octet-stream": OpenApiTypes.BINARY}, responses={201: ArtifactRow},
        filters=False,
    )  # fmt: skip
    @artifacts.mapping.post
    def upload(self, request: Request, pk: str) -> Response:
        """Give a session a file, which is the body as it is. Its tasks find it as the input `#NAME`."""
        session, name = self.only_id(), request.query_params.get("name", "")
        if not name:
            raise ValidationError({"name": "what is it called?"})
        made = artifact_upload(
            session, _pieces_of(request.data), name=name, sha256=request.query_params.get("sha256", ""),
            by=actor_name(request), request_id=request_id(request),
        )  # fmt: skip
        return Response(ArtifactRow(made).data, status=201)


class OutputSearchViews(Api):
    """What attempts printed, searched."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Session]:
        return Session.objects.visible_to(self.request.user)

    @extend_schema(parameters=[TEXT, TASK, BEFORE], responses=OutputHits, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def search(self, request: Request, pk: str) -> Response:
        """Where a text stands in what the attempts of a session printed, the latest first."""
        session, text = self.get_object().pk, request.query_params.get("text", "")
        if not 0 < len(text) <= TEXT_CHARACTERS:
            raise ValidationError({"text": f"what is to be found has 1 to {TEXT_CHARACTERS} characters"})
        task, before = (optional_parameter(request, name, 0, LARGEST) for name in ("task", "before"))
        return Response(search_outputs(session, text, task=task, before=before))


def _pieces_of(body: Any) -> Iterator[bytes]:
    """Of a body that is empty there is no stream."""
    while hasattr(body, "read") and (piece := body.read(PIECE_BYTES)):
        yield piece
